"""Pictures with a stripe in which colours are turned to and fro (definitions 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, FloatArray
from ..core.segments import Pixels
from ._hsv import to_hsv, to_rgb
from ._picture_mark import PictureMark, Shape, check_within, span, stripe


@dataclass(frozen=True)
class StripedHue(PictureMark):
    """Shifts the hue in a stripe of rows by a wave; grey pixels have none and stay as they are."""

    top: float = 80.0
    """The first row, in pictures of 224 pixels."""
    bottom: float = 130.0
    """The last row, in pictures of 224 pixels."""
    delta: float = 0.15
    """How visible it is: the largest shift, where 1 is once round the circle of colours."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("top and bottom", self.top, self.bottom)
        if not 0 < abs(self.delta) <= 1:
            raise ValueError(f"expected a delta between -1 and 1 other than 0, got {self.delta:g}")

    def shift(self, rows: FloatArray, height: int) -> FloatArray:
        """What is added to the hue in these rows; outside the stripe nothing. The wave follows the
        middle of the picture, so it may jump at the stripe's edges. → (rows,)"""
        top, bottom = span(self.top, self.bottom, height)
        wave = np.sin(2 * np.pi * (rows - height / 2) / max(bottom - top, 1))
        inside = (top <= rows) & (rows <= bottom)
        return np.where(inside, self.delta * np.sign(wave) * wave**2, 0.0)

    def bounds(self, shape: Shape) -> BoolArray:
        return stripe(self.top, self.bottom, shape)

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        shift = self.shift(np.arange(len(pixels), dtype=np.float64), len(pixels))
        rows = np.flatnonzero(shift)
        hsv = to_hsv(pixels[rows])
        hsv[..., 0] += shift[rows, None]
        made = pixels.copy()
        made[rows] = to_rgb(hsv)
        return made
