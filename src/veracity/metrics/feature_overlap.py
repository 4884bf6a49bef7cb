"""How well the chosen words match those known to matter (definitions 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.attributions import Order, count_from_ratio
from ..core.inputs import ANY_KIND, BoolArray
from ..core.metrics import Case, Quantity, Row, TruthMetric, means
from ..core.plugins import Profiles


@dataclass(frozen=True)
class FeatureOverlap(TruthMetric):
    """Precision, recall and F1 of what is put first against the best of several truth sets."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "point at the {features} known to matter"
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "f1": Quantity(
            "F1 of the top {features} against the best truth set", "higher", True, bounds=(0, 1)
        ),
        "precision": Quantity(
            "share of the top {features} that are known to matter", "higher", bounds=(0, 1)
        ),
        "recall": Quantity(
            "share of the known {features} among the top {features}", "higher", bounds=(0, 1)
        ),
    }

    profiles: ClassVar[Profiles] = {"released": {"allow_union": True, "no_overlap": "empty"}}

    ratio: float = 0.29
    by: Order = "signed"
    allow_union: bool = False
    """Whether unions of truth sets count too."""
    no_overlap: Literal["shortest", "empty"] = "shortest"
    """What top words are held to where they meet no truth set: the shortest one, or none."""

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"expected a ratio above 0 and up to 1, got {self.ratio}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        chosen = case.attribution.top(
            count_from_ratio(self.ratio, case.attribution.input.n_units), self.by
        )
        best = best_truth(chosen, masks, allow_union=self.allow_union, no_overlap=self.no_overlap)
        precision, recall, f1 = overlap(chosen, best)
        return {
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "hits": float((chosen & best).sum()),
            "chosen": float(chosen.sum()),
            "known": float(best.sum()),
        }

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over texts (macro) and figures from pooled counts (micro)."""
        found = means(rows)
        found["macro_f1"] = found.get("f1", float("nan"))
        hits, chosen, known = (
            sum(row.get(name, 0.0) for row in rows) for name in ("hits", "chosen", "known")
        )
        found["micro_precision"] = hits / chosen if chosen else float("nan")
        found["micro_recall"] = hits / known if known else float("nan")
        found["micro_f1"] = 2 * hits / (chosen + known) if chosen + known else float("nan")
        return found


def overlap(chosen: BoolArray, known: BoolArray) -> tuple[float, float, float]:
    """Precision, recall and F1 of a choice; NaN where there is nothing to divide by."""
    hits, n_chosen, n_known = (float(a.sum()) for a in (chosen & known, chosen, known))
    precision = hits / n_chosen if n_chosen else float("nan")
    recall = hits / n_known if n_known else float("nan")
    return precision, recall, 2 * hits / (n_chosen + n_known) if hits else 0.0


def optimum(
    lengths: Sequence[int], known: Sequence[int], rate: float, level: Literal["dataset", "text"]
) -> tuple[float, float]:
    """The best precision and recall within a selection rate, pooled or text by text
    (definitions 5.3)."""
    total = float(sum(known))
    if level == "dataset":
        budget = rate * sum(lengths)
        return min(1.0, total / budget), min(1.0, budget / total)
    budgets = [rate * n for n in lengths]
    hits = sum(min(k, c) for k, c in zip(budgets, known, strict=True))
    return hits / sum(budgets), hits / total


def best_truth(
    chosen: BoolArray,
    sets: Sequence[BoolArray],
    *,
    allow_union: bool = False,
    no_overlap: Literal["shortest", "empty"] = "shortest",
) -> BoolArray:
    """The set with the largest F1, the first among equals; a fixed one when none overlaps."""
    f1 = [overlap(chosen, known)[2] for known in sets]
    if max(f1) > 0:
        best = sets[int(np.argmax(f1))]
        return grown(chosen, best, sets) if allow_union else best
    if no_overlap == "empty":
        return np.zeros_like(chosen)
    return min(sets, key=lambda known: int(known.sum()))


def grown(chosen: BoolArray, best: BoolArray, sets: Sequence[BoolArray]) -> BoolArray:
    """The union with the largest F1 of those that the group's scripts try: from every set on, in
    the order of the file, a set that is hit joins where it raises F1."""
    most = overlap(chosen, best)[2]
    hit = [known for known in sets if (chosen & known).any()]
    for first in range(len(hit)):
        union, f1 = hit[first], overlap(chosen, hit[first])[2]
        for known in hit[first + 1 :]:
            joined = overlap(chosen, union | known)[2]
            if joined > f1:
                union, f1 = union | known, joined
        if f1 > most:
            best, most = union, f1
    return best
