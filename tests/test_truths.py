"""Pseudo ground truth: sets of words, and metrics against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.core.metrics import Case
from veracity.core.truths import PSEUDO, WordSets
from veracity.data.splits import Splits
from veracity.metrics import metrics
from veracity.metrics.relative_confidence import relative_confidence
from veracity.metrics.truth_agreement import agreement
from veracity.truths import learnt_truth


def texts(*rows: tuple[str, int], labels: tuple[str, ...] = ("negative", "positive")) -> Dataset:
    return Dataset(
        "t", labels, tuple(Example(str(i), words(t), y) for i, (t, y) in enumerate(rows))
    )


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
