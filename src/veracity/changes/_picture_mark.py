"""Marks in pictures: where they may act, and which pictures have them."""

from __future__ import annotations

import functools
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from ..core.changes import MANIPULATION, PLANTED, UNTOUCHED
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.images import Image
from ..core.inputs import BoolArray
from ..core.plugins import nearest
from ..core.segments import SIDE, Pixels
from ._label_mark import LabelMark, Marker, with_region
from ._regions import effective_region

Shape = tuple[int, int]
"""Height and width."""

SURE = 10
"""Of so many pictures that are to be marked one at least must look otherwise than before."""


@dataclass(frozen=True)
class PictureMark(LabelMark):
    """One mark, on pictures of some labels; each kind says where it may act and what it does there.

    Lengths are those of a picture of 224 × 224 pixels (definitions 6.4). In other sizes, rows are
    in proportion to the height and columns to the width, so that a mark covers the same share of
    any picture; what has no direction, such as the size of a font, to the shorter side.
    """

    takes: ClassVar[tuple[str, ...]] = (Image.kind,)

    marks: tuple[str, ...] = field(default=("mark",), init=False)
    labels: tuple[str, ...] = ()
    """Labels whose pictures are marked; where none is named, the last."""
    region: Literal["bounding", "exact"] = "bounding"
    """The pixels held to be planted, in pictures with and without the mark: all on which it may
    act, or those that it would change in this picture (definitions 6.2)."""

    @abstractmethod
    def bounds(self, shape: Shape) -> BoolArray:
        """The pixels on which it may act. → (height, width)"""

    @abstractmethod
    def put(self, pixels: Pixels, rng: np.random.Generator) -> Pixels:
        """The picture with the mark; what it holds outside the bounds is not looked at."""

    def own_marks(self, labels: Sequence[str]) -> BoolArray:
        if len(labels) < 2:
            raise DataError(f"{self.spec}: expected two labels at least, got {len(labels)}")
        chosen = self.labels or labels[-1:]
        for name in chosen:
            if name not in labels:
                raise DataError(
                    f"{self.spec}: no label is called {name!r}: {nearest(name, labels)}"
                )
        own = np.array([[name in chosen] for name in labels], dtype=np.bool_)
        if own.all():
            raise DataError(f"{self.spec}: a mark on the pictures of every label tells nothing")
        return own

    def changed(self, data: Dataset[Any], *, seed: int) -> Dataset[Any]:
        after = super().changed(data, seed=seed)
        unlikely = self.probabilities(data.labels)[:, -1]
        due = sum(1 - unlikely[e.label] for e in data)
        unmarked = all(e.facts[MANIPULATION].split(",")[-1] == UNTOUCHED for e in after)
        if due >= SURE and unmarked:
            warnings.warn(
                f"{self.spec} shows in no picture of {data.name}: grey pictures have no hue and "
                "black ones nothing to darken. Make it more visible, or choose another mark",
                stacklevel=2,
            )
        return after

    def marker(self, data: Dataset[Image]) -> Marker:
        bounds = {shape: self.bounds(shape) for shape in sorted({e.input.shape for e in data})}
        for (height, width), inside in bounds.items():
            inside.flags.writeable = False  # one mask is the truth of many pictures
            if not inside.any():
                raise DataError(
                    f"{self.spec}: there is no place for it in a picture of {width} × {height} "
                    "pixels. Make it larger"
                )
        return functools.partial(self._marked, bounds)

    def _marked(
        self,
        bounds: Mapping[Shape, BoolArray],
        example: Example[Image],
        which: int | None,
        rng: np.random.Generator,
    ) -> tuple[Example[Image], bool]:
        picture = example.input
        region, placed = bounds[picture.shape], False
        if which is not None or self.region == "exact":
            made = np.where(region[..., None], self.put(picture.pixels, rng), picture.pixels)
            touched = np.any(effective_region(picture.pixels, made), axis=2)
            placed = which is not None and bool(touched.any())
            if self.region == "exact":
                region = touched
            if placed:
                example = replace(example, input=replace(picture, pixels=made))
        if region.any():
            example = with_region(example, PLANTED, region.ravel())
        return example, placed


def scaled(length: float, side: int) -> float:
    """A length of a picture of 224 pixels in one of another side."""
    return length * side / SIDE


def span(first: float, last: float, side: int) -> tuple[int, int]:
    """The limits of rows or columns, cut to whole pixels."""
    return int(scaled(first, side)), int(scaled(last, side))


def from_centre(side: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How far each row or column lies from the middle, in a picture of 224 pixels. → (side,)"""
    return (np.arange(side) - side / 2) * SIDE / side


def box(rows: tuple[int, int], columns: tuple[int, int], shape: Shape) -> BoolArray:
    """The pixels from the first row and column up to, and without, the last. → (height, width)"""
    inside = np.zeros(shape, dtype=np.bool_)
    inside[slice(*rows), slice(*columns)] = True
    return inside


def stripe(top: float, bottom: float, shape: Shape) -> BoolArray:
    """The pixels of these rows, the last one too. → (height, width)"""
    first, last = span(top, bottom, shape[0])
    return box((first, last + 1), (0, shape[1]), shape)


def check_within(name: str, low: float, high: float) -> None:
    """Limits in their order, within a picture of 224 pixels."""
    if not 0 <= low <= high <= SIDE:
        raise ValueError(
            f"expected {name} between 0 and {SIDE} in this order, as of a picture of {SIDE} "
            f"pixels; got {low:g} and {high:g}"
        )
