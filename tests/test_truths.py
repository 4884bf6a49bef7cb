"""Pseudo ground truth: worked examples, slow literal copies, brute force, odd cases."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, MissingExtra, ModelError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.core.metrics import Case
from veracity.core.truths import PSEUDO, WordSets
from veracity.data.corpora.made_reviews import NEGATIVE, POSITIVE
from veracity.data.splits import Splits
from veracity.metrics import metrics
from veracity.metrics.relative_confidence import relative_confidence
from veracity.metrics.truth_agreement import agreement
from veracity.models.architectures.text_cnn import TextCnn
from veracity.truths import learnt_truth, truths
from veracity.truths._covering import (
    Cover,
    CoverSolution,
    components,
    dominant,
    highs,
    minimal_rows,
    scip,
    solve_cover,
)
from veracity.truths._programme import decisive_words, touched
from veracity.truths.gram_activation import GramActivation, decisive, taken_apart, word_scores
from veracity.truths.hybrid import strongest


def texts(*rows: tuple[str, int], labels: tuple[str, ...] = ("negative", "positive")) -> Dataset:
    return Dataset(
        "t", labels, tuple(Example(str(i), words(t), y) for i, (t, y) in enumerate(rows))
    )


# ---- the activation of n-grams ----------------------------------------------------------------


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


# ---- the integer programme --------------------------------------------------------------------


def sets_of(
    rows: Sequence[tuple[str, int]], n_labels: int = 2, **options: Any
) -> tuple[list[set[str]], CoverSolution, int]:
    documents = [frozenset(text.split()) for text, _ in rows]
    labels = [label for _, label in rows]
    found, answer = decisive_words(
        documents, labels, n_labels, rng=np.random.default_rng(0), **options
    )
    return [set(s) for s in found], answer, touched(documents, labels, found)


def test_ex_6_10_words_that_only_one_label_has() -> None:
    found, answer, objective = sets_of(
        [("good movie", 1), ("good", 1), ("bad movie", 0), ("bad", 0)]
    )
    assert found == [{"bad"}, {"good"}]
    assert (objective, answer.proven, answer.gap, answer.slack) == (0, True, 0.0, False)


def test_ex_6_11_a_word_that_must_be_taken_although_both_have_it() -> None:
    found, answer, objective = sets_of([("good", 1), ("movie", 1), ("bad movie", 0)])
    assert found == [{"bad"}, {"good", "movie"}]
    assert objective == 1
    assert answer.cost == pytest.approx(1 + 3 / 7)


def test_ex_6_12_documents_that_contradict_each_other() -> None:
    found, answer, _ = sets_of([("movie", 1), ("movie", 0)])
    assert answer.slack
    assert len(answer.bare) == 1
    assert sorted(map(len, found)) == [0, 1]
    data = texts(("movie", 1), ("movie", 0), ("good", 1))
    learnt = learnt_truth("integer_program(least=1)", None, data)
    assert learnt.facts["slack"]
    assert len(learnt.facts["violated"]) == 1
    assert learnt.facts["violated"][0] in ("0", "1")
    assert "good" in learnt.words[1]


def test_the_order_of_documents_does_not_matter() -> None:
    rows = [("a b", 1), ("a b", 0), ("c d", 0), ("d c e", 1), ("e", 1)]
    first, answer, _ = sets_of(rows)
    turned, other, _ = sets_of(rows[::-1])
    assert first == turned and answer.cost == other.cost
    # documents that are left bare keep their places
    conflict = [("good", 1), ("movie", 1), ("movie", 0), ("movie", 1)]
    _, answer, _ = sets_of(conflict)
    assert answer.bare == (2,)


def test_ex_6_13_the_size_term() -> None:
    rows = [("good fine", 1), ("good", 1), ("bad", 0)]
    found, _, objective = sets_of(rows)
    assert (found, objective) == ([{"bad"}, {"good"}], 0)
    documents, labels = [frozenset(t.split()) for t, _ in rows], [y for _, y in rows]
    larger = [frozenset({"bad"}), frozenset({"good", "fine"})]
    _, _, without = sets_of(rows, size_term=False)
    assert without == touched(documents, labels, larger) == 0


def brute_force(
    rows: Sequence[tuple[str, int]], n_labels: int, size: float, penalty: float
) -> float:
    """The cheapest of all ways to give each word to one label or to none."""
    vocabulary = sorted({w for text, _ in rows for w in text.split()})
    best = np.inf
    for owners in itertools.product(range(n_labels + 1), repeat=len(vocabulary)):
        of = dict(zip(vocabulary, owners, strict=True))
        cost = size * sum(owner < n_labels for owner in owners)
        for text, label in rows:
            mine = [of[w] for w in text.split()]
            cost += sum(owner not in (label, n_labels) for owner in mine)
            cost += 0 if label in mine else penalty
        best = min(best, cost)
    return best


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_programme_equals_brute_force(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    slack = 0
    for _ in range(60):
        count = int(rng.integers(1, 7))
        rows = [
            (
                " ".join(f"w{j}" for j in rng.permutation(6)[: rng.integers(1, 3)]),
                int(rng.integers(n_labels)),
            )
            for _ in range(count)
        ]
        found, answer, objective = sets_of(rows, n_labels)
        vocabulary = len({w for text, _ in rows for w in text.split()})
        size = 1 / (1 + n_labels * vocabulary)
        expected = brute_force(rows, n_labels, size, 10.0 * count)
        assert answer.proven
        assert answer.cost == pytest.approx(expected, abs=1e-6)
        bare = [i for i, (t, y) in enumerate(rows) if not set(t.split()) & found[y]]
        assert tuple(bare) == answer.bare
        total = objective + size * sum(map(len, found)) + 10 * count * len(bare)
        assert total == pytest.approx(expected, abs=1e-6)
        assert not any(a & b for a, b in itertools.combinations(found, 2))
        assert answer.slack == bool(bare)
        slack += bool(bare)
    assert 2 < slack < 50


def random_cover(rng: np.random.Generator, columns: int, rows: int) -> Cover:
    """Half of the columns have a rival; each row can be covered in a few ways."""
    costs = rng.integers(0, 9, columns).astype(np.float64) + 0.001
    pairs = rng.permutation(columns)[: columns // 2].reshape(-1, 2)
    return Cover(
        costs,
        tuple(
            frozenset(rng.integers(0, columns, rng.integers(2, 7)).tolist()) for _ in range(rows)
        ),
        tuple(frozenset(pair.tolist()) for pair in pairs),
    )


def test_searching_and_fixing_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programmes treated as large ones: the search, its bound and what it fixes."""
    import veracity.truths._covering as module

    for seed in range(6):
        cover = random_cover(np.random.default_rng(seed), 80, 70)
        plain, _, _ = highs(cover, 600.0)
        monkeypatch.setattr(module, "SMALL", 400)
        rng = np.random.default_rng(0)
        small = solve_cover(cover, seconds=600, penalty=1e4, rng=rng, solver=highs)
        monkeypatch.setattr(module, "SMALL", 0)
        monkeypatch.setattr(module, "STALE", 8)
        large = solve_cover(cover, seconds=600, penalty=1e4, rng=rng, solver=highs)
        assert plain is not None
        for found in (small, large):
            assert found.proven
            assert not found.bare
            assert cover.fits(found.chosen)
            assert found.cost == pytest.approx(float(cover.costs @ plain), abs=1e-5)
            assert found.cost == pytest.approx(float(cover.costs @ found.chosen))


