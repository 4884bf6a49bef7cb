"""How well a property of texts tells a model's answers, by the area under the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray

SELDOM = 5
"""Fewer texts with an answer tell nothing of it."""

LEAST_TOLD = 0.025
"""Nor does such a share of the texts, of what tells a model's answers as a whole."""


def length_auc(lengths: Mapping[str, Sequence[int]], said: Mapping[str, int]) -> float:
    """How well length tells an answer from the others, by the area under the curve (.5 is not at
    all), for the answer and the way of counting it that tell most; rare answers tell nothing."""
    answers = np.array(list(said.values()), dtype=np.int64)
    found = 0.5
    for counts in zip(*(lengths[name] for name in said), strict=True):
        for label in separable_answers(answers):
            auc = area_under_curve(np.array(counts), answers == label)
            found = max(found, auc, 1 - auc)
    return found


def separable_answers(answers: IntArray) -> list[int]:
    """Answers given often enough, and not too often, for something to tell them from the others:
    what tells a handful of texts tells nothing of the model's answers."""
    n, least = len(answers), max(SELDOM, LEAST_TOLD * len(answers))
    counts = np.bincount(answers) if n else np.zeros(0)
    return [i for i, own in enumerate(counts.tolist()) if min(own, n - own) >= least]


def area_under_curve(values: FloatArray, own: BoolArray) -> float:
    """How often a text of its own has the larger value than another one, ties by half."""
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (sizes.cumsum() - (sizes - 1) / 2)[places]  # equals share the mean of theirs
    n, others = int(own.sum()), int((~own).sum())
    return float((ranks[own].sum() - n * (n + 1) / 2) / (n * others))
