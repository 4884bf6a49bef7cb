"""The answer handed back layer by layer (SPEC 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Input


@dataclass(frozen=True)
class Lrp(Explainer):
    """Layer-wise relevance: each layer shares the logit among its inputs by what they gave."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable

    rule: Literal["epsilon", "gamma", "z_plus"] = "epsilon"
    epsilon: float = 1e-7
    gamma: float = 0.25
    drop_bias: bool = False

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.gamma < 0:
            raise ValueError(
                "expected epsilon above 0 and gamma not below, "
                f"got epsilon={self.epsilon} and gamma={self.gamma}"
            )

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
        # here and not above: it is built on torch, which lists of methods do not need
        from ..engine.relevance import LayerRule, relevances

        layers = LayerRule(self.rule, self.epsilon, self.gamma, self.drop_bias)
        paths = relevances(cast(Differentiable, model), inputs, targets, layers)
        found = []
        for text, target, path in zip(inputs, targets, paths, strict=True):
            scores = path.alignment.to_words((path.values * path.gradient).sum(axis=1))
            logit = float(path.outputs[-1])
            found.append(
                Attribution(
                    text,
                    target,
                    scores,
                    output_value=logit,
                    # what biases and special pieces kept
                    notes={"not_in_words": logit - float(scores.sum())},
                )
            )
        return found
