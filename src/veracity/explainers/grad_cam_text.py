"""The n-grams whose filters move the answer most (definitions 3.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution, Fragment, Kind, ranking
from ..core.classifiers import Classifier, Convolutional
from ..core.explainers import Explainer
from ..core.inputs import FloatArray, Input
from ..core.plugins import Profiles
from ..engine.hits import Hits, filter_hits
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class GradCamText(Explainer):
    """N-grams that filters chose, by the effects of all filters on their words.

    A word's score is the effect of the filters that raise the answer less that of those that
    lower it. `minmax` scales each kind of effect to 0 … 1 over the text and what fills it up.
    """

    needs: ClassVar[type] = Convolutional
    profiles: ClassVar[Profiles] = {"released": {"minmax": True}}

    minmax: bool = False
    """Whether each kind of effect is scaled to 0 … 1 over the text."""

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        found = filter_hits(cast(Convolutional, model), inputs, targets)
        return [
            self._attribution(text, target, hits)
            for text, target, hits in zip(inputs, targets, found, strict=True)
        ]

    def _attribution(self, text: Input, target: int, hits: Hits) -> Attribution[Input]:
        spans = sorted({hits.words(k) for k in range(len(hits.values))} - {()})
        scores = np.zeros(text.n_features)
        fragments: list[Fragment] = []
        kinds: tuple[tuple[Kind, int], ...] = (("evidence", 1), ("counter", -1))
        for kind, sign in kinds:
            effects = hits.spread(np.maximum(sign * hits.gradient, 0.0) * hits.values)
            if self.minmax:
                effects = scaled(effects)
            words = effects[: hits.n_words]
            scores[: hits.n_words] += sign * words
            fragments += [
                Fragment(span, sign * score, kind) for span, score in chosen(spans, words)
            ]
        return Attribution(
            text,
            target,
            scores,
            fragments=tuple(fragments),
            level="ngram",
            output_value=float(hits.logits[target]),
        )


def chosen(
    spans: Sequence[tuple[int, ...]], effects: FloatArray
) -> list[tuple[tuple[int, ...], float]]:
    """Spans by descending sum of their words' effects, none overlapping one before it.

    Ties go to the smaller start, then to the shorter span: the order in which spans are given.
    """
    sums = np.array([effects[list(span)].sum() for span in spans])
    taken: set[int] = set()
    found = []
    for i in ranking(sums):
        if sums[i] > 0 and taken.isdisjoint(spans[i]):
            taken.update(spans[i])
            found.append((spans[i], float(sums[i])))
    return found


def scaled(effects: FloatArray) -> FloatArray:
    """From 0 for the least to 1 for the most; all 0 where there is no difference."""
    low, high = effects.min(), effects.max()
    return (effects - low) / (high - low) if high > low else np.zeros_like(effects)
