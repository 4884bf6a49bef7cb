"""What words should weigh by their meaning: as much as the other words that mean much the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray

MOST_WORDS = 2000
"""So many words, the most frequent, are learnt from: time grows with their third power."""

STEADY = 30.0
"""In so many texts a word's weight is known as well as its meaning can tell it."""

PENALTIES = tuple(10.0**p for p in np.arange(-1.5, 2.1, 0.5))
NARROW = 0.25
"""How fast likeness falls with the angle between two words: near ones count most."""

OUTLYING = 6.0
"""Weights beyond so many robust spreads are drawn in before anything is learnt from them: what is
suspicious must not change what is expected of its neighbours."""

WINDOW = 200
"""How many looks of like frequency tell how much weights vary."""


@dataclass(frozen=True)
class Meaning:
    """Vectors of some words, of length 1."""

    vectors: FloatArray  # (words, size), zero where there is none
    known: BoolArray  # (words,)

    @classmethod
    def of(cls, words: Sequence[str], source: str) -> Meaning:
        """The vectors that a source has of these words; `none` has none."""
        from ..models.embeddings import vectors_for

        return cls.from_vectors(
            words, {} if source == "none" else dict(vectors_for(source, set(words)))
        )

    @classmethod
    def from_vectors(cls, words: Sequence[str], found: Mapping[str, FloatArray]) -> Meaning:
        """Those that are found, each turned into a direction."""
        size = len(next(iter(found.values()))) if found else 1
        table = np.zeros((len(words), size))
        for i, word in enumerate(words):
            if word in found:
                table[i] = found[word]
        known = np.array([word in found for word in words], dtype=np.bool_)
        if known.any():
            # what all words share tells none apart
            table[known] -= table[known].mean(axis=0)
        norms = np.linalg.norm(table, axis=1)
        known &= norms > 0
        return cls(table / np.where(norms > 0, norms, 1.0)[:, None], known)

    def only(self, words: IntArray) -> Meaning:
        """That of some of the words."""
        return Meaning(self.vectors[words], self.known[words])

    def likeness(self, some: IntArray, others: IntArray) -> FloatArray:
        """How far one word's weight is expected to tell another's. → (some, others)"""
        cosine = self.vectors[some] @ self.vectors[others].T
        both = self.known[some][:, None] & self.known[others]
        likeness: FloatArray = np.where(both, np.exp((cosine - 1) / NARROW) + cosine + 1.0, 0.0)
        return likeness

    def nearest(self, word: int, among: IntArray, count: int) -> IntArray:
        """The words most like it, the nearest first; none for a word without a vector."""
        if not self.known[word]:
            return np.zeros(0, dtype=np.int64)
        others = among[(among != word) & self.known[among]]
        order = np.argsort(-(self.vectors[others] @ self.vectors[word]), kind="stable")
        return others[order[:count]]


def expected_weights(meaning: Meaning, weights: FloatArray, texts: IntArray) -> FloatArray:
    """What each word should weigh, told by all words but itself. (words,) → (words,)

    Kernel ridge regression of weights on meaning, each word left out in turn; a word without a
    vector, or with none like it, is expected to weigh nothing.
    """
    expected = np.zeros(len(weights))
    able = np.flatnonzero(meaning.known)
    if len(able) < 3:
        return expected
    order = able[np.lexsort((able, -texts[able]))]
    taught, rest = order[:MOST_WORDS], order[MOST_WORDS:]
    spread = 1.4826 * float(np.median(np.abs(weights[taught])))
    bound = OUTLYING * spread if spread > 0 else np.inf
    drawn_in = np.clip(weights[taught], -bound, bound)
    noise = 1 + STEADY / texts[taught]
    left_out, coefficients = _left_out(meaning.likeness(taught, taught), drawn_in, noise)
    expected[taught] = left_out
    if len(rest):
        expected[rest] = meaning.likeness(rest, taught) @ coefficients
    return expected


def _left_out(
    likeness: FloatArray, weights: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the others tell of each, and the coefficients of all together; the penalty is the one
    by which the others tell best. (words, words), (words,), (words,) → (words,), (words,)"""
    root = np.sqrt(noise)
    values, basis = np.linalg.eigh(likeness / root[:, None] / root)
    turned = basis.T @ (weights / root)
    best: tuple[float, FloatArray, FloatArray] | None = None
    for penalty in PENALTIES:
        shrunk = 1 / (np.maximum(values, 0) + penalty)
        coefficients = (basis @ (shrunk * turned)) / root
        diagonal = (basis**2 @ shrunk) / noise
        missed = coefficients / diagonal
        loss = float(np.mean(missed**2 / noise))
        if best is None or loss < best[0]:
            best = loss, weights - missed, coefficients
    assert best is not None
    return best[1], best[2]


def spreads(excess: FloatArray, texts: IntArray, *, least: float) -> FloatArray:
    """How much weights vary among looks of like frequency, by the median; never below the least.

    excess, texts: (looks,) → (looks,)
    """
    n = len(excess)
    if not n:
        return np.zeros(0)
    order = np.lexsort((np.arange(n), texts))
    sizes = np.abs(excess[order])
    window = min(n, WINDOW + 1)
    rows = np.lib.stride_tricks.sliding_window_view(sizes, window)
    medians = np.array([np.median(row) for row in rows])
    places = np.clip(np.arange(n) - window // 2, 0, len(medians) - 1)
    found = np.zeros(n)
    found[order] = 1.4826 * medians[places]
    return np.hypot(found, least)
