"""Differences from a reference, shared out layer by layer (definitions 3.7)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.attributions import Attribution
from ..core.classifiers import Differentiable
from ..core.inputs import Input
from ..engine.gradients import PathGradient
from ._batch import Inputs, Rngs, Targets
from ._gradients import GradientExplainer

WIDE_GAP = 1e-3


@dataclass(frozen=True)
class DeepLift(GradientExplainer):
    """Each word's or pixel's share of the logit's difference from zeros, by the rescale rule."""

    def gradients(
        self, model: Differentiable, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[PathGradient]:
        # here and not above: it is built on torch, which lists of methods do not need
        from ..engine.differences import contributions

        return contributions(model, inputs, targets)

    def attribution(self, one: Input, target: int, path: PathGradient) -> Attribution[Input]:
        base, logit = map(float, path.outputs)
        notes = {"gap": abs(float(self.pieces(path).sum()) - (logit - base))}
        return Attribution(
            one, target, self.scores(path), base_value=base, output_value=logit, notes=notes
        )

    def warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says when a model has parts that no rule covers (definitions 3.7)."""
        wide = sum(
            not a.notes["gap"] <= WIDE_GAP * max(1.0, abs(a.output_value - a.base_value))
            for a in found
        )
        if wide:
            warnings.warn(
                f"{self.spec}: on {wide} of {len(found)} {found[0].input.nouns.many} the scores "
                "miss the difference they should add up to: the model has parts that no rule "
                "covers. Compare with integrated_gradients(output=logit)",
                stacklevel=2,
            )
