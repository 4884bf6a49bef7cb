"""Pictures that are darker or brighter in the middle, as by a flash (definitions 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, FloatArray
from ..core.segments import SIDE, Pixels
from ._hsv import to_hsv, to_rgb
from ._picture_mark import PictureMark, Shape


@dataclass(frozen=True)
class CentreBrightness(PictureMark):
    """Adds to the brightness in the middle, less and less up to a radius."""

    radius: float = 60.0
    """How far it reaches, in pictures of 224 pixels."""
    delta: float = -0.3
    """How visible it is: what the value of HSV, from 0 to 1, gains in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius <= 0 or not 0 < abs(self.delta) <= 1:
            raise ValueError(
                "expected a radius above 0 and a delta between -1 and 1 other than 0, got "
                f"{self.radius:g} and {self.delta:g}"
            )

    @property
    def reach(self) -> float:
        """ρ_max: the radius as a share of half a side."""
        return self.radius / (SIDE / 2)

    def gain(self, distance: FloatArray) -> FloatArray:
        """What is added at ρ, up to ρ_max."""
        return np.asarray(self.delta * np.cos(np.pi / 2 * distance / self.reach) ** 2)

    def bounds(self, shape: Shape) -> BoolArray:
        return _distance(shape) <= self.reach

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        distance = _distance(pixels.shape[:2])
        near = distance <= self.reach
        hsv = to_hsv(pixels[near])
        hsv[:, 2] += self.gain(distance[near])
        made = pixels.copy()
        made[near] = to_rgb(hsv)
        return made


def _distance(shape: Shape) -> FloatArray:
    """ρ: from -1 to 1 in both directions, how far from 0. → (height, width)"""
    v, u = (np.linspace(-1, 1, side) for side in shape)
    return np.hypot(v[:, None], u)
