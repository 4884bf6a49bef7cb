"""What a model leans on as one HTML file that needs nothing else, and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from ..suspicion.record import Suspect, SuspectExample, Suspects
from . import showing
from .coloured import ColouredWord, coloured
from .pages import rendered, write_page
from .plots import ticks
from .showing import number, percent, printable

PAGE = "suspects.html"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 440, 54, 690, 12, 396
WIDE = 100
WHEN_WIDE = ("put in", "same side")
"""Narrower terminals leave these columns out, so that names stay whole."""


def write_suspects(found: Suspects, path: Path) -> Path:
    return write_page(suspects_page(found), path)


def suspects_page(found: Suspects) -> str:
    """The whole page as text."""
    return rendered(
        PAGE,
        styles=("report.css", "suspects.css"),
        scripts=(),
        filters={"p_value": p_value, "sentence": sentence},
        found=found,
        leaders=[_leader(s) for s in (*found.found, *found.unfollowed, *found.others)],
        plot=_plot(found),
    )


def p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def sentence(s: Suspect) -> str:
    """Why it is suspected, in one breath."""
    tried = ""
    if s.put_in.texts:
        tried = (
            f" Put into {s.put_in.texts} texts without it, it moves the log-odds by "
            f"{number(s.put_in.mean, signed=True)} and changes {percent(s.put_in.flipped)} of the "
            "answers."
        )
    return (
        f"It weighs {number(s.weight, signed=True)} where its meaning warrants "
        f"{number(s.expected, signed=True)}, in {s.texts:,} texts of which {percent(s.labelled)} "
        f"are labelled {s.label}.{tried}"
    )


# ---- in a terminal --------------------------------------------------------------------------


def print_suspects(console: Console, found: Suspects) -> None:
    """The strongest candidates in a table, suspects first, then what to make of them."""
    table = Table(
        title=Line(printable(found.model), style="bold"),
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    table.add_column("look", overflow="fold")
    for heading in ("kind", "speaks"):
        table.add_column(heading)
    wide = console.width >= WIDE
    for heading in ("texts", "weight", "expected", "score", "p", *WHEN_WIDE * wide):
        table.add_column(heading, justify="right", no_wrap=True)
    for mark, some in (("!", found.found), ("?", found.unfollowed), ("", found.others)):
        for s in some:
            row: list[str | Line] = [
                Line(mark, style="bold red"),
                Line(printable(s.name), style="bold" if mark else ""),
                Line(s.kind),
                Line(printable(f"{s.side} {s.label}")),
                f"{s.texts:,}",
                _short(s.weight),
                _short(s.expected),
                f"{s.score:.2f}",
                p_value(s.p_value),
                *(_short(s.put_in.mean), percent(s.consistent)) * wide,
            ]
            table.add_row(*row)
    console.print(table)
    if found.found:
        said = (
            f"{len(found.found)} of {found.n_candidates:,} looks weigh more than they should (!): "
        )
        console.print(Line(said + "should these decide?"))
    else:
        console.print(Line(f"{found.nothing}."))
    if found.limits:
        console.print(Line(f"{found.limits}.", style="bold"))


def _short(value: float) -> str:
    """A width that leaves room for names on narrow terminals."""
    return showing.UNDEFINED if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


# ---- for the page ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bar:
    name: str
    value: float
    x: float
    width: float


@dataclass(frozen=True)
class _ShownExample:
    id: str
    words: tuple[ColouredWord, ...]
    label: str
    answer: str
    cut: tuple[bool, bool]


@dataclass(frozen=True)
class _Leader:
    suspect: Suspect
    topics: tuple[_Bar, ...]
    places: tuple[_Bar, ...]
    examples: tuple[_ShownExample, ...]


@dataclass(frozen=True, kw_only=True)
class _Dot:
    name: str
    x: float
    y: float
    r: float
    suspect: bool
    title: str


def _leader(s: Suspect) -> _Leader:
    largest = max((abs(v) for v in (*s.topics.values(), *s.places.values())), default=0.0)
    return _Leader(
        s, _bars(s.topics, largest), _bars(s.places, largest), tuple(map(_example, s.examples))
    )


def _bars(values: Mapping[str, float], largest: float) -> tuple[_Bar, ...]:
    """Bars from the middle, to the right for what supports the label."""
    share = [50 * v / largest if largest > 0 else 0.0 for v in values.values()]
    return tuple(
        _Bar(name, v, round(50 + min(w, 0), 2), round(abs(w), 2))
        for (name, v), w in zip(values.items(), share, strict=True)
    )


def _example(e: SuspectExample) -> _ShownExample:
    gaps = e.gaps or ("", *(" " for _ in e.words[1:]))
    words = coloured(gaps, e.words, e.scores, marked=e.marked)
    return _ShownExample(e.id, words, e.label, e.answer, e.cut)


def _plot(found: Suspects) -> dict[str, Any]:
    """Where the dots stand; the template draws them."""
    # words are told for one label; of two labels a suspect may speak for the other
    names = {s.name for s in found.found if s.kind == "word"}
    across = ticks(*_range([dot[1] for dot in found.dots]))
    up = ticks(*_range([dot[2] for dot in found.dots]))

    def x(value: float) -> float:
        return round(LEFT + (value - across[0]) / (across[-1] - across[0]) * (RIGHT - LEFT), 1)

    def y(value: float) -> float:
        return round(BOTTOM - (value - up[0]) / (up[-1] - up[0]) * (BOTTOM - TOP), 1)

    most = max((dot[3] for dot in found.dots), default=1)
    dots = [
        _Dot(
            name=name,
            x=x(expected),
            y=y(weight),
            r=round(1.5 + 4.5 * math.sqrt(texts / most), 1),
            suspect=name in names,
            title=f"{name}: weighs {number(weight, signed=True)}, expected "
            f"{number(expected, signed=True)}, {texts} texts",
        )
        for name, expected, weight, texts in found.dots
    ]
    low, high = max(across[0], up[0]), min(across[-1], up[-1])
    suspect = ", ".join(dot.title for dot in dots if dot.suspect)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "across": [_tick(x(t), t) for t in across],
        "up": [_tick(y(t), t) for t in up],
        "line": (x(low), y(low), x(high), y(high)),
        "dots": sorted(dots, key=lambda dot: dot.suspect),
        "description": suspect or "No word is far from the line of equal weights.",
    }


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values, default=0.0), max(values, default=1.0)


def _tick(at: float, value: float) -> dict[str, Any]:
    return {"at": at, "text": f"{value:.10g}".replace("-", "−")}
