"""Does the model decide on the clause that ought to decide? (PERCY; definitions 4.3 to 4.5)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..changes.structure import DOMINANT, OTHER
from ..core.inputs import BoolArray, FloatArray
from ..core.metrics import Case, Quality, Quantity, Row, TruthMetric, means
from ..core.plugins import Profiles

Contribution = Literal["split", "literal", "abs"]
Reduction = Literal["sum", "mean", "topk_mean"]
Test = Literal["student", "welch", "mannwhitney", "permutation"]

OUTCOMES = ("wrong", "wrong_side", "not_significant", "consistent")
"""What a sentence comes to, in the order in which it is looked at."""

SHUFFLES = 9_999
"""Of the permutation test, where all of them would be more."""


@dataclass(frozen=True)
class RuleConsistency(TruthMetric):
    """Whether the answer is right, owes more to the dominant clause, and significantly so."""

    purpose: ClassVar[str] = "see whether the model decides on the right clause"
    usual_truths: ClassVar[tuple[str, ...]] = (DOMINANT,)
    of_labels: ClassVar[bool] = True
    ranks: ClassVar[bool] = False
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "consistent": Quantity(
            "share of structures with a right answer that owes significantly more to the dominant "
            "clause (PERCY)",
            share=True,
        ),
        "wrong": Quantity("share with a wrong answer", share=True),
        "wrong_side": Quantity(
            "share with a right answer that owes no more to the dominant clause", share=True
        ),
        "not_significant": Quantity(
            "share with a right answer that owes more to the dominant clause, but not "
            "significantly",
            share=True,
        ),
        "dominant": Quantity("what the answer owes to the dominant clause"),
        "other": Quantity("what it owes to the other clause"),
        "dominant_most": Quantity("what it owes to the strongest word of the dominant clause"),
        "other_most": Quantity("what it owes to the strongest word of the other clause"),
        "p": Quantity("p-value of the difference between the clauses"),
    }
    profiles: ClassVar[Profiles] = {
        "paper": {"contribution": "literal"},
        "released": {"reduction": "topk_mean", "tested": "topk", "strict": True},
    }

    truth: str = DOMINANT
    contribution: Contribution = "split"
    """What a word adds: its score by the probability of the label that it supports; the printed
    formula; or its size."""
    reduction: Reduction = "sum"
    """What becomes of the words of a clause: their sum, their mean, the mean of the top ones."""
    k: int = 5
    """How many words of a clause are its top ones."""
    test: Test = "student"
    """The test of the difference between the words of the two clauses."""
    tested: Literal["all", "topk"] = "all"
    """Whether all words of a clause are tested, or its top ones."""
    level: float = 0.05
    """The p-value up to which a difference is significant."""
    strict: bool = False
    """Whether it must lie below that."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"expected k to be one word or more, got {self.k}")
        if not 0 < self.level < 1:
            raise ValueError(f"expected level to lie between 0 and 1, got {self.level}")

    @property
    def truth_kind(self) -> str | None:
        return OTHER  # what decides may be marked without what does not

    @property
    def quality(self) -> Quality:
        return "plausibility"

    def score(self, cases: Sequence[Case]) -> list[Row]:
        return [
            self.row(case, case.example.truths[self.truth]) if OTHER in case.example.truths else {}
            for case in cases
        ]

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        others = case.example.truths[OTHER]
        added = self.contributions(case)
        found = [self._one(case, added[a], added[b]) for a, b in zip(masks, others, strict=True)]
        return {**means(found), "structures": float(len(found))}

    def contributions(self, case: Case) -> FloatArray:
        """What each word adds to the answer."""
        scores, target = case.attribution.scores, case.attribution.target
        if len(case.probabilities) == 2 and target == 0:
            # of two labels, what speaks against the one speaks for the other (definitions 0.3)
            scores, target = -scores, 1
        return contributions(scores, float(case.probabilities[target]), self.contribution)

    def _one(self, case: Case, dominant: FloatArray, other: FloatArray) -> dict[str, float]:
        ours, theirs = (self.reduced(c) for c in (dominant, other))
        p = self.p_value(dominant, other)
        outcome = self.outcome(right=case.right, dominant=ours, other=theirs, p=p)
        return {
            **{name: float(name == outcome) for name in OUTCOMES},
            "dominant": ours,
            "other": theirs,
            "dominant_most": float(dominant.max(initial=0.0)),
            "other_most": float(other.max(initial=0.0)),
            "p": p,
        }

    def reduced(self, added: FloatArray) -> float:
        """What a clause adds; one without words adds nothing."""
        if not len(added):
            return 0.0
        match self.reduction:
            case "sum":
                return float(added.sum())
            case "mean":
                return float(added.mean())
        return float(_top(added, self.k).mean())

    def p_value(self, one: FloatArray, other: FloatArray) -> float:
        if self.tested == "topk":
            one, other = _top(one, self.k), _top(other, self.k)
        return difference_p(one, other, self.test)

    def outcome(self, *, right: bool, dominant: float, other: float, p: float) -> str:
        """The side is looked at before significance."""
        if not right:
            return "wrong"
        if not dominant > other:
            return "wrong_side"
        return "consistent" if self.is_significant(p) else "not_significant"

    def is_significant(self, p: float) -> bool:
        return p < self.level or (p == self.level and not self.strict)

    def summary(self, rows: Sequence[Row]) -> Row:
        """Shares of structures, not of sentences, and how many there are."""
        found = means(rows)
        counts = [row.get("structures", 0.0) for row in rows]
        total = sum(counts)
        for name in OUTCOMES:
            sums = (n * row[name] for n, row in zip(counts, rows, strict=True) if n)
            found[name] = sum(sums) / total if total else float("nan")
        found["structures"] = total
        return found


