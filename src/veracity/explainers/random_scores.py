"""Scores drawn at random: what any method must beat (definitions 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import (
    WIDTHS,
    Attribution,
    Fragment,
    FragmentLevel,
    Kind,
    spans_of,
    without_overlap,
)
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Input, Span
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class RandomScores(Explainer):
    """Words, n-grams or segments drawn at random for and against, looking at none: the baseline."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    baseline: ClassVar[bool] = True
    draws: ClassVar[bool] = True

    unit: FragmentLevel = "word"
    """What is drawn: words or n-grams."""
    widths: tuple[int, ...] = WIDTHS
    """How many words an n-gram has."""

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1:
            raise ValueError(f"expected widths of at least one word, got {self.widths}")

    def n_questions(self, n_units: int) -> int | None:
        return 0

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        draw = self._words if self.unit == "word" else self._ngrams
        return [
            draw(text, target, rng) for text, target, rng in zip(inputs, targets, rngs, strict=True)
        ]

    def _words(self, text: Input, target: int, rng: np.random.Generator) -> Attribution[Input]:
        """Half of the words speak for the target, so that both sides have m of 2m words."""
        n = text.n_units
        supports = rng.permutation(n) < (n + 1) // 2
        scores = np.abs(rng.normal(size=n)) * np.where(supports, 1.0, -1.0)
        return Attribution(text, target, text.on_features(scores))

    def _ngrams(self, text: Input, target: int, rng: np.random.Generator) -> Attribution[Input]:
        n = text.n_features
        scores = np.zeros(n)
        fragments: list[Fragment] = []
        sides: tuple[tuple[Kind, float], ...] = (("evidence", 1.0), ("counter", -1.0))
        for kind, sign in sides:
            spans = drawn_spans(n, self.widths, rng)
            sizes = np.sort(np.abs(rng.normal(size=len(spans))))[::-1]
            for (start, stop), size in zip(spans, sizes, strict=True):
                fragments.append(Fragment(tuple(range(start, stop)), float(sign * size), kind))
                scores[start:stop] += sign * size / (stop - start)
        return Attribution(text, target, scores, tuple(fragments), "ngram")


def drawn_spans(n: int, widths: Sequence[int], rng: np.random.Generator) -> list[Span]:
    """Spans in the order in which they are drawn, each width alike and then each start alike,
    passing over those that share a word with an earlier one, until no further span fits."""
    spans = spans_of(n, widths)
    starts = np.array([n - (stop - start) + 1 for start, stop in spans])
    # a race of clocks, each ringing in proportion to its chance, draws without replacement
    order = np.argsort(rng.exponential(size=len(spans)) * starts, kind="stable")
    return without_overlap(spans[i] for i in order)
