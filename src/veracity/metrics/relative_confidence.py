"""How sure a model stays when the words held to decide are taken away (definitions 5.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.inputs import ANY_KIND, BoolArray, FloatArray, Hiding
from ..core.metrics import Case, Quantity, Row, TruthMetric, means
from ..core.truths import PSEUDO
from ..engine.inference import masked_probabilities
from ..engine.seeds import generator


@dataclass(frozen=True)
class RelativeConfidence(TruthMetric):
    """The model's confidence without what a source of truth names: tests the source."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "know whether the model needs the {units} held to decide"
    of_model: ClassVar[bool] = True
    of_labels: ClassVar[bool] = True
    usual_truths: ClassVar[tuple[str, ...]] = (PSEUDO,)
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "printed": Quantity("confidence less its relative fall, as printed", "lower", True),
        "ratio": Quantity("1 less the relative fall of the confidence", "lower"),
        "bounded": Quantity("the lower of the confidences before and after", "lower"),
        "confidence": Quantity("confidence in the whole {one}: printed, with nothing removed"),
        "removed": Quantity("share of {units} removed"),
    }

    truth: str = PSEUDO
    hiding: Hiding = Hiding.DELETE
    remove: Literal["marked", "random"] = "marked"
    """Which words go: those held to decide, or as many of each text drawn at random, which shows
    what their number alone does."""
    seed: int = 0

    def n_questions(self, n_units: int) -> int | None:
        return 1

    def score(self, cases: Sequence[Case]) -> list[Row]:
        """Only documents that the model gets right are asked about."""
        blank = dict.fromkeys((*self.quantities, "words", "taken"), float("nan"))
        marked = [self._known(case) for case in cases]
        rows: list[Row] = [{} if known is None else blank for known in marked]
        right = {
            i: known
            for i, known in enumerate(marked)
            if known is not None and len(known) and cases[i].right
        }
        asked = [i for i, known in right.items() if known.any()]
        without: dict[int, FloatArray] = {}
        if asked:
            inputs = [cases[i].example.input for i in asked]
            shown = [~right[i][None] for i in asked]
            answers = masked_probabilities(cases[0].model, inputs, shown, self.hiding)
            without = {i: row[0] for i, row in zip(asked, answers, strict=True)}
        for i, known in right.items():
            case = cases[i]
            label = case.example.label
            before = float(case.probabilities[label])
            after = float(without[i][label]) if i in without else before
            rows[i] = {
                **relative_confidence(before, after),
                "confidence": before,
                "removed": float(known.mean()),
                "words": float(len(known)),
                "taken": float(known.sum()),
            }
        return rows

    def _known(self, case: Case) -> BoolArray | None:
        masks = case.example.truths.get(self.truth)
        if not masks:
            return None
        known: BoolArray = np.logical_or.reduce(masks)
        if self.remove == "random":
            rng = generator(self.seed, "words removed at random", case.example.id)
            return rng.permutation(known)
        return known

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over documents, and the share removed of all words together."""
        found = means(rows)
        words, taken = (
            float(np.nansum([row.get(name, np.nan) for row in rows])) for name in ("words", "taken")
        )
        found["pooled_removed"] = taken / words if words else float("nan")
        return found

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        return self.score([case])[0]


def relative_confidence(before: float, after: float) -> dict[str, float]:
    """The three forms; confidence cannot be 0, since the label is the predicted one."""
    fall = max(0.0, before - after)
    return {
        "printed": before - fall / before,
        "ratio": 1 - fall / before,
        "bounded": before - fall,
    }
