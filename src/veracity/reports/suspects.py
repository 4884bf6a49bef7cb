"""What a model leans on as one HTML file that needs nothing else, and in a terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text as Line

from ..suspicion.decisions import counted_suspects, is_unsteady, judges_words, turning_nothing
from ..suspicion.record import Suspect, SuspectExample, Suspects
from ..suspicion.sentences import about_model, cautions, direction, nothing_found, voids
from . import showing
from .coloured import ColouredWord, coloured
from .pages import rendered, write_page
from .plots import Axis
from .showing import number, percent, printable
from .terminal import plain_table

PAGE = "suspects.html"
SIZE = {"width": 720, "height": 440, "left": 54, "right": 690, "top": 12, "bottom": 396}
"""Of the plot."""
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
        filters={
            "p_value": p_value,
            "direction": direction,
            "sentence": sentence,
            "longest": _longest,
            "shaded": _shaded,
        },
        counted=counted_suspects(found),
        is_unsteady=is_unsteady,
        judges_words=judges_words,
        nothing_found=nothing_found,
        found=found,
        leaders=(*found.found, *found.unfollowed, *found.others),
        plot={**SIZE, **_plot(found)},
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
        f"It weighs {number(s.weight, signed=True)} where words like it warrant "
        f"{number(s.expected, signed=True)}, in {s.texts:,} texts of which {percent(s.labelled)} "
        f"are labelled {s.label}.{tried}"
    )


# ---- in a terminal --------------------------------------------------------------------------


def print_suspects(console: Console, found: Suspects) -> None:
    """The strongest candidates in a table, suspects first, then what to make of them."""
    table = plain_table(found.model)
    table.add_column("", no_wrap=True)
    table.add_column("look", overflow="fold")
    for heading in ("kind", "speaks"):
        table.add_column(heading)
    wide = console.width >= WIDE
    for heading in ("texts", "weight", "expected", "score", "p", *WHEN_WIDE * wide):
        table.add_column(heading, justify="right", no_wrap=True)
    counts = counted_suspects(found)
    for sign, some in (("!", found.found), ("?", found.unfollowed), ("", found.others)):
        for s in some:
            mark = "·" if sign == "!" and s not in counts else sign
            mark = "✓" if sign and s.name in found.allowed else mark
            row: list[str | Line] = [
                Line(mark, style="bold red"),
                Line(printable(s.name), style="bold" if mark else ""),
                Line(s.kind),
                Line(printable(direction(s))),
                f"{s.texts:,}",
                _short(s.weight),
                _short(s.expected),
                f"{s.score:.2f}",
                p_value(s.p_value),
                *(_short(s.put_in.mean), percent(s.consistent)) * wide,
            ]
            table.add_row(*row)
    console.print(table)
    if found.unfollowed:
        console.print(
            Line("?: answers hang on it, and the labels of these texts do not follow it.")
        )
    console.print(Line(f"{printable(about_model(found))}."))
    if said := voids(found):
        console.print(Line(f"{said}.", style="bold"))
    if found.found and not is_unsteady(found):
        idle = turning_nothing(found)
        named = [s for s in found.found if s.name in found.allowed]
        open_ = [s for s in found.found if s not in named and s not in idle]
        passed = len(found.found) - len(named) - len(counts)
        said = (
            f"{len(found.found)} of {found.n_candidates:,} looks "
            f"{'weighs more than its' if len(found.found) == 1 else 'weigh more than their'} "
            f"meaning seems to warrant{' (!)' if counts or not passed else ''}"
        )
        if named:
            said += f", {len(named)} of them allowed (✓)"
        if passed:
            said += f", {passed} of them not counted by --fail (·)"
        console.print(
            Line(
                f"{said}: should {'this' if len(open_) == 1 else 'these'} decide?"
                if open_
                else f"{said}."
            )
        )
    else:
        console.print(Line(f"{nothing_found(found)}."))
    if said := cautions(found):
        console.print(Line(f"{said}.", style="bold"))


def _short(value: float) -> str:
    """A width that leaves room for names on narrow terminals."""
    return showing.UNDEFINED if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


# ---- for the page ---------------------------------------------------------------------------


def _longest(s: Suspect) -> float:
    """The weight whose bar is longest, by topic or by place."""
    return max((abs(v) for v in (*s.topics.values(), *s.places.values())), default=0.0)


def _shaded(e: SuspectExample) -> tuple[ColouredWord, ...]:
    gaps = e.gaps or ("", *(" " for _ in e.words[1:]))
    return coloured(gaps, e.words, e.scores, marked=e.marked)


def _plot(found: Suspects) -> dict[str, Any]:
    """Where the dots stand; the template draws them."""
    # words are told for one label; of two labels a suspect may speak for the other
    names = {s.name for s in found.found if s.kind == "word"}
    x = Axis.around([dot[1] for dot in found.dots], SIZE["left"], SIZE["right"])
    y = Axis.around([dot[2] for dot in found.dots], SIZE["bottom"], SIZE["top"])
    most = max((dot[3] for dot in found.dots), default=1)
    dots: list[dict[str, Any]] = [
        {
            "name": name,
            "x": x(expected),
            "y": y(weight),
            "r": round(1.5 + 4.5 * math.sqrt(texts / most), 1),
            "suspect": name in names,
            "title": f"{name}: weighs {number(weight, signed=True)}, expected "
            f"{number(expected, signed=True)}, {texts} texts",
        }
        for name, expected, weight, texts in found.dots
    ]
    low, high = max(x.marks[0], y.marks[0]), min(x.marks[-1], y.marks[-1])
    suspect = ", ".join(dot["title"] for dot in dots if dot["suspect"])
    return {
        "across": x.ticks,
        "up": y.ticks,
        "line": (x(low), y(low), x(high), y(high)),
        "dots": sorted(dots, key=lambda dot: dot["suspect"]),
        "description": suspect or "No word is far from the line of equal weights.",
    }
