"""How a picture is cut into segments: what people look at, and what is hidden together."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, MissingExtra, PluginError
from .inputs import IntArray
from .plugins import LARGEST, fits, nearest, parse_spec

Pixels = NDArray[np.uint8]

GRID = "grid"
"""How pictures are cut that nobody has cut, where nobody says how."""

SIDE = 224
"""The side for which lengths are stated; those of other pictures are in proportion."""

MOST = 65_535
"""So many segments a picture may have."""

RANGES: Mapping[str, tuple[float, float]] = {
    "across": (1, MOST),
    "n": (1, MOST),
    "kernel": (0.01, SIDE),
    "ratio": (0, 1),
    "distance": (0.01, LARGEST),
    "compactness": (0.0001, LARGEST),
}
"""From where to where settings go: beyond, they cut nothing, or in no way that was meant."""


def grid(pixels: Pixels, *, across: int = 8) -> IntArray:
    """Equal tiles, so many in each direction; at most one per pixel."""
    rows, columns = (
        np.arange(length) * min(across, length) // length for length in pixels.shape[:2]
    )
    found: IntArray = rows[:, None] * (columns.max() + 1) + columns
    return found


def quickshift(
    pixels: Pixels, *, kernel: float = 4.0, ratio: float = 0.2, distance: float = 200.0
) -> IntArray:
    """Regions of like colour around peaks of density (definitions 3.14): 30 to 50 of a photograph,
    whatever its size."""
    from skimage.segmentation import quickshift as found

    size = max(1.0, kernel * max(pixels.shape[:2]) / SIDE)  # the package knows no smaller one
    return _made(
        found, pixels, kernel_size=size, max_dist=distance, ratio=ratio, rng=0, channel_axis=-1
    )


def slic(pixels: Pixels, *, n: int = 50, compactness: float = 10.0) -> IntArray:
    """About so many compact regions of like colour."""
    from skimage.segmentation import slic as found

    return _made(found, pixels, n_segments=n, compactness=compactness, start_label=0)


SEGMENTATIONS: dict[str, Callable[..., IntArray]] = {
    "grid": grid,
    "quickshift": quickshift,
    "slic": slic,
}


def segmented(pixels: Pixels, spec: str) -> IntArray:
    """The number of each pixel's segment, from 0 without a gap. `grid(across=8)` → (pixels,)"""
    name, settings = parse_spec(spec)
    if name not in SEGMENTATIONS:
        raise PluginError(f"no way of cutting pictures is {name!r}: {nearest(name, SEGMENTATIONS)}")
    _check(name, settings)
    try:
        found = SEGMENTATIONS[name](pixels, **settings)
    except ImportError:
        raise MissingExtra("scikit-image", "images", name) from None
    except (TypeError, ValueError) as error:
        raise PluginError(f"{spec}: {error}") from None
    return numbered(found)


def _check(name: str, settings: Mapping[str, Any]) -> None:
    """Settings of the right names and sizes, or a sentence that says which is wrong."""
    defaults: dict[str, Any] = SEGMENTATIONS[name].__kwdefaults__ or {}
    for key, value in settings.items():
        if key not in defaults:
            raise PluginError(f"{name} has no setting {key!r}: {nearest(key, defaults)}")
        kind, (least, most) = type(defaults[key]), RANGES[key]
        if not (fits(value, kind) and least <= value <= most):
            raise PluginError(
                f"{name}: expected {key} to be a {'whole ' * (kind is int)}number from {least:,} "
                f"to {most:,}, got {reprlib.repr(value)}"
            )


def numbered(label_map: NDArray[Any]) -> IntArray:
    """A label map with its labels numbered from 0 without a gap. (height, width) → (pixels,)"""
    _, found = np.unique(label_map, return_inverse=True)
    if found.max(initial=0) >= MOST:
        raise DataError(f"expected at most {MOST:,} segments a picture, got {found.max() + 1:,}")
    return np.asarray(found.ravel(), dtype=np.int64)


def _made(function: Callable[..., Any], pixels: Pixels, **settings: Any) -> IntArray:
    """A picture of a row or of a pixel is one segment: there are no regions in it."""
    if min(pixels.shape[:2]) < 2:
        return np.zeros(pixels.shape[:2], dtype=np.int64)
    return np.asarray(function(pixels, **settings), dtype=np.int64)
