"""Scores drawn at random: what any method must beat (SPEC 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import Text


@dataclass(frozen=True)
class RandomScores(Explainer):
    """Scores drawn from a normal distribution, whatever the text: the baseline."""

    baseline: ClassVar[bool] = True

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        return [
            Attribution(text, target, rng.normal(size=text.n_features))
            for text, target, rng in zip(inputs, targets, rngs, strict=True)
        ]
