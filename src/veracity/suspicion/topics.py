"""What texts are about: groups of texts that share words, to see whether a finding holds in all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.inputs import FloatArray, IntArray
from .candidates import WordTable

FEWEST, COMMONEST = 3, 0.1
"""Words in fewer texts than the first or in a larger share than the second tell no topic."""

DIRECTIONS = 16
TURNS = 25


@dataclass(frozen=True)
class Topics:
    """The topic of each text, and the words that tell it."""

    of: IntArray  # (texts,)
    names: tuple[str, ...]


def topics_of(words: WordTable, count: int, *, seed: int) -> Topics:
    """Texts in so many groups: k-means on the main directions of their tf-idf vectors."""
    from scipy.sparse import csr_matrix, diags
    from scipy.sparse.linalg import svds

    n = len(words.lengths)
    table = csr_matrix(
        (np.ones(len(words.form)), (words.text, words.form)), shape=(n, len(words.forms))
    )
    texts = np.asarray((table > 0).sum(axis=0)).ravel()
    alphabetic = np.array([form.isalpha() for form in words.forms], dtype=np.bool_)
    kept = np.flatnonzero((texts >= FEWEST) & (texts <= COMMONEST * n) & alphabetic)
    size = min(DIRECTIONS, n - 1, len(kept) - 1)
    if size < 2 or count < 2:
        return Topics(np.zeros(n, dtype=np.int64), ("all",))
    weighted = (table[:, kept] > 0).astype(np.float64) @ diags(np.log(n / texts[kept]))
    left, values, _ = svds(weighted, k=size, v0=np.ones(min(weighted.shape)))
    rows = left * values
    norms = np.linalg.norm(rows, axis=1)
    points = rows / np.where(norms > 0, norms, 1.0)[:, None]
    of = _k_means(points, min(count, n), np.random.default_rng(seed))
    used, of = np.unique(of, return_inverse=True)
    names = []
    for topic in range(len(used)):
        inside = np.asarray(weighted[of == topic].mean(axis=0)).ravel()
        lead = inside - np.asarray(weighted.mean(axis=0)).ravel()
        order = np.argsort(-lead, kind="stable")[:3]
        names.append(", ".join(words.forms[kept[i]] for i in order))
    return Topics(of.astype(np.int64), tuple(names))


def _k_means(points: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Centres begin far apart (k-means++), then move to the middle of what is nearest to them."""
    centres = points[[int(rng.integers(len(points)))]]
    while len(centres) < count:
        far = ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
        if not far.sum() > 0:
            break
        centres = np.vstack([centres, points[int(rng.choice(len(points), p=far / far.sum()))]])
    nearest = np.zeros(len(points), dtype=np.int64)
    for _ in range(TURNS):
        nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        groups = [points[nearest == c] for c in range(len(centres))]
        moved = np.array([g.mean(axis=0) if len(g) else centres[c] for c, g in enumerate(groups)])
        if np.allclose(moved, centres):
            break
        centres = moved
    return nearest.astype(np.int64)
