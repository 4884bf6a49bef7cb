"""Word vectors learnt from texts: words that stand near the same words lie near each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..core.inputs import FloatArray

WINDOW = 5
"""So many words on either side of a word are its neighbours."""

ROUNDING = 1e-6
"""A singular value below this share of the largest, or a vector that is so short, is rounding."""


def corpus_vectors(
    texts: Sequence[Sequence[int]], n_words: int, *, size: int, seed: int
) -> FloatArray:
    """A row per word from texts as numbers of words; zeros where they tell nothing of it, and fewer
    columns where there are few words. → (n_words, size)

    Positive pointwise mutual information of neighbours, cut to its largest singular values:
    M ≈ U Σ Vᵀ, vectors U √Σ, each of length 1 (Levy, Goldberg and Dagan 2015). Else frequent words
    would be many times longer than rare ones, and what a model reads than its mean vector.
    """
    from scipy.sparse.linalg import svds

    information = _information(texts, n_words)
    # the solver would begin elsewhere at every call
    start = np.random.default_rng(seed).uniform(0.5, 1.5, n_words)
    u, values, _ = svds(information, k=min(size, n_words - 1), v0=start)
    order = np.argsort(-values, kind="stable")
    u, values = u[:, order], np.where(values > ROUNDING * values.max(), values, 0.0)[order]
    # a singular vector serves as well as its negative: the largest entry is to be positive
    u *= np.sign(u[np.abs(u).argmax(axis=0), np.arange(len(values))])
    vectors: FloatArray = u * np.sqrt(values)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    nonzero = lengths > ROUNDING * lengths.max()
    np.divide(vectors, lengths, out=vectors, where=nonzero)
    vectors[~nonzero[:, 0]] = 0.0
    return vectors


def _information(texts: Sequence[Sequence[int]], n_words: int) -> Any:
    """max(0, log p(w, v) / p(w) p(v)) of neighbours w and v. Sparse (n_words, n_words)"""
    from scipy.sparse import coo_array

    ids = [np.asarray(text, dtype=np.int64) for text in texts if len(text) > 1]
    if not ids:
        raise DataError("expected texts of two words or more to learn vectors from, got none")
    pairs = [(t[:-gap], t[gap:]) for t in ids for gap in range(1, min(WINDOW, len(t) - 1) + 1)]
    left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
    rows, columns = np.concatenate([left, right]), np.concatenate([right, left])
    counts = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n_words, n_words))
    counts.sum_duplicates()
    row, column = counts.coords
    of_word = np.bincount(rows, minlength=n_words)
    information = np.log(counts.data * len(rows) / (of_word[row] * of_word[column]))
    positive = information > 0
    return coo_array(
        (information[positive], (row[positive], column[positive])), shape=(n_words, n_words)
    ).tocsr()
