"""Words that the filters of a network answer to: worked examples, literal copies, odd cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from conftest import words
from veracity.core.errors import DataError, ModelError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.core.truths import PSEUDO
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.splits import Splits
from veracity.models.architectures.text_cnn import TextCnn
from veracity.truths import learnt_truth
from veracity.truths.gram_activation import GramActivation, decisive, taken_apart, word_scores
from veracity.truths.hybrid import strongest


def texts(*rows: tuple[str, int], labels: tuple[str, ...] = ("negative", "positive")) -> Dataset:
    return Dataset(
        "t", labels, tuple(Example(str(i), words(t), y) for i, (t, y) in enumerate(rows))
    )


def test_ex_6_7_shares_of_an_n_gram() -> None:
    embeddings = np.array([[1.0], [2.0], [-1.0]])
    filters = np.array([[1.0, 1.0], [0.0, 1.0]])  # (filters, slots)
    products = np.einsum("nd,ft->ntf", embeddings, filters)
    values = np.array([[3.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    gradient = np.array([[0.5, 0.2], [0.0, 0.0], [0.0, 0.0]])
    scores = word_scores(products, values, gradient, 0)
    assert scores == pytest.approx([0.416667, 2.083333, 0.0], abs=1e-6)
    assert scores / scores.max() == pytest.approx([0.2, 1.0, 0.0])
    whole = word_scores(products, values, gradient, 0, sum_filters=True)
    assert whole == pytest.approx([0.833333, 4.166667, 0.0], abs=1e-6)
    # a is covered by one gram, b and c by two
    mean = word_scores(products, values, gradient, 0, mean_grams=True)
    assert mean == pytest.approx([0.416667, 2.083333 / 2, 0.0], abs=1e-6)


def test_ex_6_17_filters_that_answer_or_all() -> None:
    embeddings = np.array([[1.0], [2.0], [-1.0]])
    filters = np.array([[1.0, 1.0], [0.0, 1.0]])
    products = np.einsum("nd,ft->ntf", embeddings, filters)
    values = np.array([[3.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    gradient = np.array([[0.0, 0.0], [0.5, 0.2], [0.0, 0.0]])
    assert word_scores(products, values, gradient, 0, which="all") == pytest.approx([0, 0.5, 0])
    assert word_scores(products, values, gradient, 0) == pytest.approx([0, 1.0, -0.5])
    # the gram of Ex 6.7 has both filters active: the two readings are one there
    first = gradient[[1, 0, 2]]
    both = [word_scores(products, values, first, 0, which=w) for w in ("active", "all")]
    assert both[0] == pytest.approx(both[1])


def test_filters_that_hardly_match_do_not_decide() -> None:
    """The same filters with a match near zero moved by a rounding error: all of them swing."""
    products = np.array([[[1.0, 1.0]], [[1.0, -1.0]]])  # (words, one slot, filters)
    products = np.concatenate([products, products[::-1]], axis=1)
    values, gradient = np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.5], [0.0, 0.0]])
    moved = products.copy()
    products[1, 1, 1], moved[1, 1, 1] = -1.0 + 2e-6, -1.0 - 2e-6
    swings = {
        which: np.abs(
            word_scores(products, values, gradient, 0, which=which)
            - word_scores(moved, values, gradient, 0, which=which)
        ).max()
        for which in ("active", "all")
    }
    assert swings["active"] < 1e-5 and swings["all"] > 1e3


RS = {"great": (0.7, 0.1), "movie": (0.5, 0.4), "dull": (0.05, 0.3)}


def test_ex_6_8_words_that_one_label_owns() -> None:
    inside = decisive(np.array(list(RS.values())))
    assert inside.tolist() == [[True, False], [False, False], [False, True]]


def test_ex_6_9_one_margin_or_all() -> None:
    scores = np.array([[0.6, 0.5, 0.1]])
    assert decisive(scores, margin="all").tolist() == [[False, False, False]]
    assert decisive(scores, margin="any").tolist() == [[True, True, False]]


def test_ex_6_14_the_words_a_hybrid_looks_at() -> None:
    assert strongest(RS, 2) == ["great", "movie"]
    assert strongest({"b": (0.1, 0.5), "c": (0.5, 0.0), "a": (0.2, 0.2)}, 2) == ["b", "c"]


SETTINGS = [
    TextCnn(size=6, widths=(2, 3, 4), filters=5),
    TextCnn(size=6, widths=(2, 3), filters=4, hidden=5, length=9),
    TextCnn(size=6, widths=(3, 4, 5), filters=5, padding="same", length=6),
    TextCnn(size=6, widths=(2, 4), filters=4, padding="same", sigmoid=True),
]


def literally(model: Any, text: Text, label: int, **options: bool) -> FloatArray:
    """The six steps as they are written down: one filter, one n-gram, one slot at a time."""
    network = model.network.double()
    limit = network.length or text.n_features
    n = min(text.n_features, limit)
    vectors = model.embedding.weight.detach().double()
    e = [vectors[i] for i in model.vocabulary.ids(text.words)][:n]
    length = max(n, network.fewest)
    maps, grids = [], []
    for width, conv in zip(network.widths, network.convolutions, strict=True):
        before, after = network.around(width)
        rows = length + before + after - width + 1
        weight, bias = conv.weight.detach(), conv.bias.detach()
        grid = torch.zeros(rows, len(weight), dtype=torch.float64)  # Conv, without bias
        for j in range(rows):
            for k in range(len(weight)):
                for t in range(width):
                    i = j - before + t
                    if 0 <= i < n:
                        grid[j, k] += e[i] @ weight[k, :, t]
        grids.append((width, before, weight, grid))
        maps.append(torch.relu(grid + bias).requires_grad_(True))
    # the first of equal rows wins
    pooled = torch.cat([m[m.argmax(dim=0), torch.arange(m.shape[1])] for m in maps])
    logit = network._decide(pooled[None])[0, label]
    gradients = torch.autograd.grad(logit, maps)
    heat = []
    for (width, before, weight, grid), active, gm in zip(grids, maps, gradients, strict=True):
        fm = active.detach()
        per_word = np.zeros(n)
        for i in range(n):
            per_filter = []
            for k in range(len(weight)):
                shares = []
                for j in range(len(grid)):
                    t = i - j + before
                    if not 0 <= t < width:
                        continue
                    answering = [q for q in range(len(weight)) if float(fm[j, q]) > 0]
                    if not options.get("all_filters") and k not in answering:
                        shares.append(0.0)
                        continue
                    number = len(weight) if options.get("all_filters") else len(answering)
                    each = 1 if options.get("sum_filters") else number
                    delta = max(gm[j].tolist())
                    z = max(0.0, sum(delta * float(fm[j, q]) for q in range(len(weight))))
                    conv = float(grid[j, k])
                    shares.append(
                        0.0 if abs(conv) < 1e-6 else float(e[i] @ weight[k, :, t]) / conv * z / each
                    )
                per_filter.append(
                    sum(shares) / len(shares) if options.get("mean_grams") else sum(shares)
                )
            per_word[i] = sum(per_filter)
        heat.append(per_word)
    found: FloatArray = np.mean(heat, axis=0)
    return found


TEXTS = [
    "great",
    "the film was dull",
    "dull dull dull film dull dull",
    "a plot so thin that i left long before the end came , and the film was great",
]


@pytest.mark.parametrize("option", ["", "mean_grams", "sum_filters", "all_filters"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s.spec)
def test_activation_equals_the_literal_steps(settings: TextCnn, option: str, made: Splits) -> None:
    model: Any = settings.start(made.train, seed=1).eval()
    options = {option: True} if option else {}
    source = GramActivation(
        scale="none",
        filters="all" if option == "all_filters" else "active",
        mean_grams=option == "mean_grams",
        sum_filters=option == "sum_filters",
    )
    inputs = [words(t) for t in TEXTS]
    for label in (0, 1):
        found = source.maps(model, inputs, [label] * len(inputs))
        alone = [source.maps(model, [text], [label])[0] for text in inputs]
        assert any(np.abs(scores).sum() > 1e-3 for scores in found)
        for scores, again in zip(found, alone, strict=True):
            # to rounding: matches near zero make large shares of either sign
            scale = max(1.0, float(np.abs(scores).max()))
            assert np.abs(scores - again).max() < 1e-4 * scale
        double = [literally(model, text, label, **options) for text in inputs]
        model.float()
        for scores, slow in zip(found, double, strict=True):
            scale = max(1.0, float(np.abs(slow).max()))
            assert np.abs(scores - slow).max() < 1e-4 * scale


def test_activation_of_a_trained_network_equals_the_literal_steps(cnn: Any, made: Splits) -> None:
    import copy

    inputs = [e.input for e in made.test.examples[:2]]
    labels = [e.label for e in made.test.examples[:2]]
    found = GramActivation(scale="none").maps(cnn, inputs, labels)
    slow = copy.deepcopy(cnn)
    for text, label, scores in zip(inputs, labels, found, strict=True):
        expected = literally(slow, text, label)
        scale = max(1.0, float(np.abs(expected).max()))
        assert np.abs(scores - expected).max() < 1e-4 * scale


def test_shares_of_a_gram_add_up_to_its_activation(cnn: Any, made: Splits) -> None:
    inputs = [e.input for e in made.test.examples[:4]]
    for widths in taken_apart(cnn, inputs, [1] * 4):
        for products, values, gradient, before in widths:
            z = np.maximum(gradient.max(axis=1) * values.sum(axis=1), 0)
            total = word_scores(products, values, gradient, before).sum()
            assert total == pytest.approx(z.sum(), rel=1e-6)
            whole = word_scores(products, values, gradient, before, sum_filters=True).sum()
            assert whole == pytest.approx(((values > 0).sum(axis=1) * z).sum(), rel=1e-6)
            every = word_scores(
                products, values, gradient, before, which="all", sum_filters=True
            ).sum()
            assert every == pytest.approx(products.shape[2] * z.sum(), rel=1e-6)


def by_text(scores: dict[str, list[float]]) -> Any:
    """A source whose maps are given: what it makes of them is the test."""

    class Given(GramActivation):
        def maps(
            self, network: Any, inputs: Sequence[Text], targets: Sequence[int]
        ) -> list[FloatArray]:
            return [np.array(scores[t.text]) for t in inputs]

    return Given


@pytest.fixture
def all_right(cnn: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A convolution that is right on all texts but those that say wrong."""
    import veracity.truths.gram_activation as module

    def answers(model: Any, inputs: Sequence[Text]) -> FloatArray:
        label = [("good" in t.text) != ("wrong" in t.text) for t in inputs]
        return np.array([[not y, y] for y in label], dtype=np.float64)

    monkeypatch.setattr(module, "probabilities", answers)
    return cnn


