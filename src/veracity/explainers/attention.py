"""The weights by which a model averages its words (SPEC 3.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Attentive, Classifier
from ..core.explainers import Explainer
from ..core.inputs import Text
from ..engine.tally import asked


@dataclass(frozen=True)
class Attention(Explainer):
    """The model's own attention; unsigned and the same for every label."""

    needs: ClassVar[type] = Attentive

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        weights = cast(Attentive, model).attention(inputs)
        asked(len(inputs))
        return [
            Attribution(text, target, scores)
            for text, target, scores in zip(inputs, targets, weights, strict=True)
        ]
