"""How well scores find the words that people marked (DeYoung et al. 2020, ERASER;
definitions 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.attributions import Order, count_from_ratio, rounded_steps
from ..core.inputs import BoolArray, FloatArray, IntArray
from ..core.metrics import Case, Quantity, Row, TruthMetric, means


@dataclass(frozen=True)
class RationaleMatch(TruthMetric):
    """Average precision of the scores, and F1 of chosen phrases, against people's rationales."""

    purpose: ClassVar[str] = "rank the words that people marked above the rest"
    usual_truths: ClassVar[tuple[str, ...]] = ("rationale",)
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "average_precision": Quantity(
            "average precision of the scores against the marked words",
            "higher",
            True,
            bounds=(0, 1),
        ),
        "auprc": Quantity(
            "area under the curve of precision over recall, by trapezoids as in ERASER",
            "higher",
            bounds=(0, 1),
        ),
        "iou_f1": Quantity(
            "F1 of phrases: runs of top words that are, by half or more, runs of marked words",
            "higher",
            bounds=(0, 1),
        ),
        "share": Quantity(
            "share of words that are marked: about the average precision of a random map"
        ),
    }

    sets: Literal["union", "best"] = "union"
    """Several rationales of one text: all their words together, or each quantity's best set."""
    ratio: float = 0.29
    """The top share of words is chosen; 0 chooses every word with a score above zero."""
    iou: float = 0.5
    """Two phrases match from this share of their common words in all their words on."""
    by: Order = "signed"

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1:
            raise ValueError(f"expected a ratio between 0 and 1, got {self.ratio}")
        if not 0 < self.iou <= 1:
            raise ValueError(f"expected an iou above 0 and up to 1, got {self.iou}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        marked = [np.logical_or.reduce(masks)] if self.sets == "union" else list(masks)
        marked = [known for known in marked if known.any()]
        if not marked:
            return dict.fromkeys(self.quantities, float("nan"))
        scores = case.attribution.scores
        chosen = scores > 0
        if self.ratio and scores.any():  # a map without any score points nowhere
            k = count_from_ratio(self.ratio, case.attribution.input.n_units)
            chosen = case.attribution.top(k, self.by)
        ranked = rounded_steps(scores, self.by)
        precisions = [average_precision(ranked, known) for known in marked]
        counts = max((matches(chosen, known, self.iou) for known in marked), key=_f1)
        return {
            "average_precision": max(precisions),
            "auprc": max(area(ranked, known) for known in marked),
            "iou_f1": _f1(counts),
            "share": float(marked[int(np.argmax(precisions))].mean()),
            **dict(zip(("matching", "chosen", "matched", "known"), counts, strict=True)),
        }

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over texts (macro), and F1 from pooled counts of phrases (micro)."""
        found = means(rows)
        matching, chosen, matched, known = (
            sum(row.get(name, 0.0) for row in rows)
            for name in ("matching", "chosen", "matched", "known")
        )
        found["micro_iou_f1"] = _f1((matching, chosen, matched, known)) if known else float("nan")
        return found


Matches = tuple[float, float, float, float]
"""Chosen phrases that match, all chosen ones, marked phrases that are matched, all marked ones."""


def matches(chosen: BoolArray, known: BoolArray, iou: float = 0.5) -> Matches:
    """How many runs of chosen words match a run of marked words, and the reverse."""
    starts, ends = phrases(chosen)
    from_, to = phrases(known)
    common = np.minimum.outer(ends, to) - np.maximum.outer(starts, from_)  # (chosen, known)
    common = np.maximum(common, 0)
    together = np.add.outer(ends - starts, to - from_) - common
    alike = common >= iou * together - 1e-9
    return (
        float(alike.any(axis=1).sum()),
        float(len(starts)),
        float(alike.any(axis=0).sum()),
        float(len(from_)),
    )


def phrases(mask: BoolArray) -> tuple[IntArray, IntArray]:
    """Where the runs of neighbouring words start and end."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return edges[::2], edges[1::2]


def _f1(counts: Matches) -> float:
    """The harmonic mean of precision and recall; 0 where nothing matches."""
    matching, chosen, matched, known = counts
    if not matching or not matched:
        return 0.0
    precision, recall = matching / chosen, matched / known
    return 2 * precision * recall / (precision + recall)


def average_precision(scores: FloatArray, known: BoolArray) -> float:
    """Σ (Rₙ - Rₙ₋₁) Pₙ over the different scores; NaN where nothing is known."""
    precision, recall = _curve(scores, known)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def area(scores: FloatArray, known: BoolArray) -> float:
    """Σ (Rₙ - Rₙ₋₁) (Pₙ + Pₙ₋₁) / 2, from precision 1 at recall 0 on: straight lines between the
    points of the curve, which flatter a map with few different scores (ERASER's AUPRC)."""
    precision, recall = _curve(scores, known)
    heights = (precision + np.concatenate(([1.0], precision[:-1]))) / 2
    return float(np.sum(np.diff(recall, prepend=0.0) * heights))


def _curve(scores: FloatArray, known: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Precision and recall down to each of the different scores, the largest first: equal ones
    count together, so that their order plays no part."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of each group of equals
    hits = known[order].cumsum()[last]
    total = float(known.sum()) or np.nan
    return hits / (last + 1), hits / total
