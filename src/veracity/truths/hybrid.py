"""The integer programme over the words that matter most to a model (definitions 6.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.classifiers import Classifier
from ..core.examples import Dataset
from ._programme import Programme, Scores
from .gram_activation import GramActivation, Scale, Which, convolution


@dataclass(frozen=True)
class Hybrid(Programme):
    """Sets of words by an integer programme over the words that a convolution answers to most."""

    min_count: int = 5
    """Words that the texts hold less often are not looked at: rare ones get extreme scores."""
    scale: Scale = "document"
    """What scores are divided by: the largest of the document or of all, or nothing."""
    filters: Which = "active"
    """Which filters share out an n-gram: those that answer to it, or all."""
    mean_grams: bool = False
    """Whether a word's score is the mean over the n-grams around it, not their sum."""
    sum_filters: bool = False
    """Whether it is the sum over filters, not their mean."""

    def vocabulary(self, model: Classifier | None, train: Dataset) -> tuple[Sequence[str], Scores]:
        convolution(model, self.spec)
        activation = GramActivation(
            scale=self.scale,
            filters=self.filters,
            mean_grams=self.mean_grams,
            sum_filters=self.sum_filters,
            cased=self.cased,
        )
        scores, _ = activation.scores(model, train)
        counts = Counter(word for e in train for word in self.read(e.input.words))
        known = {w: scores[w] for w in self.read(scores) if counts[w] >= self.min_count}
        chosen = strongest(known, self.words)
        return chosen, {word: scores[word] for word in chosen}


def strongest(scores: Scores, count: int) -> list[str]:
    """The words with the highest score for any label; ties in alphabetical order."""
    return sorted(scores, key=lambda word: (-max(scores[word]), word))[:count]
