"""The gradient averaged over noisy copies of the text (definitions 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.attributions import Attribution
from ..core.classifiers import Differentiable
from ..core.inputs import FloatArray, Input
from ..engine.gradients import GradientOutput, Norm, PathGradient, noisy_gradients, sizes
from ._batch import Inputs, Rngs, Targets
from ._gradients import GradientExplainer


@dataclass(frozen=True)
class SmoothGrad(GradientExplainer):
    """The size of the gradient, averaged over copies with noise in their embeddings; unsigned.

    `noise` is the noise's deviation as a share of the range of the text's embeddings. Signed
    gradients are averaged unless `absolute` is set.
    """

    draws: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, Any]] = {"samples": 10}
    largest: ClassVar[Mapping[str, int]] = {"samples": 10_000}
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {"image": {"norm": "l1", "absolute": True}}

    samples: int = 50
    """Copies with noise that are averaged."""
    noise: float = 0.15
    """Deviation of the noise, as a share of the range of the text's embeddings."""
    absolute: bool = False
    """Whether sizes of gradients are averaged, not signed gradients."""
    norm: Norm = "l2"
    """What makes one number of a word's gradient: its l2 or l1 norm, or its largest entry."""
    output: GradientOutput = "logit"

    @property
    def signed(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if self.samples < 1 or self.noise < 0:
            raise ValueError(
                "expected at least one sample and noise of 0 or more, got "
                f"{self.samples} and {self.noise}"
            )

    def n_questions(self, n_units: int) -> int | None:
        return self.samples

    def gradients(
        self, model: Differentiable, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[PathGradient]:
        return noisy_gradients(
            model,
            inputs,
            targets,
            rngs,
            copies=self.samples,
            noise=self.noise,
            absolute=self.absolute,
            output=self.output,
        )

    def pieces(self, path: PathGradient) -> FloatArray:
        return sizes(path.gradient, self.norm)

    def attribution(self, one: Input, target: int, path: PathGradient) -> Attribution[Input]:
        return Attribution(one, target, self.scores(path))
