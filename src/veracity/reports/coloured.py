"""Words of a text as a page colours them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

STEPS = 5
"""Strengths of colour."""


@dataclass(frozen=True, kw_only=True)
class ColouredWord:
    """A word with its score, the side it speaks for and how strongly."""

    before: str
    """What stands between the word before and this one."""
    text: str
    score: float
    side: str
    step: int
    marked: bool
    rank: int
    """Among the top words, from 1; 0 for the others."""


def coloured(
    gaps: Sequence[str],
    words: Sequence[str],
    scores: Sequence[float],
    *,
    marked: Collection[int],
    top: Sequence[int] = (),
) -> tuple[ColouredWord, ...]:
    """All words of a text, the strongest in the strongest colour."""
    largest = max((abs(s) for s in scores), default=0.0)
    rank = {place: i for i, place in enumerate(top, 1)}
    return tuple(
        ColouredWord(
            before=gap,
            text=word,
            score=score,
            side="supports" if score >= 0 else "opposes",
            step=round(STEPS * abs(score) / largest) if largest > 0 else 0,
            marked=i in marked,
            rank=rank.get(i, 0),
        )
        for i, (gap, word, score) in enumerate(zip(gaps, words, scores, strict=True))
    )
