"""Gradients added up on the way from nothing to the text (SPEC 3.4)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, FloatArray, Input
from ..core.plugins import Profiles
from ..engine.gradients import Output, path_gradients

WIDE_GAP = 0.05
ROUNDING = 1e-3
"""Gaps below this are no matter, however small the difference itself."""

DIGITS = 1e-6
"""What single precision leaves of a probability: no number of points gets closer."""

LADDER = (9, 17, 33, 65, 129, 257, 513, 1025)
"""Numbers of points when they are added until the gap is small: each takes in the one before."""


@dataclass(frozen=True)
class IntegratedGradients(Explainer):
    """Each word's share of the difference between the text and zero embeddings.

    With `gap`, points are added as a text needs them, until its scores miss the difference that
    they should add up to by no more than this share of it.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    needs: ClassVar[type] = Differentiable
    largest: ClassVar[Mapping[str, int]] = {"steps": 100_000}
    profiles: ClassVar[Profiles] = {
        "paper": {"steps": 300},
        "released": {"steps": 200, "rule": "gauss_legendre"},
    }

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
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
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
        self, model: Differentiable, inputs: Sequence[Input], targets: Sequence[int]
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
        self, model: Differentiable, inputs: Sequence[Input], targets: Sequence[int]
    ) -> list[tuple[FloatArray, float, float, int]]:
        """The same; each text has as many points as its own gap demands (Clenshaw & Curtis)."""
        assert self.gap is not None
        found: dict[int, tuple[FloatArray, float, float, int]] = {}
        outputs = [np.zeros(0) for _ in inputs]
        parts = [np.zeros((0, text.n_features)) for text in inputs]  # (points, words)
        known = np.zeros(0)
        todo = list(range(len(inputs)))
        for count in LADDER:
            new = np.setdiff1d(chebyshev(count), known)
            known = np.concatenate([known, new])
            weights = interpolatory(known)
            for i, rows in zip(todo, self._each(model, inputs, targets, todo, new), strict=True):
                parts[i] = np.concatenate([parts[i], [scores for scores, _ in rows]])
                outputs[i] = np.concatenate([outputs[i], [output for _, output in rows]])
                scores = weights @ parts[i]
                start, end = outputs[i][known.argmin()], outputs[i][known.argmax()]
                missed = abs(scores.sum() - (end - start))
                if missed <= max(DIGITS, self.gap * abs(end - start)) or count == LADDER[-1]:
                    found[i] = scores, float(start), float(end), count
            todo = [i for i in todo if i not in found]
            if not todo:
                break
        return [found[i] for i in range(len(inputs))]

    def _each(
        self,
        model: Differentiable,
        inputs: Sequence[Input],
        targets: Sequence[int],
        places: Sequence[int],
        points: FloatArray,
    ) -> list[list[tuple[FloatArray, float]]]:
        """For some texts and every point: what each word gains there, and the output."""
        paths = path_gradients(
            model,
            [inputs[i] for i in places for _ in points],
            [targets[i] for i in places for _ in points],
            points=np.tile(points, len(places))[:, None],
            weights=[1.0],
            output=self.output,
        )
        rows = [
            (p.alignment.to_words((p.values * p.gradient).sum(axis=1)), float(p.outputs[0]))
            for p in paths
        ]
        return [rows[k : k + len(points)] for k in range(0, len(rows), len(points))]

    def _warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says when the sum misses what it should add up to (SPEC 3.4)."""
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
                f"{self.spec}: on {wide} of {len(found)} texts the scores miss the difference they "
                f"should add up to by more than {100 * share:g} %. {advice}",
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
