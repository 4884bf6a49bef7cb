"""Classifiers of one corpus sentence by sentence, and figures over them with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from ...core.inputs import FloatArray
from ...experiments.experiment import StepResult
from ...metrics.accuracy import classification
from ...results.claims import Comparison
from ...results.findings import Cell
from ...results.statistics import (
    crossed_draws,
    grouped_interval,
    percentiles,
    share_interval,
    sign_flip_test,
)
from ._percy_judging import STUDENT, TEACHER
from ._percy_names import ClassifierName

Pair = tuple[ClassifierName, ClassifierName]

Reading = Callable[[Any, str], FloatArray]
"""What is read of each sentence of a classifier, as it is or as its teacher answers."""

Interval = tuple[float, float, float]
"""A figure and the ends of its interval."""

LEAST_CLASSIFIERS = 4
"""Of fewer no rank correlation is spoken of."""


@dataclass(frozen=True)
class Rows:
    """Sentences as they were judged: which, in which fold, how often they count in each draw."""

    ids: tuple[str, ...]
    folds: tuple[str, ...]
    weights: FloatArray  # (draws, sentences)

    @classmethod
    def of(cls, ids: Sequence[str], folds: Sequence[str], draws: int) -> Rows:
        return cls(tuple(ids), tuple(folds), crossed_draws(ids, folds, draws=draws))

    def drawn_means(self, values: FloatArray) -> FloatArray:
        """The mean in every draw. (…, sentences) → (draws, …)"""
        totals = self.weights.sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
        with np.errstate(invalid="ignore"):  # a draw of one fold alone may hold none of another's
            found: FloatArray = np.tensordot(self.weights, values, axes=(1, -1)) / totals
        return found

    def share(self, values: FloatArray) -> Interval:
        """A share of sentences; each end the farther of both ways to draw them."""
        return self._interval(values, share_interval(values, self.ids))

    def mean(self, values: FloatArray) -> Interval:
        """A mean, such as of differences."""
        return self._interval(values, grouped_interval(values, self.ids))

    def _interval(self, values: FloatArray, one: tuple[float, float]) -> Interval:
        ((low, high),) = percentiles(self.drawn_means(values)[:, None])
        return (
            float(values.mean()),
            float(np.fmin(low, one[0])),
            float(np.fmax(high, one[1])),
        )

    def compared(self, name: str, differences: FloatArray, **claimed: float) -> Comparison:
        """The mean of paired differences; the signs of a sentence's flip together."""
        value, low, high = self.mean(differences)
        return Comparison(
            name=name,
            value=value,
            low=low,
            high=high,
            p=sign_flip_test(differences, self.ids),
            units="sentences",
            n=len(set(self.ids)),
            test="paired sign flips",
            **claimed,  # type: ignore[arg-type]
        )


def kendall(one: FloatArray, other: FloatArray) -> float:
    """τ-b; NaN where all are alike."""
    with np.errstate(invalid="ignore"):
        return float(stats.kendalltau(one, other).statistic)


