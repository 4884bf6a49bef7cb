"""What words should weigh by their meaning: as much as the other words that mean much the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray
from .candidates import WordTable, is_word

MAX_TRAINING_WORDS = 1500
"""So many words, the most frequent, are learnt from: time grows with their third power."""

NOISE_TEXTS = 30.0
"""In so many texts a word's weight is known as well as its meaning can tell it."""

PENALTIES = tuple(10.0**p for p in np.arange(-1.5, 2.1, 0.5))
KERNEL_WIDTH = 0.25
"""How fast similarity falls with the angle between two words: near ones count most."""

N_NEIGHBOURS = 5
N_AGREEING = 2
"""Of so many words most like it, so many that weigh as much are enough: one could be as suspicious
as the word itself."""

MIN_WORDS = 3
OUTLIER_SPREADS = 6.0
"""Weights beyond so many robust spreads are drawn in before anything is learnt from them: what is
suspicious must not change what is expected of its neighbours."""


@dataclass(frozen=True)
class WordVectors:
    """Vectors of some words, of length 1."""

    vectors: FloatArray  # (words, size), zero where there is none
    known: BoolArray  # (words,)

    @classmethod
    def of(cls, words: Sequence[str], source: str) -> WordVectors:
        """The vectors that a source has of these words; `none` has none."""
        from ..models.embeddings import vectors_for

        found = {} if source == "none" else dict(vectors_for(source, set(words)))
        return cls.from_vectors(words, found)

    @classmethod
    def from_vectors(cls, words: Sequence[str], found: Mapping[str, FloatArray]) -> WordVectors:
        """Those that are found, each turned into a direction."""
        size = len(next(iter(found.values()))) if found else 1
        known = np.array([word in found for word in words], dtype=np.bool_)
        table = np.zeros((len(words), size))
        if known.any():
            table[known] = [found[word] for word in words if word in found]
            # what all words share tells none apart
            table[known] -= table[known].mean(axis=0)
        norms = np.linalg.norm(table, axis=1)
        known &= norms > 0
        return cls(table / np.where(norms > 0, norms, 1.0)[:, None], known)

    def only(self, words: IntArray) -> WordVectors:
        """That of some of the words."""
        return WordVectors(self.vectors[words], self.known[words])

    def similarity(self, some: IntArray, others: IntArray) -> FloatArray:
        """How far one word's weight is expected to tell another's. → (some, others)"""
        cosine = self.vectors[some] @ self.vectors[others].T
        both = self.known[some][:, None] & self.known[others]
        return np.where(both, np.exp((cosine - 1) / KERNEL_WIDTH) + cosine + 1.0, 0.0)

    def nearest(self, word: int, among: IntArray, count: int) -> IntArray:
        """The words most like it, the nearest first; none for a word without a vector."""
        if not self.known[word]:
            return np.zeros(0, dtype=np.int64)
        others = among[(among != word) & self.known[among]]
        order = np.argsort(-(self.vectors[others] @ self.vectors[word]), kind="stable")
        nearest: IntArray = others[order[:count]]
        return nearest


def vector_coverage(words: WordTable, vectors: WordVectors, source: str) -> float | None:
    """The share of the texts' words that a source has vectors of; None where there is nothing to
    tell.

    Of the packaged vectors only the commonest words count: among all 400,000 there are many of
    other languages, whose vectors say that they are foreign and little else."""
    from ..data.vectors import COMMONEST, packaged_glove

    known = vectors.known
    if source == "glove":
        common = set(packaged_glove("vectors=glove")[0][:COMMONEST])
        known = np.array([form in common for form in words.forms], dtype=np.bool_)
    counts = words.counts() * np.array([is_word(form) for form in words.forms], dtype=np.bool_)
    total = int(counts.sum())
    return None if source == "none" or not total else float(counts[known].sum() / total)


CODES = frozenset(("pos", "neg", "neu"))
"""Names of labels that say no subject: vectors know them as other words."""

SAME_SUBJECT = 0.5
"""Words of this cosine or more speak of one thing: cd and music have .51, book and books .85,
shipment and books .11."""


