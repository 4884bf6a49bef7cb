"""Where the points and lines of a figure stand; the template draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..results.findings import Figure, Points
from .plots import Axis
from .showing import number

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 300, 60, 446, 12, 252
BAR = 0.22
"""How wide a bar is where names stand 1 apart, so that four go beside each other."""
COLOURS = 8
LETTER = 6.2
"""About how wide a letter under an axis is."""
SLANT = 60
"""Degrees by which names turn that are too long to stand side by side."""
MOST_COUNTS = 8
"""So many whole numbers are marked on an axis as they are: there is no half of a word."""
SHAPES = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True)
class Mark:
    """One point."""

    x: float
    y: float
    low: float | None
    high: float | None
    label: str
    bar: tuple[float, float, float, float] | None = None
    """Left, top, width and height where a bar stands for the point."""


@dataclass(frozen=True)
class Series:
    """One named set of points, with its shape and the path of its line."""

    name: str
    place: int
    shape: str
    path: str
    dashed: bool
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Chart:
    """A figure with its axes laid out."""

    figure: Figure
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    series: tuple[Series, ...]
    room: float = 0.0
    """How much taller the figure is for slanted names under its axis; 0 where they stand."""


def chart(figure: Figure) -> Chart:
    """Axes that begin and end at round numbers around what is shown."""
    xs = [v for p in figure.series for v in p.x if math.isfinite(v)]
    ys = [v for p in figure.series for v in (*p.y, *p.low, *p.high) if math.isfinite(v)]
    if any(p.bars for p in figure.series):
        ys.append(0.0)  # a bar that does not begin at zero misleads
    named = [float(i) for i in range(len(figure.names))]
    counts = sorted(set(xs))
    few = 1 < len(counts) <= MOST_COUNTS and all(x == round(x) for x in counts)
    x, y = Axis.around(xs, LEFT, RIGHT), Axis.around(ys, BOTTOM, TOP)
    if named:
        x = Axis([-0.5, *named, len(named) - 0.5], LEFT, RIGHT)
    elif few:
        x = Axis(counts, LEFT, RIGHT)

    def at(value: float) -> str:
        if not named:
            return number(value)
        return figure.names[min(max(round(value), 0), len(named) - 1)]

    def bar(value: float, top: float) -> tuple[float, float, float, float]:
        left, right = x(value - BAR / 2), x(value + BAR / 2)
        upper, lower = sorted((y(top), y(0.0)))
        return left, upper, round(right - left, 1), round(lower - upper, 1)

    def drawn(place: int, points: Points) -> Series:
        known = [
            i
            for i, (a, b) in enumerate(zip(points.x, points.y, strict=True))
            if math.isfinite(a) and math.isfinite(b)
        ]
        marks = tuple(
            Mark(
                x(points.x[i]),
                y(points.y[i]),
                y(points.low[i]) if points.low and math.isfinite(points.low[i]) else None,
                y(points.high[i]) if points.high and math.isfinite(points.high[i]) else None,
                f"{points.name}: {at(points.x[i])}, {number(points.y[i])}",
                bar(points.x[i], points.y[i]) if points.bars else None,
            )
            for i in known
        )
        path = (
            " ".join(f"{'M' if n == 0 else 'L'}{m.x} {m.y}" for n, m in enumerate(marks))
            if points.line
            else ""
        )
        only_line = points.line and points.dashed
        return Series(
            points.name,
            place % COLOURS,
            SHAPES[(place + place // COLOURS) % len(SHAPES)],  # no two alike where colours recur
            path,
            points.dashed,
            () if only_line else marks,
        )

    return Chart(
        figure,
        tuple((x(t), figure.names[round(t)]) for t in named) or x.ticks,
        y.ticks,
        tuple(drawn(i, p) for i, p in enumerate(figure.series)),
        _room(figure),
    )


def _room(figure: Figure) -> float:
    longest = max(map(len, figure.names), default=0) * LETTER
    if longest * len(figure.names) <= RIGHT - LEFT:
        return 0.0
    below = longest * math.sin(math.radians(SLANT)) + (40 if figure.x else 18)
    return round(max(below - (HEIGHT - BOTTOM), 1.0), 1)
