"""A weighted linear model of the answer around the text (definitions 3.2)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np

from ..core.attributions import Attribution, distinct_words
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, BoolArray, FloatArray, Hiding, Input, IntArray
from ..core.plugins import Profiles
from ..engine.inference import LazyMasks, Output, masked_probabilities, value
from ..engine.surrogates import (
    QUESTIONS,
    USUAL_QUESTIONS,
    Surrogate,
    check_features,
    question_plan,
    subsets_up_to,
)
from ._batch import Inputs, Rngs, Targets

Kernel = Literal["root", "paper"]
Draw = Literal["number", "coin"]

Ask = Callable[[Sequence[int], Sequence[BoolArray]], list[FloatArray]]
"""The answers for features shown or not, for some of the texts."""

FIRST_SAMPLES = 250
"""So many are drawn before the top words are first judged."""

TOP = 5
"""So many features are called the top."""


@dataclass(frozen=True)
class Lime(Explainer):
    """Coefficients of a ridge regression with random words or segments hidden (Ribeiro et al.).

    Reports how much of its top words another draw would find again; with `settled`, texts are
    drawn until that share is reached. With `questions`, the model is asked only so often per text,
    and a smooth guess answers for the samples: for models that are slow or paid for.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    profiles: ClassVar[Profiles] = {"paper": {"kernel": "paper"}}
    draws: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, Any]] = {"samples": 300}
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "image": {"samples": 200, "draw": "coin", "hiding": Hiding.BLACK}
    }
    question_settings: ClassVar[tuple[str, ...]] = ("samples", "questions")

    samples: int = USUAL_QUESTIONS
    """Texts with words removed that the model is asked about, per text."""
    features: int | None = None
    """How many words get a coefficient; None: all."""
    bow: bool = True
    """Whether words that are spelt alike are one feature."""
    draw: Draw = "number"
    """How samples are drawn: first how many words go, every number equally often, or a coin for
    each word (definitions 3.14)."""
    kernel: Kernel = "root"
    """How nearness weighs a sample: the kernel's root, as the authors' code has it, or as
    printed."""
    width: float = 25.0
    """How fast a sample's weight falls with its distance."""
    alpha: float = 1.0
    """Strength of the ridge penalty."""
    settled: float | None = None
    """Draw until this share of the top words would be found again; None draws `samples`."""
    questions: int | None = None
    """Ask the model only so often per text, and guess the rest; None asks about all samples."""
    hiding: Hiding | None = None
    """How words are removed; None deletes them, or masks them where bow is off."""
    output: Output = "probability"

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"expected at least 2 samples, got {self.samples}")
        if (self.features is not None and self.features < 1) or self.width <= 0 or self.alpha < 0:
            raise ValueError(
                "expected at least one feature, a width above 0 and an alpha of 0 or more; got "
                f"features={self.features}, width={self.width}, alpha={self.alpha}"
            )
        if self.settled is not None and not 0 < self.settled <= 1:
            raise ValueError(f"expected settled to be a share up to 1, got {self.settled}")
        if self.questions is not None and self.questions < 4:
            raise ValueError(f"expected at least 4 questions, got {self.questions}")

    @property
    def stream(self) -> str:
        return self.spec if self.questions is None else QUESTIONS

    def n_questions(self, n_units: int) -> int | None:
        most = self.samples if self.questions is None else self.questions
        return subsets_up_to(n_units, most)

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        how = self.hiding or (Hiding.DELETE if self.bow else Hiding.MASK)
        owners = [t.groups("types" if self.bow else "positions") for t in inputs]
        counts = [int(owner.max()) + 1 for owner in owners]
        for one, n in zip(inputs, counts, strict=True):
            check_features(self.spec, n, one.nouns)
        sample = self._drawn if self.questions is None else self._guessed

        def ask(places: Sequence[int], z: Sequence[BoolArray]) -> list[FloatArray]:
            shown = [of_words(rows, owners[i]) for i, rows in zip(places, z, strict=True)]
            answers = masked_probabilities(model, [inputs[i] for i in places], shown, how)
            return [
                value(rows, targets[i], self.output)
                for i, rows in zip(places, answers, strict=True)
            ]

        found = sample(counts, rngs, ask)
        if self.questions is None:
            self._warn([fit for fit, _, _ in found], inputs)
        return [
            Attribution(
                text,
                target,
                text.on_features(fit.coefficients[owner]),
                distinct_words(owner, fit.coefficients) if self._by_types(text) else None,
                base_value=fit.intercept,
                output_value=whole,
                notes={"r2": fit.r2, "stability": fit.stability, "questions": float(asked)},
            )
            for text, target, owner, (fit, whole, asked) in zip(
                inputs, targets, owners, found, strict=True
            )
        ]

    def _by_types(self, one: Input) -> bool:
        """Whether several units may share a coefficient, which is then one piece of evidence."""
        return self.bow and one.units() is None

    def _drawn(
        self, counts: Sequence[int], rngs: Rngs, ask: Ask
    ) -> list[tuple[LocalFit, float, int]]:
        """The model answers for every sample; sampling may stop when the top words settle."""
        z = [
            neighbourhood(n, self.samples, rng, self.draw)
            for n, rng in zip(counts, rngs, strict=True)
        ]
        y = [np.zeros(0)] * len(z)
        found: list[tuple[LocalFit, float, int] | None] = [None] * len(z)
        todo = list(range(len(z)))
        size = self.samples if self.settled is None else min(self.samples, FIRST_SAMPLES)
        while todo:
            new = ask(todo, [z[i][len(y[i]) : size] for i in todo])
            for i, rows in zip(todo, new, strict=True):
                y[i] = np.concatenate([y[i], rows])
                fit = self._fit(z[i][:size], y[i], rngs[i])
                if size == self.samples or fit.stability >= (self.settled or 0):
                    found[i] = (fit, float(y[i][0]), size)
            todo = [i for i in todo if found[i] is None]
            size = min(self.samples, 2 * size)
        return [f for f in found if f is not None]

    def _warn(self, fits: Sequence[LocalFit], inputs: Inputs) -> None:
        """Says when sampling ended at `samples` and not where the first units settle."""
        loose = sum(fit.stability < (self.settled or 0) for fit in fits)
        if loose:
            nouns = inputs[0].nouns
            warnings.warn(
                f"{self.spec}: on {loose} of {len(fits)} {nouns.many} the top {nouns.units} have "
                f"not settled after {self.samples} samples. Raise samples",
                stacklevel=2,
            )

    def _guessed(
        self, counts: Sequence[int], rngs: Rngs, ask: Ask
    ) -> list[tuple[LocalFit, float, int]]:
        """The model answers some questions, from which the answers to all samples follow."""
        plans = [self._plan(n, rng) for n, rng in zip(counts, rngs, strict=True)]
        found = []
        for n, rng, shown, v in zip(
            counts, rngs, plans, ask(range(len(plans)), plans), strict=True
        ):
            z = neighbourhood(n, self.samples, rng, self.draw)
            y = Surrogate.fitted(shown, v).answers(z)
            y[0] = v[1]
            found.append((self._fit(z, y, rng), float(v[1]), len(v)))
        return found

    def _plan(self, n: int, rng: np.random.Generator) -> BoolArray:
        """Never more than was asked for: of a long text, some words are left to the guess."""
        assert self.questions is not None
        plan = question_plan(n, self.questions, rng)
        if len(plan) <= self.questions:
            return plan
        some = np.sort(rng.permutation(len(plan) - 2)[: self.questions - 2]) + 2
        return np.vstack([plan[:2], plan[some]])

    def _fit(self, z: BoolArray, y: FloatArray, rng: np.random.Generator) -> LocalFit:
        return local_fit(
            z,
            y,
            kernel=self.kernel,
            width=self.width,
            features=self.features,
            alpha=self.alpha,
            rng=rng,
        )


