"""Metrics against worked examples and literal copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.core.attributions import Attribution, count_from_ratio
from veracity.core.examples import Example
from veracity.core.inputs import MASK_WORD, BoolArray, FloatArray, Text
from veracity.core.metrics import Case
from veracity.metrics import metrics
from veracity.metrics.accuracy import classification
from veracity.metrics.attribution_mass import attribution_share
from veracity.metrics.erasure import erasure_scores
from veracity.metrics.exposure import Exposure
from veracity.metrics.feature_overlap import best_truth, optimum, overlap
from veracity.metrics.selection import Selection


def marked(n: int, *places: int) -> BoolArray:
    mask = np.zeros(n, dtype=bool)
    mask[list(places)] = True
    return mask


def case(scores: list[float], *truths: BoolArray, label: int = 1, id_: str = "0") -> Case:
    text = Text.of_words([f"w{i}" for i in range(len(scores))])
    example = Example(id_, text, label, {"rationale": truths} if truths else {})
    attribution = Attribution(text, 1, np.array(scores))
    return Case(example, WordWeights({}), np.array([0.4, 0.6]), attribution)


def test_ex_5_1_classification() -> None:
    found = classification([1, 1, 1, 0, 0], [1, 1, 0, 0, 1])
    assert [found[f"{m}_of_0"] for m in ("precision", "recall", "f1")] == pytest.approx([0.5] * 3)
    assert [found[f"{m}_of_1"] for m in ("precision", "recall", "f1")] == pytest.approx([2 / 3] * 3)
    assert found["weighted_f1"] == pytest.approx(0.6)
    assert found["macro_f1"] == pytest.approx(0.583333, abs=1e-6)
    assert found["accuracy"] == found["weighted_recall"] == found["micro_f1"] == pytest.approx(0.6)


def test_a_class_never_predicted_is_flagged() -> None:
    found = classification([0, 1, 2], [0, 1, 1])
    assert found["precision_of_2"] == 0
    assert found["never_predicted"] == 1


def test_classification_equals_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support

    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 4, 200).tolist(), rng.integers(0, 4, 200).tolist()
    found = classification(y, p)
    for average in ("weighted", "macro", "micro"):
        expected = precision_recall_fscore_support(y, p, average=average, zero_division=0)
        ours = [found[f"{average}_{m}"] for m in ("precision", "recall", "f1")]
        assert ours == pytest.approx(expected[:3])


def test_ex_5_2_attribution_share() -> None:
    known = marked(3, 0, 2)
    assert attribution_share(np.array([0.5, -0.3, 0.2]), known) == pytest.approx(0.7)
    assert known.mean() == pytest.approx(0.666667, abs=1e-6)
    assert np.isnan(attribution_share(np.zeros(3), known))
    assert attribution_share(np.array([0.1]), marked(1, 0)) == 1.0
    assert attribution_share(np.array([0.1, 0.2]), marked(2)) == 0.0


def test_attribution_mass_reports_by_label_and_counts_zero_maps() -> None:
    metric = metrics.make("attribution_mass")
    cases = [
        case([0.5, -0.3, 0.2], marked(3, 0, 2), label=1),
        case([0.0, 0.0], marked(2, 0), label=0),
        case([1.0, 1.0], marked(2, 0), label=0),
    ]
    rows = metric.score(cases)
    found = metric.summary(rows)
    assert found["mass"] == pytest.approx((0.7 + 0.5) / 2)
    assert found["mass_of_1"] == pytest.approx(0.7)
    assert found["mass_of_0"] == pytest.approx(0.5)
    assert found["all_zero"] == 1
    assert found["pooled_share"] == pytest.approx(4 / 7)
    as_share = metrics.make("attribution_mass(zero=share)").score(cases)
    assert as_share[1]["mass"] == 0.5


def test_ex_5_3_optimal_precision_and_recall() -> None:
    assert optimum((10, 20), (2, 1), 0.1, "dataset") == pytest.approx((1.0, 1.0))
    assert optimum((10, 20), (2, 1), 0.1, "text") == pytest.approx((2 / 3, 2 / 3))


def test_the_optimum_is_reached_by_the_best_choice() -> None:
    """All choices of one word in the first text and two in the second, scored by counting."""
    from itertools import combinations

    known = [marked(4, 0, 1), marked(6, 0)]
    best = 0.0
    for one in combinations(range(4), 1):
        for two in combinations(range(6), 2):
            hits = int((marked(4, *one) & known[0]).sum() + (marked(6, *two) & known[1]).sum())
            best = max(best, hits / 3)
    lengths, rate = (4, 8), 0.25
    assert optimum(lengths, (2, 1), rate, "text")[0] == pytest.approx(best)


def test_nothing_chosen_or_nothing_known() -> None:
    precision, recall, f1 = overlap(marked(3), marked(3, 1))
    assert np.isnan(precision)
    assert (recall, f1) == (0.0, 0.0)
    assert np.isnan(overlap(marked(3, 1), marked(3))[1])


def test_ex_5_6_the_best_of_several_sets() -> None:
    chosen = marked(6, 1, 3, 4)
    sets = (marked(6, 0, 1), marked(6, 3, 4, 5))
    assert overlap(chosen, sets[0])[2] == pytest.approx(0.4)
    assert overlap(chosen, best_truth(chosen, sets))[2] == pytest.approx(0.666667, abs=1e-6)
    union = best_truth(chosen, sets, allow_union=True)
    assert overlap(chosen, union)[2] == pytest.approx(0.75)


def test_unions_grow_from_the_best_set_while_they_help() -> None:
    chosen = marked(8, 0, 1, 2, 3)
    # alone 2/3, 0.4, 0.4 and 0; with the second 6/7, with the third 1; the last would add a miss
    sets = (marked(8, 0, 1), marked(8, 2), marked(8, 3), marked(8, 7))
    union = best_truth(chosen, sets, allow_union=True)
    assert union.tolist() == chosen.tolist()
    # nothing that hits: no union either
    assert best_truth(marked(8, 5), sets, allow_union=True).tolist() == sets[1].tolist()


def test_unions_go_through_the_sets_in_file_order() -> None:
    # the first and the last would be all that was chosen, but the second comes before the last
    sets: tuple[BoolArray, ...] = (marked(4, 0), marked(4, 2, 3), marked(4, 2))
    union = best_truth(marked(4, 0, 2), sets, allow_union=True)
    assert np.flatnonzero(union).tolist() == [0, 2, 3]
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(4, 12))
        chosen = rng.random(n) < 0.4
        sets = tuple(rng.random((4, n)) < 0.35)
        places = [np.flatnonzero(s).tolist() for s in sets]
        union = best_truth(chosen, sets, allow_union=True, no_overlap="empty")
        released = literally_released(places, np.flatnonzero(chosen).tolist())
        assert set(np.flatnonzero(union).tolist()) == released


def literally_released(sets: list[list[int]], chosen: list[int]) -> set[int]:
    """What the group's later scripts do, as they put it: with sets of places."""

    def f1(known: set[int]) -> float:
        hits = len(known & set(chosen))
        return 2 * hits / (len(known) + len(chosen)) if hits else 0.0

    most, best = 0.0, set[int]()
    for known in map(set, sets):
        if f1(known) > most:
            most, best = f1(known), known
    for first in range(len(sets) - 1):
        union, height = set[int](), 0.0
        for known in map(set, sets[first:]):
            if not known <= union and f1(known) > 0 and f1(union | known) > height:
                union, height = union | known, f1(union | known)
        if height > most:
            most, best = height, union
    return best


