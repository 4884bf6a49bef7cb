"""Pictures: pixels are scored, segments are looked at and hidden."""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .errors import DataError
from .inputs import BoolArray, FloatArray, Hiding, Input, IntArray, Nouns, register_input
from .segments import GRID, Pixels, numbered, segmented

BLUR = 0.1
"""The standard deviation of the blur that hides, as a share of the longer side."""

NEIGHBOURS = {(0, 1): 1 / 6, (1, 0): 1 / 6, (1, 1): 1 / 12, (1, -1): 1 / 12}
"""How much a pixel has of a neighbour and of the one opposite, where it is guessed from them."""

NOISE = 2.55
"""The standard deviation of the noise on guessed pixels, of 255."""


@register_input
@dataclass(frozen=True, eq=False)
class Image(Input):
    """A picture of 8 bits per channel, and how it is cut into segments."""

    kind: ClassVar[str] = "image"
    nouns: ClassVar[Nouns] = Nouns(
        one="picture",
        many="pictures",
        unit="segment",
        units="segments",
        feature="pixel",
        features="pixels",
        long="large",
        length="size",
        more_units="finer segments",
        sample="picture.png",
    )
    hidings: ClassVar[tuple[Hiding, ...]] = (
        Hiding.BLACK,
        Hiding.MEAN,
        Hiding.BLUR,
        Hiding.LINEAR,
    )

    pixels: Pixels  # (height, width, 3)
    segmentation: str = GRID
    """How it is cut: `grid(across=8)`, `quickshift`, `slic(n=50)`, or `own` for a label map."""
    label_map: IntArray | None = None  # (pixels,) from 0 without a gap

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 3 or self.pixels.shape[2] != 3:
            raise DataError(
                "expected a picture as 8-bit numbers of the shape (height, width, 3), got "
                f"{self.pixels.dtype} of the shape {self.pixels.shape}"
            )
        if not self.pixels.size:
            raise DataError("expected a picture of one pixel at least, got none")

    @classmethod
    def with_segments(cls, pixels: Pixels, label_map: IntArray) -> Image:
        """A picture that its owner cut. label_map (height, width)"""
        if label_map.shape != pixels.shape[:2]:
            raise DataError(
                f"expected a label map of the picture's size {pixels.shape[:2]}, got "
                f"{label_map.shape}"
            )
        return cls(pixels, "own", numbered(label_map))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        height, width, _ = self.pixels.shape
        return height, width

    @property
    def n_features(self) -> int:
        return self.pixels.size // 3

    @cached_property
    def n_units(self) -> int:
        return int(self.segments.max()) + 1

    @cached_property
    def segments(self) -> IntArray:
        """The segment of each pixel. → (pixels,)"""
        if self.label_map is not None:
            return self.label_map
        return segmented(self.pixels, self.segmentation)

    def units(self) -> IntArray:
        return self.segments

    @cached_property
    def key(self) -> str:
        own = b"" if self.label_map is None else self.label_map.tobytes()
        named = f"{self.shape}{self.segmentation}".encode()
        return hashlib.sha256(named + own + self.pixels.tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        height, width = self.shape
        return f"picture {width}×{height} {self.key[:12]}"

    @property
    def raw(self) -> Pixels:
        return self.pixels

    @property
    def wire(self) -> str:
        """The picture as PNG, in base64."""
        return base64.b64encode(self._png).decode()

    @cached_property
    def _png(self) -> bytes:
        from PIL import Image as Pictures

        file = io.BytesIO()
        Pictures.fromarray(self.pixels).save(file, "PNG", compress_level=1)
        return file.getvalue()

    def keep(self, shown: BoolArray, how: Hiding) -> Image:
        """The picture with only the shown segments, the others hidden; cut as before."""
        if len(shown) != self.n_units:
            raise ValueError(f"expected one flag per segment ({self.n_units}), got {len(shown)}")
        if np.all(shown):
            return self
        return Image(self.hidden(shown[None], how)[0], "own", self.segments)

    def hidden(self, shown: BoolArray, how: Hiding) -> Pixels:
        """Many maskings at once. (masks, segments) → (masks, height, width, 3)"""
        visible = shown[:, self.segments].reshape(len(shown), *self.shape, 1)
        if how == Hiding.LINEAR:
            return np.array([self._guessed(flags[..., 0]) for flags in visible])
        return np.where(visible, self.pixels, self.backdrop(how))

    def backdrop(self, how: Hiding) -> Pixels:
        """What stands in the place of hidden pixels, whichever these are."""
        if how == Hiding.BLACK:
            return np.zeros((1, 1, 3), dtype=np.uint8)
        if how == Hiding.MEAN:
            return _rounded(self.pixels.mean(axis=(0, 1), keepdims=True))
        if how == Hiding.BLUR:
            from scipy.ndimage import gaussian_filter

            sigma = BLUR * max(self.shape)
            return _rounded(
                gaussian_filter(self.pixels.astype(np.float64), (sigma, sigma, 0), mode="nearest")
            )
        raise ValueError(
            f"expected pictures to be hidden by {', '.join(self.hidings)}; got {how.value}"
        )

    def _guessed(self, visible: BoolArray) -> Pixels:
        """Hidden pixels as weighted means of their neighbours, hidden ones too, and some noise
        (Rong et al. 2022); of nothing visible, the mean colour. visible (height, width)"""
        if not visible.any():
            return np.broadcast_to(self.backdrop(Hiding.MEAN), self.pixels.shape)
        if visible.all():
            return self.pixels
        found = self.pixels.astype(np.float64)
        seed = zlib.crc32(np.packbits(visible).tobytes())
        noise = np.random.default_rng(seed).normal(0, NOISE, (int((~visible).sum()), 3))
        found[~visible] = _interpolated(found, visible) + noise
        return _rounded(found)

    def to_row(self) -> dict[str, Any]:
        return {
            "picture": self._png,
            "segmentation": self.segmentation,
            "segments": zlib.compress(self.segments.astype(np.uint16).tobytes(), 1),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Image:
        from PIL import Image as Pictures

        pixels = np.asarray(Pictures.open(io.BytesIO(row["picture"])).convert("RGB"))
        kept = np.frombuffer(zlib.decompress(row["segments"]), np.uint16).astype(np.int64)
        own = row["segmentation"] == "own"
        found = cls(pixels, row["segmentation"], kept if own else None)
        found.__dict__["segments"] = kept  # not made again: that may need a package
        return found


def _interpolated(values: FloatArray, visible: BoolArray) -> FloatArray:
    """Hidden pixels such that each is the weighted mean of its neighbours: one sparse system.
    (height, width, 3), (height, width) → (hidden, 3)"""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    height, width = visible.shape
    number = np.full(visible.shape, -1)
    number[~visible] = np.arange(int((~visible).sum()))
    rows, columns, weights = [], [], []
    given = np.zeros((int((~visible).sum()), 3))
    total = np.zeros(len(given))
    y, x = np.nonzero(~visible)
    own = number[y, x]
    for (dy, dx), weight in NEIGHBOURS.items():
        for sign in (1, -1):
            there_y, there_x = y + sign * dy, x + sign * dx
            inside = (there_y >= 0) & (there_y < height) & (there_x >= 0) & (there_x < width)
            here, at = own[inside], (there_y[inside], there_x[inside])
            np.add.at(total, here, weight)
            other = number[at]
            np.add.at(given, here[other < 0], weight * values[at][other < 0])
            rows.append(here[other >= 0])
            columns.append(other[other >= 0])
            weights.append(np.full(int((other >= 0).sum()), -weight))
    every = np.arange(len(given))
    matrix = coo_array(
        (
            np.concatenate([*weights, total]),
            (np.concatenate([*rows, every]), np.concatenate([*columns, every])),
        ),
        shape=(len(given), len(given)),
    )
    found: FloatArray = splu(matrix.tocsc()).solve(given)
    return found


def _rounded(values: FloatArray) -> Pixels:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
