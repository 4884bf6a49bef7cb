"""Texts beside their adversarial twins as one HTML file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.files import written_whole
from ..results.pairs import Pair, Pairs, Side
from ..results.robustness import Robustness
from .pages import rendered

PAGE = "pairs.html"

MOST_PAIRS = 300
"""So many pairs are shown at most: those with one wrong answer come first."""


def write_pairs(found: Pairs, path: Path, *, robustness: Robustness | None = None) -> Path:
    """The page, whole or not at all."""
    content = pairs_page(found, robustness=robustness).encode("utf-8", "replace")
    with written_whole(path) as file:
        file.write(content)
    return path


def pairs_page(found: Pairs, *, robustness: Robustness | None = None) -> str:
    """The whole page as text; with the model's accuracy on both sides, if it is given."""
    return rendered(
        PAGE,
        styles=("report.css", "suspects.css"),
        scripts=(),
        found=found,
        cards=[_card(pair) for pair in found.pairs[:MOST_PAIRS]],
        robustness=robustness,
    )


@dataclass(frozen=True)
class _Word:
    before: str
    """What stands between the word before and this one."""
    text: str
    score: float
    side: str
    step: int
    rank: int
    """Among the top words, from 1; 0 for the others."""
    marked: bool


@dataclass(frozen=True)
class _Row:
    name: str
    one: Side
    words: tuple[_Word, ...]
    after: str
    rationales: tuple[str, ...]


@dataclass(frozen=True)
class _Card:
    pair: Pair
    rows: tuple[_Row, _Row]


def _card(pair: Pair) -> _Card:
    return _Card(pair, (_row("original", pair.original), _row("twin", pair.twin)))


def _row(name: str, one: Side) -> _Row:
    largest = max((abs(s) for s in one.scores), default=0.0)
    rank = {place: i for i, place in enumerate(one.top, 1)}
    marked = {place for places in one.rationales for place in places}
    gaps = one.input.gaps
    words = tuple(
        _Word(
            gap,
            word,
            score,
            "supports" if score >= 0 else "opposes",
            round(5 * abs(score) / largest) if largest > 0 else 0,
            rank.get(i, 0),
            i in marked,
        )
        for i, (gap, word, score) in enumerate(
            zip(gaps[:-1], one.input.words, one.scores, strict=True)
        )
    )
    sets = tuple(" ".join(one.input.words[i] for i in places) for places in one.rationales)
    return _Row(name, one, words, gaps[-1], sets)
