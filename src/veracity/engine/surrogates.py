"""A smooth guess of a model's answers for all maskings of a text, from its answers for a few.

Words act alone more than in pairs, in pairs more than in threes, and those that act strongly alone
also act strongly together. A Gaussian process with the kernel Π_j (1 + r_j x_j y_j) over signs x, y
(shown or hidden) says just that: r_j is how much word j matters. Under it Shapley values have a
closed form, and so has what is still unknown about them. (Sums over coalitions are integrals over
the chance q of being shown, Owen 1972; the integrands are polynomials in q, so a few nodes give
them exactly.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import DataError
from ..core.inputs import BoolArray, FloatArray, Nouns, Text
from .inference import distinct_rows

NOISE = 1e-7
"""Answers are exact but for rounding; this share of the variance keeps the algebra stable."""

RATES = (0.03, 0.06, 0.12, 0.25, 0.4, 0.6)
POWERS = (0.25, 0.5, 1.0)
LINEAR = (0.0, 1.0, 10.0)
TRIED_ON = 384
"""Settings are compared on at most so many answers; the last fit uses all."""

QUESTIONS = "questions"
"""The stream of random numbers from which methods with a guess choose what to ask."""

USUAL_QUESTIONS = 1000
"""What methods that sample ask about a text unless told: the same, so that methods are compared and
not what they were allowed to ask."""

MOST_FEATURES = 5_000
"""Methods that set every word against every other hold tables of so many columns and rows."""

MOST_NODES = 64
MOST_DRAWS = 30


@dataclass(frozen=True)
class Prior:
    """How much each word matters, and how much more words act alone than the product says."""

    rates: FloatArray  # (words,) between 0 and 1
    linear: float

    @property
    def alone(self) -> FloatArray:
        """The weights of the additional part in which words do not interact."""
        found: FloatArray = self.linear * self.rates / self.rates.sum()
        return found

    def covariance(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Between maskings given as signs. (m, words), (k, words) → (m, k)"""
        half = (np.log1p(self.rates) - np.log1p(-self.rates)) / 2
        found: FloatArray = np.exp((x * half) @ y.T - half.sum()) + (x * self.alone) @ y.T
        return found


@dataclass(frozen=True)
class Surrogate:
    """A fitted process: guesses answers and the Shapley values that follow from them."""

    prior: Prior
    signs: FloatArray  # (answers, words)
    mean: float
    weights: FloatArray  # (answers,)
    scale: float  # variance per unit of covariance
    factor: FloatArray  # Cholesky factor of the covariance of the answers

    @classmethod
    def fitted(cls, shown: BoolArray, answers: FloatArray) -> Surrogate:
        """The settings that make the answers likeliest, found in two rounds.

        First all words are alike; then those that turned out to matter more may vary more.
        """
        signs = np.where(shown, 1.0, -1.0)
        few = slice(0, TRIED_ON)
        n = shown.shape[1]
        even = [Prior(np.full(n, rate), linear) for rate in RATES for linear in LINEAR]
        first = cls._likeliest(even, signs[few], answers[few])
        size = np.abs(first.shapley_values())
        relative = np.maximum(size / size.mean(), 0.05) if size.mean() > 0 else np.ones(n)
        uneven = [
            Prior(np.clip(rate * relative**power, 0.002, 0.9), linear)
            for rate in RATES
            for power in POWERS
            for linear in LINEAR
        ]
        best = cls._likeliest([first.prior, *uneven], signs[few], answers[few])
        return best if len(answers) <= TRIED_ON else cls._fit(best.prior, signs, answers)[1]

    @classmethod
    def _likeliest(cls, priors: list[Prior], signs: FloatArray, answers: FloatArray) -> Surrogate:
        return max((cls._fit(p, signs, answers) for p in priors), key=lambda found: found[0])[1]

    @classmethod
    def _fit(cls, prior: Prior, signs: FloatArray, answers: FloatArray) -> tuple[float, Surrogate]:
        """The fit and the logarithm of its likelihood, up to a constant."""
        from scipy.linalg import cho_solve

        m = len(answers)
        covariance = prior.covariance(signs, signs)
        covariance[np.diag_indices(m)] += NOISE * (1 + prior.linear)
        factor: FloatArray = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
        both = cho_solve((factor, True), np.stack([np.ones(m), answers], axis=1))
        mean = float(both[:, 1].sum() / both[:, 0].sum())
        weights = both[:, 1] - mean * both[:, 0]
        scale = max(float((answers - mean) @ weights) / m, 1e-300)
        likelihood = -0.5 * m * np.log(scale) - np.log(np.diag(factor)).sum()
        return float(likelihood), cls(prior, signs, mean, weights, scale, factor)

    def answers(self, shown: BoolArray) -> FloatArray:
        """The guess for other maskings. (masks, words) → (masks,)"""
        signs = np.where(shown, 1.0, -1.0)
        found: FloatArray = self.mean + self.prior.covariance(signs, self.signs) @ self.weights
        return found

    def shapley_values(self) -> FloatArray:
        """The Shapley values of the guess; they add up to its difference between all and none."""
        found: FloatArray = self.weights @ self._contributions()
        return found

    def shapley_errors(self) -> FloatArray:
        """The standard deviation of what the answers leave open about each Shapley value."""
        from scipy.linalg import solve_triangular

        known = solve_triangular(self.factor, self._contributions(), lower=True)
        left = self._spread() - (known**2).sum(axis=0)
        found: FloatArray = np.sqrt(np.maximum(left, 0) * self.scale)
        return found

    def _contributions(self) -> FloatArray:
        """The Shapley values of the covariance with each answer. → (answers, words)"""
        rates = self.prior.rates
        total = np.zeros_like(self.signs)
        for node, weight in _nodes(len(rates)):
            each = 1 + self.signs * (rates * node)
            total += weight * np.prod(each / (1 + rates), axis=1, keepdims=True) / each
        found: FloatArray = 2 * self.signs * (rates * total + self.prior.alone)
        return found

    def _spread(self) -> FloatArray:
        """The variance of each Shapley value before anything was asked, per unit of scale."""
        rates = self.prior.rates
        total = np.zeros_like(rates)
        for a, weight in _nodes(len(rates)):
            for b, other in _nodes(len(rates)):
                each = 1 + rates * (a * b)
                total += weight * other * np.prod(each / (1 + rates)) / each
        found: FloatArray = 4 * (rates * total + self.prior.alone)
        return found


