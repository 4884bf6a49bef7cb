"""What happens as words go one after the other, the most important first (definitions 5.13)?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import Order, count_from_ratio, ranking
from ..core.inputs import ANY_KIND, FloatArray, Hiding
from ..core.metrics import Case, HidingMetric, Quantity, Row
from ..engine.inference import masked_probabilities

LEAST_RISE = 1e-4
"""A probability that rises by less may have risen by rounding."""


@dataclass(frozen=True)
class Deletion(HidingMetric):
    """Deletion and insertion curves, and the confidence without the least important units."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "order the {units} by how much the decision hangs on them"
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "deletion_area": Quantity(
            "mean probability of the explained label while {units} go, the most important first",
            "lower",
            True,
            bounds=(0, 1),
            searched=True,
        ),
        "insertion_area": Quantity(
            "mean probability of the label while {units} come, the most important first",
            "higher",
            bounds=(0, 1),
        ),
        "rise": Quantity(
            "share of {many} whose probability rises without the least important {units}",
            "higher",
            share=True,
        ),
    }

    counts: tuple[int, ...] = (1, 2, 3, 5, 10)
    """After so many words are gone, accuracy and confidence are told."""
    steps: int = 10
    """The curves are drawn through so many equal steps, or through every word of shorter texts."""
    least: float = 0.1
    """The share of words that are the least important."""
    by: Order = "signed"
    hiding: Hiding = Hiding.DELETE

    def __post_init__(self) -> None:
        if not all(k > 0 for k in (self.steps, *self.counts)):
            raise ValueError("expected steps and counts of 1 or more")
        if not 0 < self.least <= 1:
            raise ValueError(f"expected the least share above 0 and up to 1, got {self.least}")

    def maskings(self, n_units: int) -> frozenset[tuple[Hashable, ...]]:
        grid, counts, least = self._sizes(n_units)
        alone, without = {*grid[:-1], n_units - least}, {*grid[1:], *counts}
        sides = [*(("alone", k) for k in alone), *(("without", k) for k in without)]
        return frozenset((self.hiding, self.by, *side) for side in sides)

    def score(self, cases: Sequence[Case]) -> list[Row]:
        """All questions about all cases at once; what two of them share is asked once."""
        filled = [case for case in cases if case.attribution.input.n_features]
        shown = []
        for case in filled:
            n = case.attribution.input.n_units
            rank = np.empty(n, dtype=np.int64)
            rank[ranking(case.attribution.unit_scores, self.by)] = np.arange(n)
            grid, counts, least = self._sizes(n)
            kept = [rank < k for k in (*grid[:-1], n - least)]
            shown.append(np.array([*kept, *(rank >= k for k in (*grid[1:], *counts))]))
        if not cases:
            return []
        inputs = [case.attribution.input for case in filled]
        answers = iter(masked_probabilities(cases[0].model, inputs, shown, self.hiding))
        return [
            self._row(case, next(answers) if case.attribution.input.n_features else None)
            for case in cases
        ]

    def _sizes(self, n: int) -> tuple[list[int], list[int], int]:
        """How many words are gone at each point of the curves, at each count, and at the end of
        the ranking."""
        grid = {count_from_ratio(i / self.steps, n) for i in range(1, self.steps + 1)}
        return (
            [0, *sorted(grid)],
            [min(k, n) for k in self.counts],
            count_from_ratio(self.least, n),
        )

    def _row(self, case: Case, answers: FloatArray | None) -> Row:
        names = (f"{what}_without_{k}" for k in self.counts for what in ("accuracy", "confidence"))
        if answers is None:  # a text without words has nothing to lose
            return dict.fromkeys((*self.quantities, *names), float("nan"))
        n = case.attribution.input.n_units
        grid, counts, _ = self._sizes(n)
        target = case.attribution.target
        whole = float(case.probabilities[target])
        steps = len(grid) - 1
        coming, (rest,), going, left = np.split(answers, (steps, steps + 1, 2 * steps + 1))
        shares = np.array(grid) / n
        label = case.example.label
        told = [
            value
            for p in left[: len(counts)]
            for value in (
                float(int(np.argmax(p)) == label) if label < len(p) else float("nan"),
                float(p[target]),
            )
        ]
        return {
            "deletion_area": area(shares, np.array([whole, *going[:, target]])),
            "insertion_area": area(shares, np.array([*coming[:, target], whole])),
            "rise": float(rises(whole, float(rest[target]))),
            **dict(zip(names, told, strict=True)),
        }


def area(x: FloatArray, y: FloatArray) -> float:
    """The area under straight lines through the points."""
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def rises(before: float, after: float) -> bool:
    """Whether a confidence is higher afterwards, by more than rounding."""
    return after - before > LEAST_RISE