def test_unions_of_a_hundred_sets_are_no_work() -> None:
    n = 100
    chosen = np.ones(n, dtype=bool)
    sets = [marked(n, i) for i in range(n)]
    assert best_truth(chosen, sets, allow_union=True).all()


def test_ex_5_7_macro_and_micro() -> None:
    # the top words by score are exactly the predicted sets: k = ceil(0.5 n) and ceil(n)
    first = case([0, 9, 0, 8, 7, 0], marked(6, 0, 1), marked(6, 3, 4, 5))
    second = case([9, 8, 7, 6, 0, 0, 0, 0], marked(8, 0))
    metric = metrics.make("feature_overlap(ratio=0.5)")
    rows = metric.score([first, second])
    assert rows[0]["f1"] == pytest.approx(0.666667, abs=1e-6)
    assert rows[1]["f1"] == pytest.approx(0.4)
    found = metric.summary(rows)
    assert found["macro_f1"] == pytest.approx(0.533333, abs=1e-6)
    assert found["micro_f1"] == pytest.approx(0.545455, abs=1e-6)


def test_no_overlap_counts_the_shortest_set_or_none() -> None:
    one = case([9, 0, 0, 0], marked(4, 1, 2), marked(4, 3))
    shortest = metrics.make("feature_overlap(ratio=0.25)").score([one])[0]
    assert (shortest["f1"], shortest["known"]) == (0.0, 1.0)
    empty = metrics.make("feature_overlap(ratio=0.25, no_overlap=empty)").score([one])[0]
    assert empty["known"] == 0.0


