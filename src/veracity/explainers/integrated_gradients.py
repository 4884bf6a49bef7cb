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

NODES = 6
"""Points per stretch of the way when the stretches are chosen by their gaps."""

MOST_HALVINGS = 8


@dataclass(frozen=True)
class IntegratedGradients(Explainer):
    """Each word's share of the difference between the text and zero embeddings.

    With `gap`, steps are taken only where they are needed: a stretch of the way is halved until
    its gradients add up to what the output gained on it, to that share of the whole difference.
    """

    needs: ClassVar[type] = Differentiable

    steps: int = 100
    rule: Literal["trapezoid", "gauss_legendre"] = "trapezoid"
    gap: float | None = None
    output: Output = "probability"

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ValueError(f"expected at least 2 steps, got {self.steps}")
        if self.gap is not None and not self.gap > 0:
            raise ValueError(f"expected a gap above 0, got {self.gap}")

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        able = cast(Differentiable, model)
        walk = self._evenly if self.gap is None else self._where_needed
        found = [
            Attribution(
                text,
                target,
                scores,
                base_value=start,
                output_value=end,
                notes={
                    "completeness_gap": abs(float(scores.sum()) - (end - start)),
                    "steps": steps,
                },
            )
            for text, target, (scores, start, end, steps) in zip(
                inputs, targets, walk(able, inputs, targets), strict=True
            )
        ]
        self._warn(found)
        return found

    def _evenly(
        self, model: Differentiable, inputs: Sequence[Text], targets: Sequence[int]
    ) -> list[tuple[FloatArray, float, float, int]]:
        """Per text: scores, the outputs at both ends, the number of steps."""
        points, weights = quadrature(self.steps, self.rule)
        paths = path_gradients(
            model, inputs, targets, points=points, weights=weights, output=self.output
        )
        return [
            (
                path.alignment.to_words((path.values * path.gradient).sum(axis=1)),
                float(path.outputs[0]),
                float(path.outputs[-1]),
                self.steps,
            )
            for path in paths
        ]

    def _where_needed(
        self, model: Differentiable, inputs: Sequence[Text], targets: Sequence[int]
    ) -> list[tuple[FloatArray, float, float, int]]:
        """The same; stretches whose gap is too wide are halved."""
        assert self.gap is not None
        nodes, weights = quadrature(NODES, "gauss_legendre")
        scores = [np.zeros(text.n_features) for text in inputs]
        steps = [0] * len(inputs)
        ends = np.zeros((len(inputs), 2))
        todo = [(i, 0.0, 1.0) for i in range(len(inputs))]
        for halvings in range(MOST_HALVINGS + 1):
            points = [low + (high - low) * nodes for _, low, high in todo]
            paths = path_gradients(
                model,
                [inputs[i] for i, _, _ in todo],
                [targets[i] for i, _, _ in todo],
                points=points,
                weights=[(high - low) * weights for _, low, high in todo],
                output=self.output,
            )
            halved = []
            for (i, low, high), path in zip(todo, paths, strict=True):
                if halvings == 0:
                    ends[i] = path.outputs[0], path.outputs[-1]
                part = path.alignment.to_words((path.values * path.gradient).sum(axis=1))
                steps[i] += NODES
                missed = abs(part.sum() - (path.outputs[-1] - path.outputs[0]))
                allowed = self.gap * abs(ends[i, 1] - ends[i, 0]) * np.sqrt(high - low)
                if missed > max(allowed, 1e-7) and halvings < MOST_HALVINGS:
                    middle = (low + high) / 2
                    halved += [(i, low, middle), (i, middle, high)]
                else:
                    scores[i] += part
            todo = halved
            if not todo:
                break
        return [
            (score, float(start), float(end), taken)
            for score, (start, end), taken in zip(scores, ends, steps, strict=True)
        ]

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
                f"should add up to by more than {WIDE_GAP:.0%}. Raise steps, or set gap=0.01",
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
