"""Texts and pictures with what a model answered and what each word or segment did: in a terminal
and as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Line

from ..core.attributions import Attribution, ranking
from ..core.examples import Example
from ..core.files import written_whole
from ..core.images import Image
from ..core.inputs import FloatArray
from .coloured import ColouredWord, coloured
from .pages import rendered, write_page
from .pictures import (
    Overlay,
    ShownPicture,
    overlay,
    painted,
    picture_column,
    shown_picture,
    strongest,
)
from .showing import number, printable, shortened
from .terminal import plain_table, print_attributions
from .terminal_pictures import show_picture

SHOWN_LABELS = 5
"""So many labels are named with their probabilities, the likeliest."""
TOP = 3
"""Words that are ranked in a page, as in a terminal."""
PAGE_SIDE = 320
"""The longer side of a picture on a page of a few."""
LONGEST = 40
"""Longer words are cut short in tables."""


@dataclass(frozen=True)
class Explanation:
    """One text or picture with a method's explanation and the model's answer."""

    id: str
    attribution: Attribution[Any]
    probabilities: FloatArray  # (labels,)
    labels: tuple[str, ...]
    signed: bool = True
    """Whether the method tells for and against."""

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

    @cached_property
    def picture(self) -> ShownPicture:
        return shown_picture(Example(self.id, self.attribution.input, 0), PAGE_SIDE)

    @cached_property
    def overlay(self) -> Overlay:
        side = PAGE_SIDE // 2
        return overlay(self.attribution, {}, self.target, side=side, signed=self.signed)

    def strongest(self, top: int) -> list[tuple[int, str, float]]:
        """Place, word and score of the words with the largest scores, whichever sign; of pictures
        number, place and mean score of segments."""
        one = self.attribution
        if isinstance(one.input, Image):
            return [(s.segment, s.place, s.score) for s in strongest(one, {}, top)]
        return [
            (int(i), one.input.words[i], float(one.scores[i]))
            for i in ranking(one.scores, "abs")[:top]
        ]


def print_explanations(console: Console, found: Sequence[Explanation], *, top: int) -> None:
    """Each text shaded, with the answer above it and the strongest words below; each picture under
    its name, with the strongest segments, numbered from 1 as `scores` are."""
    for one in found:
        if isinstance(one.attribution.input, Image):
            console.print(Line(printable(one.id)), soft_wrap=True)
        others = len(one.labels) - len(one.likeliest)
        likely = ", ".join(f"{printable(label)} {number(p)}" for label, p in one.likeliest)
        answer = Line("answer ")
        answer.append(printable(one.answer), style="bold")
        answer.append(f" ({likely}{f', {others} more' if others else ''})")
        console.print(answer)
        if isinstance(one.attribution.input, Image):
            console.print(Line(f"{one.attribution.method} for {printable(one.target)}"))
            show_picture(console, partial(painted, one.attribution))
        else:
            print_attributions(console, [one.attribution], one.labels)
        if top:
            console.print(Padding(_table(one, top), (0, 0, 1, 2), expand=False))


def _table(one: Explanation, top: int) -> Table:
    table = plain_table()
    pictured = isinstance(one.attribution.input, Image)
    table.add_column("segment" if pictured else "word", overflow="fold")
    table.add_column(Line(f"score for {printable(one.target)}"), justify="right", no_wrap=True)
    for place, word, score in one.strongest(top):
        name = f"{place + 1}, {word}" if pictured else shortened(word, LONGEST)
        table.add_row(Line(printable(name)), number(score, signed=True))
    left = one.attribution.input.n_units - top
    if left > 0:
        table.add_row(Line(f"{left} more (--top)", style="dim"), "")
    return table


def write_explanations(found: Sequence[Explanation], path: Path, *, model: str) -> Path:
    """The page; only a page of ours is written over."""
    pictured = isinstance(found[0].attribution.input, Image)
    page = rendered(
        "explanations.html",
        styles=("report.css", "pictures.css") if pictured else ("report.css",),
        pictures=pictured,
        nouns=found[0].attribution.input.nouns,
        found=found,
        model=model,
    )
    return write_page(page, path)


def write_overlays(found: Sequence[Explanation], path: Path) -> Path:
    """A PNG: each picture beside itself with the map laid over it, one below the other."""
    with written_whole(path) as file:
        picture_column([painted(one.attribution) for one in found]).save(file, "PNG")
    return path
