"""How far one method must be behind another for so many texts to tell them apart."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..core.inputs import FloatArray
from .statistics import LEVEL, hall_bent, texts_needed

POWER = 0.8
"""So often a difference that is called detectable would have been found."""

MIN_DIFFERING, MANY_DIFFERING = 6, 30
"""Two methods must score differently on at least 6 texts, and on half of all texts or on 30, before
anything is said of how far they may differ on others."""

CHANCE_SKEWNESS = 1.5
"""So many standard errors of a skewness are taken for luck."""


def differs_enough(differences: FloatArray) -> bool:
    """Whether enough of the differences are not zero to tell how they spread. (n,)"""
    differing = int(np.count_nonzero(differences))
    return differing >= max(MIN_DIFFERING, min(len(differences) / 2, MANY_DIFFERING))


def detectable_mean(
    differences: FloatArray, comparisons: int, *, level: float = LEVEL
) -> float | None:
    """The mean that such differences would need for `paired_tests` to find it in four of five
    samples as large, at the strictest of Holm's levels; None of too few. Differences speak for the
    better method where they are positive. (n,)

    Student's distribution tells what symmetric ones need. Those that are skewed against the better
    method (it is a little ahead on most texts and far behind on some) need more, by the cubic of
    Hall's test. And what is told by few texts, or by a few large differences, is itself unsure, as
    far as the error of a standard deviation goes. The allowances are set on what simulated audits
    needed (benchmarks/verdicts.py --only power).
    """
    n = len(differences)
    if n < max(2, texts_needed(comparisons, level)):
        return None
    tail = _symmetric_tail(n, level / max(1, comparisons), max(1, comparisons))
    spread = float(differences.std())
    if not spread:
        return 0.0
    standard = (differences - differences.mean()) / spread
    against = float((standard**3).mean()) + CHANCE_SKEWNESS * math.sqrt(6 / n)
    bent = float(hall_bent(np.array(tail), np.array(min(0.0, against)), n))
    kurtosis = float((standard**4).mean())
    # relative errors of the standard deviation: of these differences, and of normal ones
    error, usual = math.sqrt(max(0.0, kurtosis - 1) / n) / 2, math.sqrt(2 / (n + 2)) / 2
    unsure = 1 + 7 / n**2 + (1 + 20 / n) * max(0.0, error - usual)
    return max(tail, bent) * unsure * spread * math.sqrt(n / (n - 1))


@cache
def _symmetric_tail(n: int, level: float, comparisons: int) -> float:
    """The mean that symmetric differences need, in standard deviations."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    needed = float(stdtrit(n - 1, POWER) - stdtrit(n - 1, level / 2))
    # of few texts the skewness that the test allows for is mostly luck, and where few of all
    # choices of signs pass nearly every text must point one way
    passing = level * 2.0 ** min(n - 1, 60)
    needed *= 1 + (0.9 + 0.2 * math.log(comparisons)) / n + 0.35 * float(passing**-0.7)
    return needed / math.sqrt(n)
