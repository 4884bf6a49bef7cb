"""How often the model is right (definitions 5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.inputs import ANY_KIND
from ..core.metrics import Case, Metric, Quantity, Row

FIGURES = (
    "accuracy",
    *(
        f"{how}_{what}"
        for how in ("weighted", "macro", "micro")
        for what in ("precision", "recall", "f1")
    ),
)
"""What `summary` gives of all classes together; of each, `recall_of_…` and so on as well."""


@dataclass(frozen=True)
class Accuracy(Metric):
    """Accuracy, precision, recall and F1 of the model itself."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    purpose: ClassVar[str] = "know how often the model is right"
    of_model: ClassVar[bool] = True
    of_labels: ClassVar[bool] = True
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "correct": Quantity(
            "whether the predicted label is the given one", "higher", True, share=True
        ),
        "gold": Quantity("the given label"),
        "predicted": Quantity("the predicted label"),
    }

    def n_questions(self, n_units: int) -> int | None:
        return 0

    def score(self, cases: Sequence[Case]) -> list[Row]:
        return [
            {
                "correct": float(case.right),
                "gold": float(case.example.label),
                "predicted": float(np.argmax(case.probabilities)),
            }
            for case in cases
        ]

    def summary(self, rows: Sequence[Row]) -> Row:
        gold = [int(row["gold"]) for row in rows]
        return classification(gold, [int(row["predicted"]) for row in rows])


def classification(gold: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 by class and averaged in three ways.

    A class that is never predicted has precision 0; `never_predicted` counts such classes.
    """
    y, p = np.asarray(gold), np.asarray(predicted)
    classes = sorted({*gold, *predicted})
    found: dict[str, float] = {"accuracy": float(np.mean(y == p)) if len(y) else float("nan")}
    per_class = []
    for c in classes:
        hits = float(np.sum((y == c) & (p == c)))
        precision = hits / max(1, int(np.sum(p == c)))
        recall = hits / max(1, int(np.sum(y == c)))
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        per_class.append((precision, recall, f1, float(np.sum(y == c))))
        for name, number in zip(("precision", "recall", "f1"), per_class[-1], strict=False):
            found[f"{name}_of_{c}"] = number
    table = np.array(per_class).reshape(-1, 4)
    support = table[:, 3]
    for i, name in enumerate(("precision", "recall", "f1")):
        if len(table):
            found[f"weighted_{name}"] = float(table[:, i] @ support / support.sum())
            found[f"macro_{name}"] = float(table[:, i].mean())
        found[f"micro_{name}"] = found["accuracy"]  # each item has one label and one prediction
    found["never_predicted"] = float(sum(1 for c in classes if not np.any(p == c)))
    return found
