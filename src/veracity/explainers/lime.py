"""A weighted linear model of the answer around the text (SPEC 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.attributions import Attribution, distinct_words
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import BoolArray, FloatArray, Hiding, IntArray, Text
from ..engine.asking import Output, masked_probabilities, value

Kernel = Literal["root", "paper"]


@dataclass(frozen=True)
class Lime(Explainer):
    """Coefficients of a ridge regression on texts with random words removed (Ribeiro et al.)."""

    samples: int = 1000
    features: int | None = None
    bow: bool = True
    kernel: Kernel = "root"
    width: float = 25.0
    alpha: float = 1.0
    hiding: Hiding | None = None
    output: Output = "probability"

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"expected at least 2 samples, got {self.samples}")

    def explain(
        self,
        model: Classifier,
        inputs: Sequence[Text],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution]:
        how = self.hiding or (Hiding.DELETE if self.bow else Hiding.MASK)
        owners = [feature_of_word(t, self.bow) for t in inputs]
        samples = [
            neighbourhood(int(owner.max()) + 1, self.samples, rng)
            for owner, rng in zip(owners, rngs, strict=True)
        ]
        shown = [z[:, owner] for z, owner in zip(samples, owners, strict=True)]
        answers = masked_probabilities(model, inputs, shown, how)
        found = []
        for text, target, owner, z, rows in zip(
            inputs, targets, owners, samples, answers, strict=True
        ):
            y = value(rows, target, self.output)
            fit = local_fit(
                z,
                y,
                kernel=self.kernel,
                width=self.width,
                features=self.features,
                alpha=self.alpha,
            )
            found.append(
                Attribution(
                    text,
                    target,
                    fit.coefficients[owner],
                    distinct_words(owner, fit.coefficients) if self.bow else None,
                    base_value=fit.intercept,
                    output_value=float(y[0]),
                    notes={"r2": fit.r2},
                )
            )
        return found


@dataclass(frozen=True)
class LocalFit:
    """A linear model around one text; unselected features have coefficient 0."""

    coefficients: FloatArray
    intercept: float
    r2: float


def feature_of_word(text: Text, bow: bool) -> IntArray:
    """Which feature each word belongs to: its distinct word, or its own position."""
    if not bow:
        return np.arange(text.n_features, dtype=np.int64)
    places: dict[str, int] = {}
    return np.array([places.setdefault(w, len(places)) for w in text.words], dtype=np.int64)


def neighbourhood(n: int, samples: int, rng: np.random.Generator) -> BoolArray:
    """The text itself, then texts that lack 1 to n features, every number equally often."""
    sizes = rng.integers(1, n + 1, size=samples - 1)
    # the features with the smallest random numbers go: a uniform choice of that many
    ranks = rng.random((samples - 1, n)).argsort(axis=1).argsort(axis=1)
    return np.vstack([np.ones((1, n), dtype=np.bool_), ranks >= sizes[:, None]])


def kernel_weights(z: BoolArray, kernel: Kernel = "root", width: float = 25.0) -> FloatArray:
    """Nearness to the whole text, by cosine distance times 100."""
    shares = z.mean(axis=1)
    distances = 100 * (1 - np.sqrt(shares))  # the cosine of a 0/1 vector with all ones
    exponent = -(distances**2) / width**2
    weights: FloatArray = np.exp(exponent / 2 if kernel == "root" else exponent)
    return weights


def local_fit(
    z: BoolArray,
    y: FloatArray,
    *,
    kernel: Kernel = "root",
    width: float = 25.0,
    features: int | None = None,
    alpha: float = 1.0,
) -> LocalFit:
    """The weighted ridge regression on the selected features."""
    x = z.astype(np.float64)
    weights = kernel_weights(z, kernel, width)
    chosen = selected(x, y, weights, features)
    found, intercept = ridge(x[:, chosen], y, weights, alpha)
    coefficients = np.zeros(x.shape[1])
    coefficients[chosen] = found
    return LocalFit(coefficients, intercept, _r2(x @ coefficients + intercept, y, weights))


def ridge(
    x: FloatArray, y: FloatArray, weights: FloatArray, alpha: float
) -> tuple[FloatArray, float]:
    """Weighted ridge regression; the intercept is not penalised."""
    total = weights.sum()
    x_mean, y_mean = weights @ x / total, weights @ y / total
    centred = x - x_mean
    gram = centred.T @ (centred * weights[:, None]) + alpha * np.eye(x.shape[1])
    moment = centred.T @ (weights * (y - y_mean))
    try:
        coefficients = np.linalg.solve(gram, moment)
    except np.linalg.LinAlgError:  # alpha is 0 and features coincide: the smallest solution
        coefficients = np.linalg.lstsq(gram, moment, rcond=None)[0]
    return coefficients, float(y_mean - x_mean @ coefficients)


def selected(x: FloatArray, y: FloatArray, weights: FloatArray, features: int | None) -> IntArray:
    """Forward selection up to six features, the largest weights of a near-free fit above."""
    n = x.shape[1]
    if features is None or features >= n:
        return np.arange(n)
    if features > 6:
        coefficients, _ = ridge(x, y, weights, alpha=0.01)
        return np.sort(np.argsort(-np.abs(coefficients), kind="stable")[:features])
    chosen: list[int] = []
    for _ in range(features):
        rest = [i for i in range(n) if i not in chosen]
        gains = []
        for i in rest:
            part = x[:, [*chosen, i]]
            coefficients, intercept = ridge(part, y, weights, alpha=0.0)
            gains.append(_r2(part @ coefficients + intercept, y, weights))
        chosen.append(rest[int(np.argmax(gains))])
    return np.array(chosen)


def _r2(fitted: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    mean = weights @ y / weights.sum()
    spread = weights @ (y - mean) ** 2
    return float(1 - weights @ (y - fitted) ** 2 / spread) if spread > 0 else 1.0
