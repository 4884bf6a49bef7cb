"""How far methods put the words of a sentence in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.inputs import FloatArray

AGREE = 0.5
DISAGREE = 0.2
"""Mean rank correlations from which, and below which, methods are said to (dis)agree."""


@dataclass(frozen=True)
class Agreement:
    """Mean rank correlations of one model's explanations: per pair of methods, per sentence."""

    methods: tuple[str, ...]
    matrix: FloatArray  # (methods, methods)
    by_example: Mapping[str, float]


def agreement(
    found: Mapping[str, Mapping[str, FloatArray]], baselines: Sequence[str] = ()
) -> Agreement:
    """From scores by method and example; methods that look at nothing count in the matrix only."""
    methods = tuple(found)
    sums = np.zeros((len(methods), len(methods)))
    counts = np.zeros_like(sums)
    looking = np.array([m not in baselines for m in methods], dtype=bool)
    pairs = np.triu(np.outer(looking, looking), k=1)
    by_example = {}
    for example in {e: None for scores in found.values() for e in scores}:
        table = rank_correlations([found[m].get(example) for m in methods])
        defined = ~np.isnan(table)
        sums += np.where(defined, table, 0.0)
        counts += defined
        by_example[example] = _mean(table[pairs & defined])
    matrix = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Agreement(methods, matrix, by_example)


def rank_correlations(vectors: Sequence[FloatArray | None]) -> FloatArray:
    """Spearman's coefficient of every pair; NaN where a vector is missing or has no order."""
    length = max((len(v) for v in vectors if v is not None), default=0)
    units = np.full((len(vectors), length), np.nan)
    for i, vector in enumerate(vectors):
        if vector is not None and len(vector) == length and not np.isnan(vector).any():
            centred = ranks(vector) - (length + 1) / 2
            size = np.sqrt(np.sum(centred**2))
            if size > 0:
                units[i] = centred / size
    if not length:
        return np.full((len(vectors), len(vectors)), np.nan)
    products: FloatArray = units @ units.T
    return np.clip(products, -1.0, 1.0)


def ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: FloatArray = np.cumsum(counts) - (counts - 1) / 2
    return shared[place]


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
