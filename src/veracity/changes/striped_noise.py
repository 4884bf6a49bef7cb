"""Pictures with a stripe in which some pixels are noise (definitions 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray
from ..core.segments import Pixels
from ._picture_mark import PictureMark, Shape, check_within, stripe


@dataclass(frozen=True)
class StripedNoise(PictureMark):
    """Gives some pixels in a stripe of rows a colour drawn at random."""

    top: float = 80.0
    """The first row, in pictures of 224 pixels."""
    bottom: float = 130.0
    """The last row, in pictures of 224 pixels."""
    p: float = 0.03
    """How visible it is: the probability that a pixel of the stripe is replaced."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("top and bottom", self.top, self.bottom)
        if not 0 < self.p <= 1:
            raise ValueError(f"expected a p above 0 and at most 1, got {self.p:g}")

    def bounds(self, shape: Shape) -> BoolArray:
        return stripe(self.top, self.bottom, shape)

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        noisy = rng.random(pixels.shape[:2]) < self.p
        made = pixels.copy()
        made[noisy] = rng.integers(0, 256, (int(noisy.sum()), 3), dtype=np.uint8)
        return made
