"""The papers' experiments, small."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.core.errors import DataError, PluginError, RunError
from veracity.engine.executors import Local
from veracity.experiments.experiment import (
    Experiment,
    Step,
    keep_step,
    kept_result,
    run_steps,
)
from veracity.recipes.papers import recipes
from veracity.recipes.papers.planted_text import DATASETS, PlantedText, planted_parts, reviews
from veracity.results.findings import Findings


@pytest.fixture(scope="module")
def beer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews without labels, each with articles in both halves."""
    path = tmp_path_factory.mktemp("beer") / "beer.tsv"
    rng = np.random.default_rng(0)
    nouns = ["head", "malt", "glass", "finish", "hop", "aroma", "body", "foam"]
    rows = ["beer\ttext"]
    for i in range(400):
        words = [str(w) for w in rng.choice(nouns, 8)]
        articles = [str(w) for w in rng.choice(["a", "the"], 2)]
        text = " ".join([*words[:2], articles[0], *words[2:6], articles[1], *words[6:], str(i)])
        rows.append(f"ale\t{text}")
    path.write_text("\n".join(rows), "utf-8")
    return path


def test_reviews_are_different_and_tell_something(beer: Path) -> None:
    found = reviews(str(beer), 100, 12, seed=0)
    assert len({e.input.text for e in found}) == 100
    assert all(e.input.n_features <= 12 for e in found)
    assert found.fingerprint() == reviews(str(beer), 100, 12, seed=0).fingerprint()
    with pytest.raises(DataError, match="expected 1,000 different texts"):
        reviews(str(beer), 1000, 12, seed=0)
    for name, change in DATASETS.items():
        parts = planted_parts(found, change, (60, 20, 20), seed=1)
        assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [60, 20, 20]
        assert all("planted" in e.truths for e in parts.train)
        assert all(("decoy" in e.truths) == (name != "article") for e in parts.train)


def test_planted_text_does_only_what_is_asked() -> None:
    sizes = PlantedText.at_scale("laptop")
    asked = recipes.make("planted_text(parts=('attention', 'norms'), datasets=('article',))")
    assert isinstance(asked, PlantedText)
    first = asked.models(sizes)
    assert {m.kind for m in first} == {"attention"}
    assert {m.dataset for m in first} == {"article"}
    assert {m.norm for m in first if m.vectors == "corpus"} == {None, 0.5, 2.5, 5.0}
    every = PlantedText().models(sizes)
    assert {m.kind for m in every} == {"attention", "methods", "rationale_cr", "rationale_rl"}
    # other methods are asked about models that are there already
    assert all(m.trained in every[: every.index(m)] for m in every if m.kind == "methods")
    with pytest.raises(PluginError, match="expected parts among attention, norms"):
        recipes.make("planted_text(parts=('attentoin',))")