def test_ex_5_8_erasure_scores() -> None:
    def both(p: float) -> Any:
        return np.array([1 - p, p])

    assert erasure_scores(both(0.9), both(0.8), both(0.3), 1) == pytest.approx((0.1, 0.6, 1.0))
    assert erasure_scores(both(0.9), both(0.8), both(0.55), 1)[2] == 0.0
    assert erasure_scores(both(0.9), both(0.4), both(0.3), 1)[2] == 0.0


def test_erasure_judges_the_label_that_was_explained() -> None:
    whole, alone, without = np.array([0.3, 0.7]), np.array([0.6, 0.4]), np.array([0.1, 0.9])
    sufficiency, compactness, new_p = erasure_scores(whole, alone, without, 0)
    assert (sufficiency, compactness) == pytest.approx((-0.3, 0.2))
    assert np.isnan(new_p)


def test_erasure_is_the_literal_definition(cnn: Any) -> None:
    """Every text spelt out by hand and read by the model as it is."""
    rng = np.random.default_rng(1)
    metric: Any = metrics.make("erasure")
    for sentence in ("great", "the film was great but dull .", "a dull plot with great acting"):
        text = words(sentence)
        scores = rng.normal(size=text.n_features)
        whole = cnn.probabilities([text])[0]
        example = Example("0", text, 1)
        label = int(whole.argmax())
        (row,) = metric.score([Case(example, cnn, whole, Attribution(text, label, scores))])
        order = sorted(range(text.n_features), key=lambda i: (-scores[i], i))

        def fall(ratio: float, keep: bool) -> tuple[float, int]:
            k = count_from_ratio(ratio, text.n_features)  # noqa: B023
            top = set(order[:k])  # noqa: B023
            left = [w for i, w in enumerate(text.words) if (i in top) == keep]  # noqa: B023
            answer = cnn.probabilities([Text.of_words(left or ["\u2047"])])[0]
            return float(whole[label] - answer[label]), int(answer.argmax())  # noqa: B023

        suf, keeps = fall(0.29, True)
        com, loses = fall(0.29, False)
        assert row["sufficiency"] == pytest.approx(suf, abs=1e-6)
        assert row["compactness"] == pytest.approx(com, abs=1e-6)
        assert row["new_p"] == float(keeps == label and loses != label)
        ratios = (0.01, 0.05, 0.1, 0.2, 0.5)
        mean = np.mean([fall(r, False)[0] for r in ratios])
        assert row["aopc_compactness"] == pytest.approx(mean, abs=1e-6)
        mean = np.mean([fall(r, True)[0] for r in ratios])
        assert row["aopc_sufficiency"] == pytest.approx(mean, abs=1e-6)


