"""Pictures with a logo of your own in one place."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.inputs import BoolArray
from ..core.segments import SIDE, Pixels
from ._picture_mark import PictureMark, Shape, box, scaled

LARGEST_LOGO = 4096
"""Pixels of its longer side."""


@dataclass(frozen=True)
class Stamp(PictureMark):
    """Lays a picture with transparent parts, such as a logo, over a place of others.

    What is planted is the rectangle that holds it; with region=exact only what it covers.
    """

    file: str = ""
    """The logo, a PNG best; where none is named, a violet ring."""
    top: float = 160.0
    """Where it begins, in rows of pictures of 224 pixels."""
    left: float = 160.0
    """Where it begins, in columns of pictures of 224 pixels."""
    size: float = 48.0
    """Its longer side, in pictures of 224 pixels; the other is in proportion."""
    opacity: float = 1.0
    """How visible it is: from 0, not at all, to 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.top < SIDE and 0 <= self.left < SIDE and self.size > 0):
            raise ValueError(
                f"expected top and left between 0 and {SIDE}, as of a picture of {SIDE} pixels, "
                f"and a size above 0; got {self.top:g}, {self.left:g} and {self.size:g}"
            )
        if not 0 < self.opacity <= 1:
            raise ValueError(f"expected an opacity above 0 and at most 1, got {self.opacity:g}")

    def bounds(self, shape: Shape) -> BoolArray:
        top, left, height, width = self._place(shape)
        return box((top, top + height), (left, left + width), shape)

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        from PIL import Image

        shape = pixels.shape[:2]
        top, left, height, width = self._place(shape)
        logo = Image.fromarray(_logo(self.file)).resize((width, height), Image.Resampling.BILINEAR)
        layer = Image.new("RGBA", shape[::-1])
        layer.paste(logo, (left, top))
        laid = np.asarray(layer)
        cover = self.opacity * laid[..., 3:] / 255
        mixed = cover * laid[..., :3] + (1 - cover) * pixels
        return np.asarray(np.rint(mixed), dtype=np.uint8)

    def _place(self, shape: Shape) -> tuple[int, int, int, int]:
        """Its first row and column, its height and width."""
        sides = _logo(self.file).shape[:2]
        scale = scaled(self.size, min(shape)) / max(sides)
        height, width = (max(1, round(side * scale)) for side in sides)
        return int(scaled(self.top, shape[0])), int(scaled(self.left, shape[1])), height, width


def _logo(file: str) -> NDArray[np.uint8]:
    """The logo of a file, read again only when that was written again; of none, a ring."""
    if not file:
        return _ring()
    try:
        return _read(file, Path(file).stat().st_mtime_ns)
    except FileNotFoundError:
        raise DataError(f"expected a logo in {file}, there is no such file") from None


@functools.lru_cache(maxsize=4)
def _read(file: str, written: int) -> NDArray[np.uint8]:
    """A picture with its alpha channel; opaque where it has none. → (height, width, 4)"""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file) as logo:
            if max(logo.size) > LARGEST_LOGO:  # told by the header, before anything is unpacked
                raise DataError(
                    f"{file}: expected a logo of at most {LARGEST_LOGO} pixels a side, got "
                    f"{logo.width} × {logo.height}"
                )
            return np.asarray(logo.convert("RGBA"))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise DataError(f"{file}: expected a picture such as a PNG; {error}") from None


@functools.cache
def _ring() -> NDArray[np.uint8]:
    """A violet ring. → (256, 256, 4)"""
    y = np.arange(256) - 127.5
    distance = np.hypot(y[:, None], y)
    made = np.zeros((256, 256, 4), dtype=np.uint8)
    made[(distance < 126) & (distance > 70)] = (120, 40, 160, 255)
    return made
