"""The words that a model chose to read (definitions 1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Selective
from ..core.explainers import Explainer
from ..core.inputs import Input
from ..engine.call_counter import add_calls
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class Rationale(Explainer):
    """The model's own choice of words; unsigned and the same for every label.

    A word that is read scores 1, any other 0; `binary=False` tells how far its gate is open.
    """

    needs: ClassVar[type] = Selective

    binary: bool = True
    """Whether a word scores 1 or 0; otherwise, how far its gate is open."""

    @property
    def signed(self) -> bool:
        return False

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        gates = cast(Selective, model).rationale(inputs)
        add_calls(len(inputs))
        return [
            Attribution(text, target, (z > 0).astype(np.float64) if self.binary else z)
            for text, target, z in zip(inputs, targets, gates, strict=True)
        ]
