"""Classifiers of pictures: one class around any network from pixels to logits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import Embedded, FeatureMap, PlaneLayout
from ..core.errors import DataError, ModelError
from ..core.examples import Dataset
from ..core.images import Image
from ..core.inputs import Alignment, BoolArray, FloatArray, Hiding
from ..core.segments import Pixels
from ..data.pictures import Size
from ..engine.gradients import evaluating
from .architecture import Architecture, Training
from .weights import (
    check_shapes,
    identity_with,
    load_weights,
    reading_model,
    save_weights,
    shapes_in,
)

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""Of the channels of ImageNet, by which inputs are normalised (definitions 1.7)."""

PIXELS_AT_ONCE = 2**19
"""How many pixels go through a network together: ten pictures of side 224."""

identity_of = cache(Alignment.identity)


class NeuralPicture(nn.Module):
    """Normalised pixels, a network, and what it can be asked."""

    reads: ClassVar[str] = Image.kind

    batch_dependent: ClassVar[bool] = True
    """In batches of another shape, sums of 32-bit numbers have other last digits."""

    followed_at_once: ClassVar[int] = PIXELS_AT_ONCE
    """How many pixels are followed back at a time."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        network: nn.Module,
        labels: Sequence[str],
        shape: tuple[int, int],
        *,
        mean: Sequence[float] = MEAN,
        deviation: Sequence[float] = DEVIATION,
        name: str = "",
        framing: Size | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.labels = tuple(labels)
        self.shape = shape
        self.framing = framing or Size(shape[1], shape[0])
        self.name = name or type(network).__name__
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation), persistent=False)

    @property
    def device(self) -> torch.device:
        return self.mean.device

    def forward(self, values: Tensor) -> Tensor:
        """Normalised pixels to logits. (batch, 3, height, width) → (batch, labels)"""
        logits: Tensor = self.network(values)
        return logits

    # ---- Classifier, Maskable ---------------------------------------------------------------

    def probabilities(self, inputs: Sequence[Image]) -> FloatArray:
        self.check(inputs)
        found = [
            self.answers(np.stack([one.pixels for one in some])) for some in self.parts(inputs)
        ]
        return np.concatenate([np.zeros((0, len(self.labels))), *found])

    def masked_probabilities(
        self, inputs: Sequence[Image], shown: Sequence[BoolArray], how: Hiding
    ) -> list[FloatArray]:
        """Hidden pictures are made many at a time; no picture is made again from a file."""
        self.check(inputs)
        return [
            np.concatenate(
                [
                    np.zeros((0, len(self.labels))),
                    *(self.answers(one.hidden(some, how)) for some in self.parts(masks)),
                ]
            )
            for one, masks in zip(inputs, shown, strict=True)
        ]

    def answers(self, pixels: Pixels) -> FloatArray:
        """(batch, height, width, 3) → (batch, labels)"""
        with torch.inference_mode(), evaluating(self):
            logits = self(self.normalised(pixels).permute(0, 3, 1, 2).contiguous())
            return torch.softmax(logits.double(), dim=-1).cpu().numpy()

    def normalised(self, pixels: Pixels) -> Tensor:
        """8-bit numbers as the network reads them, in its precision. (…, 3)"""
        values = torch.from_numpy(np.ascontiguousarray(pixels)).to(self.mean)
        found: Tensor = (values / 255 - self.mean) / self.deviation
        return found

    def parts(self, items: Any) -> Iterator[Any]:
        """As many pictures, or maskings, as go through the network together."""
        size = max(1, PIXELS_AT_ONCE // (self.shape[0] * self.shape[1]))
        return (items[i : i + size] for i in range(0, len(items), size))

    def check(self, inputs: Sequence[Image]) -> None:
        height, width = self.shape
        for one in inputs:
            if one.shape != self.shape:
                raise ModelError(
                    f"expected pictures of {width}×{height} pixels, which this model reads; got "
                    f"{one.shape[1]}×{one.shape[0]}. Have them resized: --size {width}x{height} "
                    f'(load_data(…, size="{width}x{height}"))'
                )

    # ---- Differentiable, Convolutional ------------------------------------------------------

    def embed(self, inputs: Sequence[Image]) -> Embedded:
        """A piece per pixel: its three channels, normalised."""
        self.check(inputs)
        values = self.normalised(np.stack([one.pixels for one in inputs])).flatten(1, 2)
        there = torch.ones(values.shape[:2], dtype=torch.bool, device=self.device)
        return Embedded(values, there, there, (identity_of(values.shape[1]),) * len(inputs))

    def logits(self, embedded: Embedded) -> Tensor:
        logits: Tensor = self(self.planes(embedded))
        return logits

    def planes(self, embedded: Embedded) -> Tensor:
        """(batch, pixels, 3) → (batch, 3, height, width)"""
        return embedded.values.reshape(-1, *self.shape, 3).permute(0, 3, 1, 2).contiguous()

    # ---- on disk ----------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """A folder of safetensors."""
        save_weights(self, folder)

    def identity(self) -> str:
        """A hash of all that decides an answer."""
        settings = (self.name, self.labels, self.shape, self.mean.tolist(), self.deviation.tolist())
        return identity_with(self, repr(settings))

    @property
    def about(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        return f"{self.name}, {count:,} parameters, pictures of {self.shape[1]}×{self.shape[0]}"


class MappedPicture(NeuralPicture):
    """A network with `maps`, the last feature maps, and `decide`, which reads logits off them."""

    network: Any
    architecture: Any = None

    def feature_maps(self, embedded: Embedded) -> tuple[FeatureMap, ...]:
        maps: Tensor = self.network.maps(self.planes(embedded))  # (batch, filters, rows, columns)
        layout = PlaneLayout((maps.shape[2], maps.shape[3]), self.shape)
        values = maps.flatten(2).transpose(1, 2)
        return (FeatureMap(layout, values, torch.ones_like(values[..., 0], dtype=torch.bool)),)

    def logits_of_maps(self, maps: Sequence[FeatureMap]) -> Tensor:
        (one,) = maps
        assert isinstance(one.layout, PlaneLayout)
        values = one.values.transpose(1, 2)
        logits: Tensor = self.network.decide(values.reshape(*values.shape[:2], *one.layout.cells))
        return logits


@dataclass(frozen=True)
class PictureArchitecture(Architecture):
    """Settings shared by all models that are trained on pictures."""

    reads: ClassVar[str] = Image.kind
    training: ClassVar[Training] = Training(
        epochs=50, batch_size=128, patience=None, stop_at=0.97, slow_after=30
    )

    shape: tuple[int, ...] = ()
    """Height and width of the pictures; empty: those of the training pictures."""

    def __post_init__(self) -> None:
        if len(self.shape) not in (0, 2) or any(side < 1 for side in self.shape):
            raise ValueError(f"expected a height and a width of 1 or more, got {self.shape}")

    @abstractmethod
    def network(self, n_labels: int) -> nn.Module:
        """The layers between normalised pixels and logits, with `maps` and `decide`."""

    def start(self, train: Dataset[Any], *, seed: int) -> MappedPicture:
        shapes = {one.input.shape for one in train}
        if len(shapes) != 1 or (self.shape and self.shape not in shapes):
            seen = ", ".join(f"{w}×{h}" for h, w in sorted(shapes)[:4])
            raise DataError(
                "expected pictures of one size"
                + (f" ({self.shape[1]}×{self.shape[0]})" if self.shape else "")
                + f", got {len(shapes)} ({seen}). Have them resized: --size 64 (size=64 in Python)"
            )
        return self.settled(shapes.pop())._model(train.labels, seed)

    def settled(self, shape: tuple[int, int]) -> Self:
        return replace(self, shape=shape)

    def load(self, folder: Path, labels: Sequence[str]) -> MappedPicture:
        with reading_model(folder):
            file = folder / "model.safetensors"
            with torch.device("meta"):
                check_shapes(self._model(labels, 0), shapes_in(file))
            model = self._model(labels, 0)
            model.load_state_dict(load_weights(file))
        return model.eval()

    def _model(self, labels: Sequence[str], seed: int) -> MappedPicture:
        height, width = self.shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = MappedPicture(
                self.network(len(labels)), labels, (height, width), name=self.plugin_name()
            )
        model.architecture = self
        return model
