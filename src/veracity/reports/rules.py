"""Does the model decide on the right clause? In a terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..core.attributions import Attribution
from ..core.examples import Example
from ..results.health import Health, health
from ..results.rules import (
    CATEGORIES,
    RuleOutcomes,
    Share,
    effects,
    metrics_of,
    outcomes,
    sentences,
)
from ..results.run import Run
from .coloured import ColouredWord, coloured
from .pages import rendered, write_page
from .showing import interval, percent, printable
from .terminal import plain_table

PAGE = "rules.html"

NAMES = {
    "consistent": "right clause",
    "not_significant": "not significant",
    "wrong_side": "wrong clause",
    "wrong": "wrong answer",
}


@dataclass(frozen=True)
class ShownSentence:
    """A sentence as a method colours it, the clause that ought to decide underlined."""

    example: Example[Any]
    label: str
    rule: str
    words: tuple[ColouredWord, ...]
    last_gap: str


def print_outcomes(console: Console, run: Run, elsewhere: Mapping[str, Health]) -> None:
    """What the model itself is worth; a row per model, method and setting; then what taking clauses
    away shows."""
    for line in model_sentences(run, elsewhere):
        console.print(printable(line), markup=False, soft_wrap=True)
    for metric in metrics_of(run):
        table = plain_table()
        for name in ("model", "method", "structures", *NAMES.values()):
            table.add_column(name, justify="left" if name in ("model", "method") else "right")
        found = outcomes(run, metric)
        for one in found:
            shares = (_told(one.shares[name]) for name in NAMES)
            table.add_row(printable(one.model), one.method, f"{one.structures:,}", *shares)
        console.print(f"{metric}: how right answers are owed", markup=False)
        console.print(table)
        for one in found:
            if is_sound(one.model, elsewhere):
                console.print(printable(one.sentence) + ".", markup=False, soft_wrap=True)
    for line in effect_sentences(run, elsewhere):
        console.print(printable(line), markup=False, soft_wrap=True)


def model_sentences(run: Run, elsewhere: Mapping[str, Health]) -> list[str]:
    """How good each model is on these texts and elsewhere, on texts without a structure; and where
    nothing can be concluded of it, why and what to do. To be wrong where clauses disagree may be
    just what was asked about: a model is judged by what it does elsewhere."""
    said = []
    for model in run.models:
        here = health(run, model)
        if here.accuracy is None:
            continue
        said.append(
            f"{model} is right on {here.accuracy:.3f} of {here.texts:,} texts with a structure "
            f"(95 % interval {here.low:.3f} to {here.high:.3f})"
        )
        other = elsewhere.get(model)
        if other is None:
            said[-1] += "."
            if here.diagnosis:
                said.append(
                    "No texts without a structure were there to judge it by: so often wrong, it "
                    "may go by the other clause, or its labels may be turned."
                )
            continue
        said[-1] += f", and on {other.accuracy:.3f} of {other.texts:,} without."
        if other.fault:
            said.append(
                f"Nothing is concluded of how {model} decides. Of texts without a structure: "
                f"{other.fault}."
            )
    return said


def effect_sentences(run: Run, elsewhere: Mapping[str, Health]) -> list[str]:
    """What needs no explanation: clauses are taken away, and the model is asked."""
    return [
        f"Asked without a clause, {model} moves more for the one that ought to decide in "
        f"{_told(found['decides'])} of texts; that clause alone gets the same answer in "
        f"{_told(found['kept'])}."
        for model, found in effects(run).items()
        if is_sound(model, elsewhere)
    ]


def is_sound(model: str, elsewhere: Mapping[str, Health]) -> bool:
    """Whether nothing is wrong with a model that voids what is said of its clauses."""
    return model not in elsewhere or not elsewhere[model].fault


def _told(share: Share) -> str:
    return f"{percent(share.value)} ({interval(share.low, share.high)})"


def shown_sentences(
    run: Run, one: RuleOutcomes, metric: str
) -> list[tuple[str, list[ShownSentence]]]:
    """The kinds of sentences with an example of each label."""
    stored = run.attributions(one.model, one.method)
    found = []
    for category, about in CATEGORIES.items():
        rows = [
            _shown(e, stored[e.id], run.labels)
            for e in sentences(run, one.model, one.method, metric, category)
        ]
        if rows:
            found.append((about, rows))
    return found


def _shown(
    example: Example[Any], attribution: Attribution[Any], labels: tuple[str, ...]
) -> ShownSentence:
    (mask, *_) = example.truths["dominant"]
    text = example.input
    words = coloured(
        text.gaps[:-1],
        text.words,
        attribution.scores.tolist(),
        marked={i for i, m in enumerate(mask) if m},
    )
    return ShownSentence(
        example, labels[example.label], example.facts.get("rule", ""), words, text.gaps[-1]
    )


def write_rules(run: Run, elsewhere: Mapping[str, Health], path: Path | None = None) -> Path:
    """The page of a run that tested rules; only a page of ours is written over."""
    (metric, *_) = metrics_of(run)
    found = outcomes(run, metric)
    page = rendered(
        "rules.html",
        styles=("report.css", "rules.css"),
        run=run,
        metric=metric,
        found=found,
        names=NAMES,
        models=model_sentences(run, elsewhere),
        sound={model for model in run.models if is_sound(model, elsewhere)},
        effects=effect_sentences(run, elsewhere),
        shown=[(one, shown_sentences(run, one, metric)) for one in found],
    )
    return write_page(page, path or run.folder / PAGE)