def test_words_are_averaged_over_all_their_places(all_right: Any) -> None:
    data = texts(("good Good film", 1), ("good", 1), ("film", 0), ("good wrong", 1))
    maps: dict[str, list[float]] = {
        "good Good film": [1.0, 0.4, 0.2],
        "good": [0.1],
        "film": [0.6],
        "good wrong": [9.0, 9.0],
    }
    scores, documents = by_text(maps)().scores(all_right, data)
    # a text that the model gets wrong does not count, nor do its words
    assert documents == 3
    assert set(scores) == {"film", "good"}
    assert scores["film"] == pytest.approx((0.6, 0.2))
    assert scores["good"] == pytest.approx((0.0, 0.5))
    cased, _ = by_text(maps)(cased=True).scores(all_right, data)
    assert cased["Good"] == pytest.approx((0.0, 0.4))
    assert cased["good"] == pytest.approx((0.0, 0.55))


def test_scales(cnn: Any, made: Splits) -> None:
    inputs = [words("the film was great"), words("a dull plot"), words("fine")]
    raw = GramActivation(scale="none").maps(cnn, inputs, [1, 0, 1])
    own = GramActivation().maps(cnn, inputs, [1, 0, 1])
    whole = GramActivation(scale="global_max").maps(cnn, inputs, [1, 0, 1])
    top = max(r.max() for r in raw)
    for r, o, w in zip(raw, own, whole, strict=True):
        assert o == pytest.approx(np.maximum(r, 0) / max(r.max(), 1e-300))
        assert w == pytest.approx(np.maximum(r, 0) / top)