def labels_apart(rng: np.random.Generator, words: int, rows: int) -> Cover:
    """Two labels whose rows share no column; a word's two columns are rivals."""
    costs = rng.integers(0, 9, 2 * words).astype(np.float64) + 0.001
    return Cover(
        costs,
        tuple(
            frozenset((rng.integers(0, words, rng.integers(2, 6)) + i % 2 * words).tolist())
            for i in range(rows)
        ),
        tuple(frozenset({w, w + words}) for w in range(words)),
    )


def test_labels_solved_apart_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices hold rivals apart: the bound they give never exceeds what the best answer costs."""
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "STALE", 4)
    closed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        cover = labels_apart(rng, 40, 60)
        exact, _, ended = highs(cover, 600.0)
        poor, _, _ = highs(replace(cover, costs=-cover.costs), 600.0)
        relaxed = module._relaxed(cover, 60.0)
        assert exact is not None and poor is not None and relaxed is not None
        assert ended == "optimal"
        least = float(cover.costs @ exact)
        end = time.perf_counter() + 600
        found, bound = module._divided(cover, np.arange(80), poor, relaxed, end, rng, highs)
        assert cover.fits(found)
        assert relaxed.bound - 1e-6 <= bound <= least + 1e-5
        assert least - 1e-5 <= cover.costs @ found < cover.costs @ poor
        # what the pieces take is an answer where no rivals meet
        taken, _, solved = module._apart(cover, components(replace(cover, rivals=())), 600.0, highs)
        assert solved
        if cover.fits(taken):
            assert cover.costs @ found == pytest.approx(float(cover.costs @ taken))
        closed += bound > least - 1e-5
        # with a last look at all labels at once nothing is left open
        whole = solve_cover(cover, seconds=600, penalty=1e5, rng=rng, solver=highs)
        assert whole.proven and cover.fits(whole.chosen)
        assert whole.cost == pytest.approx(least, abs=1e-5)
    assert closed  # prices alone are enough now and then


def test_pieces_that_do_not_meet_are_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that no single piece can leave: each has taken the rival of what the other needs."""
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "STALE", 0)
    rows = (frozenset({0, 1}), frozenset({2, 3}))
    cover = Cover(np.array([1.0, 2, 1, 2]), rows, (frozenset({0, 3}), frozenset({1, 2})))
    relaxed = module._relaxed(cover, 60.0)
    assert relaxed is not None
    start, end = np.array([False, True, False, True]), time.perf_counter() + 60
    rng = np.random.default_rng(0)
    found, bound = module._divided(cover, np.arange(4), start, relaxed, end, rng, highs)
    assert [float(cover.costs @ found), bound] == pytest.approx([2.0, 2.0])


