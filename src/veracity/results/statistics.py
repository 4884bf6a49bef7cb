"""Saying "better": intervals, paired tests, correction for many looks (definitions 8.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray

EXACT_UP_TO = 24
"""Of so many non-zero differences all 2 to that power sign patterns are counted."""

CONFIDENCE = 0.95
"""In so many of such samples the interval of a mean holds the true mean."""

LEVEL = 0.05
"""A corrected p-value below this tells two methods apart."""

Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
_CHUNK = 500


def mean_intervals(
    values: FloatArray, groups: Sequence[str] | None = None, *, share: bool = False
) -> FloatArray:
    """Intervals of the column means of one quantity; NaN entries are left out. Rows of one group,
    such as the twins of one original, are no independent draws: the mean is as unsure as it moves
    when a group is left out. One group alone tells nothing of that: NaN. (n, k) → (k, 2)

    Each end is the farther of Student's and of Hall's, who bends t by the skewness: scores of
    which most are small and a few large have means farther above than below. Skewness is itself
    guessed, so it may lengthen an interval and never shortens it.
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    if share:
        # where all texts agree, how far others are is known all the same
        found = np.array([share_interval(c, groups) for c in values.T]).reshape(-1, 2)
        found[np.isnan(values).all(axis=0)] = np.nan
        return found
    sums = group_sums(values, groups)
    counts = group_sums((~np.isnan(values)).astype(np.float64), groups)
    total, n = counts.sum(axis=0), (counts > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=0) / total
        moves = (sums - mean * counts) / (total - counts)
        scale = np.sqrt((moves**2).sum(axis=0) / n)
        spread = scale * np.sqrt(n * (n - 1))  # the jackknife's; of single rows, their own
        skewness = (1 - 2 / n) * ((moves / np.where(scale, scale, 1.0)) ** 3).sum(axis=0) / n
        tail = stdtrit(n - 1, (1 + CONFIDENCE) / 2) / np.sqrt(n)
        below = np.maximum(tail, hall_bent(tail, skewness, n))
        above = np.maximum(tail, -hall_bent(-tail, skewness, n))
    ends: FloatArray = np.stack([mean - spread * below, mean + spread * above], axis=1)
    return ends


def hall_bent(tail: FloatArray, skewness: FloatArray, n: IntArray | int) -> FloatArray:
    """Hall's (1992) inverse of the cubic that takes skewness out of t / √n: strictly rising, so
    that no sample has an endless interval."""
    straight = np.abs(skewness) < 1e-6  # below, rounding would be all that is left
    g = np.where(straight, 1.0, skewness)
    bent: FloatArray = 3 / g * (np.cbrt(1 + g * (tail - g / (6 * n))) - 1)
    return np.where(straight, tail, bent)


def defined_mean(values: Sequence[float] | FloatArray) -> float:
    """The mean of what is defined; of nothing NaN. (n,)"""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else math.nan


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


def crossed_draws(
    units: Sequence[str], blocks: Sequence[str], *, draws: int = 1000, seed: int = 0
) -> FloatArray:
    """How often each row counts in every draw, where rows belong to a unit such as a sentence and
    to a block such as a fold: both are drawn with replacement, and a row counts as often as its
    unit times its block (Owen 2007). One block is no sample of blocks. → (draws, n)"""
    rng = np.random.default_rng(seed)
    found = np.ones((draws, len(units)))
    for names in (units, blocks):
        places = {name: i for i, name in enumerate(dict.fromkeys(names))}
        if len(places) > 1:
            k = len(places)
            weights = rng.multinomial(k, np.full(k, 1 / k), size=draws)
            found *= weights[:, [places[name] for name in names]]
    return found


def resampling_tests(found: FloatArray) -> FloatArray:
    """Two-sided p-values that differences computed for every draw are not zero; a column that is
    never defined tells nothing. (draws, k) → (k,)"""
    draws = (~np.isnan(found)).sum(axis=0)
    less = np.minimum((found <= 0).sum(axis=0), (found >= 0).sum(axis=0))
    p: FloatArray = np.minimum(1.0, 2 * (less + 1) / (draws + 1))
    return p


def cluster_intervals(clusters: Sequence[FloatArray]) -> FloatArray:
    """Intervals of the column means where rows come in clusters, such as the texts of one
    retrained model: percentiles where clusters are drawn, then rows within each. Of two or three
    clusters they are too short, but what t would make of them is so long that it says nothing. Of
    one they are those of its rows. [(n, k), …] → (k, 2)"""
    filled = [c for c in clusters if len(c)]
    if not filled:
        return np.full((clusters[0].shape[1] if clusters else 0, 2), np.nan)
    if len(filled) == 1:
        return mean_intervals(filled[0])
    draws, rng = 2000, np.random.default_rng(0)
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
        return percentiles(sums / counts)


def grouped_interval(values: FloatArray, groups: Sequence[str]) -> tuple[float, float]:
    """The interval of one mean over rows that come in groups. (n,)"""
    ((low, high),) = mean_intervals(values[:, None], groups)
    return float(low), float(high)


