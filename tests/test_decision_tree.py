"""Trees that imitate a model: growing, pruning, reading a path, learning before an audit."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veracity
from commands import run_command
from conftest import words
from veracity.auditing.audit import audit
from veracity.core.classifiers import Classifier
from veracity.core.errors import DataError, MissingExtra, PluginError, RunError
from veracity.core.examples import Dataset
from veracity.core.inputs import BoolArray, FloatArray
from veracity.core.plugins import settings
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.data.splits import Splits, split
from veracity.engine.hits import Hits, filter_hits
from veracity.explainers import explainers
from veracity.explainers.decision_tree import (
    LEAF,
    DecisionTree,
    Forest,
    Tree,
    grow,
    macro_f1,
    named,
    rounded,
    shared,
    stands_for,
)
from veracity.models.loading import load_model
from veracity.results.config import TrainingSetInfo
from veracity.results.run import Run


def tree(*nodes: tuple[int, float, int, int, float]) -> Tree:
    """From (feature, threshold, left, right, chance) per node."""
    feature, threshold, left, right, chance = zip(*nodes, strict=True)
    return Tree(
        np.array(feature), np.array(threshold), np.array(left), np.array(right), np.array(chance)
    )


def hits(values: list[float]) -> Hits:
    """Filter k chose the words 2k and 2k + 1 of six."""
    n = len(values)
    starts, widths = 2 * np.arange(n), np.full(n, 2)
    return Hits(np.array(values), starts, widths, 6, 6, np.zeros(2), np.zeros(0))


def test_ex_3_13_the_path_names_what_was_found() -> None:
    grown = tree(
        (0, 0.25, 1, 2, 0.5),
        (LEAF, 0, LEAF, LEAF, 0.1),
        (1, 1.0, 3, 4, 0.8),
        (LEAF, 0, LEAF, LEAF, 0.9),
        (LEAF, 0, LEAF, LEAF, 0.3),
    )
    forest = Forest((grown, grown), np.array([1, 0]), 1.0)
    (only,) = named(forest, 1, hits([0.4, 0.8]), False)
    assert (only.positions, only.kind, only.score) == ((0, 1), "evidence", 1.0)
    first, second = named(forest, 1, hits([0.4, 1.5]), False)
    assert (first.positions, first.kind) == ((0, 1), "evidence")
    assert (second.positions, second.kind, second.score) == ((2, 3), "counter", -0.5)
    assert shared((first, second), 6) == pytest.approx([0.5, 0.5, -0.25, -0.25, 0, 0])
    assert named(forest, 1, hits([0.2, 1.5]), False) == ()
    assert (grown.nodes, grown.leaves, grown.depth) == (5, 3, 3)


def test_repeats_are_named_unless_they_are_not_wanted() -> None:
    twice = tree(
        (0, 0.2, 1, 2, 0.5),
        (LEAF, 0, LEAF, LEAF, 0.1),
        (0, 0.4, 3, 4, 0.8),
        (LEAF, 0, LEAF, LEAF, 0.9),
        (LEAF, 0, LEAF, LEAF, 0.3),
    )
    forest = Forest((twice,), np.array([0]), 1.0)
    assert [f.positions for f in named(forest, 0, hits([0.5]), False)] == [(0, 1), (0, 1)]
    assert [f.positions for f in named(forest, 0, hits([0.5]), True)] == [(0, 1)]
    padding = dataclasses.replace(hits([0.5]), n_words=0)
    assert named(forest, 0, padding, False) == ()


def test_ex_3_14_pruning() -> None:
    # six training texts come to the node, of which the majority is 0
    node = tree((0, 0.5, 1, 2, 0.4), (LEAF, 0, LEAF, LEAF, 0.0), (LEAF, 0, LEAF, LEAF, 1.0))
    values = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    labels = np.array([False, False, True, True, False])
    assert node.pruned(values, labels).nodes == 1
    # one more that the right leaf gets right, and it stays
    more = np.append(labels, True)
    assert node.pruned(np.vstack([values, [[1.0]]]), more).nodes == 3
    assert node.pruned(np.zeros((0, 1)), np.zeros(0, dtype=bool)).nodes == 1


def literal_pruning(grown: Tree, values: FloatArray, labels: BoolArray, node: int = 0) -> Any:
    """The rule, node by node, on nested tuples; a leaf is its label."""
    label = bool(grown.chance[node] > 0.5)
    if grown.left[node] == LEAF:
        return label
    above = values[:, grown.feature[node]] > grown.threshold[node]
    sides = [
        literal_pruning(grown, values[side], labels[side], int(child))
        for side, child in ((~above, grown.left[node]), (above, grown.right[node]))
    ]
    if all(isinstance(side, bool) for side in sides):
        kept = (labels[~above] == sides[0]).sum() + (labels[above] == sides[1]).sum()
        if (labels == label).sum() >= kept:
            return label
    return (int(grown.feature[node]), float(grown.threshold[node]), *sides)


def nested(grown: Tree, node: int = 0) -> Any:
    if grown.left[node] == LEAF:
        return bool(grown.chance[node] > 0.5)
    sides = (nested(grown, int(grown.left[node])), nested(grown, int(grown.right[node])))
    return (int(grown.feature[node]), float(grown.threshold[node]), *sides)


@pytest.mark.parametrize("seed", range(6))
def test_pruning_is_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=4)

    def drawn(n: int) -> tuple[FloatArray, BoolArray]:
        values = rounded(np.maximum(rng.normal(size=(n, 4)), 0))
        return values, values @ weights + rng.normal(size=n) > 0

    values, labels = drawn(150)
    grown = grow(values, labels)
    # full: only texts without any match, which are all alike, are not told apart
    told = values.any(axis=1)
    assert np.array_equal(grown.chances(values)[told] > 0.5, labels[told])
    other, other_labels = drawn(80)
    pruned = grown.pruned(other, other_labels)
    assert nested(pruned) == literal_pruning(grown, other, other_labels)
    assert 1 < pruned.nodes < grown.nodes
    assert pruned.nodes == 2 * pruned.leaves - 1


def test_trees_answer_as_scikit_learn() -> None:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    values = rounded(rng.random((200, 5)))
    labels = (values[:, 0] > 0.6) ^ (rng.random(200) < 0.2)
    peer = DecisionTreeClassifier(random_state=0).fit(values, labels)
    grown = grow(values, labels)
    new = rounded(rng.random((300, 5)))
    assert grown.chances(new) == pytest.approx(peer.predict_proba(new)[:, 1])
    assert (grown.nodes, grown.leaves) == (peer.tree_.node_count, peer.get_n_leaves())
    assert grown.depth == peer.get_depth() + 1
    assert grow(values, np.zeros(200, dtype=bool)).chances(new).max() == 0


def test_filters_stand_for_the_label_they_go_with() -> None:
    logits = np.array([[3.0, 0, 1], [0, 3, 2], [1, 1, 3], [2, 0, 0]])
    values = np.stack([logits[:, 1] * 2, 5 - logits[:, 2], np.full(4, 0.1)], axis=1)
    found = stands_for(values, logits)
    expected = [
        int(np.argmax([np.corrcoef(values[:, k], logits[:, c])[0, 1] for c in range(3)]))
        for k in (0, 1)
    ]
    assert found.tolist() == [*expected, -1]
    assert found[0] == 1


def test_macro_f1_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    one, other = rng.integers(4, size=(2, 40))
    assert macro_f1(one, other) == pytest.approx(f1_score(one, other, average="macro"))


# ---- learning -----------------------------------------------------------------------------------


def test_trees_imitate_a_trained_model(cnn: Any, made: Splits) -> None:
    plain = DecisionTree()
    fitted = plain.fitted(cnn, made.train)
    forest: Any = fitted.forest
    texts = [e.input for e in made.test]
    answers = cnn.probabilities(texts).argmax(axis=1)
    values = rounded(np.array([h.values for h in filter_hits(cnn, texts)]))
    fidelity = macro_f1(answers, forest.predictions(values))
    assert fidelity > 0.8
    assert forest.fidelity == pytest.approx(fidelity, abs=0.15)
    assert all(t.nodes == 2 * t.leaves - 1 for t in forest.trees)
    found = veracity.explain(cnn, texts[:40], fitted)
    assert all(a.notes["fidelity"] == forest.fidelity for a in found)
    assert all(a.notes["nodes"] == forest.trees[a.target].nodes for a in found)
    named_at_all = [a for a in found if a.fragments]
    assert len(named_at_all) > 20
    assert all(a.level == "ngram" for a in found)
    for a in named_at_all:
        assert a.scores.sum() == pytest.approx(sum(f.score for f in a.fragments or ()))
    # the words that were planted to decide are mostly among what the paths name
    rationales = [e.truths["rationale"] for e in made.test.examples[:40]]
    met = [
        any(mask[list(f.positions)].any() for f in a.fragments or () for mask in masks)
        for a, masks in zip(found, rationales, strict=True)
        if a.fragments
    ]
    assert np.mean(met) > 0.5


def test_what_is_learnt_is_no_setting(cnn: Any, made: Splits) -> None:
    plain = explainers.make("decision_tree(dedupe=True)")
    assert not plain.ready
    one, two = (plain.fitted(cnn, made.train.select(range(200))) for _ in range(2))
    assert one.ready
    assert one == plain
    assert one.spec == plain.spec == "decision_tree(dedupe=True)"
    assert settings(one) == settings(plain) == {"dedupe": True}
    travelled = pickle.loads(pickle.dumps(one))
    text = words("the plot was great but the film was dull")
    scores = [veracity.explain(cnn, text, e)[0].scores for e in (one, two, travelled)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    with pytest.raises(PluginError, match="no setting 'forest'"):
        explainers.make("decision_tree(forest=None)")


def test_what_is_missing_is_told(cnn: Any, made: Splits, monkeypatch: Any) -> None:
    with pytest.raises(DataError, match=r"none were given\. Give them with --train"):
        veracity.explain(cnn, "a great film", "decision_tree")
    with pytest.raises(PluginError, match="call fitted"):
        DecisionTree().explain(cnn, [words("a")], [0], [np.random.default_rng(0)])
    with pytest.raises(DataError, match="has 1"):
        veracity.explain(cnn, "a", "decision_tree", train=made.train.select([0]))
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(MissingExtra, match=r"veracity\[sklearn\]"):
        veracity.explain(cnn, "a", "decision_tree", train=made.train.select(range(40)))


def test_an_audit_fits_once_and_resumes_equal(
    cnn: Any, made: Splits, tmp_path: Path, monkeypatch: Any
) -> None:
    data, lesson = made.test.select(range(20)), made.train.select(range(300))
    calls = []
    original = DecisionTree.fitted

    def counted(self: DecisionTree, model: Classifier, train: Dataset) -> DecisionTree:
        calls.append(train)
        return original(self, model, train)

    monkeypatch.setattr(DecisionTree, "fitted", counted)
    options: dict[str, Any] = {"metrics": "erasure", "out": tmp_path / "r", "batch_size": 5}
    methods = "decision_tree, random_scores"
    first = audit({"m": cnn}, data, methods, train=lesson, **options)
    assert len(calls) == 1
    assert first.run.config.train == {"m": TrainingSetInfo(lesson.name, 300, lesson.fingerprint())}
    expected = first.run.attributions("m", "decision_tree")
    assert any(one.scores.any() for one in expected.values())
    assert audit({"m": cnn}, data, methods, train=lesson, **options).computed == 0
    assert len(calls) == 1, "nothing was left to explain, yet it learnt again"
    # a lost part is made again as it was
    lost = first.run.attribution_part("m", "decision_tree", 2)
    lost.unlink()
    again = audit({"m": cnn}, data, methods, train=lesson, **options)
    assert (again.computed, len(calls)) == (1, 2)
    found = again.run.attributions("m", "decision_tree")
    assert all(np.array_equal(found[k].scores, expected[k].scores) for k in expected)
    # without the method nothing is learnt, and still nothing is mixed afterwards
    audit({"m": cnn}, data, "random_scores", **options)
    with pytest.raises(RunError, match="another training data"):
        audit({"m": cnn}, data, methods, train=lesson.select(range(200)), **options)


def veracity_command(*arguments: str, cwd: Path) -> Any:
    result = run_command(*arguments, "--json", cwd=cwd, COLUMNS="200")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_training_data_on_the_command_line(cnn: Any, made: Splits, tmp_path: Path) -> None:
    from veracity.models.loading import save_model

    save_model(cnn, cnn.architecture, tmp_path / "model", record={})
    corpus = "made_reviews(n=200)"
    common = ["audit", "model", corpus, "--limit", "12", "--metrics", "erasure"]
    methods = ["--methods", "decision_tree, random_scores"]
    told = veracity_command(*common, *methods, "--train", corpus, "--out", "r", cwd=tmp_path)
    assert {e["method"] for e in told["standings"][0]["entries"]} == {
        "decision_tree",
        "random_scores",
    }
    # it learnt from the part that the audited texts do not come from
    lesson = split(load_data(corpus)).train
    recorded = Run.open(tmp_path / "r").config.train["model"]
    assert recorded.fingerprint == lesson.fingerprint()
    explained = veracity_command(
        "explain", "model", "a great film", "--method", "decision_tree", "--train", corpus,
        cwd=tmp_path,
    )  # fmt: skip
    assert explained["attributions"][0]["notes"]["fidelity"] > 0.5


def test_a_trained_folder_knows_what_it_learnt_from(made: Splits, tmp_path: Path) -> None:
    write_records(made.train.select(range(160)), tmp_path / "reviews.jsonl")
    train = ["train", "text_cnn(size=8, filters=4)", "reviews.jsonl", "--epochs", "1"]
    veracity_command(*train, "--limit", "120", "--seed", "3", "--out", "m", cwd=tmp_path)
    model: Any = load_model(tmp_path / "m")
    # audited from another folder: the record says where the data are
    data = made.test.select(range(4))
    run = audit(tmp_path / "m", data, "decision_tree", "erasure", out=tmp_path / "r").run
    assert run.config.train["m"].size == 96
    assert model.record["data"]["reading"]["limit"] == 120
    with (tmp_path / "reviews.jsonl").open("a") as file:
        file.write(json.dumps({"text": "a new one", "label": "negative"}) + "\n")
    with pytest.raises(DataError, match=r"those of this model \(reviews\) have changed"):
        veracity.explain(model, "a film", "decision_tree")
    (tmp_path / "reviews.jsonl").unlink()
    with pytest.raises(DataError, match="cannot be read any more"):
        veracity.explain(model, "a film", "decision_tree")
