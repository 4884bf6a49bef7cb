"""One quantity of one model, as comparisons read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.inputs import FloatArray
from ..core.metrics import Quantity

HIDDEN_HOW = {
    "delete": "deleted",
    "mask": "masked",
    "pad": "padded",
    "black": "blackened",
    "mean": "in the mean colour",
    "blur": "blurred",
    "linear": "guessed from what surrounds them",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A row per example, a column per method."""

    model: str
    metric: str
    name: str
    quantity: Quantity
    purpose: str
    methods: list[str]
    examples: list[str]
    values: FloatArray  # (examples, methods)
    families: list[str]
    """Examples of one family, such as a text and its twins, are no independent draws."""
    best_found: FloatArray | None = None
    """The best that a search or any method reached, NaN where no search was made. (examples,)"""
    hidden_how: str = ""
    """How words are hidden, where the metric hides any."""
    quality: str = "faithfulness"

    def of(self, method: str) -> dict[str, float]:
        """One method's values by example, where they are defined."""
        values = self.values[:, self.methods.index(method)].tolist()
        pairs = zip(self.examples, values, strict=True)
        return {example: value for example, value in pairs if not np.isnan(value)}


def best_of(
    quantity: Quantity, values: FloatArray, searches: Sequence[FloatArray]
) -> FloatArray | None:
    """Text by text the best that a search or any method reached, where a search was made."""
    if not quantity.searched or not searches:
        return None
    better = np.fmin if quantity.better == "lower" else np.fmax
    found: FloatArray = better.reduce(searches)
    best: FloatArray = better(found, better.reduce(values, axis=1))
    return np.where(np.isnan(found), np.nan, best)