def test_pieces_without_an_answer_in_time_leave_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "STALE", 4)
    rng = np.random.default_rng(3)
    cover = labels_apart(rng, 40, 60)
    poor, _, _ = highs(replace(cover, costs=-cover.costs), 600.0)
    relaxed = module._relaxed(cover, 60.0)
    assert poor is not None and relaxed is not None

    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    end = time.perf_counter() + 600
    found, bound = module._divided(cover, np.arange(80), poor, relaxed, end, rng, never)
    assert bound == relaxed.bound
    assert cover.fits(found) and cover.costs @ found <= cover.costs @ poor


def test_a_search_without_time_to_prove_tells_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    import veracity.truths._covering as module

    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "STALE", 8)
    cover = random_cover(np.random.default_rng(1), 120, 160)

    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    rng = np.random.default_rng(0)
    quick = solve_cover(cover, seconds=600, penalty=1e6, rng=rng, solver=never)
    exact = solve_cover(cover, seconds=600, penalty=1e6, rng=rng, solver=highs)
    assert exact.proven
    assert cover.fits(quick.chosen)
    assert quick.bound <= exact.cost + 1e-6 <= quick.cost + 2e-6
    assert quick.gap == pytest.approx((quick.cost - quick.bound) / quick.cost)
    assert quick.gap < 0.2


def test_a_solver_that_talks_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def talking(cover: Cover, seconds: float) -> Any:
        os.write(1, b"from below Python\n")
        return highs(cover, seconds)

    print("before")
    found, answer, _ = sets_of([("good film", 1), ("bad film", 0)], solver=talking)
    print("after")
    assert answer.proven and found[1] == {"good"}
    assert capfd.readouterr().out == "before\nafter\n"


def test_without_any_time_there_is_still_an_answer() -> None:
    def never(cover: Cover, seconds: float) -> tuple[None, float, str]:
        return None, -np.inf, "time limit"

    found, answer, _ = sets_of(
        [("good film", 1), ("bad film", 0), ("movie", 1), ("movie", 0)], solver=never
    )
    assert not answer.proven
    assert len(answer.bare) == 1  # one of the two that contradict each other, and no other
    assert answer.bare[0] in (2, 3)
    assert "good" in found[1] and "bad" in found[0]
    assert 0 <= answer.bound <= answer.cost


