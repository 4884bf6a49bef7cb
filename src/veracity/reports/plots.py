"""Where dots and intervals stand in a plot; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ..experiments.dryrun_findings import CueResult, MethodProfile
from ..results.standings import Entry, Standing
from .scoreboard import against_chance
from .showing import number, percent, shortened

_Scale = Callable[[float], float]

WIDTH, LEFT, RIGHT, TOP, ROW = 330, 146, 316, 8, 24


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
    marks = ticks(min(values, default=0.0), max(values, default=1.0))
    start, end = marks[0], marks[-1]

    def x(value: float) -> float:
        return round(LEFT + (value - start) / (end - start) * (RIGHT - LEFT), 1)

    dots = tuple(_dot(e, TOP + ROW * (i + 0.5), x, baselines) for i, e in enumerate(entries))
    chance = next((e for e in entries if e.method in baselines and not math.isnan(e.mean)), None)
    floor = TOP + ROW * len(entries)
    return Panel(
        standing=standing,
        height=floor + 24,
        floor=floor,
        ticks=tuple((x(t), f"{t:.10g}".replace("-", "−")) for t in marks),
        chance=x(chance.mean) if chance else None,
        dots=dots,
        description="; ".join(dot.said for dot in dots),
    )


def _dot(entry: Entry, y: float, x: _Scale, baselines: Collection[str]) -> Dot:
    said = f"{entry.method}: {number(entry.mean)}"
    if math.isfinite(entry.low):
        said += f" ({number(entry.low)} to {number(entry.high)})"
    if against_chance(entry):
        said += f", {against_chance(entry)}"
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


def shares(values: Sequence[float]) -> list[float]:
    """Lengths of bars in percent of the longest."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    return [100 * v / largest if largest > 0 and math.isfinite(v) else 0.0 for v in values]


# ---- share seen against strength ------------------------------------------------------------

RISE_WIDTH, RISE_HEIGHT = 216, 138
_X, _Y = (52, 198), (106, 12)  # from the least to the most

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

    def x(strength: float) -> float:
        along = (strength - strengths[0]) / (strengths[-1] - strengths[0])
        return round(_X[0] + along * (_X[1] - _X[0]), 1)

    def y(share: float) -> float:
        return round(_Y[0] + share * (_Y[1] - _Y[0]), 1)

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
        y_ticks=tuple((y(v), percent(v)) for v in (0.0, 0.5, 1.0)),
        cues=lines,
        mean=mean,
        chance=averaged(lambda c: c.chance, "chance"),
        description="; ".join(p.said for _, points in lines for p in points),
    )