def pearson(one: FloatArray, other: FloatArray) -> float:
    """of two binary vectors φ; NaN where one does not vary (definitions 9.1)."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


@dataclass(frozen=True)
class CorpusGrid:
    """What was measured of every classifier on one corpus, over all of its folds."""

    names: tuple[Any, ...]
    """Of the paper, or of anything else that was trained."""
    results: Mapping[str, Sequence[StepResult]]
    """Of each classifier, fold by fold; the sentences of a fold are the same for all."""
    folds: tuple[str, ...]
    draws: int

    # ---- by sentence ------------------------------------------------------------------------

    @cached_property
    def answered(self) -> Rows:
        """All sentences with a structure."""
        return self._rows(lambda result: result["answers"]["ids"])

    @cached_property
    def explained(self) -> Rows:
        """Those that were explained."""
        return self._rows(lambda result: result["explained"])

    def _rows(self, ids: Callable[[StepResult], Sequence[str]]) -> Rows:
        first = self.results[str(self.names[0])]
        for name, results in self.results.items():
            if [ids(r) for r in results] != [ids(r) for r in first]:
                raise ValueError(f"{name} was judged on other sentences than {self.names[0]}")
        every = [(i, fold) for fold, r in zip(self.folds, first, strict=True) for i in ids(r)]
        return Rows.of([i for i, _ in every], [fold for _, fold in every], self.draws)

    def _joined(self, name: object, read: Callable[[StepResult], Sequence[float]]) -> FloatArray:
        parts = [np.asarray(read(r), dtype=np.float64) for r in self.results[str(name)]]
        return np.concatenate(parts)

    def right(self, name: object, who: str = STUDENT) -> FloatArray:
        """Whether each sentence was answered rightly."""
        gold = self._joined(name, lambda r: r["answers"]["gold"])
        given = self._joined(name, lambda r: r["answers"][who])
        found: FloatArray = (gold == given).astype(np.float64)
        return found

    def outcome(
        self, name: object, explainer: str, what: str = "recommended", who: str = STUDENT
    ) -> FloatArray:
        """An outcome of each sentence, or whether it is consistent by a profile."""
        return self._joined(name, lambda r: r["outcomes"][who][explainer][what])

    def caused(self, name: object, who: str = STUDENT, what: str = "decides") -> FloatArray:
        """Whether the clause that ought to decide moves the answer more."""
        return self._joined(name, lambda r: r["causal"][who][what])

    def right_explained(self, name: object) -> FloatArray:
        """Whether the explained sentences were answered rightly."""
        place = {key: i for i, key in enumerate(self._keys(self.answered))}
        found: FloatArray = self.right(name)[[place[key] for key in self._keys(self.explained)]]
        return found

    def _keys(self, rows: Rows) -> list[tuple[str, str]]:
        return list(zip(rows.ids, rows.folds, strict=True))

    def has(self, name: object, explainer: str, who: str = STUDENT) -> bool:
        """Whether an explainer was asked of a classifier's answers as they are, or as its teacher
        gives them."""
        return all(explainer in r["outcomes"].get(who, {}) for r in self.results[str(name)])

    @property
    def explainers(self) -> list[str]:
        return list(self.results[str(self.names[0])][0]["outcomes"][STUDENT])

    # ---- of a classifier --------------------------------------------------------------------

    def cells(self, name: ClassifierName, published: Mapping[str, float]) -> dict[str, Cell]:
        """Its row in the table of performance."""
        results = self.results[str(name)]
        gold = [y for r in results for y in r["answers"]["gold"]]
        answers = [y for r in results for y in r["answers"][STUDENT]]
        weighted = classification(gold, answers)
        found = {
            "accuracy": Cell.at(
                self.answered.share(self.right(name)), published=published.get("accuracy")
            ),
            "precision": Cell(weighted["weighted_precision"], published=published.get("precision")),
            "f1": Cell(weighted["weighted_f1"], published=published.get("f1")),
            "decides": Cell.at(self.explained.share(self.caused(name))),
        }
        for explainer in self.explainers:
            score = self.explained.share(self.outcome(name, explainer))
            found[explainer] = Cell.at(score, published=published.get(explainer))
        if name.distilled:
            found["teacher_accuracy"] = Cell.at(self.answered.share(self.right(name, TEACHER)))
            found["teacher_decides"] = Cell.at(self.explained.share(self.caused(name, TEACHER)))
            for explainer in self.explainers:
                if self.has(name, explainer, TEACHER):
                    score = self.explained.share(self.outcome(name, explainer, who=TEACHER))
                    found[f"teacher_{explainer}"] = Cell.at(score)
        return found

    # ---- over classifiers -------------------------------------------------------------------

    def matrix(self, explainer: str) -> FloatArray:
        """Scores of all classifiers sentence by sentence; "" for answers that are right.
        → (classifiers, sentences)"""
        read = self.right if not explainer else (lambda n: self.outcome(n, explainer))
        return np.stack([read(name) for name in self.names])

    @cached_property
    def _drawn(self) -> dict[str, FloatArray]:
        """Means of all classifiers in every draw, by explainer. → (draws, classifiers)"""
        found = {e: self.explained.drawn_means(self.matrix(e)) for e in self.explainers}
        return {"": self.answered.drawn_means(self.matrix("")), **found}

    def tau(self, one: str, other: str) -> Interval | None:
        """Kendall's τ of classifiers by two figures; "" is accuracy. Of few classifiers nothing."""
        if len(self.names) < LEAST_CLASSIFIERS:
            return None
        value = kendall(self.matrix(one).mean(axis=1), self.matrix(other).mean(axis=1))
        drawn = zip(self._drawn[one], self._drawn[other], strict=True)
        ((low, high),) = percentiles(np.array([[kendall(a, b)] for a, b in drawn]))
        return value, float(low), float(high)

    def phi(self, one: str, other: str) -> float:
        """Over all sentences and classifiers, in the same order."""
        return pearson(self.matrix(one).ravel(), self.matrix(other).ravel())

    def pairs(self, trait: str, mine: object, theirs: object) -> list[Pair]:
        """Classifiers with a trait, each with the one that differs in nothing else."""
        others = ((name, name.having(trait, theirs)) for name in self.names)
        return [(a, b) for a, b in others if getattr(a, trait) == mine and b in self.names]

    def score(self, explainer: str) -> Reading:
        """Reads whether sentences are consistent by an explainer."""
        return lambda name, who: self.outcome(name, explainer, who=who)

    def differences(
        self, pairs: Sequence[tuple[Any, Any]], read: Reading, who: str = STUDENT
    ) -> FloatArray:
        """The mean over pairs, sentence by sentence, of what the first has, as it is or as its
        teacher answers, less what the second has as it is."""
        found: FloatArray = np.mean([read(a, who) - read(b, STUDENT) for a, b in pairs], axis=0)
        return found