def test_a_greedy_dead_end_is_left_again() -> None:
    """Column 0 looks best, but is the rival of the only column that covers the last row."""
    import veracity.truths._covering as module

    rows = (frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 3}), frozenset({5}))
    cover = Cover(np.array([1.0, 2, 2, 2, 9, 1]), rows, (frozenset({0, 5}),))
    assert module._greedy(cover, cover.costs) is None
    end = time.perf_counter() + 600
    relaxed = module._Relaxed(0.0, np.zeros(6), np.zeros(1))
    found = module._found(cover, relaxed, end, np.random.default_rng(0))
    assert found is not None
    assert np.flatnonzero(found).tolist() == [1, 2, 3, 5]
    without_answer = replace(cover, rivals=(frozenset({0, 5}), frozenset({1, 5})))
    hopeless = replace(without_answer, rows=(*rows, frozenset({1, 0})))
    assert module._found(hopeless, relaxed, end, np.random.default_rng(0)) is None


def test_a_bound_without_time_for_the_linear_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    import veracity.truths._covering as module

    late = scipy.optimize.OptimizeResult(status=1)
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: late)
    for seed in range(5):
        cover = random_cover(np.random.default_rng(seed), 60, 40)
        relaxed = module._relaxed(cover, 1.0)
        best, _, _ = highs(cover, 600.0)
        assert relaxed is not None and best is not None
        assert 0 < relaxed.bound <= cover.costs @ best + 1e-6


def test_what_is_dropped_is_never_needed() -> None:
    rows = [frozenset({0, 1}), frozenset({0, 1, 2}), frozenset({1}), frozenset({3, 4})]
    assert minimal_rows(rows) == [2, 3]
    # 4 costs more than 3 and covers no more; without a rival, 3 stands for both
    costs = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    assert dominant(Cover(costs, tuple(rows))).tolist() == [1, 3]
    rival = Cover(costs, tuple(rows), (frozenset({3, 0}),))
    assert dominant(rival).tolist() == [1, 3, 4]
    # of two that are alike, one stays
    assert len(dominant(Cover(np.ones(2), (frozenset({0, 1}),)))) == 1


def test_three_labels_and_a_label_without_documents() -> None:
    found, answer, objective = sets_of(
        [("good film", 0), ("bad film", 1), ("odd film", 2), ("film odd bad", 2)], 4
    )
    assert found == [{"good"}, {"bad"}, {"odd"}, set()]
    assert (objective, answer.slack) == (1, False)


def test_repeated_words_count_once_in_a_document_and_in_all_masks() -> None:
    data = texts(("good good good film", 1), ("bad bad film film", 0))
    found = learnt_truth("integer_program(least=2)", None, data)
    assert found.words == (frozenset({"bad"}), frozenset({"good"}))
    # three of four words and two of four: tokens, not types
    assert found.facts["covered"] == pytest.approx({"negative": 0.5, "positive": 0.75})
    with pytest.raises(DataError, match=r"no document of t has 3 of the 3 words.*least=…"):
        learnt_truth("integer_program(least=3)", None, data)
    marked = found.marked(data)
    assert marked.examples[0].truths[PSEUDO][0].tolist() == [True, True, True, False]


def test_the_words_that_a_programme_looks_at() -> None:
    data = texts(
        ("alpha alpha alpha common .", 1), ("beta common . gamma", 0), ("beta common .", 0),
        ("beta gamma common .", 1),
    )  # fmt: skip
    # idf: alpha ln 4, gamma ln 2, beta ln 4/3, common and the full stop 0
    top = truths.make("integer_program(words=2)").vocabulary(None, data)[0]  # type: ignore[attr-defined]
    assert top == ["alpha", "gamma"]
    # beta is said three times (0.863) and gamma twice (1.386)
    assert truths.make("integer_program(words=4)").vocabulary(None, data)[0] == [  # type: ignore[attr-defined]
        "alpha", "gamma", "beta", "common",
    ]  # fmt: skip
    kept = truths.make("integer_program(words=9, keep_punctuation=True)")
    assert "." in kept.vocabulary(None, data)[0]  # type: ignore[attr-defined]
    other = texts(("x x y", 1), ("z z y", 0), ("z", 0), ("x", 1), ("b", 1), ("a", 1))
    # ties in alphabetical order; a word said twice somewhere beats one said once in two places
    by_max = truths.make("integer_program(rule=max, words=3)").vocabulary(None, other)[0]  # type: ignore[attr-defined]
    assert by_max == ["x", "z", "a"]
    by_sum = truths.make("integer_program(words=2)").vocabulary(None, other)[0]  # type: ignore[attr-defined]
    assert by_sum == ["x", "z"]


