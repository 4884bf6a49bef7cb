"""Texts with what a model answered and what each word did: in a terminal and as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Line

from ..core.attributions import Attribution, ranking
from ..core.inputs import FloatArray
from .coloured import ColouredWord, coloured
from .pages import rendered, write_page
from .showing import number, printable, shortened
from .terminal import plain_table, print_attributions

SHOWN_LABELS = 5
"""So many labels are named with their probabilities, the likeliest."""
TOP = 3
"""Words that are ranked in a page, as in a terminal."""
LONGEST = 40
"""Longer words are cut short in tables."""


@dataclass(frozen=True)
class Explanation:
    """One text with a method's explanation and the model's answer."""

    id: str
    attribution: Attribution
    probabilities: FloatArray  # (labels,)
    labels: tuple[str, ...]

    @property
    def answer(self) -> str:
        return self.labels[int(np.argmax(self.probabilities))]

    @property
    def target(self) -> str:
        return self.labels[self.attribution.target]

    @property
    def likeliest(self) -> list[tuple[str, float]]:
        """The labels with their probabilities, the likeliest first."""
        order = np.argsort(-self.probabilities, kind="stable")
        return [(self.labels[i], float(self.probabilities[i])) for i in order[:SHOWN_LABELS]]

    @property
    def words(self) -> tuple[ColouredWord, ...]:
        one = self.attribution
        ranked = ranking(one.scores, "abs")[:TOP]
        top = [int(i) for i in ranked if one.scores[i] != 0]
        scores = one.scores.tolist()
        return coloured(one.input.gaps[:-1], one.input.words, scores, marked=(), top=top)

    def strongest(self, top: int) -> list[tuple[int, str, float]]:
        """Place, word and score of the words with the largest scores, whichever sign."""
        one = self.attribution
        return [
            (int(i), one.input.words[i], float(one.scores[i]))
            for i in ranking(one.scores, "abs")[:top]
        ]


def print_explanations(console: Console, found: Sequence[Explanation], *, top: int) -> None:
    """Each text shaded, with the answer above it and the strongest words below."""
    for one in found:
        others = len(one.labels) - len(one.likeliest)
        likely = ", ".join(f"{printable(label)} {number(p)}" for label, p in one.likeliest)
        answer = Line("answer ")
        answer.append(printable(one.answer), style="bold")
        answer.append(f" ({likely}{f', {others} more' if others else ''})")
        console.print(answer)
        print_attributions(console, [one.attribution], one.labels)
        if top:
            console.print(Padding(_table(one, top), (0, 0, 1, 2), expand=False))


def _table(one: Explanation, top: int) -> Table:
    table = plain_table()
    table.add_column("word", overflow="fold")
    table.add_column(Line(f"score for {printable(one.target)}"), justify="right", no_wrap=True)
    for _, word, score in one.strongest(top):
        table.add_row(Line(printable(shortened(word, LONGEST))), number(score, signed=True))
    left = one.attribution.input.n_features - top
    if left > 0:
        table.add_row(Line(f"{left} more (--top)", style="dim"), "")
    return table


def write_explanations(found: Sequence[Explanation], path: Path, *, model: str) -> Path:
    """The page; only a page of ours is written over."""
    return write_page(rendered("explanations.html", found=found, model=model), path)
