"""Nested cross-validation, and vectors that word2vec learns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.changes import changed
from veracity.changes.structure import RULE
from veracity.core.errors import DataError
from veracity.core.examples import Example
from veracity.data.loading import load_data
from veracity.data.splits import Splits, leaks, nested_folds, split
from veracity.models.architectures import architectures


def with_structure(example: Example[Any]) -> tuple[int, ...]:
    return (int(RULE in example.facts), example.label)


def ids(part: Any) -> set[str]:
    return {e.id for e in part}


def test_outer_folds_are_judged_by_nothing_that_was_chosen_by() -> None:
    data = changed(load_data("made_reviews(n=200)"), "structure")
    folds = nested_folds(data, outer=5, inner=3, seed=1, stratum=with_structure)
    assert [(f.outer, f.inner) for f in folds] == [(o, i) for o in range(5) for i in range(3)]
    for fold in folds:
        assert leaks(fold.parts) == []
        parts = (fold.parts.train, fold.parts.validation, fold.parts.test)
        assert set().union(*map(ids, parts)) == ids(data)
        share = np.mean([RULE in e.facts for e in data])
        assert all(abs(np.mean([RULE in e.facts for e in p]) - share) < 0.03 for p in parts)
    tested = [ids(f.parts.test) for f in folds if f.inner == 0]
    assert sum(map(len, tested)) == len(data) and set().union(*tested) == ids(data)
    validated = [ids(f.parts.validation) for f in folds if f.outer == 0]
    assert sum(map(len, validated)) == len(set().union(*validated)) == len(data) - len(tested[0])
    again = nested_folds(data, outer=5, inner=3, seed=1, stratum=with_structure)
    assert [ids(f.parts.train) for f in again] == [ids(f.parts.train) for f in folds]


def test_inner_folds_as_released_judge_each_text_in_all_outer_folds_but_its_own() -> None:
    """Why the printed accuracies of SST-2 are multiples of 1/4312: 4 times 1,078."""
    data = load_data("made_reviews(n=100)")
    folds = nested_folds(data, outer=5, inner=3, report_on="inner")
    judged = [e.id for f in folds for e in f.parts.test]
    assert len(judged) == 4 * len(data)
    assert {judged.count(e.id) for e in data} == {4}
    assert all(ids(f.parts.test) == ids(f.parts.validation) for f in folds)


def test_too_few_folds_or_texts_are_told() -> None:
    data = load_data("made_reviews(n=8)")
    with pytest.raises(DataError, match="two folds or more, outer and inner, got 5 and 1"):
        nested_folds(data, outer=5, inner=1)
    with pytest.raises(DataError, match="texts enough for 9 folds, got 8"):
        nested_folds(data, outer=9, inner=2)


def test_parts_keep_structures_and_labels_in_proportion() -> None:
    data = changed(load_data("made_reviews(n=300)"), "structure")
    parts = split(data, shares=(0.6, 0.2, 0.2), stratum=with_structure)
    counts = [
        [sum(with_structure(e) == (s, y) for e in part) for s in (0, 1) for y in (0, 1)]
        for part in (parts.train, parts.validation, parts.test)
    ]
    whole = np.sum(counts, axis=0)
    assert np.abs(np.array(counts) - np.outer((0.6, 0.2, 0.2), whole)).max() < 2


@pytest.mark.parametrize("spec", ["text_cnn(size=8, filters=4)", "lstm(size=8, hidden=6)"])
def test_models_of_all_folds_start_alike(spec: str) -> None:
    """Another fold knows other words; all else begins with the same weights."""
    from veracity.models.architecture import Training
    from veracity.models.training import train

    folds = nested_folds(load_data("made_reviews(n=60)"), outer=3, inner=2)
    architecture = architectures.make(spec)
    starts = []
    for fold in folds[:3]:
        model: Any = architecture.start(fold.parts.train, seed=7)
        starts.append({k: v.clone() for k, v in model.network.state_dict().items()})
        once = Training(epochs=1, seed=7)
        train(architecture, fold.parts.train, fold.parts.validation, training=once)
    assert all(
        np.array_equal(starts[0][name], other[name]) for other in starts[1:] for name in starts[0]
    )


# ---- word2vec -----------------------------------------------------------------------------------


LEARN = """
import hashlib, sys
from veracity.data.trained_vectors import word2vec_vectors
texts = [["the", "film", "was", w] for w in ("great", "good", "dull", "bad") * 5]
found = word2vec_vectors(texts, size=6, seed=3)
told = hashlib.sha256(b"".join(found[w].tobytes() for w in sorted(found))).hexdigest()
print(sorted(found), told)
"""


def test_word2vec_learns_the_same_in_every_process(tmp_path: Path) -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", LEARN],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1 and "'film'" in said.pop()


def test_models_read_vectors_of_word2vec(made: Splits) -> None:
    some = made.train.select(range(150))
    architecture = architectures.make("text_cnn(embeddings=word2vec, size=12, filters=2)")
    model: Any = architecture.start(some, seed=0)
    other: Any = architectures.make("text_cnn(size=12, filters=2)").start(some, seed=0)
    assert model.embedding.weight.shape == other.embedding.weight.shape
    assert not np.allclose(model.embedding.weight.detach(), other.embedding.weight.detach())
    again: Any = architecture.start(some, seed=0)
    assert model.identity() == again.identity()


def test_word2vec_is_told_texts_without_neighbours() -> None:
    from veracity.data.trained_vectors import word2vec_vectors

    with pytest.raises(DataError, match="texts of two words or more"):
        word2vec_vectors([["one"], []], size=4, seed=0)