def test_a_programme_finds_the_words_that_were_put_there(made: Splits) -> None:
    found = learnt_truth("integer_program(words=300)", None, made.train.select(range(400)))
    negative, positive = found.words
    assert not negative & positive
    planted = set(POSITIVE), set(NEGATIVE)
    assert len(positive & planted[0]) > 12 < len(negative & planted[1])
    assert not positive & planted[1]
    assert not negative & planted[0]
    facts = found.facts
    assert facts["violated"] == []
    assert facts["gap"] <= 0.05
    assert facts["documents"] + facts["dropped"] == 400
    assert facts["bound"] <= facts["cost"] + 1e-9
    assert facts["objective"] == int(facts["cost"])


def test_the_hybrid_finds_them_too(cnn: Any, made: Splits) -> None:
    spec = "hybrid(words=60, least=1)"
    found = learnt_truth(spec, cnn, made.train.select(range(400)))
    assert found.facts["source"].startswith("hybrid(")
    negative, positive = found.words
    assert len(found.scores) == 60 >= len(negative | positive)
    assert (negative | positive) <= set(found.scores)
    assert len(positive & set(POSITIVE)) > 12 < len(negative & set(NEGATIVE))


def test_a_hybrid_looks_at_words_that_are_not_rare(cnn: Any, made: Splits) -> None:
    train = made.train.select(range(60))
    counts = Counter(word.lower() for e in train for word in e.input.words)
    usual, lax = (
        truths.make(f"hybrid(words=1000{rule})").vocabulary(cnn, train)[0]  # type: ignore[attr-defined]
        for rule in ("", ", min_count=1")
    )
    assert {counts[word] for word in lax} & {1, 2, 3, 4}
    assert set(usual) == {word for word in lax if counts[word] >= 5}


def test_settings_that_make_no_sense_are_told() -> None:
    for spec in ("integer_program(words=0)", "hybrid(seconds=0)", "integer_program(least=-1)"):
        with pytest.raises(PluginError, match="expected"):
            truths.make(spec)
    with pytest.raises(PluginError, match="did you mean 'hybrid'"):
        truths.make("hybird")


def test_a_solver_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    with pytest.raises(MissingExtra, match=r"solver=scip needs.*pyscipopt.*veracity\[scip\]"):
        learnt_truth("integer_program(least=1, solver=scip)", None, texts(("a b", 0), ("c", 1)))


def test_another_solver_gives_the_same_answer() -> None:
    pytest.importorskip("pyscipopt")
    for seed in range(3):
        cover = random_cover(np.random.default_rng(seed), 60, 50)
        ours, bound, ended = scip(cover, 60.0)
        theirs, _, _ = highs(cover, 60.0)
        assert ours is not None and theirs is not None
        assert cover.fits(ours)
        assert cover.costs @ ours == pytest.approx(cover.costs @ theirs, abs=1e-5)
        assert ended == "optimal"
        assert bound == pytest.approx(float(cover.costs @ ours), abs=1e-5)
    nothing = Cover(np.ones(2), (frozenset({0}), frozenset({1})), (frozenset({0, 1}),))
    assert scip(nothing, 60.0)[::2] == (None, "infeasible")
    spec = "integer_program(least=1, solver=scip)"
    assert learnt_truth(spec, None, texts(("a b", 0), ("c", 1), ("c b", 1))).words[1] == {"c"}


# ---- word sets --------------------------------------------------------------------------------