def contributions(scores: FloatArray, p1: float, how: Contribution) -> FloatArray:
    """Of scores towards a label of probability p1 (definitions 4.3)."""
    size = np.abs(scores)
    match how:
        case "split":
            return np.where(scores > 0, size * p1, size * (1 - p1))
        case "literal":
            return scores * p1 + size * (1 - p1)
    return size


def _top(added: FloatArray, k: int) -> FloatArray:
    return np.sort(added)[::-1][:k]


def difference_p(one: FloatArray, other: FloatArray, test: Test) -> float:
    """The two-sided p-value of unpaired samples; NaN where they are too few to tell
    (definitions 4.4)."""
    n, m = len(one), len(other)
    if n + m < 3 or not n or not m:
        return float("nan")
    if np.ptp(one) == 0 and np.ptp(other) == 0:
        return float("nan") if one[0] == other[0] else 0.0
    match test:
        case "student":
            squares = sum(float(((x - x.mean()) ** 2).sum()) for x in (one, other))
            error = squares / (n + m - 2) * (1 / n + 1 / m)
            return _t_p(one.mean() - other.mean(), error, n + m - 2)
        case "welch":
            if min(n, m) < 2:
                return float("nan")  # a single word has no variance of its own
            a, b = (float(x.var(ddof=1)) / len(x) for x in (one, other))
            return _t_p(
                one.mean() - other.mean(), a + b, (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
            )
    from scipy import stats

    if test == "mannwhitney":
        return float(stats.mannwhitneyu(one, other).pvalue)
    if min(n, m) == 1:
        return _single_p(one, other)
    found = stats.permutation_test(
        (one, other),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        vectorized=True,
        n_resamples=SHUFFLES,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def _single_p(one: FloatArray, other: FloatArray) -> float:
    """Of all permutations where one of the samples is a single word, which SciPy's test refuses:
    any word might be that one. A single word stands out as far as the others' mean is away."""
    single = one if len(one) == 1 else other
    everything = np.concatenate([one, other])
    away = everything - (everything.sum() - everything) / (len(everything) - 1)
    seen = float(away[0 if single is one else -1])
    near = 1e-9 * float(np.abs(away).max())
    tails = np.mean(away <= seen + near), np.mean(away >= seen - near)
    return min(1.0, 2 * float(min(tails)))


def _t_p(difference: float, error: float, freedom: float) -> float:
    """Of Student's t with a squared standard error; SciPy's own takes a second to import, and
    warns of words that weigh nearly the same."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(difference) / np.sqrt(error)))
