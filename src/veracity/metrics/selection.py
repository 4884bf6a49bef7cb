"""What a method selects of the words that were planted, and of those that mislead
(definitions 5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import Order, count_from_ratio
from ..core.changes import DECOY, PLANTED
from ..core.inputs import ANY_KIND, BoolArray
from ..core.metrics import Case, Quantity, Row, TruthMetric, means
from .feature_overlap import optimum, overlap


@dataclass(frozen=True)
class Selection(TruthMetric):
    """Precision and recall of what is selected, pooled over all, beside what is possible."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "select the {features} that were planted and no others"
    usual_truths: ClassVar[tuple[str, ...]] = (PLANTED,)
    counts_unmarked: ClassVar[bool] = True
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "precision": Quantity("share of the selected {features} that were planted", "higher", True),
        "recall": Quantity("share of the planted {features} that were selected", "higher"),
        "hit": Quantity(
            "share of {many} with at least one planted {feature} selected", "higher", share=True
        ),
        "misleading": Quantity("share of the selected {features} that are decoys", "lower"),
        "rate": Quantity("share of {features} selected"),
    }

    truth: str = PLANTED
    ratio: float = 0.1
    """The top share of words is taken as selected; 0 takes every word with a score above zero."""
    by: Order = "abs"

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1:
            raise ValueError(f"expected a ratio between 0 and 1, got {self.ratio}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        known = np.logical_or.reduce(masks)
        none = np.zeros_like(known)
        decoys = np.logical_or.reduce([none, *case.example.truths.get(DECOY, ())])
        scores = case.attribution.scores
        chosen = scores > 0
        if self.ratio:
            k = count_from_ratio(self.ratio, case.attribution.input.n_units)
            chosen = case.attribution.top(k, self.by)
        precision, recall, _ = overlap(chosen, known)
        n = float(chosen.sum())
        return {
            "precision": precision,
            "recall": recall if known.any() else float("nan"),
            "hit": float((chosen & known).any()) if known.any() else float("nan"),
            "misleading": float((chosen & decoys).sum()) / n if n else float("nan"),
            "rate": n / len(known) if len(known) else float("nan"),
            "hits": float((chosen & known).sum()),
            "misled": float((chosen & decoys).sum()),
            "marked": float((chosen & (known | decoys)).sum()),
            "chosen": n,
            "known": float(known.sum()),
            "words": float(len(known)),
        }

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over texts, the figures from pooled counts, and the best within the same rate."""
        found = means(rows)
        total = {
            name: sum(row.get(name, 0.0) for row in rows)
            for name in ("hits", "misled", "marked", "chosen", "known", "words")
        }
        found["pooled_precision"] = _share(total["hits"], total["chosen"])
        found["pooled_recall"] = _share(total["hits"], total["known"])
        found["pooled_misleading"] = _share(total["misled"], total["chosen"])
        found["pooled_marked"] = _share(total["marked"], total["chosen"])
        found["pooled_rate"] = _share(total["chosen"], total["words"])
        filled = [row for row in rows if row.get("words")]
        if total["chosen"] and total["known"]:
            lengths = [int(row["words"]) for row in filled]
            known = [int(row["known"]) for row in filled]
            for level in ("dataset", "text"):
                best = optimum(lengths, known, found["pooled_rate"], level)
                found[f"best_precision_{level}"], found[f"best_recall_{level}"] = best
        return found


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