SETS = WordSets(
    ("negative", "positive"),
    (frozenset({"dull"}), frozenset({"great", "fine"})),
    {"dull": (0.5, 0.0), "great": (0.1, 0.9)},
    facts={"seconds": 1.5, "violated": ["7"]},
)


def test_word_sets_survive_the_disk(tmp_path: Path) -> None:
    SETS.save(tmp_path / "words.json")
    assert WordSets.load(tmp_path / "words.json") == SETS
    (tmp_path / "broken.json").write_text('{"labels": ["a"]}')
    for name in ("broken.json", "missing.json"):
        with pytest.raises(DataError, match="expected a file of word sets"):
            WordSets.load(tmp_path / name)


def test_sets_of_stars_join_to_sets_of_labels() -> None:
    sets = WordSets(
        ("1", "2", "4"),
        (frozenset({"Awful"}), frozenset({"dull", "odd"}), frozenset({"great", "odd"})),
        cased=True,
    )
    joined = sets.joined(("bad", "good", "none"), (0, 0, 1))
    assert list(map(sorted, joined.words)) == [["Awful", "dull", "odd"], ["great", "odd"], []]
    assert joined.labels == ("bad", "good", "none") and joined.cased


def test_marking_by_given_and_by_predicted_labels() -> None:
    data = texts(("Great but dull , great", 1), ("dull", 0), ("nothing here", 1))
    marked = SETS.marked(data)
    assert [e.truths[PSEUDO][0].tolist() for e in marked] == [
        [True, False, False, False, True], [True], [False, False],
    ]  # fmt: skip
    predicted = SETS.marked(data, "other", by=[0, 1, 1])
    assert [e.truths["other"][0].tolist() for e in predicted] == [
        [False, False, True, False, False], [False], [False, False],
    ]  # fmt: skip
    assert predicted.truth_kinds == ("other",)
    assert data.truth_kinds == ()
    cased = replace(SETS, cased=True).marked(data)
    assert cased.examples[0].truths[PSEUDO][0].tolist() == [False, False, False, False, True]
    with pytest.raises(DataError, match="expected data with the labels negative, positive"):
        SETS.marked(replace(data, labels=("positive", "negative")))


# ---- metrics ----------------------------------------------------------------------------------


def judged(
    scores: Sequence[float], known: Sequence[bool], label: int = 1, model: Any = None
) -> Case:
    """A case whose model is sure of label 1."""
    text = Text.of_words([f"w{i}" for i in range(len(scores))])
    example = Example("0", text, label, {PSEUDO: (np.array(known, dtype=bool),)})
    attribution = Attribution(text, 1, np.array(scores, dtype=float))
    return Case(example, model or WordWeights({}), np.array([0.2, 0.8]), attribution)


def test_ex_5_13_agreement() -> None:
    found = agreement(tp=3, fp=2, fn=1, tn=4)
    assert found["precision"] == pytest.approx(0.6)
    assert found["recall"] == pytest.approx(0.75)
    assert found["kappa"] == pytest.approx(0.4)
    scores = [1.0, 0.9, 0.3, 0.5, 0.4, 0.29, 0.0, -2.0, 0.1, 0.2]
    known = [True, True, True, False, False, True, False, False, False, False]
    (row,) = metrics.make("truth_agreement").score([judged(scores, known)])
    assert row["kappa"] == pytest.approx(0.4)
    assert [row[name] for name in ("tp", "fp", "fn", "tn")] == [3, 2, 1, 4]


def test_agreement_at_its_edges() -> None:
    # nothing known, nothing called: all agree, and chance would too
    assert agreement(0, 0, 0, 5)["kappa"] == 1
    assert agreement(4, 0, 0, 0)["kappa"] == 1
    none = agreement(0, 0, 2, 3)
    assert (none["precision"], none["none_called"], none["recall"]) == (0.0, 1.0, 0.0)
    assert np.isnan(agreement(0, 2, 0, 3)["recall"])
    assert np.isnan(agreement(0, 0, 0, 0)["kappa"])


