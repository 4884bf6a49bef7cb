"""The one record that every explanation becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import numpy as np

from .inputs import BoolArray, FloatArray, IntArray, Text

Order = Literal["signed", "abs"]
Kind = Literal["evidence", "counter"]


RESOLUTION = 1e-6
"""Scores that differ by less than this share of the largest are ties: rounding, not meaning."""


def ranking(scores: FloatArray, by: Order = "signed") -> IntArray:
    """Positions from most to least important; ties go to the earlier position (SPEC 0.4)."""
    values = np.abs(scores) if by == "abs" else np.asarray(scores, dtype=np.float64)
    step = RESOLUTION * np.abs(values).max(initial=0.0)
    return np.argsort(-np.round(values / step) if step > 0 else -values, kind="stable")


def count_from_ratio(ratio: float, n: int, how: Literal["ceil", "floor", "round"] = "ceil") -> int:
    """How many of n features a ratio selects: at least one, at most all (SPEC 0.5)."""
    if n == 0:
        return 0
    exact = ratio * n
    # 0.07 * 100 is 7.000000000000001: without the margin a ceiling would give 8
    k = {
        "ceil": math.ceil(exact - 1e-9),
        "floor": math.floor(exact + 1e-9),
        "round": math.floor(exact + 0.5 + 1e-9),
    }[how]
    return min(n, max(1, k))


@dataclass(frozen=True)
class Fragment:
    """Words that a method presents as one piece of evidence."""

    positions: tuple[int, ...]
    score: float
    kind: Kind = "evidence"


@dataclass(frozen=True)
class Attribution:
    """How much each feature of an input speaks for one label (SPEC 0.2, 0.3)."""

    input: Text
    target: int
    scores: FloatArray  # (words,) signed; positive supports the target
    fragments: tuple[Fragment, ...] | None = None
    level: Literal["word", "ngram"] = "word"
    """The unit of its own fragments."""
    base_value: float = math.nan
    output_value: float = math.nan
    method: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.scores.shape != (self.input.n_features,):
            raise ValueError(
                f"expected one score per word ({self.input.n_features}), "
                f"got an array of shape {self.scores.shape}"
            )

    def top(self, k: int, by: Order = "signed") -> BoolArray:
        """A mask of the k most important features."""
        chosen = np.zeros(len(self.scores), dtype=np.bool_)
        chosen[ranking(self.scores, by)[:k]] = True
        return chosen

    def evidence(self, m: int) -> list[Fragment]:
        """At most m fragments that support the target: the method's own, or single words."""
        return self._of_kind("evidence", m, self.scores)

    def counter_evidence(self, m: int) -> list[Fragment]:
        """At most m fragments that oppose the target: the method's own, or single words."""
        return self._of_kind("counter", m, -self.scores)

    def _of_kind(self, kind: Kind, m: int, scores: FloatArray) -> list[Fragment]:
        if self.fragments is not None:
            return [f for f in self.fragments if f.kind == kind][:m]
        return [
            Fragment((int(i),), float(self.scores[i]), kind)
            for i in ranking(scores)[:m]
            if scores[i] > 0
        ]

    def strengths(self) -> FloatArray:
        """Scores scaled to [-1, 1] within the text, for showing."""
        largest = np.max(np.abs(self.scores), initial=0.0)
        return self.scores / largest if largest > 0 else np.zeros_like(self.scores)

    def _repr_html_(self) -> str:
        words = " ".join(
            f'<span style="background:rgba({"0,114,178" if s >= 0 else "213,94,0"},'
            f'{abs(s) * 0.75:.2f});padding:1px 3px;border-radius:3px" '
            f'title="{score:+.4g}">{escape(word)}</span>'
            for word, score, s in zip(self.input.words, self.scores, self.strengths(), strict=True)
        )
        return f'<div style="line-height:1.9"><b>{escape(self.method)}</b><br>{words}</div>'
