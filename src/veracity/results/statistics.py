"""Saying "better": intervals, paired tests, correction for many looks (SPEC 8.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..core.inputs import BoolArray, FloatArray

EXACT_UP_TO = 12
"""So many non-zero differences are enumerated, 2 to that power sign patterns."""

_CHUNK = 500


def bootstrap_intervals(
    values: FloatArray,
    groups: Sequence[str] | None = None,
    *,
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> FloatArray:
    """Percentile intervals of the column means; NaN entries are left out. Rows of one group, such
    as the twins of one original, are no independent draws: groups are drawn whole. (n, k) → (k, 2)
    """
    filled = group_sums(values, groups)
    defined = group_sums((~np.isnan(values)).astype(np.float64), groups)
    n, k = filled.shape
    rng = np.random.default_rng(seed)
    found = np.full((draws, k), np.nan)
    for start in range(0, draws if n else 0, _CHUNK):
        stop = min(start + _CHUNK, draws)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=stop - start).astype(float)
        counts = weights @ defined
        with np.errstate(invalid="ignore"):
            found[start:stop] = (weights @ filled) / counts
    return percentiles(found, level)


def group_sums(values: FloatArray, groups: Sequence[str] | None) -> FloatArray:
    """Sums of the rows of each group, in the order in which groups are met; NaN adds nothing.
    (n, k) → (groups, k)"""
    filled = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0)
    if groups is None:
        return filled
    places = {name: i for i, name in enumerate(dict.fromkeys(groups))}
    sums = np.zeros((len(places), filled.shape[1]))
    np.add.at(sums, [places[name] for name in groups], filled)
    return sums


def resampled_sums(counts: FloatArray, *, draws: int = 1000, seed: int = 0) -> FloatArray:
    """Column sums over rows drawn with replacement, the same rows for all columns: for figures
    that are no means, such as a kappa of counts pooled over texts. (n, k) → (draws, k)"""
    n, k = counts.shape
    rng = np.random.default_rng(seed)
    found = np.zeros((draws, k))
    for start in range(0, draws if n else 0, _CHUNK):
        stop = min(start + _CHUNK, draws)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=stop - start)
        found[start:stop] = weights.astype(float) @ counts
    return found


def resampling_tests(found: FloatArray) -> FloatArray:
    """Two-sided p-values that differences computed for every draw are not zero; a column that is
    never defined tells nothing. (draws, k) → (k,)"""
    draws = (~np.isnan(found)).sum(axis=0)
    less = np.minimum((found <= 0).sum(axis=0), (found >= 0).sum(axis=0))
    p: FloatArray = np.minimum(1.0, 2 * (less + 1) / (draws + 1))
    return p


def cluster_intervals(
    clusters: Sequence[FloatArray], *, draws: int = 2000, level: float = 0.95, seed: int = 0
) -> FloatArray:
    """Percentile intervals of the column means where rows come in clusters, such as the texts of
    one retrained model: clusters are drawn, then rows within each. [(n, k), …] → (k, 2)"""
    filled = [c for c in clusters if len(c)]
    if not filled:
        return np.full((clusters[0].shape[1] if clusters else 0, 2), np.nan)
    rng = np.random.default_rng(seed)
    sums, counts = (np.zeros((draws, filled[0].shape[1])) for _ in range(2))
    for _ in filled:
        drawn = rng.integers(len(filled), size=draws)
        for place, rows in enumerate(filled):
            chosen = np.flatnonzero(drawn == place)
            n = len(rows)
            weights = rng.multinomial(n, np.full(n, 1 / n), size=len(chosen)).astype(float)
            defined = ~np.isnan(rows)
            sums[chosen] += weights @ np.where(defined, rows, 0.0)
            counts[chosen] += weights @ defined
    with np.errstate(invalid="ignore"):
        return percentiles(sums / counts, level)


def grouped_interval(
    values: FloatArray, groups: Sequence[str], *, draws: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """The interval of one mean over rows that come in groups. (n,)"""
    ((low, high),) = bootstrap_intervals(values[:, None], groups, draws=draws, level=level)
    return float(low), float(high)


def percentiles(found: FloatArray, level: float = 0.95) -> FloatArray:
    """Intervals of figures computed for every draw, each from the draws in which it is defined.
    (draws, k) → (k, 2)"""
    tail = (1 - level) / 2
    result = np.full((found.shape[1], 2), np.nan)
    for column in range(found.shape[1]):
        usable = found[:, column][~np.isnan(found[:, column])]
        if len(usable):
            result[column] = np.quantile(usable, [tail, 1 - tail])
    return result


def wilson(hits: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """The score interval of a rate, which holds for few items and near 0 and 1; of none, all."""
    from scipy.stats import norm

    if not n:
        return 0.0, 1.0
    z = float(norm.ppf((1 + level) / 2))
    middle = (hits + z * z / 2) / (n + z * z)
    half = z * math.sqrt(max(0.0, hits * (n - hits) / n) + z * z / 4) / (n + z * z)
    return max(0.0, middle - half), min(1.0, middle + half)


def share_interval(
    hits: FloatArray, groups: Sequence[str] | None = None, *, level: float = 0.95
) -> tuple[float, float]:
    """The interval of a share of zeros and ones, NaN left out. Those of one group tend to be alike:
    they count for as many as they tell, and for one where all of them are alike and nothing tells
    how far groups are. (n,)"""
    known = np.flatnonzero(~np.isnan(hits))
    n = len(known)
    if not n:
        return wilson(0, 0, level=level)
    own = None if groups is None else [groups[i] for i in known.tolist()]
    rate = float(hits[known].mean())
    spread = n * rate * (1 - rate)
    beyond = group_sums((hits[known] - rate)[:, None], own)[:, 0]
    dependence = max(1.0, float(beyond @ beyond) / spread) if spread else n / len(beyond)
    return wilson(rate * n / dependence, n / dependence, level=level)


def mean_intervals(
    values: FloatArray, groups: Sequence[str] | None = None, *, share: bool = False
) -> FloatArray:
    """Intervals of the column means of one quantity. Where these are shares of texts, draws never
    hold what was not seen, and the interval of a share takes their place. (n, k) → (k, 2)"""
    if not share:
        return bootstrap_intervals(values, groups)
    found = np.array([share_interval(column, groups) for column in values.T]).reshape(-1, 2)
    found[np.isnan(values).all(axis=0)] = np.nan
    return found


def mcnemar(one: int, other: int) -> float:
    """Exact two-sided test of pairs that differ, so many one way and so many the other."""
    from scipy.stats import binom

    return min(1.0, 2 * float(binom.cdf(min(one, other), one + other, 0.5)))


def sign_flip_test(
    differences: Sequence[float] | FloatArray,
    groups: Sequence[str] | None = None,
    *,
    draws: int = 10_000,
) -> float:
    """Two-sided paired permutation test: exact for few differences, sampled for many."""
    column = np.asarray(differences, dtype=float)[:, None]
    return float(sign_flip_tests(column, groups, draws=draws)[0])


def sign_flip_tests(
    differences: FloatArray,
    groups: Sequence[str] | None = None,
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> FloatArray:
    """One p-value per column of differences; NaN pairs carry no information. Rows of one group keep
    or change their signs together, so that the test is of the mean over all rows. (n, k) → (k,)"""
    filled = group_sums(differences, groups)
    n, k = filled.shape
    nonzero = (filled != 0).sum(axis=0)
    few = nonzero <= EXACT_UP_TO
    p = np.ones(k)
    for column in np.flatnonzero(few & (nonzero > 0)):
        d = filled[filled[:, column] != 0, column]
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(d))))
        p[column] = np.mean(np.abs(signs @ d) >= _reached(d))
    many = np.flatnonzero(~few)
    if len(many):
        d = filled[:, many]
        reached = _reached(d)
        rng = np.random.default_rng(seed)
        hits = np.zeros(len(many))
        for start in range(0, draws, _CHUNK):
            size = min(_CHUNK, draws - start)
            signs = rng.integers(0, 2, size=(size, n), dtype=np.int8) * 2.0 - 1.0
            hits += (np.abs(signs @ d) >= reached).sum(axis=0)
        p[many] = (hits + 1) / (draws + 1)
    return p


def _reached(differences: FloatArray) -> FloatArray:
    """The size of the sum less a margin for rounding, so that the observed pattern always counts as
    reaching itself. (n, …) → (…)"""
    found: FloatArray = np.abs(differences.sum(axis=0)) - 1e-12 * np.abs(differences).sum(axis=0)
    return found


def smallest_p(n: int) -> float:
    """What the sign-flip test gives where all of so many differences point one way: no evidence
    from as many texts can be stronger."""
    return min(1.0, 2.0 ** (1 - n))


def texts_needed(comparisons: int, level: float = 0.05) -> int:
    """So many texts at least before any of so many comparisons can pass Holm's correction."""
    return next(n for n in itertools.count(1) if smallest_p(n) * max(1, comparisons) < level)


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Step-down correction: each p-value as it stands after all looks are counted."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (len(p) - np.arange(len(p)))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected


def letter_groups(different: BoolArray) -> list[str]:
    """Letters by which methods that share one could not be told apart (insert and absorb)."""
    n = len(different)
    groups: list[set[int]] = [set(range(n))]
    for i, j in itertools.combinations(range(n), 2):
        if not different[i, j]:
            continue
        split = []
        for group in groups:
            split += [group - {i}, group - {j}] if {i, j} <= group else [group]
        groups = []
        for group in split:
            if group and not any(group <= g for g in groups):
                groups = [g for g in groups if not g <= group] + [group]
    groups.sort(key=lambda g: sorted(g))
    return ["".join(_letter(g) for g, group in enumerate(groups) if i in group) for i in range(n)]


def _letter(number: int) -> str:
    """a to z, then a1 to z1 and so on: no two groups share a sign."""
    return "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")