def test_agreement_equals_scikit_learn() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.integers(0, 2, 30), rng.integers(0, 2, 30)
        counts = [int(((a == x) & (b == y)).sum()) for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))]
        assert agreement(*counts)["kappa"] == pytest.approx(cohen_kappa_score(a, b))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("truth_agreement", [0, 1, 3]),  # 0.3 of 1 is enough
        ("truth_agreement(threshold=0.5)", [1, 3]),
        ("truth_agreement(binary=positive)", [0, 1, 2, 3]),
        ("truth_agreement(binary=oracle_k)", [1, 3]),  # ties go to the earlier word
        ("truth_agreement(binary=topk_ratio, ratio=0.2)", [1]),
        # mean -0.12, standard deviation 1.487
        ("truth_agreement(binary=above_sd)", []),
    ],
)
def test_binarisations(spec: str, expected: list[int]) -> None:
    scores = np.array([0.3, 1.0, 0.1, 1.0, -3.0])
    known = np.array([True, False, True, False, False])
    metric: Any = metrics.make(spec)
    assert np.flatnonzero(metric.important(scores, known)).tolist() == expected
    for flat in (np.zeros(5), -np.ones(5)):
        if flat.any() and metric.binary in ("oracle_k", "topk_ratio"):
            continue  # the least negative are still the top
        assert not metric.important(flat, known).any()


def test_words_more_than_a_standard_deviation_above_the_mean() -> None:
    metric: Any = metrics.make("truth_agreement(profile=paper)")
    none = np.zeros(5, dtype=bool)
    # mean 1, standard deviation 2: more than 3, and 3 itself is not
    assert np.flatnonzero(metric.important(np.array([0.0, 0, 0, 5, 0]), none)).tolist() == [3]
    assert not metric.important(np.array([-1.0, 3.0]), none[:2]).any()
    # equal scores, however they are rounded, stand out nowhere
    assert not metric.important(np.full(7, 0.1), np.zeros(7, dtype=bool)).any()
    # the number called follows the text: two of ten, none of a flat one
    two = np.array([0.1, 0.9, 0.1, 0.2, 0.1, 0.8, 0.1, 0.2, 0.1, -0.1])
    assert np.flatnonzero(metric.important(two, np.zeros(10, dtype=bool))).tolist() == [1, 5]


def test_agreement_counts_documents_that_the_model_gets_right() -> None:
    cases = [
        judged([1, 0], [True, False]),
        judged([0, 1, 0, 0], [True, False, False, False]),
        judged([1, 0], [False, True], label=0),
    ]
    metric = metrics.make("truth_agreement")
    rows = metric.score(cases)
    assert [row["kappa"] for row in rows[:2]] == pytest.approx([1.0, -1 / 3])
    assert np.isnan(rows[2]["kappa"])
    found = metric.summary(rows)
    # pooled: tp 1, fp 1, fn 1, tn 3
    assert found["pooled_precision"] == found["pooled_recall"] == 0.5
    assert found["pooled_kappa"] == pytest.approx((4 / 6 - 20 / 36) / (16 / 36))
    assert found["kappa"] == pytest.approx((1 - 1 / 3) / 2)
    every = metrics.make("truth_agreement(documents=all)").score(cases)
    assert every[2]["kappa"] == pytest.approx(-1.0)


def test_words_that_the_model_does_not_read_are_left_out() -> None:
    class Short(WordWeights):
        def features_read(self, inputs: Sequence[Text]) -> list[int]:
            return [min(2, text.n_features) for text in inputs]

    case = judged([1.0, 0.0, 0.0], [True, False, True], model=Short({}))
    (row,) = metrics.make("truth_agreement").score([case])
    assert (row["recall"], row["fn"]) == (1.0, 0.0)
    (all_,) = metrics.make("truth_agreement(cut=unimportant)").score([case])
    assert (all_["recall"], all_["fn"]) == (0.5, 1.0)
    # nor are they called important, however little the words that are read count for
    case = judged([-1.0, -2.0, 0.0, 0.0], [False, False, True, True], model=Short({}))
    for binary in ("topk_ratio", "oracle_k", "threshold", "positive", "above_sd"):
        spec = f"truth_agreement(cut=unimportant, binary={binary})"
        (row,) = metrics.make(spec).score([case])
        assert (row["tp"], row["fn"]) == (0.0, 2.0)


