"""Does the explanation carry the decision? Keep it alone, take it away (definitions 5.7)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import Order, count_from_ratio
from ..core.inputs import ANY_KIND, FloatArray, Hiding
from ..core.metrics import CHANGED, FIRST, Case, HidingMetric, Quantity, Row
from ..core.plugins import Profiles
from ..engine.inference import masked_probabilities


@dataclass(frozen=True)
class Erasure(HidingMetric):
    """Sufficiency, compactness and New_P, the averages of the first two over several ratios (AOPC),
    and whether the answer changes without the first few words, or segments (`changed`)."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "show the {units} that the decision hangs on"
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "aopc_compactness": Quantity(
            "fall of the explained label's probability when the top {units} are removed, "
            "averaged over several ratios",
            "higher",
            True,
            bounds=(-1, 1),
            searched=True,
        ),
        "aopc_sufficiency": Quantity(
            "fall of the probability when only the top {units} are kept, averaged over ratios",
            "lower",
            bounds=(-1, 1),
        ),
        "compactness": Quantity(
            "fall of the probability without the top {units}",
            "higher",
            bounds=(-1, 1),
            searched=True,
        ),
        "sufficiency": Quantity(
            "fall of the probability with the top {units} alone", "lower", bounds=(-1, 1)
        ),
        "new_p": Quantity(
            "how often the top {units} alone keep the prediction and the rest loses it",
            "higher",
            share=True,
        ),
        CHANGED: Quantity(
            "how often the answer is another one without the first few {units}",
            "higher",
            share=True,
            searched=True,
        ),
    }

    # by size alone New_P comes out as printed (definitions D.3)
    profiles: ClassVar[Profiles] = {"paper": {"by": "abs"}}

    ratio: float = 0.29
    ratios: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    """The shares of words over which AOPC averages."""
    by: Order = "signed"
    hiding: Hiding = Hiding.DELETE
    first: int = FIRST
    """So many words go to see whether the answer changes."""

    def __post_init__(self) -> None:
        if self.first < 1:
            raise ValueError(f"expected first to be at least one word, got {self.first}")
        if not all(0 < ratio <= 1 for ratio in (self.ratio, *self.ratios)):
            raise ValueError("expected ratios above 0 and up to 1")

    def maskings(self, n_units: int) -> frozenset[tuple[Hashable, ...]]:
        tops = {count_from_ratio(r, n_units) for r in (self.ratio, *self.ratios)}
        without = {*tops, min(self.first, n_units)}
        sides = [*(("alone", k) for k in tops), *(("without", k) for k in without)]
        return frozenset((self.hiding, self.by, *side) for side in sides)

    def score(self, cases: Sequence[Case]) -> list[Row]:
        """Two questions per ratio and case: the top words alone, and the text without them; and one
        without the first few."""
        shown = []
        for case in cases:
            n = case.attribution.input.n_units
            tops = [
                case.attribution.top_units(count_from_ratio(r, n), self.by)
                for r in (self.ratio, *self.ratios)
            ]
            few = ~case.attribution.top_units(min(self.first, n), self.by)
            shown.append(np.array([*tops, *(~top for top in tops), few]))
        if not cases:
            return []
        inputs = [case.attribution.input for case in cases]
        answers = masked_probabilities(cases[0].model, inputs, shown, self.hiding)
        return [self._row(case, rows) for case, rows in zip(cases, answers, strict=True)]

    def _row(self, case: Case, answers: FloatArray) -> Row:
        alone, without = np.split(answers[:-1], 2)  # (ratios, labels) each
        target = case.attribution.target
        whole = case.probabilities[target]
        sufficiency, compactness, new_p = erasure_scores(
            case.probabilities, alone[0], without[0], target
        )
        return {
            "aopc_compactness": float(np.mean(whole - without[1:, target])),
            "aopc_sufficiency": float(np.mean(whole - alone[1:, target])),
            "compactness": compactness,
            "sufficiency": sufficiency,
            "new_p": new_p,
            CHANGED: float(np.argmax(answers[-1]) != np.argmax(case.probabilities)),
        }


def erasure_scores(
    whole: FloatArray, alone: FloatArray, without: FloatArray, target: int
) -> tuple[float, float, float]:
    """Sufficiency, compactness and New_P from the answers for x, for e and for x without e.

    The label is the explained one, by default the predicted one; New_P speaks of predictions and
    is not defined for another.
    """
    predicted = int(np.argmax(whole))
    keeps = int(np.argmax(alone)) == predicted
    loses = int(np.argmax(without)) != predicted
    return (
        float(whole[target] - alone[target]),
        float(whole[target] - without[target]),
        float(keeps and loses) if target == predicted else float("nan"),
    )