def test_planted_text_runs_and_goes_on(beer: Path, tmp_path: Path) -> None:
    tiny = {
        "sizes": [240, 40, 60],
        "words": 20,
        "runs": 1,
        "attention": "hidden=16, attention=16",
        "rationale": "hidden=12",
        "rates": {"article": [0.2], "cn": [], "nc": []},
        "corpus": "size=10",
        "norms": {"corpus": [5.0], "glove": []},
        "norm_runs": 1,
        "explained": 8,
        "methods": ["gradient", "random_scores"],
        "attention_training": {
            "epochs": 12,
            "batch_size": 20,
            "learning_rate": 0.01,
            "stop_at": 1.0,
        },
        "rationale_training": {
            "epochs": 2,
            "batch_size": 20,
            "learning_rate": 0.01,
            "stop_at": 1.0,
        },
    }
    recipe = recipes.make("planted_text(datasets=('article', 'cn'))")
    steps: list[Any] = []

    def go() -> Findings:
        return recipe.run(
            tmp_path, scale="smoke", sizes=tiny, data=beer, workers=1, watch=steps.append
        )

    first = go()
    assert [t.title for t in first.tables][:4] == [
        "Attention over vectors learnt from the reviews",
        "Attention over GloVe vectors",
        "Attention on Article by the norm of the word vectors",
        "Every other method on the models with vectors learnt from the reviews",
    ]
    labels = [row[0] for row in first.tables[0].rows]
    assert labels[0] == "Article: articles" and "CN: other articles" in labels
    attention = first.tables[0].rows[0][1][0]
    assert attention is not None and not isinstance(attention, str)
    assert attention.published == 0.103 and attention.published_spread == 0.024
    # eight texts are few, but what all of the test part tell of the model holds for them
    step = json.loads((tmp_path / "steps/attention-corpus-article-0/found.json").read_text())[
        "found"
    ]
    assert step["forced"]
    named = {row[0]: row[1][0] for row in first.tables[3].rows}
    for method in ("attention", "gradient", "random_scores"):
        cell = named[method]
        assert cell is not None and not isinstance(cell, str) and 0 < cell.value < 1
    models = sorted(tmp_path.glob("steps/*/model/model.safetensors"))
    written = {m: m.stat().st_mtime_ns for m in models}
    # with attention on two datasets by two kinds of vectors and by longer ones, and two that choose
    # their words
    assert len(models) == 7
    assert step["norm"] == pytest.approx(1.0) and step["norm_read"] == pytest.approx(1.0, abs=0.1)
    curve = next(f for f in first.figures if "norm" in f.title)
    by_name = {p.name: p for p in curve.series}
    assert sorted(by_name["corpus, each run"].x) == pytest.approx([1.0, 5.0], rel=0.1)
    assert by_name["glove, mean"].x[0] > 2 and by_name["paper, 10.3%"].y == (0.103, 0.103)
    assert repr(go()) == repr(first)
    assert {m: m.stat().st_mtime_ns for m in models} == written
    assert repr(Findings.read(tmp_path)) == repr(first)


def test_every_recipe_has_its_scales() -> None:
    for name in recipes.names():
        recipe = recipes.get(name)
        assert {"smoke", "laptop", "paper"} <= set(recipe.settings()["scales"])
        with pytest.raises(PluginError, match="expected the scale"):
            recipe.at_scale("huge")


def test_a_step_of_other_settings_is_not_mixed_in(tmp_path: Path) -> None:
    assert kept_result(tmp_path, {"rate": 0.1}) is None
    keep_step(tmp_path, {"rate": 0.1}, {"x": 1})
    assert kept_result(tmp_path, {"rate": 0.1}) == {"x": 1}
    with pytest.raises(RunError, match="another experiment"):
        kept_result(tmp_path, {"rate": 0.2})
    (tmp_path / "found.json").write_text("{")
    with pytest.raises(RunError, match="damaged"):
        kept_result(tmp_path, {"rate": 0.1})


@dataclass(frozen=True)
class Chain(Experiment):
    """Each step adds one to the step before; what was done is told to a file."""

    length: int = 3

    def steps(self) -> list[Step]:
        return [
            Step(
                key=i,
                name=f"number-{i}",
                settings={"i": i},
                needs=(i - 1,) if i else (),
                spreads=i == 2,
            )
            for i in range(self.length)
        ]

    def work(self, step: Step, executor: Any) -> dict[str, Any]:
        assert (executor is not None) == step.spreads
        i = int(str(step.key))
        assert not i or (self.place(f"number-{i - 1}") / "found.json").exists()
        with (self.folder / "log").open("a") as file:
            file.write(f"{i} ")
        return {"square": i * i}


@pytest.mark.parametrize("workers", [1, 2])
def test_steps_wait_for_what_they_need_and_are_done_once(tmp_path: Path, workers: int) -> None:
    seen: list[Any] = []
    found = run_steps(Chain(tmp_path, 2), Local(workers), watch=seen.append)
    assert found == {0: {"square": 0}, 1: {"square": 1}}
    assert (seen[-1].done, seen[-1].total, seen[-1].doing) == (2, 2, "number-1")
    longer = run_steps(Chain(tmp_path, 4), Local(workers))
    assert list(longer) == [0, 1, 2, 3] and longer[3] == {"square": 9}
    assert (tmp_path / "log").read_text() == "0 1 2 3 "


def test_steps_that_need_what_is_not_there_are_told(tmp_path: Path) -> None:
    class Broken(Chain):
        def steps(self) -> list[Step]:
            return super().steps()[1:]

    with pytest.raises(ValueError, match="need what is not there: number-1, number-2"):
        run_steps(Broken(tmp_path), Local())
