"""The gradient averaged over noisy copies of the text (SPEC 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, Input
from ..engine.gradients import Norm, Output, noisy_gradients, sizes


@dataclass(frozen=True)
class SmoothGrad(Explainer):
    """The size of the gradient, averaged over copies with noise in their embeddings; unsigned.

    `noise` is the noise's deviation as a share of the range of the text's embeddings. Signed
    gradients are averaged unless `absolute` is set.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable
    draws: ClassVar[bool] = True
    largest: ClassVar[Mapping[str, int]] = {"samples": 10_000}

    samples: int = 50
    noise: float = 0.15
    absolute: bool = False
    norm: Norm = "l2"
    output: Output = "logit"

    def __post_init__(self) -> None:
        if self.samples < 1 or self.noise < 0:
            raise ValueError(
                "expected at least one sample and noise of 0 or more, got "
                f"{self.samples} and {self.noise}"
            )

    def n_questions(self, n_features: int) -> int | None:
        return self.samples

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
        means = noisy_gradients(
            cast(Differentiable, model),
            inputs,
            targets,
            rngs,
            copies=self.samples,
            noise=self.noise,
            absolute=self.absolute,
            output=self.output,
        )
        return [
            Attribution(text, target, mean.alignment.to_words(sizes(mean.gradient, self.norm)))
            for text, target, mean in zip(inputs, targets, means, strict=True)
        ]
