"""How much of an explanation lies on the features known to matter (definitions 5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.changes import DECOY
from ..core.inputs import ANY_KIND, BoolArray, FloatArray
from ..core.metrics import Case, Quantity, Row, TruthMetric, means


@dataclass(frozen=True)
class AttributionMass(TruthMetric):
    """Attr%: the share of absolute scores on the known features, beside their share of all."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "see how much weight falls on the {features} known to matter"
    usual_truths: ClassVar[tuple[str, ...]] = (*TruthMetric.usual_truths, DECOY)
    counts_unmarked: ClassVar[bool] = True
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "mass": Quantity(
            "share of absolute scores on the known {features} (Attr%)",
            "higher",
            True,
            bounds=(0, 1),
        ),
        "share": Quantity("share of {features} that are known: what a random map gets"),
    }

    zero: Literal["undefined", "share"] = "undefined"
    """What a map of zeros gets: nothing, or the share of known words."""

    @property
    def effective_quantities(self) -> Mapping[str, Quantity]:
        """Weight on decoys is weight misspent, and no method is chosen by it."""
        if self.truth != DECOY:
            return self.quantities
        return {**self.quantities, "mass": Quantity(self.quantities["mass"].about, "lower")}

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        known = np.logical_or.reduce(masks)
        mass = attribution_share(case.attribution.scores, known)
        share = float(known.mean()) if len(known) else float("nan")
        if np.isnan(mass) and self.zero == "share":
            mass = share
        return {
            "mass": mass,
            "share": share,
            f"mass_of_{case.example.label}": mass,
            "known": float(known.sum()),
            "words": float(len(known)),
        }

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means, the pooled word share, and how many maps were all zero."""
        found = means(rows)
        known, words = (sum(row.get(name, 0) for row in rows) for name in ("known", "words"))
        found["pooled_share"] = known / words if words else float("nan")
        found["all_zero"] = float(sum(np.isnan(row["mass"]) for row in rows if "mass" in row))
        return found


def attribution_share(scores: FloatArray, known: BoolArray) -> float:
    """Σ|s_i| over the known features / Σ|s_i|; NaN when all scores are zero."""
    total = float(np.abs(scores).sum())
    if total == 0:
        return float("nan")
    return float(np.abs(scores)[known].sum()) / total