def test_a_map_of_zeros_stays_zero(cnn: Any) -> None:
    products, nothing = np.ones((3, 2, 4)), np.zeros((2, 4))
    assert word_scores(products, nothing, nothing, 0).tolist() == [0, 0, 0]
    assert not decisive(np.zeros((2, 2))).any()
    # all words unknown: a word has no share of a match that it adds nothing to
    unknown = words("qqq zzz xxx yyy vvv")
    with torch.no_grad():
        before = cnn.embedding.weight[1].clone()
        cnn.embedding.weight[1] = 0.0
        (scores,) = GramActivation().maps(cnn, [unknown], [1])
        cnn.embedding.weight[1] = before
    assert scores.tolist() == [0] * 5


def test_words_behind_what_is_read_have_no_score(made: Splits) -> None:
    settings = TextCnn(size=6, widths=(2,), filters=4, padding="same", length=3)
    model: Any = settings.start(made.train, seed=1).eval()
    (scores,) = GramActivation().maps(model, [words("the film was great but long")], [1])
    assert len(scores) == 3
    seen, _ = GramActivation().scores(
        model, texts(("the film was great", 0), ("the film was great", 1))
    )
    assert set(seen) == {"the", "film", "was"}


def test_a_model_that_is_never_right_leaves_all_sets_empty(all_right: Any) -> None:
    found = learnt_truth("gram_activation", all_right, texts(("good wrong", 1), ("bad wrong", 0)))
    assert found.words == (frozenset(), frozenset())
    assert found.scores == {}
    assert (found.facts["documents"], found.facts["dropped"]) == (0, 2)
    marked = found.marked(texts(("good film", 1)))
    assert not marked.examples[0].truths[PSEUDO][0].any()


