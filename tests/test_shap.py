"""Shapley values from few questions, and how far they may be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veracity
from conftest import words
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.engine.surrogates import Prior, Surrogate, all_coalitions
from veracity.explainers.shap import (
    Everything,
    Orderings,
    Regression,
    SamplingPlan,
    Smooth,
    exact_shapley,
)

LONG = "the plot was great but the film was so dull that i left , although i like it a lot"


class Interacting:
    """A random function of which words are shown, in which pairs and threes act together."""

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        every = np.where(all_coalitions(n), 1.0, -1.0)
        relevance = rng.gamma(0.5, size=n)
        z = every @ (rng.normal(size=n) * relevance)
        for order, size in ((2, 0.5), (3, 0.2)):
            for _ in range(2 * n):
                some = rng.choice(n, order, replace=False)
                z += size * rng.normal() * relevance[some].prod() * every[:, some].prod(axis=1)
        self.values = 1 / (1 + np.exp(-z))
        self.exact = exact_shapley(self.values)
        self.powers = 1 << np.arange(n)

    def __call__(self, plan: SamplingPlan, questions: int | None = None) -> FloatArray:
        found: FloatArray = self.values[plan.shown[:questions] @ self.powers]
        return found


@pytest.mark.parametrize("kind", [Regression, Orderings, Smooth])
def test_estimates_add_up_and_near_the_definition(kind: Any) -> None:
    errors = {}
    for budget in (60, 500):
        misses = []
        for seed in range(8):
            game = Interacting(10, seed)
            plan = kind(10, budget, np.random.default_rng(seed))
            assert len(plan.shown) <= budget
            v = game(plan)
            scores, _ = plan.shares(v)
            assert v[0] + scores.sum() == pytest.approx(v[1], abs=1e-9)
            misses.append(np.abs(scores - game.exact).mean())
        errors[budget] = np.mean(misses)
    assert errors[500] < 0.6 * errors[60]
    assert errors[500] < 0.02


def test_a_smooth_guess_needs_half_the_questions_of_a_regression() -> None:
    smooth: list[float] = []
    regression: list[float] = []
    for seed in range(20):
        game = Interacting(11, seed)
        for kind, budget, misses in ((Smooth, 128, smooth), (Regression, 256, regression)):
            plan = kind(11, budget, np.random.default_rng(seed))
            misses.append(float(np.abs(plan.shares(game(plan))[0] - game.exact).mean()))
    assert np.mean(smooth) < np.mean(regression)


@pytest.mark.parametrize("kind", [Regression, Orderings, Smooth])
def test_the_errors_that_estimates_report_are_about_right(kind: Any) -> None:
    inside, ratio = [], []
    for seed in range(40):
        game = Interacting(10, seed)
        plan = kind(10, 200, np.random.default_rng(seed))
        scores, errors = plan.shares(game(plan))
        inside.append(np.mean(np.abs(scores - game.exact) <= 2 * errors + 1e-9))
        ratio.append(errors.mean() / np.abs(scores - game.exact).mean())
    assert np.mean(inside) > 0.75
    assert 0.5 < np.median(ratio) < 3.5


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 8), seed=st.integers(0, 2**32 - 1), linear=st.sampled_from([0.0, 2.0]))
def test_shapley_values_of_a_guess_are_those_of_all_its_answers(
    n: int, seed: int, linear: float
) -> None:
    rng = np.random.default_rng(seed)
    shown = rng.random((12, n)) < 0.5
    shown = np.unique(shown, axis=0)
    prior = Prior(rng.uniform(0.05, 0.8, n), linear)
    signs = np.where(shown, 1.0, -1.0)
    _, guess = Surrogate._fit(prior, signs, rng.normal(size=len(shown)))
    every = all_coalitions(n)
    literal = exact_shapley(guess.answers(every))
    assert guess.shapley_values() == pytest.approx(literal, abs=1e-8)
    # and the variance that is left, by the linear map from all answers to Shapley values
    corners = np.where(every, 1.0, -1.0)
    to_shares = np.array([exact_shapley(row) for row in np.eye(2**n)]).T  # (n, 2^n)
    cross = prior.covariance(corners, signs)
    own = guess.factor @ guess.factor.T
    left = prior.covariance(corners, corners) - cross @ np.linalg.solve(own, cross.T)
    variances = np.diag(to_shares @ left @ to_shares.T) * guess.scale
    assert guess.shapley_errors() ** 2 == pytest.approx(
        np.maximum(variances, 0), abs=1e-6 * guess.scale * (1 + linear)
    )


def test_a_guess_passes_through_the_answers() -> None:
    game = Interacting(9, 3)
    plan = Smooth(9, 80, np.random.default_rng(0))
    guess = Surrogate.fitted(plan.shown, game(plan))
    assert np.abs(guess.answers(plan.shown) - game(plan)).max() < 1e-3
    unseen = np.abs(guess.answers(all_coalitions(9)) - game.values).mean()
    assert unseen < 0.5 * np.abs(game.values - game.values.mean()).mean()


@pytest.mark.parametrize("form", ["kernel", "permutation", "gaussian"])
def test_asking_stops_when_the_error_is_small(form: str, cnn: Any) -> None:
    wide = veracity.explain(cnn, words(LONG), f"shap(form={form}, samples=1500, error=0.2)")[0]
    with pytest.warns(UserWarning, match="still larger than 1e-06 .* after 1500 questions"):
        narrow = veracity.explain(cnn, words(LONG), f"shap(form={form}, samples=1500, error=1e-6)")[
            0
        ]
    assert wide.notes["questions"] < narrow.notes["questions"] <= 1500
    assert wide.notes["error"] <= 0.2 * abs(wide.output_value - wide.base_value)
    assert wide.scores.sum() + wide.base_value == pytest.approx(wide.output_value, abs=1e-9)


def test_questions_are_counted_and_kept_within_the_budget(bag: Any) -> None:
    for form in ("kernel", "permutation", "gaussian"):
        bag.texts_read = 0
        found = veracity.explain(bag, words(LONG), f"shap(form={form}, samples=100)")[0]
        assert found.notes["questions"] <= 100
        assert bag.texts_read <= 101  # one to choose the label


def test_a_plan_for_few_words_asks_everything() -> None:
    plan = Everything(3)
    assert len(np.unique(plan.shown, axis=0)) == 8
    v = plan.shown @ np.array([1.0, -2.0, 0.5]) + 7
    assert plan.shares(v)[0] == pytest.approx([1.0, -2.0, 0.5])


def test_orderings_are_the_average_of_marginal_gains() -> None:
    game = Interacting(5, 1)
    plan = Orderings(5, 10_000, np.random.default_rng(0))
    v = game(plan)
    total = np.zeros(5)
    for order in plan.orders:
        for way in (order, order[::-1]):
            shown = np.zeros(5, dtype=bool)
            before = v[0]
            for word in way:
                shown[word] = True
                after = game.values[shown @ game.powers]
                total[word] += after - before
                before = after
    assert plan.shares(v)[0] == pytest.approx(total / (2 * len(plan.orders)))


def test_background_words_take_the_places_of_those_that_are_out(bag: Any) -> None:
    train = Dataset(
        "background",
        bag.labels,
        tuple(Example(str(i), words(t), 0) for i, t in enumerate(("fine fine fine", "dull a"))),
    )
    text = words("a great dull film")
    found = veracity.explain(bag, text, "shap(form=exact, background=2)", target=1, train=train)[0]

    def v(shown: Any) -> float:
        mixed = [
            [w if on else other[i] for i, (w, on) in enumerate(zip(text.words, shown, strict=True))]
            for other in (("fine", "fine", "fine", ""), ("dull", "a", "", ""))
        ]
        return float(bag.probabilities([Text.of_words(m) for m in mixed])[:, 1].mean())

    literal = exact_shapley(np.array([v(shown) for shown in all_coalitions(4)]))
    assert found.scores == pytest.approx(literal)
    assert found.base_value == pytest.approx(v([False] * 4))
    with pytest.raises(DataError, match="--train"):
        veracity.explain(bag, text, "shap(background=2)")
