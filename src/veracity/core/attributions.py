"""The one record that every explanation becomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Literal

import numpy as np

from .inputs import BoolArray, FloatArray, In, IntArray, Span

Order = Literal["signed", "abs"]
FragmentLevel = Literal["word", "ngram"]
Kind = Literal["evidence", "counter"]

WIDTHS = (2, 3, 4)
"""How many words an n-gram may have (definitions 3.8)."""

RESOLUTION = 1e-6
"""Scores that differ by less than this share of the largest are ties: rounding, not meaning."""


def ranking(scores: FloatArray, by: Order = "signed") -> IntArray:
    """Positions from most to least important; ties go to the earlier position (definitions 0.4)."""
    return np.argsort(-rounded_steps(scores, by), kind="stable")


def rounded_steps(scores: FloatArray, by: Order = "signed") -> FloatArray:
    """Scores in whole steps: what differs by rounding alone is equal."""
    values = np.abs(scores) if by == "abs" else np.asarray(scores, dtype=np.float64)
    return _in_steps(values, np.abs(values).max(initial=0.0))


def tied_groups(scores: FloatArray, by: Order = "signed") -> list[IntArray]:
    """Positions from most to least important, those that tie together; without score, the last."""
    steps = rounded_steps(scores, by)
    return [np.flatnonzero(steps == step) for step in np.unique(steps)[::-1]]


def _in_steps(values: FloatArray, largest: float) -> FloatArray:
    """Values as whole numbers of the smallest difference that counts."""
    step = RESOLUTION * largest
    return np.round(values / step) if step > 0 else values


def count_from_ratio(ratio: float, n: int, how: Literal["ceil", "floor", "round"] = "ceil") -> int:
    """How many of n features a ratio selects: at least one, at most all (definitions 0.5)."""
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
    """Words that a method presents as one piece of evidence, or of counter-evidence."""

    positions: tuple[int, ...]
    score: float  # signed as the words' scores are: positive supports the target
    kind: Kind = "evidence"
    words: tuple[str, ...] = field(default=(), compare=False)
    """As they stand in the text; `evidence` fills them in, so that methods need not."""


def spans_of(n: int, widths: Sequence[int]) -> list[Span]:
    """Every span of these widths inside n words, by start, then by width."""
    return [(i, i + w) for i in range(n) for w in sorted(set(widths)) if i + w <= n]


def without_overlap(spans: Iterable[Span]) -> list[Span]:
    """The spans that share no word with one taken before."""
    taken: set[int] = set()
    kept = []
    for start, stop in spans:
        if taken.isdisjoint(range(start, stop)):
            taken.update(range(start, stop))
            kept.append((start, stop))
    return kept


def distinct_words(owner: IntArray, coefficients: FloatArray) -> tuple[Fragment, ...]:
    """A fragment per feature that several words may own, the strongest first; none for zeros."""
    strengths = rounded_steps(coefficients)
    return tuple(
        Fragment(
            tuple(np.flatnonzero(owner == i).tolist()),
            float(coefficients[i]),
            "evidence" if coefficients[i] > 0 else "counter",
        )
        for i in ranking(coefficients, "abs")
        if strengths[i] != 0
    )


@dataclass(frozen=True)
class Attribution(Generic[In]):
    """How much each feature of an input speaks for one label (definitions 0.2, 0.3).

    `output_value` is what the scores share out and `base_value` where that starts, in the method's
    own unit: a probability or its log-odds where words are hidden, a logit for gradients; NaN for
    methods that have none."""

    input: In
    target: int
    scores: FloatArray  # (features,) signed; positive supports the target
    fragments: tuple[Fragment, ...] | None = None  # in the method's own order, if it has any
    level: FragmentLevel = "word"  # what its own fragments are
    base_value: float = math.nan
    output_value: float = math.nan
    method: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.input.n_features
        if self.scores.shape != (n,):
            raise ValueError(
                f"expected one score per feature ({n}), got an array of shape {self.scores.shape}"
            )
        if any(not 0 <= i < n for f in self.fragments or () for i in f.positions):
            raise ValueError(f"expected fragments of features 0 to {n - 1}, got {self.fragments}")

    @cached_property
    def unit_scores(self) -> FloatArray:
        """The mean score of each unit: how strongly it is coloured. → (units,)"""
        return self.input.on_units(self.scores)

    def top_units(self, k: int, by: Order = "signed") -> BoolArray:
        """A mask of the k most important units."""
        chosen = np.zeros(len(self.unit_scores), dtype=np.bool_)
        chosen[ranking(self.unit_scores, by)[:k]] = True
        return chosen

    def top(self, k: int, by: Order = "signed") -> BoolArray:
        """A mask of the features of the k most important units."""
        return self.input.on_features(self.top_units(k, by))

    def evidence(
        self, m: int, unit: FragmentLevel | None = None, any_sign: bool = False
    ) -> list[Fragment]:
        """At most m pieces that support the target, the strongest first (definitions 3.8).

        Those that the method gave itself, in its order; of another unit, or where it gave none,
        words or n-grams by their scores, and only positive ones unless any sign will do.
        """
        return self._pieces("evidence", m, unit, any_sign)

    def counter_evidence(
        self, m: int, unit: FragmentLevel | None = None, any_sign: bool = False
    ) -> list[Fragment]:
        """At most m pieces that oppose the target, the strongest first: `evidence` reversed."""
        return self._pieces("counter", m, unit, any_sign)

    def _pieces(
        self, kind: Kind, m: int, unit: FragmentLevel | None, any_sign: bool
    ) -> list[Fragment]:
        if self.fragments is not None and unit in (None, self.level):
            return [self._with_words(f) for f in self.fragments if f.kind == kind][:m]
        spans = spans_of(len(self.scores), WIDTHS if unit == "ngram" else (1,))
        sums = np.array([self.scores[start:stop].sum() for start, stop in spans])
        largest = np.abs(self.scores).max(initial=0.0)
        strengths = _in_steps(sums if kind == "evidence" else -sums, largest)
        order = np.argsort(-strengths, kind="stable")  # ties: smaller start, then smaller width
        ordered = (spans[i] for i in order if any_sign or strengths[i] > 0)
        return [
            self._with_words(
                Fragment(tuple(range(start, stop)), float(self.scores[start:stop].sum()), kind)
            )
            for start, stop in without_overlap(ordered)[:m]
        ]

    def _with_words(self, fragment: Fragment) -> Fragment:
        return replace(fragment, words=self.input.feature_names(fragment.positions))

    def strengths(self) -> FloatArray:
        """Scores scaled to [-1, 1] within the text, for showing."""
        largest = np.max(np.abs(self.scores), initial=0.0)
        return self.scores / largest if largest > 0 else np.zeros_like(self.scores)

    def _repr_html_(self) -> str:
        from .. import attribution_html  # by the front door: how it looks is for reports to say

        return attribution_html(self)