def test_ex_5_14_relative_confidence() -> None:
    pairs = [(0.9, 0.6), (0.6, 0.7)]
    rows = [relative_confidence(*pair) for pair in pairs]
    assert [row["printed"] for row in rows] == pytest.approx([0.566667, 0.6], abs=1e-6)
    mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
    assert mean == pytest.approx({"printed": 0.583333, "ratio": 0.833333, "bounded": 0.6}, abs=1e-6)
    assert relative_confidence(0.5, 0.0)["printed"] == pytest.approx(-0.5)


def test_relative_confidence_takes_the_words_away(bag: Any) -> None:
    data = texts(("great film", 1), ("nothing here at all", 1), ("great", 0), ("great", 1))
    marked = SETS.marked(data)
    answers = bag.probabilities([e.input for e in data])
    none = [Attribution(e.input, 1, np.zeros(e.input.n_features)) for e in data]
    cases = [Case(e, bag, p, a) for e, p, a in zip(marked, answers, none, strict=True)]
    metric = metrics.make("relative_confidence")
    rows = metric.score(cases)
    y, left = float(answers[0, 1]), 1 / (1 + np.exp(-0.1))
    assert rows[0]["printed"] == pytest.approx(y - (y - left) / y)
    assert rows[0]["bounded"] == pytest.approx(left)
    assert rows[0]["removed"] == 0.5
    # nothing to remove: as sure as before
    assert rows[1]["printed"] == rows[1]["confidence"] == pytest.approx(answers[1, 1])
    assert rows[1]["removed"] == 0
    assert np.isnan(rows[2]["printed"])  # the model is wrong there
    assert rows[3]["bounded"] == pytest.approx(left)  # nothing is left but an unknown word
    found = metric.summary(rows)
    assert found["pooled_removed"] == pytest.approx(2 / 7)
    assert found["removed"] == pytest.approx(0.5)


def test_the_control_removes_as_many_words_elsewhere(bag: Any) -> None:
    words = "great film with a plot that nobody here could ever follow at all"
    data = SETS.marked(texts((words, 1), (f"{words} again", 1)))
    answers = bag.probabilities([e.input for e in data])
    none = [Attribution(e.input, 1, np.zeros(e.input.n_features)) for e in data]
    cases = [Case(e, bag, p, a) for e, p, a in zip(data, answers, none, strict=True)]
    plain = metrics.make("relative_confidence").score(cases)
    control = metrics.make("relative_confidence(remove=random)")
    rows = control.score(cases)
    assert [r["taken"] for r in rows] == [r["taken"] for r in plain] == [1.0, 1.0]
    # a word without weight went in place of the one that decides
    assert rows[0]["printed"] > plain[0]["printed"]
    assert control.score(cases[::-1]) == rows[::-1]  # whatever the order
    others = [metrics.make(f"relative_confidence(remove=random, seed={i})") for i in range(40)]
    fallen = [m.score(cases)[0]["printed"] < rows[0]["printed"] for m in others]
    assert 0 < sum(fallen) < 15  # one draw in thirteen takes the word that decides


def test_an_audit_tells_methods_and_sources_apart(cnn: Any, made: Splits, tmp_path: Path) -> None:
    sets = learnt_truth("gram_activation", cnn, made.train)
    data = sets.marked(made.test.select(range(60)))
    wanted = ["truth_agreement", "relative_confidence"]
    run = audit(cnn, data, ["input_x_gradient", "random_scores"], wanted, out=tmp_path / "run").run
    rows = run.scores().to_pylist()
    kappa = {
        method: np.nanmean(
            [r["value"] for r in rows if (r["explainer"], r["name"]) == (method, "kappa")]
        )
        for method in ("input_x_gradient", "random_scores")
    }
    assert kappa["input_x_gradient"] > 0.5 > 0.2 > kappa["random_scores"]
    of_source = [r for r in rows if r["metric"] == "relative_confidence"]
    assert {r["explainer"] for r in of_source} == {""}
    means = {
        name: np.nanmean([r["value"] for r in of_source if r["name"] == name])
        for name in ("bounded", "confidence", "removed")
    }
    assert means["bounded"] < means["confidence"] - 0.2
    assert 0.02 < means["removed"] < 0.5