def test_deletion_is_the_literal_definition(cnn: Any) -> None:
    """Every text spelt out by hand and read by the model as it is."""
    rng = np.random.default_rng(1)
    for sentence in ("great", "the film was great but dull .", "a dull plot with great acting"):
        text = words(sentence)
        scores = rng.normal(size=text.n_features)
        whole = cnn.probabilities([text])[0]
        label = int(whole.argmax())
        one = Case(Example("0", text, 1), cnn, whole, Attribution(text, label, scores))
        (row,) = metrics.make("deletion").score([one])
        order = sorted(range(text.n_features), key=lambda i: -scores[i])

        def answer(kept: Sequence[int], text: Text = text) -> FloatArray:
            left = [text.words[i] for i in sorted(kept)]
            found: FloatArray = cnn.probabilities([Text.of_words(left or [MASK_WORD])])[0]
            return found

        n = text.n_features
        going = [answer(order[k:])[label] for k in range(n + 1)]
        coming = [answer(order[:k])[label] for k in range(n + 1)]
        for name, curve in (("deletion_area", going), ("insertion_area", coming)):
            area = sum((a + b) / 2 / n for a, b in pairwise(curve))
            assert row[name] == pytest.approx(area, abs=1e-6)
        for k in (1, 2, 3, 5, 10):
            assert row[f"confidence_without_{k}"] == pytest.approx(going[min(k, n)], abs=1e-6)
            right = float(answer(order[k:]).argmax() == 1)
            assert row[f"accuracy_without_{k}"] == right


def test_examples_without_truth_give_no_row() -> None:
    assert metrics.make("feature_overlap").score([case([1.0, 2.0])]) == [{}]
    assert metrics.make("attribution_mass").score([case([1.0, 2.0])]) == [{}]


def planted_case(n: int, planted: list[int], decoy: list[int], scores: list[int]) -> Case:
    """A text of n words in which some were planted and a method chose some."""
    sets = {"planted": planted, "decoy": decoy}
    truths = {k: (np.isin(np.arange(n), v),) for k, v in sets.items() if v}
    text = Text.of_words([f"w{i}" for i in range(n)])
    chosen = np.isin(np.arange(n), scores).astype(np.float64)
    example = Example("1", text, 0, truths)
    return Case(example, WordWeights({}), np.zeros(2), Attribution(text, 0, chosen))


def test_ex_5_19_selected_words_over_documents() -> None:
    metric = Selection(ratio=0.0)
    rows = metric.score([planted_case(7, [0, 3], [6], [0, 6]), planted_case(3, [1], [], [2])])
    found = metric.summary(rows)
    assert found["pooled_precision"] == pytest.approx(0.333333, abs=1e-6)
    assert found["pooled_recall"] == pytest.approx(0.333333, abs=1e-6)
    assert found["hit"] == 0.5
    assert found["pooled_marked"] == pytest.approx(0.666667, abs=1e-6)
    assert found["pooled_misleading"] == pytest.approx(0.333333, abs=1e-6)


def test_a_selection_of_nothing_has_no_precision() -> None:
    (row,) = Selection(ratio=0.0).score([planted_case(4, [1], [], [])])
    assert np.isnan(row["precision"]) and row["recall"] == 0 and row["hit"] == 0
    (top,) = Selection(ratio=0.5).score([planted_case(4, [1], [0], [0, 1])])
    assert (top["precision"], top["recall"], top["misleading"]) == (0.5, 1.0, 0.5)


def test_exposure_is_what_a_reader_of_three_words_sees() -> None:
    flat = planted_case(10, [9], [], [])
    late = replace(flat, attribution=replace(flat.attribution, scores=np.arange(10.0)))
    early = replace(flat, attribution=replace(flat.attribution, scores=np.arange(10.0)[::-1]))
    nothing, first, last = Exposure().score([flat, late, early])
    assert (first["seen"], first["first"], first["rank"]) == (1, 1, 1)
    assert (last["seen"], last["rank"]) == (0, 10)
    assert nothing["seen"] == 0  # a map without any score points nowhere
    assert first["chance"] == pytest.approx(0.3)
    assert Exposure().score([planted_case(3, [], [1], [1])]) == [{}]
