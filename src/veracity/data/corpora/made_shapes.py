"""Pictures made of simple shapes, whose deciding pixels are known because we put them there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.examples import Dataset, Example
from ...core.images import Image
from ...core.inputs import BoolArray, FloatArray
from ...core.plugins import nearest
from ...core.segments import Pixels
from ..corpus import Corpus

RADIUS = (0.24, 0.38)
"""From the middle of a shape to its corners, as a share of the side."""
GROUND, COLOUR = (20.0, 110.0), (150.0, 250.0)
"""The channels of what is around a shape, and of the shape."""
GRAIN = 12.0
"""The standard deviation of the noise on every pixel, of 255."""
TURN = 0.2
"""How far shapes are turned either way, in radians: few enough that their edges tell them."""
DISTRACTORS = 4
"""Small spots of any colour, at most so many."""


def _circle(x: FloatArray, y: FloatArray) -> BoolArray:
    return np.less_equal(x**2 + y**2, 1)


def _square(x: FloatArray, y: FloatArray) -> BoolArray:
    return np.less_equal(np.maximum(abs(x), abs(y)), np.sqrt(0.5))


def _triangle(x: FloatArray, y: FloatArray) -> BoolArray:
    found: BoolArray = (y <= 0.5) & (y >= np.sqrt(3) * abs(x) - 1)
    return found


def _cross(x: FloatArray, y: FloatArray) -> BoolArray:
    return np.logical_and(np.minimum(abs(x), abs(y)) <= 0.25, np.maximum(abs(x), abs(y)) <= 0.95)


SHAPES: dict[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "cross": _cross,
}
"""Whether places, in radii from the middle, lie inside a shape."""


@dataclass(frozen=True)
class MadeShapes(Corpus):
    """Pictures of one shape each, of any colour, size and place, among spots and noise; the pixels
    of the shape are known."""

    n: int = 600
    """How many pictures are made."""
    side: int = 32
    """Width and height in pixels."""
    labels: tuple[str, ...] = ("circle", "triangle")
    """The shapes, of circle, square, triangle and cross, which are the labels."""
    seed: int = 0

    largest: ClassVar[dict[str, int]] = {"n": 100_000, "side": 512}

    def __post_init__(self) -> None:
        if self.n < 1 or self.side < 8:
            raise ValueError(
                f"expected n of 1 or more and side of 8 or more, got n={self.n}, side={self.side}"
            )
        unknown = [name for name in self.labels if name not in SHAPES]
        if unknown:
            raise ValueError(f"no shape is called {unknown[0]!r}: {nearest(unknown[0], SHAPES)}")
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ValueError(f"expected two shapes or more, each once, got {self.labels}")

    def load(self) -> Dataset[Image]:
        """Labels take turns, and each picture has its own generator: more are the same and more."""
        return Dataset(self.spec, self.labels, tuple(self._picture(i) for i in range(self.n)))

    def _picture(self, i: int) -> Example[Image]:
        rng = np.random.default_rng([self.seed, i])
        label = i % len(self.labels)
        radius = rng.uniform(*RADIUS) * self.side
        angle = rng.uniform(-TURN, TURN)
        shape = self._placed(SHAPES[self.labels[label]], rng, radius, angle)
        ground, colour = _colours(rng)
        values = np.full((self.side, self.side, 3), ground)
        values += _slope(rng, self.side)
        for _ in range(rng.integers(DISTRACTORS + 1)):
            spot = self._placed(_circle, rng, rng.uniform(0.03, 0.06) * self.side, 0.0)
            values[spot] = rng.uniform(0, 255, 3)
        values[shape] = colour
        values += rng.normal(0, GRAIN, values.shape)
        pixels: Pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
        truths = {"rationale": (shape.ravel(),)}
        return Example(f"made-{i}", Image(pixels), label, truths)

    def _placed(
        self,
        inside: Callable[[FloatArray, FloatArray], BoolArray],
        rng: np.random.Generator,
        radius: float,
        angle: float,
    ) -> BoolArray:
        """A shape somewhere in the picture, all of it. → (side, side)"""
        middle = rng.uniform(radius, self.side - radius, 2)
        along = np.arange(self.side) + 0.5
        x, y = (along - middle[0])[None, :] / radius, (along - middle[1])[:, None] / radius
        turned = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        return inside(*turned)


def _colours(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A dark one around and a light one of the shape; neither says anything about which shape."""
    return rng.uniform(*GROUND, 3), rng.uniform(*COLOUR, 3)


def _slope(rng: np.random.Generator, side: int) -> FloatArray:
    """Light that falls from one side. → (side, side, 1)"""
    along = np.linspace(-1, 1, side)
    x, y = rng.uniform(-20, 20, 2)
    slope: FloatArray = (x * along[None, :] + y * along[:, None])[..., None]
    return slope
