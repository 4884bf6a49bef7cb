"""Gradients added up on the way from nothing to the text (SPEC 3.4)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import FloatArray, Text
from ..engine.gradients import Output, path_gradients

WIDE_GAP = 0.05
ROUNDING = 1e-3
"""Gaps below this are no matter, however small the difference itself."""


@dataclass(frozen=True)
class IntegratedGradients(Explainer):
    """Each word's share of the difference between the text and zero embeddings."""

    needs: ClassVar[type] = Differentiable

    steps: int = 100
    rule: Literal["trapezoid", "gauss_legendre"] = "trapezoid"
    output: Output = "probability"

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ValueError(f"expected at least 2 steps, got {self.steps}")

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        points, weights = quadrature(self.steps, self.rule)
        paths = path_gradients(
            cast(Differentiable, model),
            inputs,
            targets,
            points=points.tolist(),
            weights=weights.tolist(),
            output=self.output,
        )
        found = []
        for text, target, path in zip(inputs, targets, paths, strict=True):
            scores = path.alignment.to_words((path.values * path.gradient).sum(axis=1))
            start, end = float(path.outputs[0]), float(path.outputs[-1])
            gap = abs(float(scores.sum()) - (end - start))
            found.append(
                Attribution(
                    text,
                    target,
                    scores,
                    base_value=start,
                    output_value=end,
                    notes={"completeness_gap": gap},
                )
            )
        self._warn(found)
        return found

    def _warn(self, found: Sequence[Attribution]) -> None:
        """Says when the sum misses what it should add up to (SPEC 3.4)."""
        wide = sum(
            a.notes["completeness_gap"]
            > max(ROUNDING, WIDE_GAP * abs(a.output_value - a.base_value))
            for a in found
        )
        if wide:
            warnings.warn(
                f"{self.spec}: on {wide} of {len(found)} texts the scores miss the difference they "
                f"should add up to by more than {WIDE_GAP:.0%}. Raise steps, or try "
                "rule=gauss_legendre",
                stacklevel=2,
            )


def quadrature(steps: int, rule: str) -> tuple[FloatArray, FloatArray]:
    """Points on [0, 1] and their weights; both ends are among the points, to read the outputs."""
    if rule == "trapezoid":
        weights = np.full(steps, 1 / (steps - 1))
        weights[[0, -1]] /= 2
        return np.linspace(0, 1, steps), weights
    inner, weights = np.polynomial.legendre.leggauss(steps)
    points = np.concatenate([[0.0], (inner + 1) / 2, [1.0]])
    return points, np.concatenate([[0.0], weights / 2, [0.0]])
