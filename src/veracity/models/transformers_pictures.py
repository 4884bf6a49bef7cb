"""Image classifiers of the transformers library, from a folder; no code of theirs is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..core.classifiers import attention_way
from ..core.errors import ModelError
from ..core.files import read_json, reading
from ..core.images import Image
from ..core.inputs import FloatArray
from ..core.schema import check_schema
from ..engine.gradients import evaluating
from .architecture import sigmoid_logits
from .encoders import Encoder, silent
from .feature_maps import MappedNetwork, find_maps
from .pictures import DEVIATION, MEAN, MappedPicture, NeuralPicture
from .transformers_attention import rollout, showing_attention
from .transformers_heads import asked_names, label_asked

HEAD = "ForImageClassification"
PREPARATION = "preprocessor_config.json"
USUAL_SIDE = 224


class ImageNetwork(nn.Module):
    """What a transformers model is to ours: normalised pixels in, logits out; with `asked`, those
    of no and yes to one of its labels."""

    def __init__(self, model: Any, asked: int | None) -> None:
        super().__init__()
        self.model = model
        self.asked = asked

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.model(pixel_values=values).logits
        return logits if self.asked is None else sigmoid_logits(logits[:, self.asked, None])


class AttentivePicture(NeuralPicture):
    """A network of patches that attend to each other."""

    attention_ways: ClassVar[tuple[str, ...]] = ("last", "rollout")

    def attention(self, inputs: Sequence[Image], way: str | None = None) -> list[FloatArray]:
        """What the first token attends to in the last layer or through all of them, averaged over
        heads; a patch's weight is shared evenly by its pixels."""
        chosen = attention_way(self, way)
        self.check(inputs)
        found: list[FloatArray] = []
        model: Any = self.network.model
        with torch.inference_mode(), evaluating(self), showing_attention(model):
            for some in self.parts(inputs):
                values = self.normalised(np.stack([one.pixels for one in some]))
                output = model(pixel_values=values.permute(0, 3, 1, 2), output_attentions=True)
                layers = [layer.double().mean(dim=1) for layer in output.attentions]
                first = torch.zeros(len(some), dtype=torch.int64, device=self.device)
                weights = layers[-1][:, 0] if chosen == "last" else rollout(layers, first)
                found += [self._on_pixels(row) for row in weights.cpu().numpy()]
        return found

    def _on_pixels(self, row: FloatArray) -> FloatArray:
        """The patches are the last tokens, in rows. (tokens,) → (pixels,)"""
        height, width = self.shape
        model: Any = self.network.model
        side = int(model.config.patch_size)
        rows, columns = height // side, width // side
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
    settings = _preparation(folder, model.config)
    asked = label_asked(model.config, label)
    names = asked_names(model.config, asked)
    with encoder.blamed(), silent():
        network = ImageNetwork(model, asked)
        layer = find_maps(network, settings["shape"])
        if layer is not None:
            mapped = MappedNetwork(network, layer, settings["shape"])
            return MappedPicture(mapped, names, name=folder.name, **settings)
        probe = torch.zeros((1, 3, *settings["shape"]))
        try:
            with torch.no_grad(), showing_attention(model):
                weights = model(pixel_values=probe, output_attentions=True).attentions
            attends = weights[0].dim() == 4 and hasattr(model.config, "patch_size")
        except (AttributeError, IndexError, TypeError, ValueError):
            attends = False
        kind = AttentivePicture if attends else NeuralPicture
        return kind(network, names, name=folder.name, **settings)


def _preparation(folder: Path, config: Any) -> dict[str, Any]:
    """How pictures are prepared for the model, by the file that lies beside it."""
    path = folder / PREPARATION
    content: dict[str, Any] = {}
    if path.exists():
        with reading(path, remedy="Copy the folder anew", error=ModelError):
            content = read_json(path)
            check_schema(content, {"image_mean?": [float], "image_std?": [float]})
    side = content.get("crop_size") if content.get("do_center_crop") else None
    side = side or content.get("size") or getattr(config, "image_size", USUAL_SIDE)
    if isinstance(side, dict):
        side = side.get("shortest_edge") or (side.get("height"), side.get("width"))
    shape = tuple(side) if isinstance(side, list | tuple) else (side, side)
    if len(shape) != 2 or not all(isinstance(n, int) and 0 < n < 10_000 for n in shape):
        raise ModelError(f"expected {path} to name a size of pictures, got {side!r:.60}")
    plain = content.get("do_normalize") is False
    return {
        "shape": shape,
        "mean": (0.0,) * 3 if plain else tuple(content.get("image_mean", MEAN)),
        "deviation": (1.0,) * 3 if plain else tuple(content.get("image_std", DEVIATION)),
    }