@dataclass(frozen=True)
class LocalFit:
    """A linear model around one text; unselected features have coefficient 0."""

    coefficients: FloatArray
    intercept: float
    r2: float
    stability: float


def of_words(z: BoolArray, owner: IntArray) -> LazyMasks:
    """Words shown or not, from features that are."""
    return LazyMasks((len(z), len(owner)), lambda places: z[places][:, owner])


def neighbourhood(
    n: int, samples: int, rng: np.random.Generator, draw: Draw = "number"
) -> BoolArray:
    """The text itself, then texts that lack 1 to n features, every number equally often; or, by the
    toss of a coin, each feature in half of them."""
    whole = np.ones((1, n), dtype=np.bool_)
    if draw == "coin":
        return np.vstack([whole, rng.random((samples - 1, n)) < 0.5])
    sizes = rng.integers(1, n + 1, size=samples - 1)
    # the features with the smallest random numbers go: a uniform choice of that many
    draws = rng.random((samples - 1, n))
    last_to_go = np.take_along_axis(np.sort(draws, axis=1), sizes[:, None] - 1, axis=1)
    return np.vstack([whole, draws > last_to_go])


def kernel_weights(z: BoolArray, kernel: Kernel = "root", width: float = 25.0) -> FloatArray:
    """Nearness to the whole text, by cosine distance times 100."""
    shares = z.mean(axis=1)
    distances = 100 * (1 - np.sqrt(shares))  # the cosine of a 0/1 vector with all ones
    exponent = -(distances**2) / width**2
    return cast(FloatArray, np.exp(exponent / 2 if kernel == "root" else exponent))


def local_fit(
    z: BoolArray,
    y: FloatArray,
    *,
    kernel: Kernel = "root",
    width: float = 25.0,
    features: int | None = None,
    alpha: float = 1.0,
    rng: np.random.Generator | None = None,
) -> LocalFit:
    """The weighted ridge regression on the selected features; with a generator, its stability."""
    x = z.astype(np.float64)
    weights = kernel_weights(z, kernel, width)
    chosen = selected(x, y, weights, features)
    found, intercept = ridge(x[:, chosen], y, weights, alpha)
    coefficients = np.zeros(x.shape[1])
    coefficients[chosen] = found
    fitted = x @ coefficients + intercept
    stability = math.nan
    if rng is not None:
        spread = covariance(x[:, chosen], y - fitted, weights, alpha)
        stability = top_stability(found, spread, rng)
    return LocalFit(coefficients, intercept, _r2(fitted, y, weights), stability)


def covariance(
    x: FloatArray, left_over: FloatArray, weights: FloatArray, alpha: float
) -> FloatArray:
    """How coefficients vary from draw to draw, judged by what the fit leaves over."""
    centred = x - weights @ x / weights.sum()
    gram = centred.T @ (centred * weights[:, None]) + alpha * np.eye(x.shape[1])
    inverse = np.linalg.pinv(gram, hermitian=True)
    moved = centred * (weights * left_over)[:, None]
    return cast(FloatArray, inverse @ (moved.T @ moved) @ inverse)


def top_stability(coefficients: FloatArray, spread: FloatArray, rng: np.random.Generator) -> float:
    """The share of the strongest features that another draw would also put on top."""
    k = min(TOP, len(coefficients))
    top = np.argsort(-np.abs(coefficients), kind="stable")[:k]
    # two draws differ by twice the spread: the one at hand is off, too
    others = rng.multivariate_normal(coefficients, 2 * spread, size=100, method="eigh")
    again = np.argsort(-np.abs(others), axis=1, kind="stable")[:, :k]
    return float(np.isin(again, top).mean())


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
