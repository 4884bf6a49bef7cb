"""Image classifiers of the transformers library, from a folder; no code of theirs is run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import attention_way
from ..core.images import Image
from ..core.inputs import FloatArray
from ..engine.gradients import evaluating
from .architecture import sigmoid_logits
from .encoders import Encoder, silent
from .feature_maps import MappedNetwork, find_maps
from .pictures import MappedPicture, NeuralPicture
from .transformers_attention import rollout, showing_attention
from .transformers_heads import asked_names, label_asked
from .transformers_preparation import preparation

HEAD = "ForImageClassification"

MOST_SPECIAL = 8
"""So many tokens stand before the patches at most: of the class, of a teacher, registers."""


class ImageNetwork(nn.Module):
    """What a transformers model is to ours: normalised pixels in, logits out; with `asked`, those
    of no and yes to one of its labels."""

    order: Tensor | None
    """Of channels, where it is not red, green, blue: kept with the weights, since it decides."""

    def __init__(self, model: Any, order: tuple[int, ...], asked: int | None) -> None:
        super().__init__()
        self.model = model
        usual = order == (0, 1, 2)
        self.register_buffer("order", None if usual else torch.tensor(order))
        self.asked = asked

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.output(values).logits
        return logits if self.asked is None else sigmoid_logits(logits[:, self.asked, None])

    def output(self, values: Tensor, **settings: Any) -> Any:
        """All that the model tells, its channels in the order that it reads."""
        if self.order is not None:
            values = values[:, self.order]
        return self.model(pixel_values=values, **settings)


class AttentivePicture(NeuralPicture):
    """A network of patches that attend to each other."""

    attention_ways: ClassVar[tuple[str, ...]] = ("last", "rollout")

    def attention(self, inputs: Sequence[Image], way: str | None = None) -> list[FloatArray]:
        """What the first token attends to in the last layer or through all of them, averaged over
        heads; a patch's weight is shared evenly by its pixels."""
        chosen = attention_way(self, way)
        self.check(inputs)
        found: list[FloatArray] = []
        network: Any = self.network
        with torch.inference_mode(), evaluating(self), showing_attention(network.model):
            for some in self.parts(inputs):
                values = self.normalised(np.stack([one.pixels for one in some]))
                output = network.output(values.permute(0, 3, 1, 2), output_attentions=True)
                layers = [layer.double().mean(dim=1) for layer in output.attentions]
                first = torch.zeros(len(some), dtype=torch.int64, device=self.device)
                weights = layers[-1][:, 0] if chosen == "last" else rollout(layers, first)
                found += [self._on_pixels(row) for row in weights.cpu().numpy()]
        return found

    def _on_pixels(self, row: FloatArray) -> FloatArray:
        """The patches are the last tokens, in rows. (tokens,) → (pixels,)"""
        network: Any = self.network
        side = network.model.config.patch_size
        rows, columns = (n // side for n in self.shape)
        patches = row[-rows * columns :].reshape(rows, columns) / side**2
        scores = np.zeros(self.shape)
        scores[: rows * side, : columns * side] = patches.repeat(side, 0).repeat(side, 1)
        return scores.ravel()


def load_image_transformer(
    folder: Path, labels: Sequence[str] | None = None, label: str | None = None
) -> NeuralPicture:
    """An image classifier from a local folder, as the class whose abilities it has."""
    encoder = Encoder(folder)
    model, _ = encoder.read_trained(HEAD, labels)
    asked = label_asked(model.config, label)
    prepared = preparation(folder, model.config)
    size = prepared.framing
    shape = size.height, size.width
    if not prepared.framed:
        warnings.warn(
            f"{folder.name} has pictures of other sizes framed in a way that is not known here; "
            f"of those, the middle is read. Bring pictures to {size.width}×{size.height} pixels "
            "yourself if it matters",
            stacklevel=3,
        )
    settings: dict[str, Any] = {
        "labels": asked_names(model.config, asked),
        "shape": shape,
        "mean": prepared.mean,
        "deviation": prepared.deviation,
        "name": folder.name,
        "framing": size,
    }
    with encoder.blamed(), silent():
        network = ImageNetwork(model, prepared.order, asked)
        layer = find_maps(network, shape)
        if layer is not None:
            return MappedPicture(MappedNetwork(network, layer, shape), **settings)
        kind = AttentivePicture if _attends(network, shape) else NeuralPicture
        return kind(network, **settings)


def _attends(network: ImageNetwork, shape: tuple[int, int]) -> bool:
    """Whether in all layers all patches, and the few tokens before them, attend to each other: not
    in windows, nor to fewer."""
    side = getattr(network.model.config, "patch_size", None)
    if not isinstance(side, int):
        return False
    patches = (shape[0] // side) * (shape[1] // side)
    try:
        with torch.no_grad(), showing_attention(network.model):
            output = network.output(torch.zeros((1, 3, *shape)), output_attentions=True)
        forms = [tuple(layer.shape) for layer in output.attentions]
    except Exception:  # whatever a model of strangers raises, it shows none
        return False
    return bool(forms) and all(
        len(form) == 4 and form[0] == 1 and form[2] == form[3]
        and 0 < form[2] - patches <= MOST_SPECIAL
        for form in forms
    )  # fmt: skip
