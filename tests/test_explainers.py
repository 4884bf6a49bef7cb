"""Methods against worked examples, slow literal copies and their own invariants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import veracity
from conftest import WordWeights, words
from veracity.core.classifiers import Embedded
from veracity.core.errors import PluginError
from veracity.core.inputs import Alignment, FloatArray, Hiding, Text
from veracity.engine.gradients import path_gradients
from veracity.engine.surrogates import all_coalitions
from veracity.explainers import explainers
from veracity.explainers.lime import kernel_weights, local_fit, neighbourhood, ridge
from veracity.explainers.shap import Everything, Regression, exact_shapley

FOUR = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)


class Formula:
    """A differentiable model of one formula over 1-d word embeddings; logits (0, F)."""

    labels = ("no", "yes")

    def __init__(self, formula: Any, values: Sequence[float]) -> None:
        self.formula = formula
        self.values = torch.tensor(values, dtype=torch.float64).reshape(1, -1, 1)

    def embed(self, inputs: Sequence[Text]) -> Embedded:
        n = self.values.shape[1]
        flags = torch.ones(len(inputs), n, dtype=torch.bool)
        values = self.values.repeat(len(inputs), 1, 1)
        return Embedded(values, flags, flags, tuple(Alignment.identity(n) for _ in inputs))

    def logits(self, embedded: Embedded) -> torch.Tensor:
        x = embedded.values.squeeze(-1)
        f = self.formula(*x.unbind(dim=1))
        return torch.stack([torch.zeros_like(f), f], dim=1)

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        with torch.no_grad():
            found: FloatArray = torch.softmax(self.logits(self.embed(inputs)), dim=-1).numpy()
        return found


def explain(model: Any, text: Text, spec: str, target: int = 1) -> Any:
    return veracity.explain(model, text, spec, target=target)[0]


def test_ex_0_3_the_other_label_gets_the_negative() -> None:
    y = 0.5 + 0.3 * FOUR[:, 0] - 0.2 * FOUR[:, 1]
    one, other = (local_fit(FOUR, p, alpha=0.0) for p in (y, 1 - y))
    assert one.coefficients == pytest.approx([0.3, -0.2])
    assert one.intercept == pytest.approx(0.5)
    assert other.coefficients == pytest.approx([-0.3, 0.2])
    assert other.intercept == pytest.approx(0.5)


@pytest.mark.parametrize("spec", ["lime(samples=200)", "shap", "integrated_gradients", "occlusion"])
def test_probability_methods_are_antisymmetric(spec: str, cnn: Any) -> None:
    text = words("the plot was great but the film was dull .")
    for_one, for_zero = explain(cnn, text, spec, 1), explain(cnn, text, spec, 0)
    assert for_one.scores == pytest.approx(-for_zero.scores, abs=1e-6)


def test_ex_3_1_lime_kernel() -> None:
    z = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)
    assert kernel_weights(z)[:2] == pytest.approx([0.866240, 0.503440], abs=1e-6)
    assert kernel_weights(z, "paper")[0] == pytest.approx(0.750371, abs=1e-6)
    assert kernel_weights(z)[2] == 1
    literal = 100 * (1 - 3 / (math.sqrt(3) * math.sqrt(4)))
    assert literal == pytest.approx(13.397460, abs=1e-6)


def test_ex_3_2_lime_regression() -> None:
    y = 0.5 + 0.3 * FOUR[:, 0] - 0.2 * FOUR[:, 1]
    for alpha, expected, intercept in ((0.0, (0.3, -0.2), 0.5), (1.0, (0.15, -0.10), 0.525)):
        found, base = ridge(FOUR.astype(float), y, np.ones(4), alpha)
        assert found == pytest.approx(expected)
        assert base == pytest.approx(intercept)


def test_ex_3_3_shapley_values() -> None:
    # coalitions in order: none, {1}, {2}, both
    v = np.array([0.5, 0.8, 0.6, 0.9])
    assert exact_shapley(v) == pytest.approx([0.3, 0.1])
    scores, errors = Everything(2).shares(np.array([0.5, 0.9, 0.8, 0.6]))  # none, both, {1}, {2}
    assert scores == pytest.approx([0.3, 0.1])
    assert not errors.any()


def test_ex_3_4_an_ignored_word_gets_exactly_nothing(bag: WordWeights) -> None:
    found = explain(bag, words("a great dull film"), "shap(form=exact)")
    assert found.scores[0] == 0.0
    assert found.scores[3] == 0.0
    assert found.scores[1] > 0 > found.scores[2]


def test_ex_3_5_integrated_gradients_of_a_product() -> None:
    model = Formula(lambda a, b: a * b, (2.0, 3.0))
    for rule in ("trapezoid", "gauss_legendre"):
        spec = f"integrated_gradients(steps=50, output=logit, rule={rule})"
        found = explain(model, words("two three"), spec)
        assert found.scores == pytest.approx([3.0, 3.0], abs=1e-9)
        assert found.notes["completeness_gap"] < 1e-9


def test_ex_3_6_integrated_gradients_of_a_sigmoid() -> None:
    model = Formula(lambda a, b: a - 0.5 * b, (2.0, 1.0))
    found = explain(model, words("two one"), "integrated_gradients(steps=300)")
    assert found.scores == pytest.approx([0.423433, -0.105858], abs=1e-4)
    assert found.scores.sum() == pytest.approx(0.317574, abs=1e-4)
    assert found.output_value - found.base_value == pytest.approx(0.317574, abs=1e-6)
    gauss = explain(model, words("two one"), "integrated_gradients(steps=20, rule=gauss_legendre)")
    assert gauss.scores == pytest.approx([0.423433, -0.105858], abs=1e-6)


def test_ex_3_7_gradient_norms_and_products() -> None:
    # one word with the two dimensions (1, 1), F = 2 x1 - 3 x2
    model = Formula(lambda a, b: 2 * a - 3 * b, (1.0, 1.0))

    class OneWord(Formula):
        def embed(self, inputs: Sequence[Text]) -> Embedded:
            flags = torch.ones(len(inputs), 1, dtype=torch.bool)
            values = torch.ones(len(inputs), 1, 2, dtype=torch.float64)
            return Embedded(values, flags, flags, tuple(Alignment.identity(1) for _ in inputs))

        def logits(self, embedded: Embedded) -> torch.Tensor:
            x = embedded.values
            f = 2 * x[:, 0, 0] - 3 * x[:, 0, 1]
            return torch.stack([torch.zeros_like(f), f], dim=1)

    one = OneWord(model.formula, (1.0,))
    text = words("pixel")
    assert explain(one, text, "gradient(norm=l1)").scores == pytest.approx([5.0])
    assert explain(one, text, "gradient").scores == pytest.approx([math.sqrt(13)])
    assert explain(one, text, "gradient(norm=max_abs)").scores == pytest.approx([3.0])
    (path,) = path_gradients(one, [text], [1])
    assert np.abs(path.values * path.gradient).sum() == pytest.approx(5.0)
    # for words the products are added with their signs: 2 - 3
    assert explain(one, text, "input_x_gradient").scores == pytest.approx([-1.0])


def literal_shapley(model: Any, text: Text, target: int) -> FloatArray:
    """The definition, word by word, over all subsets, each read as a text of its own."""
    n = text.n_features
    answers = {}
    for shown in itertools.product((False, True), repeat=n):
        row = model.probabilities([text.keep(np.array(shown), Hiding.MASK)])[0]
        answers[shown] = row[target]
    scores = np.zeros(n)
    for i in range(n):
        for shown, value in answers.items():
            if shown[i]:
                continue
            size = sum(shown)
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            with_i = tuple(s or j == i for j, s in enumerate(shown))
            scores[i] += weight * (answers[with_i] - value)
    return scores


@pytest.mark.parametrize("name", ["cnn", "attention_lstm", "transformer"])
def test_exact_shap_is_the_definition(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    for sentence in ("great", "the film was dull but great !", "a dull plot"):
        text = words(sentence)
        found = explain(model, text, "shap(form=exact)")
        assert found.scores == pytest.approx(literal_shapley(model, text, 1), abs=1e-6)


def test_shap_with_all_coalitions_is_exact(cnn: Any) -> None:
    text = words("the film was dull but great on the whole .")
    exact = explain(cnn, text, "shap(form=exact)")
    enumerated = explain(cnn, text, "shap(samples=1024)")
    assert enumerated.scores == pytest.approx(exact.scores, abs=1e-6)


def test_exact_shap_refuses_long_texts(cnn: Any) -> None:
    with pytest.raises(PluginError, match="up to 12 words"):
        explain(cnn, words("word " * 13), "shap(form=exact)")


@pytest.mark.parametrize("name", ["cnn", "lstm", "attention_lstm", "hierarchical", "transformer"])
@pytest.mark.parametrize(
    "spec",
    [
        "shap",
        "shap(samples=60, hiding=delete)",
        "shap(form=permutation, samples=100)",
        "shap(form=gaussian, samples=80)",
    ],
)
def test_shap_adds_up(name: str, spec: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    for sentence in ("great", "a dull film", "the plot was great but the film was so dull " * 3):
        found = explain(model, words(sentence), spec)
        assert found.base_value + found.scores.sum() == pytest.approx(found.output_value, abs=1e-9)
        whole = model.probabilities([words(sentence)])[0, 1]
        assert found.output_value == pytest.approx(whole, abs=1e-6)


def test_shap_comes_near_with_few_samples(cnn: Any) -> None:
    text = words("the film was dull but great on the whole , i think")
    exact = explain(cnn, text, "shap(form=exact)").scores
    near = explain(cnn, text, "shap(samples=256)").scores
    far = explain(cnn, text, "shap(samples=40)").scores
    assert np.abs(near - exact).mean() < 0.02
    assert np.abs(near - exact).mean() < np.abs(far - exact).mean()


@pytest.mark.parametrize("samples", [30, 100, 512, 3000])
@pytest.mark.parametrize("n", [3, 8, 13, 40, 300])
def test_coalitions_keep_their_promises(n: int, samples: int) -> None:
    plan = Regression(n, samples, np.random.default_rng(1))
    z, drawn = plan.shown, len(plan.shown) - plan.first_drawn
    assert len(z) <= samples
    assert not z[0].any()
    assert z[1].all()
    assert z[2:].sum(axis=1).min() > 0
    assert z[2:].sum(axis=1).max() < n
    kernel_total = sum((n - 1) / (s * (n - s)) for s in range(1, n))
    assert plan.weights.sum() + plan.mass_drawn * (drawn > 0) == pytest.approx(kernel_total)
    assert (z[plan.first_drawn :: 2] ^ z[plan.first_drawn + 1 :: 2]).all()


def test_shap_of_the_log_odds_of_a_linear_model_is_its_coefficients(bag: WordWeights) -> None:
    text = words("a great and dull film , great")
    found = explain(bag, text, "shap(form=exact, output=log_odds)")
    # two occurrences share the presence of `great`: each has half of its coefficient
    expected = {"great": 1.0, "dull": -1.5}
    assert found.scores == pytest.approx([expected.get(w, 0.0) for w in text.words], abs=1e-9)


class Linear:
    """A probability that is itself a sum of the weights of the words that are there."""

    labels = ("no", "yes")

    def __init__(self, weights: dict[str, float], base: float) -> None:
        self.weights = weights
        self.base = base

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        sums = [sum(self.weights.get(w, 0.0) for w in set(t.words)) for t in inputs]
        p = self.base + np.array(sums)
        return np.stack([1 - p, p], axis=1)


def test_lime_recovers_a_linear_black_box() -> None:
    linear = Linear({"b": 0.3, "c": -0.2}, 0.4)
    found = explain(linear, words("a b c d b"), "lime(samples=2000, alpha=0.0)")
    assert found.scores == pytest.approx([0, 0.3, -0.2, 0, 0.3], abs=1e-9)
    assert found.notes["r2"] == pytest.approx(1.0)


def test_lime_samples_every_size_alike() -> None:
    z = neighbourhood(6, 6001, np.random.default_rng(0))
    assert z[0].all()
    removed = 6 - z[1:].sum(axis=1)
    counts = np.bincount(removed, minlength=7)
    assert counts[0] == 0
    assert np.all(np.abs(counts[1:] - 1000) < 150)
    assert np.all(np.abs(z[1:].mean(axis=0) - z[1:].mean()) < 0.03)


def test_lime_selects_features() -> None:
    linear = Linear({f"w{i}": 0.02 * (i + 1) for i in range(9)}, 0.05)
    text = words(" ".join(f"w{i}" for i in range(9)))
    few = explain(linear, text, "lime(samples=3000, features=2)").scores
    assert np.flatnonzero(few).tolist() == [7, 8]
    many = explain(linear, text, "lime(samples=3000, features=7)").scores
    assert np.flatnonzero(many).tolist() == list(range(2, 9))


def test_occlusion_is_one_word_at_a_time(bag: WordWeights) -> None:
    text = words("great dull film")
    whole = bag.probabilities([text])[0, 1]
    without = [
        bag.probabilities([words(t)])[0, 1] for t in ("dull film", "great film", "great dull")
    ]
    assert explain(bag, text, "occlusion").scores == pytest.approx(whole - np.array(without))


def test_an_incomplete_integral_is_told() -> None:
    steep = Formula(lambda a, b: 400 * (a - 0.5) + 0 * b, (1.0, 1.0))
    with pytest.warns(UserWarning, match="on 1 of 1 texts"):
        found = explain(steep, words("one two"), "integrated_gradients(steps=4)")
    assert found.notes["completeness_gap"] > 0.05


def test_shap_finds_the_deciding_word_of_a_long_text() -> None:
    for n in (300, 600):
        linear = Linear({"w7": 0.9}, 0.05)
        text = words(" ".join(f"w{i}" for i in range(n)))
        scores = explain(linear, text, "shap").scores
        assert scores[7] == pytest.approx(0.9, abs=1e-6)
        assert np.abs(np.delete(scores, 7)).max() < 1e-6


@pytest.mark.parametrize("name", ["cnn", "lstm", "attention_lstm", "hierarchical", "transformer"])
def test_integrated_gradients_are_complete(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    text = words("the film was great but dull .")
    found = explain(model, text, "integrated_gradients(steps=300)")
    difference = found.output_value - found.base_value
    assert found.scores.sum() == pytest.approx(difference, abs=max(2e-3, 0.02 * abs(difference)))
    assert found.output_value == pytest.approx(model.probabilities([text])[0, 1], abs=1e-5)


def test_attention_sums_to_one(attention_lstm: Any) -> None:
    for sentence in ("great", "the film was great but dull ."):
        found = explain(attention_lstm, words(sentence), "attention")
        assert found.scores.sum() == pytest.approx(1.0, abs=1e-6)
        assert (found.scores >= 0).all()


def test_transformer_attention_is_the_last_layer(transformer: Any) -> None:
    text = words("wonderful film")
    ids, alignment = transformer._pieces(text)
    model = transformer.model
    before = model.config._attn_implementation
    found = transformer.attention([text])[0]
    assert model.config._attn_implementation == before
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            layers = model(input_ids=torch.tensor(ids)[None], output_attentions=True).attentions
    finally:
        model.set_attn_implementation(before)
    row = layers[-1][0].mean(dim=0)[0].numpy()
    assert found == pytest.approx(alignment.to_features(row), abs=1e-6)
    assert 0 < found.sum() < 1  # the rest lies on the special pieces


def test_all_coalitions_are_all() -> None:
    assert len({tuple(row) for row in all_coalitions(5).tolist()}) == 32


def test_methods_list_what_they_need() -> None:
    assert {n: explainers.get(n).needs.__name__ for n in explainers.names()} == {
        "attention": "Attentive",
        "decision_tree": "Convolutional",
        "grad_cam": "Convolutional",
        "grad_cam_text": "Convolutional",
        "deep_lift": "Differentiable",
        "gradient": "Differentiable",
        "input_x_gradient": "Differentiable",
        "integrated_gradients": "Differentiable",
        "shap": "Classifier",
        "lime": "Classifier",
        "lrp": "Differentiable",
        "occlusion": "Classifier",
        "random_scores": "Classifier",
        "rationale": "Selective",
        "search": "Classifier",
        "smooth_grad": "Differentiable",
    }


@pytest.mark.filterwarnings("ignore:integrated_gradients")  # loose on purpose
@pytest.mark.parametrize("name", ["cnn", "lstm", "attention_lstm", "transformer"])
def test_points_are_added_until_the_gap_is_small(name: str, request: Any) -> None:
    model = request.getfixturevalue(name)
    texts = [words("the film was great but dull ."), words("great"), words("so dull " * 12)]
    loose, tight = (
        veracity.explain(model, texts, f"integrated_gradients(gap={gap})") for gap in (0.05, 1e-3)
    )
    fine = veracity.explain(model, texts, "integrated_gradients(steps=1000)")
    for a, b, reference in zip(loose, tight, fine, strict=True):
        whole = abs(b.output_value - b.base_value)
        assert b.notes["completeness_gap"] <= max(1e-6, 1e-3 * whole)
        assert a.notes["completeness_gap"] <= max(1e-6, 0.05 * whole)
        assert a.notes["steps"] <= b.notes["steps"]
        assert b.scores == pytest.approx(reference.scores, abs=5e-3)
    alone = veracity.explain(model, texts[:1], "integrated_gradients(gap=0.001)")[0]
    assert alone.scores == pytest.approx(tight[0].scores, abs=1e-6)


def test_a_gap_that_stays_wide_is_not_told_to_set_a_gap(cnn: Any) -> None:
    class Sharp:
        """An answer that no number of points on the path can follow."""

        labels = cnn.labels
        embed = staticmethod(cnn.embed)

        def logits(self, embedded: Any) -> torch.Tensor:
            size = embedded.values.double().sum(dim=(1, 2)) * 1e4
            return torch.stack([torch.zeros_like(size), 2 * torch.sin(size)], dim=1)

        def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
            with torch.no_grad():
                found: FloatArray = torch.softmax(self.logits(self.embed(inputs)), dim=1).numpy()
            return found

    text = words("the film was great but dull .")
    with pytest.warns(UserWarning, match=r"more than 0.1 %. 1,025 points were not enough"):
        veracity.explain(Sharp(), text, "integrated_gradients(gap=0.001)")
    with pytest.warns(UserWarning, match=r"more than 5 %. Raise steps, or set gap=0.01"):
        veracity.explain(Sharp(), text, "integrated_gradients")
