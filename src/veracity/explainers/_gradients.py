"""What methods that follow the answer back to the embeddings have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, FloatArray, Input
from ..engine.gradients import GradientOutput, PathGradient, path_gradients
from ._batch import Inputs, Rngs, Targets


class GradientExplainer(Explainer):
    """Each piece of an input gets a number from its embedding and the gradient there, and hands it
    to its features. Subclasses are dataclasses that say which number, and which gradient."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable

    output: GradientOutput

    def pieces(self, path: PathGradient) -> FloatArray:
        """Embedding times gradient, summed over dimensions. → (pieces,)"""
        return cast(FloatArray, (path.values * path.gradient).sum(axis=1))

    def gradients(
        self, model: Differentiable, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[PathGradient]:
        """The gradients at the inputs themselves."""
        return path_gradients(model, inputs, targets, output=self.output)

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        paths = self.gradients(cast(Differentiable, model), inputs, targets, rngs)
        found = [self.attribution(*row) for row in zip(inputs, targets, paths, strict=True)]
        self.warn(found)
        return found

    def attribution(self, one: Input, target: int, path: PathGradient) -> Attribution[Input]:
        return Attribution(one, target, self.scores(path), output_value=float(path.outputs[-1]))

    def scores(self, path: PathGradient) -> FloatArray:
        """The numbers of all pieces as those of features. → (features,)"""
        return path.alignment.to_features(self.pieces(path))

    def warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says where scores are not what they should be; by default nothing is known of that."""
