"""Differences from a reference, shared out layer by layer (SPEC 3.7)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Input

WIDE_GAP = 1e-3


@dataclass(frozen=True)
class DeepLift(Explainer):
    """Each word's share of the logit's difference from zero embeddings, by the rescale rule."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
        # here and not above: it is built on torch, which lists of methods do not need
        from ..engine.differences import contributions

        found = []
        paths = contributions(cast(Differentiable, model), inputs, targets)
        for text, target, path in zip(inputs, targets, paths, strict=True):
            pieces = (path.values * path.gradient).sum(axis=1)
            base, logit = map(float, path.outputs)
            found.append(
                Attribution(
                    text,
                    target,
                    path.alignment.to_words(pieces),
                    base_value=base,
                    output_value=logit,
                    notes={"gap": abs(float(pieces.sum()) - (logit - base))},
                )
            )
        self._warn(found)
        return found

    def _warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says when a model has parts that no rule covers (SPEC 3.7)."""
        wide = sum(
            not a.notes["gap"] <= WIDE_GAP * max(1.0, abs(a.output_value - a.base_value))
            for a in found
        )
        if wide:
            warnings.warn(
                f"{self.spec}: on {wide} of {len(found)} texts the scores miss the difference they "
                "should add up to: the model has parts that no rule covers. Compare with "
                "integrated_gradients(output=logit)",
                stacklevel=2,
            )
