"""Shapley values: exact, by regression, by orderings, or through a smooth guess
(definitions 3.3)."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier, Differentiable, ability_name
from ..core.errors import DataError, PluginError
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, PAD_WORD, BoolArray, FloatArray, Hiding, Input, IntArray, Text
from ..core.plugins import Profiles
from ..engine.gradients import expected_gradients
from ..engine.inference import (
    FEATURES_HELD,
    LazyMasks,
    Masks,
    Output,
    masked_probabilities,
    probabilities,
    value,
)
from ..engine.surrogates import (
    QUESTIONS,
    USUAL_QUESTIONS,
    Surrogate,
    all_coalitions,
    check_features,
    ends,
    kernel_mass,
    pairs,
    question_plan,
    subsets_up_to,
)
from ._batch import Inputs, Rngs, Targets

EXACT_UP_TO = 12

NUMBERS_AT_ONCE = 2**24
"""How many cells of a regression are held as floating-point numbers at a time."""

USUAL_BACKGROUND = 100
"""So many training inputs are drawn from by expected gradients, unless told otherwise."""

Form = Literal["kernel", "permutation", "gaussian", "exact", "expected_gradients"]


@dataclass(frozen=True)
class Shap(Explainer):
    """Each word's or segment's fair share of the answer; shares add up to it (Lundberg & Lee).

    `samples` is the number of questions to the model per text; short texts need fewer, and as many
    are asked as the words need for shares to be determined at all. With `error`, asking stops when
    the shares' own standard error, averaged over words, is below that share of the difference
    between the whole text and nothing.

    With expected gradients, for pictures, a share is what the answer owes to a pixel that differs
    from those of other pictures, averaged over pictures and ways there (definitions 3.14).

    A word that is out is hidden; with `background`, it is replaced by the word that stands in its
    place in training texts, so many of them, and the answers are averaged.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    profiles: ClassVar[Profiles] = {"released": {"background": 50}}
    draws: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, Any]] = {"samples": 128}
    question_settings: ClassVar[tuple[str, ...]] = ("samples",)
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "image": {"samples": 200, "absolute": True}
    }

    samples: int = USUAL_QUESTIONS
    """Questions to the model per text; short texts need fewer."""
    form: Form = "kernel"
    """How shares are estimated: regression, orders of words, a Gaussian process, all subsets, or by
    gradients between pictures."""
    error: float | None = None
    """Stop when shares' mean standard error is below this share of the answer; None asks
    `samples`."""
    background: int = 0
    """Put in words of so many training texts instead of hiding; 0 hides."""
    absolute: bool = False
    """Whether the channels of a pixel are added up by size (expected gradients)."""
    hiding: Hiding = Hiding.MASK
    output: Output = "probability"
    others: tuple[Any, ...] = field(default=(), init=False, repr=False, compare=False)

    @property
    def stream(self) -> str:
        return QUESTIONS if self.form == "gaussian" else self.spec

    def unfit(self, kind: str) -> str:
        """Only of texts is it known what stands in the place of another word, only of pictures what
        lies between two."""
        if self._by_gradients and kind == Text.kind:
            return f"by expected gradients takes pictures only, not {kind}"
        if self.background and not self._by_gradients and kind != Text.kind:
            return f"with a background takes texts only, not {kind}"
        return super().unfit(kind)

    @property
    def signed(self) -> bool:
        return not (self._by_gradients and self.absolute)

    @property
    def _by_gradients(self) -> bool:
        return self.form == "expected_gradients"

    def missing(self, model: Classifier) -> str | None:
        lacking = self._by_gradients and not isinstance(model, Differentiable)
        return ability_name(Differentiable) if lacking else super().missing(model)

    @property
    def learns(self) -> bool:
        return self.background > 0 or self._by_gradients

    @property
    def ready(self) -> bool:
        return not self.learns or bool(self.others)

    def fitted(self, model: Classifier, train: Dataset) -> Self:
        """Takes its background from all over the training data."""
        texts = [e.input for e in train if e.input.n_features]
        if not texts:
            raise DataError(f"{self.spec} needs training texts with words, {train.name} has none")
        count = self.background or USUAL_BACKGROUND
        places = np.linspace(0, len(texts) - 1, min(count, len(texts))).astype(int)
        made = replace(self)
        object.__setattr__(made, "others", tuple(texts[i] for i in places))
        return made

    def __post_init__(self) -> None:
        if self.samples < 4:
            raise ValueError(f"expected at least 4 samples, got {self.samples}")
        if self.error is not None and not self.error > 0:
            raise ValueError(f"expected an error above 0, got {self.error}")
        if self.background < 0:
            raise ValueError(f"expected no fewer than 0 background texts, got {self.background}")

    def n_questions(self, n_units: int) -> int | None:
        if self._by_gradients:
            return self.samples
        return max(1, self.background) * subsets_up_to(n_units, self._budget(n_units))

    def with_questions(self, questions: int) -> Self:
        return self if self.form == "exact" else super().with_questions(questions)

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        if self._by_gradients:
            return self._expected(cast(Differentiable, model), inputs, targets, rngs)
        plans = [self._plan(one, rng) for one, rng in zip(inputs, rngs, strict=True)]
        found: list[Attribution[Input] | None] = [None] * len(inputs)
        answers: list[FloatArray] = [np.zeros((0, len(model.labels)))] * len(inputs)
        asked = [0] * len(inputs)
        todo = list(range(len(inputs)))
        while todo:
            ends = [self._next(plans[i], asked[i]) for i in todo]
            shown = [plans[i].part(slice(asked[i], end)) for i, end in zip(todo, ends, strict=True)]
            rows = self._ask(model, [inputs[i] for i in todo], shown)
            for i, end, new in zip(todo, ends, rows, strict=True):
                answers[i] = np.concatenate([answers[i], new])
                asked[i] = end
                v = value(answers[i], targets[i], self.output)
                scores, errors = plans[i].shares(v)
                error = float(errors.mean())
                enough = self.error is not None and error <= self.error * abs(v[1] - v[0])
                if enough or end == len(plans[i].shown):
                    found[i] = Attribution(
                        inputs[i],
                        targets[i],
                        inputs[i].on_features(scores),
                        base_value=float(v[0]),
                        output_value=float(v[1]),
                        notes={"error": error, "questions": float(end)},
                    )
            todo = [i for i in todo if found[i] is None]
        attributions = [a for a in found if a is not None]
        self._warn(attributions)
        return attributions

    def _expected(
        self,
        model: Differentiable,
        inputs: Sequence[Input],
        targets: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Attribution[Input]]:
        shares = expected_gradients(
            model, inputs, targets, rngs, others=self.others, draws=self.samples
        )
        by_pixel = [np.abs(one).sum(axis=1) if self.absolute else one.sum(axis=1) for one in shares]
        return [Attribution(*row) for row in zip(inputs, targets, by_pixel, strict=True)]

    def _warn(self, found: Sequence[Attribution[Input]]) -> None:
        """Says when asking ended at `samples` and not at the error that was wanted."""
        if self.error is None:
            return
        wide = sum(
            a.notes["error"] > self.error * abs(a.output_value - a.base_value) for a in found
        )
        if wide:
            warnings.warn(
                f"{self.spec}: on {wide} of {len(found)} {found[0].input.nouns.many} the error is "
                f"still larger than {self.error:g} of the difference after {self.samples} "
                "questions. Raise samples",
                stacklevel=2,
            )

    def _ask(self, model: Classifier, inputs: Inputs, shown: Sequence[Masks]) -> list[FloatArray]:
        if not self.background:
            return masked_probabilities(model, inputs, shown, self.hiding)
        found = []
        for text, masks in zip(inputs, shown, strict=True):
            size = max(1, FEATURES_HELD // (text.n_features * len(self.others)))
            parts = []
            for start in range(0, masks.shape[0], size):
                some = masks[start : start + size]
                words = cast(Text, text)
                mixed = [mixture(words, mask, other) for mask in some for other in self.others]
                answers = probabilities(model, mixed)
                parts.append(answers.reshape(len(some), len(self.others), -1).mean(axis=1))
            found.append(np.concatenate(parts))
        return found

    def _next(self, plan: SamplingPlan, asked: int) -> int:
        """How far to ask next: all at once, or twice as far each time when it may stop early."""
        if self.error is None:
            return len(plan.shown)
        return min(len(plan.shown), max(plan.least, 2 * asked))

    def _budget(self, n: int) -> int:
        # pairs of complements are worth one equation each: fewer leave words undetermined; the
        # last is one ordering and its reverse
        least = {"kernel": 4 * n + 2, "gaussian": 2 * n + 2, "permutation": 2 * n, "exact": 1 << n}
        return max(self.samples, least[self.form])

    def _plan(self, one: Input, rng: np.random.Generator) -> SamplingPlan:
        n = one.n_units
        if self.form == "exact" and n > EXACT_UP_TO:
            raise PluginError(
                f"exact Shapley values are for {one.nouns.many} of up to {EXACT_UP_TO} "
                f"{one.nouns.units}, this one has {n}. Use another form"
            )
        budget = self._budget(n)
        if n == 1 or self.form == "exact" or 2**n <= budget:
            return Everything(n)
        if self.form == "permutation":
            return Orderings(n, budget, rng)
        check_features(self.spec, n, one.nouns)
        return (Regression if self.form == "kernel" else Smooth)(n, budget, rng)


def mixture(text: Text, shown: BoolArray, other: Text) -> Text:
    """The text with the words of another in the places of those that are not shown; padding where
    the other is shorter."""
    if shown.all():
        return text
    spare = (*other.words, *[PAD_WORD] * text.n_features)
    words = [w if on else spare[i] for i, (w, on) in enumerate(zip(text.words, shown, strict=True))]
    return Text.of_words(words, " " if any(c.isspace() for c in text.text) else "")


class SamplingPlan(ABC):
    """What to ask about one text, in an order that may be broken off: first nothing, then all."""

    shown: Masks  # (questions, words)
    least: int

    def part(self, rows: slice) -> Masks:
        """Some of the questions."""
        return self.shown.part(rows) if isinstance(self.shown, LazyMasks) else self.shown[rows]

    @abstractmethod
    def shares(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shapley values from the answers so far, and their standard errors."""


class Everything(SamplingPlan):
    """All coalitions: the definition."""

    shown: BoolArray

    def __init__(self, n: int) -> None:
        every = all_coalitions(n)
        self.shown = np.vstack([every[:1], every[-1:], every[1:-1]])
        self.least = len(self.shown)

    def shares(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = exact_shapley(np.concatenate([v[:1], v[2:], v[1:2]]))
        return scores, np.zeros_like(scores)


class Regression(SamplingPlan):
    """Kernel SHAP: a weighted regression on small and large coalitions and pairs of others.

    A size is taken whole, with its complement, while the questions suffice for a fair share of it;
    the weight of every other size is spread over coalitions of it that are drawn in pairs.
    """

    shown: BoolArray

    def __init__(self, n: int, samples: int, rng: np.random.Generator) -> None:
        whole, left = [], samples - 2
        weights: list[FloatArray] = []
        size = 1
        while size <= n // 2:
            number = comb(n, size) * (1 if 2 * size == n else 2)
            mass = [kernel_mass(n, s) for s in range(size, n // 2 + 1)]
            if number > left or left * mass[0] / sum(mass) < number:
                break
            subsets = _subsets(n, size)
            block = subsets if 2 * size == n else np.vstack([subsets, ~subsets])
            whole.append(block)
            weights.append(np.full(len(block), (n - 1) / (comb(n, size) * size * (n - size))))
            left -= number
            size += 1
        sizes = list(range(size, n // 2 + 1))
        drawn = pairs(n, sizes, left // 2, rng)
        self.shown = np.vstack([ends(n), *whole, drawn])
        self.first_drawn = 2 + sum(len(block) for block in whole)
        self.weights = np.concatenate([np.zeros(2), *weights])
        self.mass_drawn = sum(kernel_mass(n, s) for s in sizes)
        self.least = min(len(self.shown), self.first_drawn + 4 * n)

    def shares(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        drawn = self.shown[self.first_drawn : len(v)]
        return constrained_fit(
            self.shown[: len(v)], v, np.concatenate([self.weights, self._spread(drawn)]), len(drawn)
        )

    def _spread(self, drawn: BoolArray) -> FloatArray:
        """Each size's weight over those of it that were drawn: by chance alone there would be too
        many of one and too few of another."""
        n = drawn.shape[1]
        smaller = np.minimum(drawn.sum(axis=1), n - drawn.sum(axis=1))
        counts = np.bincount(smaller, minlength=n)
        masses = np.array([kernel_mass(n, s) if counts[s] else 0.0 for s in range(n // 2 + 1)])
        weights = masses[smaller] / counts[smaller]
        return cast(FloatArray, weights * (self.mass_drawn / max(weights.sum(), 1e-300)))


class Orderings(SamplingPlan):
    """Permutation SHAP: words come one by one, in a random order and in its reverse."""

    def __init__(self, n: int, samples: int, rng: np.random.Generator) -> None:
        both_ways = max(1, (samples - 2) // max(1, 2 * (n - 1)))
        self.orders = np.array([rng.permutation(n) for _ in range(both_ways)])
        ways = np.stack([self.orders, self.orders[:, ::-1]], axis=1).reshape(-1, n)
        arrivals = np.argsort(ways, axis=1)  # (ways, words)

        def made(places: IntArray) -> BoolArray:
            way, step = np.divmod(places - 2, n - 1)
            shown: BoolArray = arrivals[way] <= step[:, None]  # after step k, k + 1 are there
            shown[places < 2] = places[places < 2, None] == 1  # first nothing, then all
            return shown

        self.shown = LazyMasks((2 + len(ways) * (n - 1), n), made)
        self.least = min(len(self.shown), 2 + 8 * (n - 1))

    def shares(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = self.shown.shape[1]
        count = (len(v) - 2) // (2 * (n - 1))
        walks = v[2 : 2 + count * 2 * (n - 1)].reshape(count, 2, n - 1)
        edges = np.broadcast_to(v[:2], (count, 2, 2))
        gains = np.diff(np.concatenate([edges[..., :1], walks, edges[..., 1:]], axis=2), axis=2)
        scores = np.zeros((count, n))
        for k, order in enumerate(self.orders[:count]):
            scores[k, order] += gains[k, 0] / 2
            scores[k, order[::-1]] += gains[k, 1] / 2
        spread = scores.std(axis=0, ddof=1) if count > 1 else np.full(n, np.inf)
        return scores.mean(axis=0), spread / np.sqrt(count)


class Smooth(SamplingPlan):
    """The Shapley values of the smooth guess that explains the answers.

    Needs about half the questions of the regression for the same error, and some arithmetic of its
    own: for models that are slow or paid for by the question.
    """

    shown: BoolArray

    def __init__(self, n: int, samples: int, rng: np.random.Generator) -> None:
        self.shown = question_plan(n, samples, rng)
        self.least = min(len(self.shown), 3 * n + 2)

    def shares(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        guess = Surrogate.fitted(self.shown[: len(v)], v)
        scores = guess.shapley_values()
        rest = (v[1] - v[0] - scores.sum()) / len(scores)  # rounding, so that shares add up
        return scores + rest, guess.shapley_errors()


def exact_shapley(v: FloatArray) -> FloatArray:
    """Shapley values from the answers for all coalitions, in the order of `all_coalitions`."""
    n = len(v).bit_length() - 1
    sizes = all_coalitions(n).sum(axis=1)
    share = np.array([1 / (n * comb(n - 1, s)) for s in range(n)])  # |S|!(n-|S|-1)!/n!
    subsets = np.arange(len(v))
    scores = np.empty(n)
    for i in range(n):
        without = subsets[(subsets >> i & 1) == 0]
        scores[i] = share[sizes[without]] @ (v[without | 1 << i] - v[without])
    return scores


def constrained_fit(
    z: BoolArray, v: FloatArray, weights: FloatArray, drawn: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Weighted least squares under the constraint that the shares add up, and standard errors.

    First row none shown, second all. The last `drawn` rows are pairs drawn at random: what they
    leave over tells how far another draw would have led elsewhere.
    """
    n = z.shape[1]
    total = v[1] - v[0]
    # the last word takes what the others leave: one unknown less, and the sum is exact
    last = z[:, -1].astype(np.float64)
    y = v - v[0] - last * total
    gram, moment = np.zeros((n - 1, n - 1)), np.zeros(n - 1)
    for rows in _pieces(len(z), n):
        design = z[rows, :-1] - last[rows, None]
        gram += design.T @ (design * weights[rows, None])
        moment += design.T @ (weights[rows] * y[rows])
    try:
        inverse = np.linalg.inv(gram)
    except np.linalg.LinAlgError:  # questions that leave something open: the smallest solution
        inverse = np.linalg.pinv(gram, hermitian=True)
    others = inverse @ moment
    scores = np.append(others, total - others.sum())
    if not drawn:
        return scores, np.zeros(n)
    z, last, y, weights = z[-drawn:], last[-drawn:], y[-drawn:], weights[-drawn:]
    spread = np.zeros((n - 1, n - 1))
    for rows in _pieces(drawn, n):
        design = z[rows, :-1] - last[rows, None]
        left_over = (weights[rows] * (y[rows] - design @ others))[:, None] * design
        moved = left_over.reshape(-1, 2, n - 1).sum(axis=1)
        spread += moved.T @ moved
    spread = inverse @ spread @ inverse
    variances = np.append(np.diag(spread), spread.sum())
    return scores, np.sqrt(np.maximum(variances, 0))


def _pieces(rows: int, n: int) -> Iterator[slice]:
    """Even numbers of rows that fit as floating-point numbers, since complements stay together."""
    size = 2 * max(1, NUMBERS_AT_ONCE // (2 * n))
    return (slice(start, start + size) for start in range(0, rows, size))


def _subsets(n: int, size: int) -> BoolArray:
    chosen = np.array(list(combinations(range(n), size)))
    rows = np.zeros((len(chosen), n), dtype=np.bool_)
    np.put_along_axis(rows, chosen, True, axis=1)
    return rows
