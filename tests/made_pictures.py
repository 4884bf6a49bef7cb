"""A run on a few made pictures, for tests and for looking at reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import veracity
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import FloatArray
from veracity.results.run import Run


class Corner:
    """Answers by how bright the first tile of a picture is."""

    labels = ("dark", "light")

    def probabilities(self, inputs: Sequence[Image]) -> FloatArray:
        tiles = [one.pixels[: one.shape[0] // 8, : one.shape[1] // 8] for one in inputs]
        light = 1 / (1 + np.exp(-(np.array([tile.mean() for tile in tiles]) - 128) / 16))
        return np.stack([1 - light, light], axis=1)


def made_pictures(
    n: int, shape: tuple[int, int] = (24, 32), *, name: str = "picture"
) -> Dataset[Image]:
    """Noise, the first tile dark or light, which is what is planted."""
    rng = np.random.default_rng(0)
    region = np.zeros(shape, dtype=np.bool_)
    region[: shape[0] // 8, : shape[1] // 8] = True
    examples = []
    for i in range(n):
        pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        pixels[region] = pixels[region] // 3 + 170 * (i % 2)
        truths = {"planted": (region.ravel(),)}
        examples.append(Example(f"{name} {i}", Image(pixels), i % 2, truths))
    return Dataset("made pictures", Corner.labels, tuple(examples))


def made_picture_run(folder: Path, n: int = 12, *, name: str = "picture") -> Run:
    data = made_pictures(n, name=name)
    veracity.audit(Corner(), data, "occlusion, random_scores", out=folder, extras=False)
    return Run.open(folder)