def test_activation_finds_the_words_that_were_put_there(cnn: Any, made: Splits) -> None:
    cnn.train()
    found = learnt_truth("gram_activation", cnn, made.train)
    assert cnn.training
    cnn.eval()
    negative, positive = found.words
    assert not negative & positive
    assert len(positive & set(POSITIVE)) > 15 < len(negative & set(NEGATIVE))
    assert not positive & set(NEGATIVE)
    assert not negative & set(POSITIVE)
    assert found.scores["great"][1] - found.scores["great"][0] >= 0.25
    assert found.facts["documents"] + found.facts["dropped"] == len(made.train)
    assert 0.02 < found.facts["covered"]["positive"] < 0.5


def test_a_model_without_filters_is_told(bag: Any, made: Splits) -> None:
    for spec in ("gram_activation", "hybrid"):
        with pytest.raises(ModelError, match=rf"{spec}.*convolution.*got WordWeights.*idc_cnn"):
            learnt_truth(spec, bag, made.train)
        with pytest.raises(ModelError, match="got none"):
            learnt_truth(spec, None, made.train)
    with pytest.raises(DataError, match="no examples"):
        learnt_truth("integer_program", None, made.train.select([]))
    with pytest.raises(ModelError, match="expected a model with the labels of"):
        learnt_truth("integer_program", bag, replace(made.train, labels=("a", "b")))
