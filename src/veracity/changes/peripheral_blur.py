"""Pictures that are sharp in the middle only, as by another lens (definitions 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray
from ..core.segments import Pixels
from ._picture_mark import PictureMark, Shape, from_centre, scaled


@dataclass(frozen=True)
class PeripheralBlur(PictureMark):
    """Blurs all that lies farther from the middle than a radius."""

    radius: float = 80.0
    """Of what stays sharp, in pictures of 224 pixels; above 158 nothing is blurred."""
    sigma: float = 10.0
    """How visible it is: the standard deviation of the Gaussian, in pictures of 224 pixels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius < 0 or self.sigma <= 0:
            raise ValueError(
                "expected a radius of 0 or more and a sigma above 0, got "
                f"{self.radius:g} and {self.sigma:g}"
            )

    def bounds(self, shape: Shape) -> BoolArray:
        y, x = (from_centre(side) for side in shape)
        return np.asarray(y[:, None] ** 2 + x**2 > self.radius**2)

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        from scipy.ndimage import gaussian_filter

        sigma = scaled(self.sigma, min(pixels.shape[:2]))
        blurred = gaussian_filter(pixels.astype(np.float32), (sigma, sigma, 0), mode="nearest")
        return np.asarray(np.rint(blurred), dtype=np.uint8)
