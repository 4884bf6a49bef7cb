"""Whether a method marks the words that a source of truth holds to decide (definitions 5.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.attributions import count_from_ratio, ranking
from ..core.classifiers import Truncating
from ..core.inputs import BoolArray, FloatArray
from ..core.metrics import Case, Quantity, Row, TruthMetric, means
from ..core.plugins import Profiles
from ..core.truths import PSEUDO

COUNTS = ("tp", "fp", "fn", "tn")


@dataclass(frozen=True)
class TruthAgreement(TruthMetric):
    """Precision, recall and Cohen's kappa of the words that a method calls important."""

    purpose: ClassVar[str] = "mark the words that a source of truth holds to decide"
    of_labels: ClassVar[bool] = True
    usual_truths: ClassVar[tuple[str, ...]] = (PSEUDO,)
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "kappa": Quantity("agreement with the truth beyond chance (Cohen's kappa)", "higher", True),
        "precision": Quantity("share of the words called important that are so", "higher"),
        "recall": Quantity("share of the important words that are called so", "higher"),
        "none_called": Quantity("whether no word was called important; precision is then 0"),
    }

    profiles: ClassVar[Profiles] = {"paper": {"binary": "above_sd"}}

    truth: str = PSEUDO
    binary: Literal["threshold", "topk_ratio", "oracle_k", "positive", "above_sd"] = "threshold"
    """Which words count as important: from a share of the highest score on, the top share of the
    words, as many as the truth has, all with a positive score, or those more than a standard
    deviation above the text's mean (the paper does not say; this fits its figures)."""
    threshold: float = 0.3
    """For binary=threshold: the share of the highest score from which on words count."""
    ratio: float = 0.29
    documents: Literal["correct", "all"] = "correct"
    """Which texts count: those that the model gets right, or all."""
    cut: Literal["left_out", "unimportant"] = "left_out"
    """What becomes of words behind those that the model reads."""

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"expected a ratio above 0 and up to 1, got {self.ratio}")
        if not 0 < self.threshold <= 1:
            raise ValueError(f"expected a threshold above 0 and up to 1, got {self.threshold}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        known = np.logical_or.reduce(masks)
        read = len(known)
        if isinstance(case.model, Truncating):
            (read,) = case.model.features_read([case.example.input])
        if not read or not (case.right or self.documents == "all"):
            return dict.fromkeys((*self.quantities, *COUNTS), float("nan"))
        if self.cut == "left_out":
            known = known[:read]
        chosen = np.zeros(len(known), dtype=np.bool_)
        chosen[:read] = self.important(case.attribution.scores[:read], known)
        counts = dict(zip(COUNTS, counted(chosen, known), strict=True))
        return {**agreement(**counts), **counts}

    def important(self, scores: FloatArray, known: BoolArray) -> BoolArray:
        """The words that the method calls important; none where all scores are zero."""
        if not scores.any():
            return np.zeros(len(scores), dtype=np.bool_)
        if self.binary == "positive":
            return np.asarray(scores > 0)
        if self.binary == "above_sd":
            rounding = 1e-9 * np.abs(scores).max()
            return np.asarray(scores > scores.mean() + scores.std() + rounding)
        if self.binary == "threshold":
            largest = scores.max()
            return np.asarray((scores > 0) & (scores >= self.threshold * largest * (1 - 1e-9)))
        k = count_from_ratio(self.ratio, len(scores))
        if self.binary == "oracle_k":
            k = int(known.sum())
        chosen = np.zeros(len(scores), dtype=np.bool_)
        chosen[ranking(scores)[:k]] = True
        return chosen

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over documents, and the figures from counts pooled over them."""
        found = means(rows)
        total = {name: float(np.nansum([row.get(name, np.nan) for row in rows])) for name in COUNTS}
        pooled = agreement(**total)
        return {**found, **{f"pooled_{name}": value for name, value in pooled.items()}}


def agreement(tp: float, fp: float, fn: float, tn: float) -> dict[str, float]:
    """Precision, recall and kappa from counts; precision is 0, and flagged, if none was called."""
    n = tp + fp + fn + tn
    if not n:
        return dict.fromkeys(TruthAgreement.quantities, float("nan"))
    observed = (tp + tn) / n
    expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
    # where chance alone agrees on all words, so do the two
    kappa = (observed - expected) / (1 - expected) if expected < 1 else float(observed == 1)
    return {
        "kappa": kappa,
        "precision": tp / (tp + fp) if tp + fp else 0.0,
        "recall": tp / (tp + fn) if tp + fn else float("nan"),
        "none_called": float(tp + fp == 0),
    }


def counted(chosen: BoolArray, known: BoolArray) -> tuple[float, float, float, float]:
    """Words that both call important, only the first, only the second, neither."""
    tables = (chosen & known, chosen & ~known, ~chosen & known, ~chosen & ~known)
    tp, fp, fn, tn = (float(table.sum()) for table in tables)
    return tp, fp, fn, tn
