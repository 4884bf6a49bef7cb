"""Texts beside their adversarial twins as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from ..core.errors import PluginError
from ..core.examples import UNLABELLED
from ..core.plugins import nearest
from ..data.words import is_chinese
from ..results.conclusions import Conclusions, conclude
from ..results.pairs import Pairs, Side, pairs_of, telling_method
from ..results.robustness import UNTYPED, GroupAccuracy, Robustness, robustness_of
from ..results.run import Run
from .coloured import ColouredWord, coloured
from .pages import pair_page, rendered, write_page
from .showing import exact_percent, number, printable

ATTACKS = {
    "idr": "dispensable words put in, taken out or replaced",
    "negative": "rewritten as a negation",
    "obscure": "sentiment made implicit",
    "lf": "rare synonyms",
    "csk": "needs common sense",
}
"""What the types of definitions 7.1 say."""

MOST_PAIRS = 300
"""So many pairs are shown at most: those with one wrong answer come first."""


def write_pair_pages(
    run: Run,
    *,
    model: str = "",
    method: str = "",
    out: Path | None = None,
    conclusions: Conclusions | None = None,
) -> list[Path]:
    """A page per model of a run whose data hold pairs, or of one model where it is asked for."""
    if model and model not in run.models:
        raise PluginError(f"no model {model!r} in {run.folder}: {nearest(model, run.models)}")
    models = (model,) if model else run.models
    advice = None if method else conclusions or conclude(run)
    written = []
    for name in models:
        told = method if advice is None else telling_method(run, name, advice.of(name).verdicts)
        found = pairs_of(run, name, told)
        path = out or pair_page(run, name)
        rates = robustness_of(run, name) if UNLABELLED not in run.labels else None
        written.append(write_pairs(found, path, robustness=rates))
    return written


def write_pairs(found: Pairs, path: Path, *, robustness: Robustness | None = None) -> Path:
    return write_page(pairs_page(found, robustness=robustness), path)


def pairs_page(found: Pairs, *, robustness: Robustness | None = None) -> str:
    """The whole page as text; with the model's accuracy on both sides, if it is given."""
    return rendered(
        "pairs.html",
        styles=("report.css", "suspects.css"),
        scripts=(),
        filters={"shaded": _shaded, "rationales": _rationales},
        found=found,
        pairs=found.pairs[:MOST_PAIRS],
        robustness=robustness,
        attacks=ATTACKS,
        sections=sections(robustness) if robustness else [],
    )


def _shaded(one: Side) -> tuple[ColouredWord, ...]:
    marked = {place for places in one.rationales for place in places}
    gaps = one.input.gaps[:-1]
    return coloured(gaps, one.input.words, one.scores, marked=marked, top=one.top)


def _rationales(one: Side) -> list[str]:
    between = "" if is_chinese(one.input.text) else " "
    return [between.join(one.input.words[i] for i in places) for places in one.rationales]


# ---- in a terminal --------------------------------------------------------------------------


def print_robustness(console: Console, found: Mapping[str, Robustness]) -> None:
    """A row per kind of text, a column per model, and what became of the pairs."""
    console.print(_table(found))
    for model, one in found.items():
        console.print(
            Line(
                f"{printable(model)}: of {one.pairs:,} pairs both right {one.both:,}, only the "
                f"original {one.lost:,}, only the twin {one.gained:,}, none {one.neither:,}; "
                f"originals against twins p {number(one.p)}"
            )
        )


def _table(found: Mapping[str, Robustness]) -> Table:
    table = Table(title="accuracy and its 95 % interval", title_justify="left")
    table.add_column("texts")
    table.add_column("number", justify="right")
    for model in found:
        table.add_column(Line(printable(model)), justify="right")
    for i, (heading, shares) in enumerate(sections(next(iter(found.values())))):
        if heading:
            table.add_section()
            table.add_row(Line(heading, style="dim"))
        for j, share in enumerate(shares):
            cells = [_cell(sections(one)[i][1][j]) for one in found.values()]
            table.add_row(Line(printable(share.name)), f"{share.total:,}", *cells)
    return table


def sections(found: Robustness) -> list[tuple[str, tuple[GroupAccuracy, ...]]]:
    """What a table of accuracies shows, each part under what it goes by; types that nobody gave
    are no types."""
    twins = found.twins
    parts = [
        ("", (found.originals, found.twins, found.all)),
        ("by sentiment type, all texts", found.by_sentiment),
        ("by what was done, twins", (*found.by_attack, replace(twins, name="all types (micro)"))),
        ("by pattern, twins", found.by_pattern),
    ]
    return [
        (heading, shares)
        for heading, shares in parts
        if {s.name for s in shares} - {UNTYPED, "all types (micro)"}
    ]


def _cell(share: GroupAccuracy) -> str:
    if not share.total:
        return "–"
    return f"{exact_percent(share.accuracy)} ({100 * share.low:.1f}–{100 * share.high:.1f})"
