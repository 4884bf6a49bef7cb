"""Hue, saturation and value, all in [0, 1], of 8-bit colours, and back (definitions 6.4)."""

from __future__ import annotations

import numpy as np

from ..core.inputs import FloatArray
from ..core.segments import Pixels


def to_hsv(pixels: Pixels) -> FloatArray:
    """(..., 3) → (..., 3)"""
    colours = pixels / 255.0
    value = colours.max(axis=-1)
    spread = value - colours.min(axis=-1)
    some = np.where(spread > 0, spread, 1.0)  # of a grey the hue is 0
    red, green, blue = np.moveaxis(colours, -1, 0)
    sixth = np.select(
        [value == red, value == green],
        [(green - blue) / some, 2 + (blue - red) / some],
        4 + (red - green) / some,
    )
    saturation = spread / np.where(value > 0, value, 1.0)
    return np.stack([sixth / 6 % 1, saturation, value], axis=-1)


def to_rgb(hsv: FloatArray) -> Pixels:
    """The hue wraps, the rest is clipped; times 255 and truncated, but for
    what rounding took."""
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    saturation, value = np.clip(saturation, 0, 1), np.clip(value, 0, 1)
    turn = (np.array([5.0, 3.0, 1.0]) + 6 * hue[..., None]) % 6
    ramp = np.clip(np.minimum(turn, 4 - turn), 0, 1)
    colours = value[..., None] * (1 - saturation[..., None] * ramp)
    return np.asarray(np.clip(colours, 0, 1) * 255 + 1e-9).astype(np.uint8)