def percentiles(found: FloatArray) -> FloatArray:
    """Intervals of figures computed for every draw, each from the draws in which it is defined.
    (draws, k) → (k, 2)"""
    tail = (1 - CONFIDENCE) / 2
    result = np.full((found.shape[1], 2), np.nan)
    for column in range(found.shape[1]):
        usable = found[:, column][~np.isnan(found[:, column])]
        if len(usable):
            result[column] = np.quantile(usable, [tail, 1 - tail])
    return result


def wilson(hits: float, n: float) -> tuple[float, float]:
    """The score interval of a rate, which holds for few items and near 0 and 1; of none, all."""
    if not n:
        return 0.0, 1.0
    square = Z * Z
    middle = (hits + square / 2) / (n + square)
    half = Z * math.sqrt(max(0.0, hits * (n - hits) / n) + square / 4) / (n + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def share_interval(hits: FloatArray, groups: Sequence[str] | None = None) -> tuple[float, float]:
    """The interval of a share of zeros and ones, NaN left out. Those of one group tend to be alike:
    they count for as many as they tell. How alike they are is guessed as if a few more had been
    seen whose groups agree, since few hits say nothing about it. (n,)"""
    known = np.flatnonzero(~np.isnan(hits))
    n = len(known)
    if not n:
        return wilson(0, 0)
    own = None if groups is None else [groups[i] for i in known.tolist()]
    rate = float(hits[known].mean())
    beyond, sizes = group_sums(np.stack([hits[known] - rate, np.ones(n)], axis=1), own).T
    alike = float(sizes @ sizes) / n
    more = alike * Z**2 / 4  # Wilson's interval adds this much variance
    dependence = (float(beyond @ beyond) + more * alike) / (n * rate * (1 - rate) + more)
    size = n / max(1.0, dependence)
    return wilson(rate * size, size)


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
        p[column] = _exact(filled[filled[:, column] != 0, column])
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


def _exact(differences: FloatArray) -> float:
    """The share of sign patterns whose sum is as far from 0 as the one seen. Every pattern joins
    one of the first half with one of the second: the sums of the second half are sorted, and those
    that reach far enough are counted by search, without adding up any pair. (n,)"""
    reached = float(_reached(differences))
    if reached <= 0:
        return 1.0
    half = len(differences) // 2
    one, other = (_patterns(d) for d in (differences[:half], differences[half:]))
    other.sort()
    above = len(other) - np.searchsorted(other, reached - one, side="left")
    return 2 * float(above.sum()) / (len(one) * len(other))


def _patterns(differences: FloatArray) -> FloatArray:
    """Sums under all patterns of signs. (n,) → (2 ** n,)"""
    sums = np.zeros(1)
    for d in differences:
        sums = np.concatenate([sums + d, sums - d])
    return sums


def _reached(differences: FloatArray) -> FloatArray:
    """The size of the sum less a margin for rounding, so that the observed pattern always counts as
    reaching itself. (n, …) → (…)"""
    found: FloatArray = np.abs(differences.sum(axis=0)) - 1e-12 * np.abs(differences).sum(axis=0)
    return found


def paired_tests(differences: FloatArray, *, draws: int = 10_000) -> FloatArray:
    """Two-sided tests that the means of the columns are zero: the larger p-value of the sign-flip
    test, which takes differences to be symmetric, and of Hall's, which takes many. (n, k) → (k,)"""
    flips = sign_flip_tests(differences, draws=draws)
    return np.maximum(flips, skewed_t_tests(differences))


def skewed_t_tests(differences: FloatArray) -> FloatArray:
    """One p-value per column of Student's t, bent by the skewness as Hall (1992) does: methods
    whose scores are skewed opposite ways may have equal means, and signs that are not a coin's.
    (n, k) → (k,)"""
    from scipy.special import stdtr

    n = len(differences)
    if n < 2:
        return np.zeros(differences.shape[1])  # the signs alone tell
    mean, spread = differences.mean(axis=0), differences.std(axis=0)
    scale = np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)
    skewness = (((differences - mean) / scale) ** 3).mean(axis=0)
    x = mean / (scale * math.sqrt(n / (n - 1)))
    bent = x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / (6 * n)
    p: FloatArray = 2 * stdtr(n - 1, -np.abs(bent) * math.sqrt(n))
    return np.where(np.isinf(scale), 0.0, p)  # all alike: the signs alone tell


def smallest_p(n: int) -> float:
    """What the sign-flip test gives where all of so many differences point one way: no evidence
    from as many texts can be stronger."""
    return min(1.0, 2.0 ** (1 - n))


def texts_needed(comparisons: int, level: float = LEVEL) -> int:
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


def percent(share: float) -> str:
    """A share in whole percent, in sentences and tables alike; never rounded to all or nothing
    that it is not."""
    if not math.isfinite(share):  # nothing to tell, or out of a damaged file
        return "–"
    share = round(share, 9)  # a quotient of equal sums is all
    if 0.99 < share < 1 or 0 < share < 0.01:
        return "> 99 %" if share > 0.5 else "< 1 %"
    return f"{whole_percent(share)} %"


def whole_percent(share: float) -> int:
    """Halves go up: a reader who rounds 82.5 to 83 must not find 82."""
    return math.floor(100 * round(share, 9) + 0.5)


def at_least(share: float) -> str:
    """A lower bound in whole percent: rounded down, or it would not hold."""
    return percent(math.floor(round(100 * share, 6)) / 100 if math.isfinite(share) else share)
