"""What a paper claims, what was compared to see whether it holds, and the one rule that decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..core.inputs import FloatArray
from .statistics import LEVEL, holm, mean_intervals, sign_flip_test

ClaimVerdict = Literal["confirmed", "refuted", "open"]

SURE = LEVEL
"""A p-value, after all looks, below which a difference counts."""

LISTED = 3
"""So many comparisons of one kind are named: a sentence is no table."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure that a claim speaks of, how sure it is, and where the claim says that it lies."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    """The 95 % interval over independent units."""
    p: float = math.nan
    """How likely so large a figure is if there is no difference, after all looks."""
    least: float = 0.0
    most: float = math.inf
    """What is claimed; by default, a difference above zero."""
    units: str = "texts"
    """What is drawn independently: texts, pairs, trainings."""
    n: int | None = None
    """How many of them."""
    test: str = ""
    percent: bool = False
    signed: bool = True
    """False for a share or another figure that is no difference: it is shown without a plus."""

    @classmethod
    def of_mean(
        cls, name: str, values: Sequence[float] | FloatArray, *, units: str, **claimed: float
    ) -> Comparison:
        """The mean over units with the interval of definitions 8.4, Student's or Hall's, each end
        the farther of the two; of fewer than two units nothing is sure."""
        known = np.array([v for v in values if not np.isnan(v)], dtype=np.float64)
        mean = float(known.mean()) if len(known) else math.nan
        low, high = mean_intervals(known[:, None])[0] if len(known) > 1 else (math.nan, math.nan)
        return cls(
            name=name, value=mean, low=float(low), high=float(high), units=units, n=len(known),
            **claimed,  # type: ignore[arg-type]
        )  # fmt: skip

    @classmethod
    def of_differences(
        cls,
        name: str,
        differences: FloatArray,
        groups: Sequence[str] | None = None,
        *,
        percent: bool = False,
    ) -> Comparison:
        """The mean of paired differences, tested by sign flips; rows of one group flip together."""
        return cls(
            name=name,
            value=float(np.nanmean(differences)),
            p=sign_flip_test(differences, groups),
            n=len(set(groups)) if groups is not None else len(differences),
            test="paired sign flips",
            percent=percent,
        )

    @property
    def verdict(self) -> ClaimVerdict:
        """Confirmed where all of the interval is as claimed, refuted where none of it is, else
        open. Where there is a p-value it must be small too, unless no difference is as claimed; of
        a figure with neither nothing is sure."""
        bare = math.isnan(self.low) or math.isnan(self.high)
        low, high = (self.value, self.value) if bare else (self.low, self.high)
        if math.isnan(self.value) or (bare and math.isnan(self.p)):
            return "open"
        sure = math.isnan(self.p) or self.p < SURE
        if self.least <= low and high <= self.most and (sure or self.least < 0 < self.most):
            return "confirmed"
        return "refuted" if sure and (high < self.least or low > self.most) else "open"

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.name} not known"
        form = ("+" if self.signed else "") + (".1%" if self.percent else ".3f")

        def number(value: float) -> str:
            return format(value, form).replace("-", "−")

        certainty = []
        if not math.isnan(self.low):
            certainty.append(f"{number(self.low)} to {number(self.high)}")
        if not math.isnan(self.p):
            certainty.append(f"p {self.p:.2g}")
        return f"{self.name} {number(self.value)}" + f" ({', '.join(certainty)})" * bool(certainty)


def corrected(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The same with p-values as they stand after all of these looks (Holm)."""
    looks = list(comparisons)
    return [replace(c, p=float(p)) for c, p in zip(looks, holm([c.p for c in looks]), strict=True)]


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what we saw of it."""

    statement: str
    verdict: ClaimVerdict
    seen: str
    where: str = ""
    """On which texts or with which model, where one sentence was looked at more than once."""
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of(
        cls,
        statement: str,
        comparisons: Iterable[Comparison],
        *,
        remark: str = "",
        where: str = "",
        some: bool = False,
    ) -> Claim:
        """Confirmed where every comparison confirms it, refuted where one refutes it, else open; of
        a claim that holds of `some`, the other way round."""
        looks = tuple(comparisons)
        counts = Counter(c.verdict for c in looks)
        yes, no = counts["confirmed"], counts["refuted"]
        if some:
            confirmed, refuted = bool(yes), no == len(looks)
        else:
            confirmed, refuted = yes == len(looks), bool(no)
        verdict: ClaimVerdict = "confirmed" if confirmed else "refuted" if refuted else "open"
        seen = f"{_listed(looks)}; {remark}" if remark else f"{_listed(looks)}."
        return cls(statement, verdict if looks else "open", seen, where, looks)


def _listed(looks: Sequence[Comparison]) -> str:
    """All of a few comparisons; of many, how many are as claimed and those that are not."""
    if len(looks) <= LISTED:
        return "; ".join(map(str, looks))
    parts = [f"{sum(c.verdict == 'confirmed' for c in looks)} of {len(looks)} as claimed"]
    for verdict, name in (("refuted", "against it"), ("open", "not sure")):
        found = [c for c in looks if c.verdict == verdict]
        if found:
            more = len(found) - LISTED
            parts.append(
                f"{name}: {', '.join(map(str, found[:LISTED]))}" + f" and {more} more" * (more > 0)
            )
    if len(parts) == 1:
        parts.append(f"the least {min(looks, key=lambda c: c.value)}")
    return "; ".join(parts)
