"""Where the filters that raise the answer are active (definitions 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Convolutional
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, FloatArray, Input
from ..core.plugins import Profiles
from ..engine.gradients import path_gradients
from ..engine.hits import MapGradient, map_gradients
from ._batch import Inputs, Rngs, Targets


@dataclass(frozen=True)
class GradCam(Explainer):
    """Filters' maps weighed by their mean gradients, averaged over widths; never negative."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Convolutional
    # what fits the Grad-CAM of IDC's table (definitions D.2)
    profiles: ClassVar[Profiles] = {"paper": {"at": "embedding"}}

    at: Literal["maps", "embedding"] = "maps"
    """Where activations and gradients are taken: in the filters' maps, or, word by word and without
    a mean over positions, in the embeddings."""

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        taken = self._at_words if self.at == "embedding" else self._at_maps
        scores = taken(cast(Convolutional, model), inputs, targets)
        return [Attribution(*row) for row in zip(inputs, targets, scores, strict=True)]

    def _at_maps(self, model: Convolutional, inputs: Inputs, targets: Targets) -> list[FloatArray]:
        found = map_gradients(model, inputs, targets)
        return [
            np.mean([on_features(one, text.n_features) for one in maps], axis=0)
            for text, maps in zip(inputs, found, strict=True)
        ]

    def _at_words(self, model: Convolutional, inputs: Inputs, targets: Targets) -> list[FloatArray]:
        return [
            np.maximum(path.alignment.to_features((path.values * path.gradient).sum(axis=1)), 0.0)
            for path in path_gradients(model, inputs, targets)
        ]


def class_activation(values: FloatArray, weights: FloatArray) -> FloatArray:
    """ReLU of the weighted sum of the maps. (cells, filters), (filters,) → (cells,)"""
    return np.maximum(values @ weights, 0.0)


def on_features(found: MapGradient, n: int) -> FloatArray:
    """The activation of the cells, handed to the features that they read. → (n,)"""
    cells = class_activation(found.values, found.gradient.mean(axis=0))
    scores = np.zeros(n)
    scores[: found.n_read] = found.layout.on_features(cells, found.n_read)
    return scores
