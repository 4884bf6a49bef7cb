"""Gradients added up on the way from nothing to the text (definitions 3.4)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Differentiable
from ..core.inputs import Alignment, FloatArray, Input
from ..core.plugins import Profiles
from ..engine.gradients import GradientOutput, PathGradient, path_gradients
from ._batch import Inputs, Rngs, Targets
from ._gradients import GradientExplainer

WIDE_GAP = 0.05
ROUNDING = 1e-3
"""Gaps below this are no matter, however small the difference itself."""

DIGITS = 1e-6
"""What single precision leaves of a probability: no number of points gets closer."""

LADDER = (9, 17, 33, 65, 129, 257, 513, 1025)
"""Numbers of points when they are added until the gap is small: each takes in the one before."""


@dataclass(frozen=True)
class IntegratedGradients(GradientExplainer):
    """Each word's or pixel's share of the difference between the input and zeros.

    With `gap`, points are added as a text needs them, until its scores miss the difference that
    they should add up to by no more than this share of it.
    """

    quick: ClassVar[Mapping[str, Any]] = {"gap": 0.01}
    largest: ClassVar[Mapping[str, int]] = {"steps": 100_000}
    profiles: ClassVar[Profiles] = {
        "paper": {"steps": 300},
        "released": {"steps": 200, "rule": "gauss_legendre"},
    }

    steps: int = 100
    """Points on the way from zero embeddings to the text."""
    rule: Literal["trapezoid", "gauss_legendre"] = "trapezoid"
    """How the points are weighed in the integral."""
    gap: float | None = None
    """Points are added until scores miss their sum by no more than this share; None adds none."""
    output: GradientOutput = "probability"

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ValueError(f"expected at least 2 steps, got {self.steps}")
        if self.gap is not None and not self.gap > 0:
            raise ValueError(f"expected a gap above 0, got {self.gap}")

    def gradients(
        self, model: Differentiable, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[PathGradient]:
        if self.gap is not None:
            return self._where_needed(model, inputs, targets, self.gap)
        points, weights = quadrature(self.steps, self.rule)
        return path_gradients(
            model, inputs, targets, points=points, weights=weights, output=self.output
        )

    def attribution(self, one: Input, target: int, path: PathGradient) -> Attribution[Input]:
        scores, start, end = self.scores(path), float(path.outputs[0]), float(path.outputs[-1])
        notes = {
            "completeness_gap": abs(float(scores.sum()) - (end - start)),
            "steps": self.steps if self.gap is None else len(path.outputs),
        }
        return Attribution(one, target, scores, base_value=start, output_value=end, notes=notes)

    def _where_needed(
        self, model: Differentiable, inputs: Inputs, targets: Targets, gap: float
    ) -> list[PathGradient]:
        """Each input has as many points as its own gap demands (Clenshaw & Curtis)."""
        found: dict[int, PathGradient] = {}
        outputs = [np.zeros(0) for _ in inputs]
        parts = [np.zeros((0, one.n_features)) for one in inputs]  # (points, features)
        known = np.zeros(0)
        todo = list(range(len(inputs)))
        for count in LADDER:
            new = np.setdiff1d(chebyshev(count), known)
            known = np.concatenate([known, new])
            weights, order = interpolatory(known), np.argsort(known)
            paths = path_gradients(
                model,
                [inputs[i] for i in todo for _ in new],
                [targets[i] for i in todo for _ in new],
                points=np.tile(new, len(todo))[:, None],
                weights=[1.0],
                output=self.output,
            )
            for k, i in enumerate(todo):
                own = paths[k * len(new) : (k + 1) * len(new)]
                parts[i] = np.concatenate([parts[i], [self.scores(path) for path in own]])
                outputs[i] = np.concatenate([outputs[i], *(path.outputs for path in own)])
                scores, along = weights @ parts[i], outputs[i][order]
                difference = along[-1] - along[0]
                missed = abs(scores.sum() - difference)
                if missed <= max(DIGITS, gap * abs(difference)) or count == LADDER[-1]:
                    n = len(scores)
                    found[i] = PathGradient(
                        scores[:, None], np.ones((n, 1)), along, Alignment.identity(n)
                    )
            todo = [i for i in todo if i not in found]
            if not todo:
                break
        return [found[i] for i in range(len(inputs))]

    def warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says when the sum misses what it should add up to (definitions 3.4)."""
        share, least = (WIDE_GAP, ROUNDING) if self.gap is None else (self.gap, DIGITS)
        wide = sum(
            a.notes["completeness_gap"] > max(least, share * abs(a.output_value - a.base_value))
            for a in found
        )
        if wide:
            advice = (
                "Raise steps, or set gap=0.01"
                if self.gap is None
                else f"{LADDER[-1]:,} points were not enough: the answer has sharp bends on the "
                "way. Compare with occlusion or shap"
            )
            warnings.warn(
                f"{self.spec}: on {wide} of {len(found)} {found[0].input.nouns.many} the scores "
                f"miss the difference they should add up to by more than {100 * share:g} %. "
                f"{advice}",
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


def chebyshev(count: int) -> FloatArray:
    """Points on [0, 1], denser towards both ends, which are among them."""
    return np.round((1 - np.cos(np.linspace(0, np.pi, count))) / 2, 14)


def interpolatory(points: FloatArray) -> FloatArray:
    """The weights with which these points integrate polynomials exactly over [0, 1]."""
    legendre = np.polynomial.legendre.legvander(2 * points - 1, len(points) - 1)
    moments = np.zeros(len(points))
    moments[0] = 1.0
    return np.linalg.solve(legendre.T, moments).astype(np.float64, copy=False)