def _nodes(n: int) -> list[tuple[float, float]]:
    """Gauss–Legendre nodes for 2q - 1, with weights that add up to 1."""
    places, weights = np.polynomial.legendre.leggauss(min(n // 2 + 1, MOST_NODES))
    return list(zip(places.tolist(), (weights / 2).tolist(), strict=True))


def check_features(spec: str, n: int, nouns: Nouns = Text.nouns) -> None:
    """A sentence in place of tables that fill the machine."""
    if n > MOST_FEATURES:
        fewer = (
            "Cut the text (--max-words finds such texts)"
            if nouns == Text.nouns
            else "Cut it into fewer (--segments 'grid(across=8)')"
        )
        raise DataError(
            f"{spec} sets every {nouns.unit} of a {nouns.one} against every other: expected at "
            f"most {MOST_FEATURES:,} {nouns.units}, got {n:,}. {fewer}, or use occlusion"
        )


# ---- what to ask --------------------------------------------------------------------------------


def question_plan(n: int, questions: int, rng: np.random.Generator) -> BoolArray:
    """Nothing, all, each word alone and all but it, then pairs of complements, none twice.

    As many questions as asked for, or fewer where there are no more; at least two per word.
    """
    if 2**n <= questions:
        every = all_coalitions(n)
        return np.vstack([every[:1], every[-1:], every[1:-1]])
    singles = np.eye(n, dtype=np.bool_)
    both = np.stack([singles, ~singles], axis=1).reshape(-1, n) if n > 2 else singles
    left = (questions - 2 - len(both)) // 2
    drawn = pairs(n, range(2, n // 2 + 1), left, rng)
    return np.vstack([ends(n), both, drawn])[: max(questions, 2 * n + 2)]


def all_coalitions(n: int) -> BoolArray:
    """Row s shows the words whose bits are set in s. → (2^n, n)"""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def subsets_up_to(n: int, most: int) -> int:
    """How many different maskings of n words there are, if fewer than `most`."""
    return min(most, 1 << min(n, most.bit_length()))


def ends(n: int) -> BoolArray:
    """Nothing shown, and everything."""
    return np.array([np.zeros(n), np.ones(n)]).astype(np.bool_)


def kernel_mass(n: int, size: int) -> float:
    """The weight that the Shapley kernel gives all coalitions of this size and complements."""
    both = 1 if 2 * size == n else 2
    return both * (n - 1) / (size * (n - size))


def pairs(n: int, sizes: Sequence[int], count: int, rng: np.random.Generator) -> BoolArray:
    """Different coalitions drawn by the kernel's weight, each followed by its complement.

    → (2 count, n), fewer if there are not so many
    """
    if count < 1 or not sizes:
        return np.zeros((0, n), dtype=np.bool_)
    drawn = np.zeros((0, n), dtype=np.bool_)
    for _ in range(MOST_DRAWS):
        half = _drawn(n, sizes, count, rng)
        # of a coalition and its complement the one without the first word stands for both
        drawn, _ = distinct_rows(np.vstack([drawn, half ^ half[:, :1]]))
        if len(drawn) >= count:
            break
    some = drawn[:count]
    return np.stack([some, ~some], axis=1).reshape(-1, n)


def _drawn(n: int, sizes: Sequence[int], count: int, rng: np.random.Generator) -> BoolArray:
    masses = np.array([kernel_mass(n, s) for s in sizes])
    chosen = rng.choice(sizes, size=count, p=masses / masses.sum())
    draws = rng.random((count, n))
    last_in = np.take_along_axis(np.sort(draws, axis=1), chosen[:, None] - 1, axis=1)
    return draws <= last_in
