"""Which marks, of which extent and visibility, on which pairs of labels: what ZHOU drew for the
experiments on pictures (definitions 6.4, 9.5). Lengths are those of pictures of 224 pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ...changes import PictureMark
from ...changes.centre_brightness import CentreBrightness
from ...changes.peripheral_blur import PeripheralBlur
from ...changes.striped_hue import StripedHue
from ...changes.striped_noise import StripedNoise
from ...changes.watermark import Watermark
from ...core.segments import SIDE
from ...engine.seeds import generator

Pair = tuple[str, str]
"""The label whose pictures stay as they are, and the label whose pictures are marked."""

Between = tuple[float, float]

MANIPULATIONS: tuple[type[PictureMark], ...] = (
    PeripheralBlur,
    CentreBrightness,
    StripedHue,
    StripedNoise,
    Watermark,
)

CORRELATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""r: how often a picture keeps its label."""


@dataclass(frozen=True)
class Draws:
    """What is drawn for one kind of mark in one experiment."""

    visibility: str
    """The setting that makes it more visible, and its values."""
    levels: tuple[float, ...]
    radius: Between | None = None
    height: Between | None = None
    width: Between | None = None

    def extent(self, rng: np.random.Generator) -> dict[str, float]:
        """Where it acts, evenly drawn between the limits, anywhere in the picture."""
        if self.radius is not None:
            return {"radius": float(rng.uniform(*self.radius))}
        found: dict[str, float] = {}
        for names, limits in ((("top", "bottom"), self.height), (("left", "right"), self.width)):
            if limits is not None:
                length = rng.uniform(*limits)
                first = rng.uniform(0, SIDE - length)
                found |= dict(zip(names, (float(first), float(first + length)), strict=True))
        return found


REGIONS: dict[type[PictureMark], Draws] = {
    PeripheralBlur: Draws("sigma", (2.0,), radius=(80, 130)),
    CentreBrightness: Draws("delta", (-0.3,), radius=(40, 112)),
    StripedHue: Draws("delta", (0.04,), height=(20, SIDE)),
    StripedNoise: Draws("p", (0.02,), height=(20, SIDE)),
    Watermark: Draws("size", (13.0,), height=(40, 200), width=(100, 200)),
}
"""Attribution against the region: many extents, hardly visible."""

VISIBILITIES: dict[type[PictureMark], Draws] = {
    PeripheralBlur: Draws("sigma", (2.0, 4.0, 6.0, 8.0, 10.0), radius=(80, 120)),
    CentreBrightness: Draws("delta", (-0.10, -0.15, -0.20, -0.25, -0.30), radius=(40, 112)),
    StripedHue: Draws("delta", (0.05, 0.10, 0.15, 0.20, 0.25), height=(50, 100)),
    StripedNoise: Draws("p", (0.02, 0.04, 0.06, 0.08, 0.10), height=(50, 100)),
    Watermark: Draws("size", (7.0, 9.0, 11.0, 13.0, 15.0), height=(40, 100), width=(100, 200)),
}
"""Visibility: five levels of the same extent."""

FIXED: dict[type[PictureMark], dict[str, float]] = {
    PeripheralBlur: {"radius": 80.0, "sigma": 10.0},
    CentreBrightness: {"radius": 60.0, "delta": -0.3},
    StripedHue: {"top": 80.0, "bottom": 130.0, "delta": 0.15},
    StripedNoise: {"top": 80.0, "bottom": 130.0, "p": 0.03},
    Watermark: {"top": 150.0, "bottom": 200.0, "left": 30.0, "right": 194.0, "size": 13.0},
}
"""Original correlation: one extent, well visible."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One training: what is planted in the second of two labels, and how many labels are kept."""

    mark: PictureMark
    pair: Pair
    r: float = 0.5
    group: int
    """Its number among the runs of the mark; those that differ in level or r alone share one."""
    level: int = 0
    """How visible the mark is, from 0, where that is what differs."""
    confusable: bool = True
    """Whether the two labels look alike."""


def region_draws(
    pairs: Sequence[Pair], *, n: int = 20, level: int | None = None, seed: int = 0
) -> Iterator[Draw]:
    """Attribution against the region: so many runs of each mark, each on any confusable pair. The
    marks are hardly visible, as published, or of a level of those from 1 to 5."""
    for kind in MANIPULATIONS:
        for group in range(n):
            rng = generator(seed, "region", kind.plugin_name(), str(group))
            levels = REGIONS[kind].levels
            if level is not None:
                levels = (VISIBILITIES[kind].levels[level - 1],)
            (mark,) = _marks(kind, replace(REGIONS[kind], levels=levels), rng)
            yield Draw(mark=mark, pair=pairs[int(rng.integers(len(pairs)))], group=group)


def visibility_draws(
    pairs: Sequence[Pair], *, groups: int | None = None, seed: int = 0
) -> Iterator[Draw]:
    """Visibility: a group for each confusable pair, in which only the level differs."""
    for kind in MANIPULATIONS:
        for group, pair in enumerate(pairs[:groups]):
            rng = generator(seed, "visibility", kind.plugin_name(), str(group))
            for level, mark in enumerate(_marks(kind, VISIBILITIES[kind], rng)):
                yield Draw(mark=mark, pair=pair, group=group, level=level)


def correlation_draws(
    pairs: Sequence[Pair],
    *,
    each: int = 2,
    correlations: Sequence[float] = CORRELATIONS,
    seed: int = 0,
) -> Iterator[Draw]:
    """Original correlation: of each mark so many confusable pairs and so many of unlike labels, the
    same for every r."""
    for kind in MANIPULATIONS:
        rng = generator(seed, "correlation", kind.plugin_name())
        settings: dict[str, Any] = FIXED[kind]
        alike = [pairs[i] for i in rng.permutation(len(pairs))[:each]]
        chosen = [(pair, True) for pair in alike]
        chosen += [(pair, False) for pair in _unlike(pairs, each, rng)]
        for group, (pair, confusable) in enumerate(chosen):
            for r in correlations:
                mark = kind(**settings)
                yield Draw(mark=mark, pair=pair, r=r, group=group, confusable=confusable)


def _marks(
    kind: type[PictureMark], draws: Draws, rng: np.random.Generator
) -> Iterator[PictureMark]:
    """The same extent at every level."""
    extent = draws.extent(rng)
    for value in draws.levels:
        settings: dict[str, Any] = {**extent, draws.visibility: value}
        yield kind(**settings)


def _unlike(pairs: Sequence[Pair], n: int, rng: np.random.Generator) -> list[Pair]:
    """Pairs of labels out of different pairs, no label in two of them."""
    if len(pairs) < 2 or n > len(pairs):
        raise ValueError(f"expected at least two pairs and as many as are drawn, got {len(pairs)}")
    home = {label: i for i, pair in enumerate(pairs) for label in pair}
    labels = list(chain.from_iterable(pairs))
    while True:
        order = [labels[i] for i in rng.permutation(len(labels))]
        found = list(zip(order[0 : 2 * n : 2], order[1 : 2 * n : 2], strict=True))
        if all(home[a] != home[b] for a, b in found):
            return found
