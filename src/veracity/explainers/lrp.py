"""The answer handed back layer by layer (definitions 3.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..core.attributions import Attribution
from ..core.classifiers import Differentiable
from ..core.inputs import Input
from ..engine.gradients import PathGradient
from ._batch import Inputs, Rngs, Targets
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class Lrp(GradientExplainer):
    """Layer-wise relevance: each layer shares the logit among its inputs by what they gave."""

    rule: Literal["epsilon", "gamma", "z_plus"] = "epsilon"
    """How a layer shares relevance among its inputs."""
    epsilon: float = 1e-7
    """What keeps a share from dividing by nothing."""
    gamma: float = 0.25
    """By how much rule=gamma favours what speaks for the label."""
    drop_bias: bool = False
    """Whether biases get no share of relevance."""

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.gamma < 0:
            raise ValueError(
                "expected epsilon above 0 and gamma not below, "
                f"got epsilon={self.epsilon} and gamma={self.gamma}"
            )

    def gradients(
        self, model: Differentiable, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[PathGradient]:
        # here and not above: it is built on torch, which lists of methods do not need
        from ..engine.relevance import LayerRule, relevances

        layers = LayerRule(self.rule, self.epsilon, self.gamma, self.drop_bias)
        return relevances(model, inputs, targets, layers)

    def attribution(self, one: Input, target: int, path: PathGradient) -> Attribution[Input]:
        scores, logit = self.scores(path), float(path.outputs[-1])
        # what biases and special pieces kept
        notes = {"not_in_words": logit - float(scores.sum())}
        return Attribution(one, target, scores, output_value=logit, notes=notes)
