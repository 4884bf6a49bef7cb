"""Pictures with a number of the kind that cameras and agencies print (definitions 6.4)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..core.inputs import BoolArray
from ..core.segments import Pixels
from ._picture_mark import PictureMark, Shape, box, check_within, scaled, span

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

ASIDE, ABOVE = 40, 10
"""How far the middle of the writing keeps from the sides of its box, and from above and below."""

DIGITS = "0123456789ABCDEF"


@dataclass(frozen=True)
class Watermark(PictureMark):
    """Writes IMG and four random signs somewhere in a box, one part black and one white.

    The paper wrote in Open Sans Regular; here it is the font that comes with Pillow, so that
    nothing need be fetched, unless a font file is named.
    """

    top: float = 150.0
    """Where the box begins, in rows of pictures of 224 pixels."""
    bottom: float = 200.0
    """The row before which it ends."""
    left: float = 30.0
    """Where the box begins, in columns of pictures of 224 pixels."""
    right: float = 194.0
    """The column before which it ends."""
    size: float = 13.0
    """How visible it is: the size of the font, in pixels of pictures of 224."""
    font: str = ""
    """A TrueType or OpenType file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("top and bottom", self.top, self.bottom)
        check_within("left and right", self.left, self.right)
        if self.right - self.left < 2 * ASIDE or self.bottom - self.top < 2 * ABOVE:
            raise ValueError(
                f"expected a box of {2 * ASIDE} columns and {2 * ABOVE} rows at least, got "
                f"{self.right - self.left:g} and {self.bottom - self.top:g}"
            )
        if self.size <= 0:
            raise ValueError(f"expected a size above 0, got {self.size:g}")

    def bounds(self, shape: Shape) -> BoolArray:
        height, width = shape
        return box(span(self.top, self.bottom, height), span(self.left, self.right, width), shape)

    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        from PIL import Image, ImageDraw

        height, width = pixels.shape[:2]
        anchor = (
            scaled(rng.uniform(self.left + ASIDE, self.right - ASIDE), width),
            scaled(rng.uniform(self.top + ABOVE, self.bottom - ABOVE), height),
        )
        number = "".join(DIGITS[i] for i in rng.integers(len(DIGITS), size=4))
        before, behind = rng.permutation(["black", "white"]).tolist()
        font = _font(self.font, scaled(self.size, min(height, width)))
        picture = Image.fromarray(pixels)
        drawing = ImageDraw.Draw(picture)
        # right or left of the anchor, in its middle
        drawing.text(anchor, "IMG", fill=before, font=font, anchor="rm")
        drawing.text(anchor, number, fill=behind, font=font, anchor="lm")
        return np.asarray(picture)


@functools.lru_cache(maxsize=8)
def _font(file: str, size: float) -> FreeTypeFont:
    from PIL import ImageFont

    try:
        found = ImageFont.truetype(file, size) if file else ImageFont.load_default(size)
    except OSError:
        raise DataError(f"expected a TrueType or OpenType font in {file}, found none") from None
    assert isinstance(found, ImageFont.FreeTypeFont)
    return found
