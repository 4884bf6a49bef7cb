"""Data that nobody labelled: methods are tested, answers are not judged."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.errors import DataError, ModelError
from veracity.core.examples import UNLABELLED, Dataset, Example
from veracity.data.loading import load_data
from veracity.data.readers import Columns
from veracity.reports.html import write_report
from veracity.results.pairs import pairs_of
from veracity.results.robustness import robustness
from veracity.suspicion.suspects import suspects
from veracity.truths import learnt_truth


@pytest.fixture
def pairs() -> Dataset:
    rows = [
        ("a", "a great film", None),
        ("b", "a dull film", None),
        ("a2", "a really great film", "a"),
    ]
    return Dataset(
        "pairs",
        (UNLABELLED,),
        tuple(
            Example(i, words(t), 0, {"rationale": (np.array(t.split()) == "great",)}, p)
            for i, t, p in rows
        ),
    )


def test_all_metrics_that_need_no_labels_score_it(
    bag: WordWeights, pairs: Dataset, tmp_path: Path
) -> None:
    result = audit(bag, pairs, ["occlusion"], out=tmp_path / "run")
    found = result.run.summaries()["WordWeights"]
    assert {"accuracy", "relative_confidence"}.isdisjoint(found.get("", {}))
    assert found["occlusion"]["consistency"]["map"] == pytest.approx((1 + 1 + 2 / 3 + 3 / 4) / 4)
    assert found["occlusion"]["rationale_match"]["iou_f1"] > 0
    deletion = found["occlusion"]["deletion"]
    assert deletion["accuracy_without_1"] is None
    assert 0 < deletion["deletion_area"] < 1
    assert result.run.labels == (*bag.labels, UNLABELLED)


def test_no_answer_is_called_wrong(bag: WordWeights, pairs: Dataset, tmp_path: Path) -> None:
    result = audit(bag, pairs, ["occlusion"], ["consistency"], out=tmp_path / "run")
    (pair,) = pairs_of(result.run, "WordWeights", "occlusion").pairs
    assert (pair.original.label, pair.original.wrong, pair.one_wrong) == (UNLABELLED, False, False)
    page = write_report(result.run).read_text("utf-8")
    assert UNLABELLED in page
    with pytest.raises(DataError, match="no labels"):
        robustness(pairs, np.full((3, 2), 0.5))


@pytest.mark.parametrize(
    ("metrics", "target", "said"),
    [(["accuracy", "erasure"], "predicted", "accuracy needs"), (["erasure"], "gold", "--target")],
)
def test_what_needs_labels_is_refused(
    bag: WordWeights, pairs: Dataset, tmp_path: Path, metrics: list[str], target: str, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        audit(bag, pairs, ["occlusion"], metrics, target=target, out=tmp_path / "run")


def test_suspects_and_models_that_disagree_are_refused(
    bag: WordWeights, pairs: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="no labels"):
        suspects(bag, pairs)
    other = WordWeights(bag.weights)
    other.labels = ("yes", "no")
    with pytest.raises(ModelError, match="separate runs"):
        audit({"one": bag, "other": other}, pairs, ["occlusion"], out=tmp_path / "run")
    other.labels = ("yes", UNLABELLED)
    with pytest.raises(ModelError, match="Rename"):
        audit(other, pairs, ["occlusion"], out=tmp_path / "run")


def test_labels_beside_none_are_told_apart(pairs: Dataset) -> None:
    assert not pairs.labelled
    assert dataclasses.replace(pairs, labels=("negative", "positive")).labelled


def test_a_file_may_say_that_it_has_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text\na great film\na dull film\n")
    with pytest.raises(DataError, match="label= if nobody labelled"):
        load_data(path)
    data = load_data(path, columns=Columns(label=""), labels=("bad", "good"))
    assert (data.labels, len(data), data.labelled) == ((UNLABELLED,), 2, False)
    with pytest.raises(DataError, match="learns from labels"):
        learnt_truth("integer_program", None, data)