@dataclass(frozen=True)
class LabelNames:
    """What the names of labels say, beside the words of the texts."""

    words: Mapping[str, int]
    names: Mapping[str, tuple[str, ...]]
    """The words of each label's name."""
    vectors: WordVectors

    @classmethod
    def of(cls, labels: Sequence[str], forms: Sequence[str], source: str) -> LabelNames:
        """Names without a word, such as numbers, say nothing."""
        names = {x: tuple(re.findall(r"[^\W\d_]{3,}", x.casefold())) for x in labels}
        every = {*forms, *(word for name in names.values() for word in name)}
        words = {word: i for i, word in enumerate(every)}
        return cls(words, names, WordVectors.of(list(words), source))

    def match(self, word: str, label: str) -> bool:
        """Whether a word means nearly what the label is called, or spells it in several, as in
        *q - bio*: a model should go by it."""
        if letters(word) and letters(word) == letters(label):
            return True
        names = [self.words[name] for name in self.names[label] if name not in CODES]
        if word in self.names[label] or not names or word not in self.words:
            return word in self.names[label]
        cosines = self.vectors.vectors[names] @ self.vectors.vectors[self.words[word]]
        return bool(cosines.max() >= SAME_SUBJECT)


def letters(name: str) -> str:
    """What is left of a name without spaces and signs, in small letters."""
    return "".join(c for c in name.casefold() if c.isalnum())


def expected_values(vectors: WordVectors, values: FloatArray, texts: IntArray) -> FloatArray:
    """What each word should be like, told by all words but itself. (kinds, words) → the same

    Kernel ridge regression of values on meaning, each word left out in turn; of a word without a
    vector, or with none like it, nothing is expected.
    """
    found = np.zeros(values.shape)
    able = np.flatnonzero(vectors.known)
    if len(able) < MIN_WORDS:
        return found
    order = able[np.lexsort((able, -texts[able]))]
    training, rest = order[:MAX_TRAINING_WORDS], order[MAX_TRAINING_WORDS:]
    noise = 1 + NOISE_TEXTS / texts[training]
    root = np.sqrt(noise)
    similarity = vectors.similarity(training, training)
    directions = np.linalg.eigh(similarity / root[:, None] / root)
    to_rest = vectors.similarity(rest, training)
    for row, given in zip(found, values, strict=True):
        spread = 1.4826 * float(np.median(np.abs(given[training])))
        bound = OUTLIER_SPREADS * spread if spread > 0 else np.inf
        drawn_in = np.clip(given[training], -bound, bound)
        row[training], coefficients = _left_out(directions, drawn_in, noise)
        row[rest] = to_rest @ coefficients
    return found


def raised_to_neighbours(
    vectors: WordVectors, values: FloatArray, words: IntArray, expected: FloatArray
) -> FloatArray:
    """What is expected, raised for these words to what enough of those most like each reach on its
    side of zero: regression shrinks, and too far where few words carry a topic. (all,) → (all,)"""
    raised = expected.copy()
    for word in words:
        near = values[vectors.nearest(int(word), words, N_NEIGHBOURS)]
        if len(near) >= N_AGREEING:
            side = np.sign(values[word])
            reached = float(np.sort(side * near)[-N_AGREEING])
            if reached > max(0.0, side * expected[word]):
                raised[word] = side * reached
    return raised


def _left_out(
    directions: tuple[FloatArray, FloatArray], values: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the others tell of each, and the coefficients of all together; the penalty is the one
    by which the others tell best. → (words,), (words,)"""
    root = np.sqrt(noise)
    sizes, basis = directions
    turned = basis.T @ (values / root)

    def solved(penalty: float) -> tuple[float, FloatArray, FloatArray]:
        shrunk = 1 / (np.maximum(sizes, 0) + penalty)
        coefficients = (basis @ (shrunk * turned)) / root
        diagonal = (basis**2 @ shrunk) / noise
        missed = coefficients / diagonal
        return float(np.mean(missed**2 / noise)), values - missed, coefficients

    _, left_out, coefficients = min(map(solved, PENALTIES), key=lambda one: one[0])
    return left_out, coefficients


def excess(values: FloatArray, expected: FloatArray) -> FloatArray:
    """How far values go beyond what is expected, on their side of zero; to fall short of it is no
    excess, and what is expected on the other side counts as nothing."""
    own_side = np.where(np.sign(expected) == np.sign(values), np.abs(expected), 0.0)
    found: FloatArray = np.sign(values) * np.maximum(np.abs(values) - own_side, 0.0)
    return found
