"""Where dots and intervals stand in a plot; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..experiments.dryrun_findings import CueResult, MethodProfile
from ..results.standings import Entry, Standing
from ..results.statistics import mean_intervals
from .scoreboard import against_chance
from .showing import number, percent, shortened

WIDTH, LEFT, RIGHT, TOP, ROW = 330, 146, 316, 8, 24


@dataclass(frozen=True)
class Axis:
    """Where values stand along a side of a plot, from its first mark to its last."""

    marks: Sequence[float]
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """From a round number to another, with all values between."""
        return cls(ticks(min(values, default=0.0), max(values, default=1.0)), start, end)

    def __call__(self, value: float) -> float:
        first, last = self.marks[0], self.marks[-1]
        return round(self.start + (value - first) / (last - first) * (self.end - self.start), 1)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """The marks with their numbers."""
        return tuple((self(mark), f"{mark:.10g}".replace("-", "−")) for mark in self.marks)


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One method's mean and interval."""

    method: str
    label: str
    kind: str  # best, tied, chance or other: the shape of the mark
    y: float
    x: float | None
    low: float
    high: float
    said: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One quantity: a row per method, best on top."""

    standing: Standing
    height: float
    floor: float
    ticks: tuple[tuple[float, str], ...]
    chance: float | None
    dots: tuple[Dot, ...]
    description: str


def panel(standing: Standing, baselines: Collection[str] = ()) -> Panel:
    """A plot that begins and ends where its intervals do; zero is shown only when near."""
    entries = standing.entries
    values = [v for e in entries for v in (e.low, e.mean, e.high) if math.isfinite(v)]
    x = Axis.around(values, LEFT, RIGHT)
    dots = tuple(
        _dot(e, TOP + ROW * (i + 0.5), x, baselines, against_chance(e, standing.nouns)[1])
        for i, e in enumerate(entries)
    )
    chance = next((e for e in entries if e.method in baselines and not math.isnan(e.mean)), None)
    floor = TOP + ROW * len(entries)
    return Panel(
        standing=standing,
        height=floor + 24,
        floor=floor,
        ticks=x.ticks,
        chance=x(chance.mean) if chance else None,
        dots=dots,
        description="; ".join(dot.said for dot in dots),
    )


def _dot(entry: Entry, y: float, x: Axis, baselines: Collection[str], beside: str) -> Dot:
    said = f"{entry.method}: {number(entry.mean)}"
    if math.isfinite(entry.low):
        said += f" ({number(entry.low)} to {number(entry.high)})"
    if beside:
        said += f", {beside}"
    shown = math.isfinite(entry.mean)
    return Dot(
        method=entry.method,
        label=shortened(entry.method, 20),
        kind=_kind(entry, baselines),
        y=y,
        x=x(entry.mean) if shown else None,
        low=x(entry.low) if shown and math.isfinite(entry.low) else 0.0,
        high=x(entry.high) if shown and math.isfinite(entry.high) else 0.0,
        said=said,
    )


def _kind(entry: Entry, baselines: Collection[str]) -> str:
    if entry.method in baselines:
        return "chance"
    return "best" if entry.is_best else "tied" if entry.tied_with_best else "other"


def ticks(low: float, high: float) -> tuple[float, ...]:
    """Three to six round numbers that span the values."""
    if not high - low > 1e-9:  # less would be rounded away below
        low, high = low - 0.5, high + 0.5
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * s for s in (1, 2, 2.5, 5, 10) if power * s >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(i * step, 12) for i in range(first, last + 1))


@dataclass(frozen=True)
class CostRow:
    """What a method takes for a text, and the lengths of its bars."""

    method: str
    seconds: float
    questions: float
    seconds_share: float
    questions_share: float


def cost_rows(costs: Iterable[tuple[str, float, float]]) -> list[CostRow]:
    """Methods with their seconds and questions for a text, cheapest first."""
    ordered = sorted(costs, key=lambda cost: cost[1])
    seconds = _shares([seconds for _, seconds, _ in ordered])
    questions = _shares([questions for _, _, questions in ordered])
    return [CostRow(*cost, *bars) for cost, *bars in zip(ordered, seconds, questions, strict=True)]


def _shares(values: Sequence[float]) -> list[float]:
    """Lengths of bars in percent of the longest."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    return [100 * v / largest if largest > 0 and math.isfinite(v) else 0.0 for v in values]


# ---- weight on what is known against its size, by class -------------------------------------

MASS_WIDTH, MASS_HEIGHT = 216, 176
MOST_ONES = 150
"""So many single pictures are drawn in a panel."""


@dataclass(frozen=True, kw_only=True)
class ClassMark:
    """The mean of one class, with its interval."""

    shape: str
    x: float
    y: float
    low: float | None
    high: float | None
    said: str


