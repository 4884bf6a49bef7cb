"""Nothing on the shared path knows words: a row of numbers goes the same way as a text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import veracity
from veracity.changes import changed
from veracity.core.errors import DataError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import (
    BoolArray,
    FloatArray,
    Hiding,
    Input,
    input_kind,
    register_input,
)
from veracity.core.metrics import Case
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.metrics.accuracy import Accuracy
from veracity.metrics.blank import Blank
from veracity.results.run import Run

ROOT = Path(veracity.__file__).parent

SHARED_PATH = (
    *(f"core/{name}.py" for name in ("examples", "attributions", "explainers", "metrics")),
    *(f"core/{name}.py" for name in ("classifiers", "changes")),
    *(f"engine/{name}.py" for name in ("inference", "cache", "batches", "seeds", "call_counter")),
    *(f"engine/{name}.py" for name in ("gradients", "propagation", "relevance", "differences")),
    *(f"engine/{name}.py" for name in ("surrogates", "ties", "executors", "processes")),
    *(f"explainers/{name}.py" for name in ("occlusion", "lime", "random_scores", "search")),
    *(f"metrics/{name}.py" for name in ("accuracy", "blank", "erasure", "deletion")),
    *(f"auditing/{name}.py" for name in ("audit", "request", "selection", "jobs", "explaining")),
    *(f"results/{name}.py" for name in ("run", "parts", "config", "columns", "standings")),
    *(f"results/{name}.py" for name in ("statistics", "sampling", "curves")),
)
"""What every kind of input goes through."""

WEIGHTS = (3.0, -2.0, 1.0, 0.0)


@register_input
@dataclass(frozen=True)
class Numbers(Input):
    """A row of numbers; a hidden one is zero."""

    kind: ClassVar[str] = "numbers"

    values: tuple[float, ...]

    @property
    def n_features(self) -> int:
        return len(self.values)

    @property
    def key(self) -> str:
        return repr(self.values)

    def keep(self, shown: BoolArray, how: Hiding) -> Numbers:
        return Numbers(tuple(v if on else 0.0 for v, on in zip(self.values, shown, strict=True)))

    def to_row(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Numbers:
        return cls(tuple(row["values"]))


class Weighing:
    """A logistic regression on rows of numbers."""

    labels = ("low", "high")

    def probabilities(self, inputs: Sequence[Numbers]) -> FloatArray:
        sums = np.array([np.dot(WEIGHTS, row.values) for row in inputs])
        high = 1 / (1 + np.exp(-sums))
        return np.stack([1 - high, high], axis=1)


def rows(n: int = 30, seed: int = 0) -> Dataset[Numbers]:
    drawn = np.random.default_rng(seed).normal(size=(n, len(WEIGHTS))).round(3)
    return Dataset(
        "rows",
        Weighing.labels,
        tuple(
            Example(
                str(i),
                Numbers(tuple(row.tolist())),
                int(np.dot(WEIGHTS, row) > 0),
                {"rationale": (np.array(WEIGHTS) != 0,)},
            )
            for i, row in enumerate(drawn)
        ),
    )


def test_data_of_rows_have_a_kind_and_a_fingerprint() -> None:
    data = rows()
    assert data.kind == "numbers"
    assert data.fingerprint() == rows().fingerprint()
    assert data.fingerprint() != rows(seed=1).fingerprint()
    assert input_kind("numbers") is Numbers
    with pytest.raises(DataError, match="expected inputs of a kind among text"):
        input_kind("sounds")


def test_a_stored_input_is_read_back() -> None:
    for one in (rows().examples[0].input, veracity.load_data(["a fine film"]).examples[0].input):
        assert input_kind(one.kind).from_row(one.to_row()) == one


TAKING_ANYTHING = ("occlusion", "lime(samples=200)", "shap", "shap(form=permutation)", "search")


@pytest.mark.parametrize("method", TAKING_ANYTHING)
def test_methods_that_only_hide_explain_rows(method: str) -> None:
    row = Numbers((1.0, 1.0, -1.0, 2.0))
    (found,) = veracity.explain(Weighing(), row, method, target="high")
    assert found.input is row
    assert int(found.scores.argmax()) == 0
    assert [f.words for f in found.evidence(1)] == [()]
    (again,) = veracity.explain(Weighing(), [row], method, target="high")
    assert again.scores.tolist() == found.scores.tolist()


def test_an_explanation_of_a_row_shows_itself() -> None:
    (found,) = veracity.explain(Weighing(), Numbers((1.0, 0.5, 0.0, 0.0)), "occlusion")
    assert "1.0" in found._repr_html_()


@pytest.mark.parametrize("test", ["erasure", "deletion", "feature_overlap"])
def test_metrics_that_need_no_words_judge_explanations_of_rows(test: str) -> None:
    metric = metrics.make(test)
    headline, quantity = next((n, q) for n, q in metric.quantities.items() if q.headline)
    by_chance, found = (
        metric.summary(metric.score(cases(method)))[headline]
        for method in ("random_scores", "occlusion")
    )
    assert found > by_chance if quantity.better == "higher" else found < by_chance


def test_a_model_of_rows_is_judged() -> None:
    told = cases("occlusion")
    assert Accuracy().summary(Accuracy().score(told))["accuracy"] == 1
    assert Blank().summary(Blank().score(told))["moved"] > 0.2


def cases(method: str) -> list[Case]:
    data, model = rows(), Weighing()
    inputs = [e.input for e in data]
    answers = model.probabilities(inputs)
    rngs = [np.random.default_rng(i) for i in range(len(data))]
    found = explainers.make(method).explain(model, inputs, answers.argmax(axis=1).tolist(), rngs)
    return [Case(e, model, row, one) for e, row, one in zip(data, answers, found, strict=True)]


def test_what_needs_words_says_so() -> None:
    with pytest.raises(DataError, match=r"grad_cam_text takes inputs of the kind text, not num"):
        veracity.explain(Weighing(), Numbers((1.0, 1.0, 1.0, 1.0)), "grad_cam_text")
    with pytest.raises(DataError, match=r"keyboard takes inputs of the kind text, not numbers"):
        changed(rows(), "keyboard")
    assert "takes inputs of the kind text, not numbers" in metrics.make("movement").missing(rows())
    assert explainers.make("shap").unfit("numbers") == ""
    assert "texts only" in explainers.make("shap(background=3)").unfit("numbers")


@pytest.mark.parametrize("file", SHARED_PATH)
def test_the_shared_path_knows_no_words(file: str) -> None:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    code = "\n".join(line for line in lines if not line.startswith("from "))
    assert not re.findall(r"\.words\b|\.text\b|\bText\(", code)


def test_rows_are_audited_and_read_back(tmp_path: Path) -> None:
    data = rows()
    done = veracity.audit(Weighing(), data, "all", "all", out=tmp_path)
    run = Run.open(tmp_path)
    assert {"occlusion", "lime", "shap", "random_scores"} == set(run.explainers)
    why = {s.explainer: s.why for s in run.config.skipped}
    assert why["grad_cam_text"] == "takes inputs of the kind text, not numbers"
    assert why["gradient"] == "needs a model with gradients"
    stored = {a.input for a in run.attributions("Weighing", "occlusion").values()}
    assert stored == {e.input for e in data}
    means = {
        entry.method: entry.mean
        for standing in done.standings
        if standing.metric == "deletion" and standing.headline
        for entry in standing.entries
    }
    assert means["occlusion"] != means["random_scores"]
    again = veracity.audit(Weighing(), data, "all", "all", out=tmp_path)
    assert again.computed == 0
