"""Whether the candidates tell a model's answers at all, and what of a text's surface does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from ..core.inputs import FloatArray, IntArray
from ..engine.seeds import generator
from ..results.separability import area_under_curve, separable_answers
from .candidates import Candidates

FOLDS = 5
PENALTY = 1.0

MOST_TEXTS = 3000
"""More are not compared with one another: the table of all pairs grows with their square."""


def _matches(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern)
    return lambda text: found.search(text) is not None


def _begins_with_capital(text: str) -> bool:
    return next((c.isupper() for c in text if c.isalpha()), False)


SURFACE: dict[str, Callable[[str], bool]] = {
    "digit": _matches(r"\d"),
    "year": _matches(r"\b(?:19|20)\d\d\b"),
    "double space": _matches(r"\S[^\S\r\n]{2,}\S"),
    "line break": _matches(r"[\r\n]"),
    "blank line": _matches(r"\n[^\S\n]*\n"),
    "capital at the start": _begins_with_capital,
    "letter beyond ASCII": _matches(r"[^\x00-\x7f]"),
    "address": _matches(r"https?://|www\."),
    "markup": _matches(r"<[^<>]+>"),
}
"""What may decide though no word, sign or casing is judged that is it."""


def candidates_auc(
    candidates: Candidates, answered: IntArray, *, seed: int
) -> tuple[float, float] | None:
    """How well the sum of all candidates tells answers to texts that it was not fitted to, by the
    area under the curve (.5 is not at all), averaged over answers; and what it may be at most. None
    where no answer is given often enough to say."""
    order = generator(seed, "told by looks").permutation(len(answered))[:MOST_TEXTS]
    answered = answered[order]
    labels = separable_answers(answered)
    if not labels:
        return None
    targets = np.stack([answered == label for label in labels], axis=1).astype(np.float64)
    likeness = _likeness(candidates, order)  # (texts, texts)
    n = len(answered)
    fold = np.arange(n) % FOLDS
    scores = np.zeros_like(targets)  # (texts, labels)
    for number in range(FOLDS):
        rest, own = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        means = targets[rest].mean(axis=0)
        inside = likeness[np.ix_(rest, rest)] + PENALTY * np.eye(len(rest))
        scores[own] = likeness[np.ix_(own, rest)] @ np.linalg.solve(inside, targets[rest] - means)
    areas = [area_under_curve(row, own > 0) for row, own in zip(scores.T, targets.T, strict=True)]
    counts = targets.sum(axis=0)
    errors = np.sqrt((1 / counts + 1 / (n - counts)) / 12)
    return float(np.mean(areas)), min(1.0, float(np.mean(areas) + 1.96 * np.mean(errors)))


def _likeness(candidates: Candidates, some: IntArray) -> FloatArray:
    """How alike texts are by the candidates that they share, rare ones first. (texts, texts)"""
    from scipy.sparse import csr_matrix, diags

    n = len(candidates.words.lengths)
    owner = [np.full(int(k), i) for i, k in enumerate(candidates.texts)]
    text = [candidates.texts_of(i) for i in range(len(candidates))]
    rows, columns = np.concatenate(text), np.concatenate(owner)
    weights = 1 / np.sqrt(candidates.texts[columns].astype(np.float64))
    table = csr_matrix((weights, (rows, columns)), shape=(n, len(candidates)))
    sizes = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    table = (diags(1 / np.maximum(sizes, 1e-12)) @ table).tocsr()[some]
    found: FloatArray = (table @ table.T).toarray()
    return found


def surface_auc(texts: Sequence[str], answered: IntArray) -> dict[str, float]:
    """How well each property of the surface tells the answer that it tells best."""
    found = {}
    for name, holds in SURFACE.items():
        has: FloatArray = np.array([float(holds(text)) for text in texts])
        areas = [area_under_curve(has, answered == label) for label in separable_answers(answered)]
        found[name] = max((max(a, 1 - a) for a in areas), default=0.5)
    return found
