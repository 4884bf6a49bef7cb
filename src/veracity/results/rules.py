"""Whether models decide on the clause that ought to decide, as an audit tells (definitions 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..core.examples import Example
from ..metrics.rule_consistency import OUTCOMES, RuleConsistency
from .run import Run
from .statistics import percent, share_interval

METRIC = RuleConsistency.plugin_name()
EFFECT = "clause_effect"

CATEGORIES = {
    "rule_based": "right, and significantly owed to the clause that ought to decide",
    "wrong_conjunct": "right, but significantly owed to the other clause: accuracy alone misleads",
    "sum_vs_max": "right and owed to the other clause, though the strongest word stands in the one "
    "that ought to decide",
}
"""Kinds of sentences to show (definitions 4.6)."""


@dataclass(frozen=True)
class Share:
    """A share of structures with its interval over texts."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class RuleOutcomes:
    """What a method says of how a model decides."""

    model: str
    method: str
    texts: int
    structures: int
    shares: dict[str, Share]

    @property
    def sentence(self) -> str:
        """For somebody who wants to act on it."""
        own = self.shares["consistent"]
        return (
            f"By {self.method}, {self.model} answers rightly and owes it significantly to the "
            f"clause that ought to decide in {percent(own.value)} of {self.structures:,} "
            f"structures ({percent(own.low)} to {percent(own.high)})"
        )


def metrics_of(run: Run) -> list[str]:
    """The tests of rule consistency in a run, whatever their settings."""
    return [name for name in run.config.metrics if name.split("(")[0] == METRIC]


def outcomes(run: Run, metric: str) -> list[RuleOutcomes]:
    """By model and method how often which outcome."""
    families = run.families()
    found = []
    for model in run.models:
        for method in run.explainers:
            rows = {e: r for e, r in run.rows(model, method, metric).items() if "consistent" in r}
            if not rows:
                continue
            groups = [families.get(e, e) for e in rows]
            found.append(
                RuleOutcomes(
                    model=model,
                    method=method,
                    texts=len(rows),
                    structures=int(sum(r.get("structures", 1.0) for r in rows.values())),
                    shares={
                        name: _share(np.array([r[name] for r in rows.values()]), groups)
                        for name in OUTCOMES
                    },
                )
            )
    return found


def effects(run: Run) -> dict[str, dict[str, Share]]:
    """By model which clause moves the answer when it is taken away."""
    families = run.families()
    found = {}
    for model in run.models:
        rows = {e: r for e, r in run.rows(model, "", EFFECT).items() if "decides" in r}
        groups = [families.get(e, e) for e in rows]
        if rows:
            found[model] = {
                name: _share(np.array([r[name] for r in rows.values()]), groups)
                for name in ("decides", "kept")
            }
    return found


def _share(values: np.ndarray, groups: list[str]) -> Share:
    low, high = share_interval(values, groups)
    return Share(float(values.mean()), low, high)


def in_category(row: Mapping[str, float], category: str, test: RuleConsistency) -> bool:
    """Whether a sentence with one structure is of a kind, by the test that it was put to."""
    if row.get("structures") != 1.0:
        return False
    match category:
        case "rule_based":
            return row["consistent"] == 1
        case "wrong_conjunct":
            return _by_the_other(row) and test.is_significant(row["p"])
    return _by_the_other(row) and row["dominant_most"] > row["other_most"]


def _by_the_other(row: Mapping[str, float]) -> bool:
    return row["wrong_side"] == 1 and row["other"] > row["dominant"]


def sentences(
    run: Run, model: str, method: str, metric: str, category: str, seed: int = 0
) -> Iterator[Example]:
    """For each label one sentence of a kind, drawn by the seed, where there is one."""
    rows = run.rows(model, method, metric)
    test = RuleConsistency(**run.config.metrics[metric].settings)
    rng = np.random.default_rng(seed)
    by_label: dict[int, list[Example]] = {}
    for e in run.examples():
        if e.id in rows and in_category(rows[e.id], category, test):
            by_label.setdefault(e.label, []).append(e)
    for label in sorted(by_label):
        own = by_label[label]
        yield own[int(rng.integers(len(own)))]