@dataclass(frozen=True, kw_only=True)
class ClassPanel:
    """One method: how much of its weight lies on what is known to matter (Attr%) against the share
    of a random map (%ER)."""

    method: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    even: tuple[float, float, float, float]
    """Ends of the line on which both are equal: x and y, x and y."""
    ones: tuple[tuple[float, float], ...]
    marks: tuple[ClassMark, ...]

    @property
    def description(self) -> str:
        return "; ".join(mark.said for mark in self.marks)


def class_panel(
    method: str, rows: Mapping[str, Sequence[tuple[float, float]]], most: float
) -> ClassPanel:
    """From what single inputs of each class have: the share of a random map, and of this one; all
    panels have the same axes, up to the largest share of a random map."""
    x = Axis(ticks(0.0, most), 44, MASS_WIDTH - 10)
    y = Axis((0.0, 0.5, 1.0), MASS_HEIGHT - 34, 10)
    marks = []
    for place, (label, pairs) in enumerate(rows.items()):
        known = np.array([pair for pair in pairs if all(map(math.isfinite, pair))])
        if not len(known):
            continue
        share, mass = (float(v) for v in known.mean(axis=0))
        low, high = (math.nan, math.nan)
        if len(known) > 1:
            low, high = (min(max(float(v), 0), 1) for v in mean_intervals(known[:, 1:])[0])
        marks.append(
            ClassMark(
                shape=shape(place),
                x=x(share),
                y=y(mass),
                low=y(low) if math.isfinite(low) else None,
                high=y(high) if math.isfinite(high) else None,
                said=f"{label}: Attr% {percent(mass)} at %ER {percent(share)} ({len(known)})",
            )
        )
    every = [pair for pairs in rows.values() for pair in pairs if all(map(math.isfinite, pair))]
    end = min(x.marks[-1], 1.0)
    return ClassPanel(
        method=method,
        x_ticks=tuple((x(v), percent(v)) for v in x.marks),
        y_ticks=tuple((y(v), percent(v)) for v in y.marks),
        even=(x(0.0), y(0.0), x(end), y(end)),
        ones=tuple((x(a), y(b)) for a, b in every[:: max(1, -(-len(every) // MOST_ONES))]),
        marks=tuple(marks),
    )


# ---- share seen against strength ------------------------------------------------------------

RISE_WIDTH, RISE_HEIGHT = 216, 138
_SHAPES = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "M-3.2-3.2h6.4v6.4h-6.4z",
    "M0-4.4L4.2 3.2h-8.4z",
    "M0-4.8L4.8 0 0 4.8-4.8 0z",
    "M0 4.4L-4.2-3.2h8.4z",
    "M-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",
)


def shape(place: int) -> str:
    """The outline of a cue's mark, so that cues differ by more than colour."""
    return _SHAPES[place % len(_SHAPES)]


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    said: str


@dataclass(frozen=True, kw_only=True)
class Rise:
    """How often one method shows each cue, from weak cues to strong ones."""

    method: str
    baseline: bool
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    cues: tuple[tuple[str, tuple[Point, ...]], ...]  # shape of the mark, points
    mean: tuple[Point, ...]
    chance: tuple[Point, ...]
    description: str


def rise(profile: MethodProfile, cells: Sequence[CueResult], titles: Mapping[str, str]) -> Rise:
    """One small plot; the mean is over cues that were scored at every strength."""
    strengths = sorted({cell.strength for cell in cells})
    x, y = Axis(strengths, 52, 198), Axis((0.0, 0.5, 1.0), 106, 12)
    by_cue = {
        cue: {c.strength: c for c in cells if c.cue == cue and profile.method in c.sights}
        for cue in titles
    }
    lines = tuple(
        (
            shape(place),
            tuple(
                Point(x(s), y(share), f"{title}, right in {percent(s)}: {percent(share)}")
                for s in strengths
                if s in by_cue[cue]
                for share in [by_cue[cue][s].sights[profile.method].share]
            ),
        )
        for place, (cue, title) in enumerate(titles.items())
    )
    whole = [found for found in by_cue.values() if len(found) == len(strengths)]

    def averaged(value: Callable[[CueResult], float], what: str) -> tuple[Point, ...]:
        means = [(s, sum(value(f[s]) for f in whole) / len(whole)) for s in strengths if whole]
        return tuple(
            Point(x(s), y(m), f"{what}, right in {percent(s)}: {percent(m)}") for s, m in means
        )

    mean = averaged(lambda c: c.sights[profile.method].share, "mean")
    return Rise(
        method=profile.method,
        baseline=profile.baseline,
        x_ticks=tuple((x(s), percent(s)) for s in strengths),
        y_ticks=tuple((y(v), percent(v)) for v in y.marks),
        cues=lines,
        mean=mean,
        chance=averaged(lambda c: c.chance, "chance"),
        description="; ".join(p.said for _, points in lines for p in points),
    )
