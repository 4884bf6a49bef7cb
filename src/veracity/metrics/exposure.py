"""Whether a reader of the first few words would have seen what was planted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from ..core.attributions import Order, ranking
from ..core.changes import PLANTED
from ..core.inputs import BoolArray
from ..core.metrics import Case, Quantity, Row, TruthMetric


@dataclass(frozen=True)
class Exposure(TruthMetric):
    """How often a planted word is among the strongest words of an explanation."""

    purpose: ClassVar[str] = "expose a cue that the model should not use"
    usual_truths: ClassVar[tuple[str, ...]] = (PLANTED,)
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "seen": Quantity("share of texts with a planted word among the top words", "higher", True),
        "first": Quantity("share of texts whose top word was planted", "higher"),
        "rank": Quantity("rank of the first planted word", "lower"),
        "chance": Quantity("share that a random map would show"),
    }

    truth: str = PLANTED
    top: int = 3
    by: Order = "abs"

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ValueError(f"expected to look at one word at least, got top={self.top}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        known = np.logical_or.reduce(masks)
        if not known.any():
            return dict.fromkeys(self.quantities, float("nan"))
        n, m, k = len(known), int(known.sum()), min(self.top, len(known))
        scores = case.attribution.scores
        # a map without any score points nowhere
        rank = int(np.flatnonzero(known[ranking(scores, self.by)])[0]) + 1 if scores.any() else n
        return {
            "seen": float(rank <= k and scores.any()),
            "first": float(rank == 1 and scores.any()),
            "rank": float(rank),
            "chance": 1 - comb(n - m, k) / comb(n, k),
        }
