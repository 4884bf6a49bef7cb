"""The experiments with forty classifiers, small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.changes import changed
from veracity.core.errors import DataError, PluginError
from veracity.data.loading import load_data
from veracity.recipes.papers import recipes
from veracity.recipes.papers._percy_grid import CorpusGrid, Rows, kendall, pearson
from veracity.recipes.papers._percy_names import GRID, ClassifierName
from veracity.recipes.papers._percy_printed import PrintedTable
from veracity.recipes.papers.percy import Percy, drawn, has_structure, in_proportion
from veracity.recipes.recipe import Setup
from veracity.results.findings import Cell, Findings

TINY: dict[str, Any] = {
    "texts": {"sst2": 160, "sentiment140": 120},
    "structured": {"sst2": 0.5, "sentiment140": 0.5},
    "folds": {"outer": 3, "inner": 2, "outer_done": 2, "inner_done": 2},
    "explained": 6,
    "lipschitz": {"sentences": 1, "points": 1},
    "models": {"C": "size=8, filters=4, sigmoid=True", "L": "size=8, hidden=6, sigmoid=True"},
    "training": {"epochs": 2, "batch_size": 32, "learning_rate": 0.01},
    "explainers": {
        "lime": "lime(samples=30)",
        "shap": "shap(samples=20)",
        "integrated_gradients": "integrated_gradients(steps=10, gap=1.0)",
    },
    "draws": 60,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made reviews, laid out as somebody's SST-2 and tweets."""
    place = tmp_path_factory.mktemp("given")
    for i, part in enumerate(("train", "dev", "test")):
        _written(place / f"sst/sst2.{part}.tsv", f"made_reviews(n=120, seed={i})")
    _written(place / "sentiment140/tweets_100k.tsv", "made_reviews(n=200, seed=9)")
    return place


def _written(path: Path, source: str) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = [f"{e.label}\t{e.input.text}" for e in load_data(source)]
    path.write_text("\n".join(["label\ttext", *rows]), "utf-8")


def sizes() -> dict[str, Any]:
    corpora = Percy.settings()["always"]["corpora"]
    plain = {**corpora["sentiment140"], "files": ["sentiment140/tweets_100k.tsv"]}
    return {**TINY, "corpora": {**corpora, "sentiment140": plain}}


def test_percy_runs_and_goes_on(folder: Path, tmp_path: Path) -> None:
    vectors = str(tmp_path / "own.txt")
    Path(vectors).write_text("the 1 0 0.5\nfilm 0 1 0.2\n", "utf-8")
    names = ("CG", "CDG", "LG", "LDG", "CW")
    recipe = recipes.make(f"percy(vectors=('G={vectors}', 'W'), classifiers={names})")
    steps: list[Any] = []

    def go() -> Findings:
        return recipe.run(
            tmp_path / "run",
            scale="smoke",
            sizes=sizes(),
            data=folder,
            workers=1,
            watch=steps.append,
        )

    first = go()
    # of SST-2 two folds with two inner trainings each, of tweets one
    assert steps[-1].total == len(names) * (2 * 2 + 1 + 2 + 1)
    tables = {t.title: t for t in first.tables}
    performance = tables["SST-2: accuracy and rule consistency"]
    rows = {name: dict(zip(performance.columns[1:], cells, strict=True)) for name, cells in
            performance.rows}  # fmt: skip
    assert list(rows) == ["CW", "CG", "CDG", "LG", "LDG"]  # in the order of the paper
    taught, plain = rows["CDG"], rows["CG"]
    assert all(isinstance(taught[c], Cell) for c in ("L", "S", "I", "teacher: L", "teacher: S"))
    assert "teacher: I" not in taught and plain["teacher: L"] is None
    accuracy = plain["accuracy"]
    assert isinstance(accuracy, Cell) and accuracy.published == 0.7326
    assert accuracy.low is not None and accuracy.low <= accuracy.value <= (accuracy.high or 0)
    # the model of the better inner fold is judged
    for outer in (0, 1):
        of = [
            json.loads((tmp_path / f"run/steps/{what}-sst2-CG-{outer}-{i}/found.json").read_text())
            for what, i in (("train", 0), ("train", 1), ("judge", 0))
        ]
        trained = [one["found"]["validation"] for one in of[:2]]
        assert of[2]["found"]["chosen"] == int(np.argmax(trained))
        # and on sentences that neither training nor choice has seen
        judged = set(of[2]["found"]["answers"]["ids"])
        assert judged and set(of[2]["found"]["explained"]) < judged
    # what the sentences come to is all there is
    outcomes = tables["SST-2: what sentences come to"]
    for _, cells in outcomes.rows:
        parts = [c.value for c in cells[:4] if isinstance(c, Cell)]
        assert sum(parts) == pytest.approx(1)
    assert {c.where for c in first.claims} >= {"SST-2, student", "SST-2, teacher", "Sentiment140"}
    assert any("1 is best" in f.about for f in first.figures)
    cost = dict(tables["What the whole grid would cost"].rows)
    assert cost["ELMo"][-1] is None or "not run" in cost["ELMo"]
    # nothing is done again, and the same is found
    kept = [p for p in (tmp_path / "run/steps").rglob("*") if p.is_file()]
    written = {p: p.stat().st_mtime_ns for p in kept}
    assert repr(go()) == repr(first) == repr(Findings.read(tmp_path / "run"))
    assert written == {p: p.stat().st_mtime_ns for p in kept}


def test_folds_are_reported_on_as_asked(folder: Path, tmp_path: Path) -> None:
    setup = Setup(tmp_path, "smoke", {**Percy.at_scale("smoke"), **sizes()}, folder)
    for report_on, judged in (("outer", 2), ("inner", 4)):
        recipe = recipes.make(f"percy(report_on={report_on}, corpora=('sst2',), vectors=('W',))")
        experiment: Any = recipe.experiment(setup)
        keys = [s.key for s in experiment.steps()]
        assert sum(k.what == "judge" and k.classifier == "CW" for k in keys) == judged
        parts = experiment.folds["sst2"][0, 0].parts
        same = {e.id for e in parts.test} == {e.id for e in parts.validation}
        assert same == (report_on == "inner")


def test_what_is_asked_is_checked() -> None:
    every = Percy(vectors=("G", "W", "B=bert", "E=elmo(encoder=x)", "sB=sentibert(encoder=y)"))
    assert every.specs["E"] == "elmo(encoder=x)"
    assert len(every.chosen({})) == 40 and every.chosen({}) == GRID
    assert Percy(classifiers=("CG", "LDFW")).chosen({}) == tuple(
        map(ClassifierName.parse, ("CG", "LDFW"))
    )
    for wrong, said in (
        ("vectors=('B',)", "such as G, W or B=bert, got 'B'"),
        ("vectors=('X=y',)", "such as G, W or B=bert"),
        ("classifiers=('CB',)", "expected classifiers among CW, CG"),
        ("corpora=('sst',)", "expected corpora among sst2, sentiment140"),
        ("strength=3", "strength of 1, 2 or 4"),
    ):
        with pytest.raises(PluginError, match=said):
            recipes.make(f"percy({wrong})")


def test_a_folder_without_the_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder that holds sst or sentiment140"):
        recipes.make("percy").run(tmp_path / "run", scale="smoke", data=tmp_path, workers=1)


def test_tweets_are_drawn_rich_in_structures() -> None:
    data = changed(load_data("made_reviews(n=400)"), "structure")
    for limit, share in ((100, 0.5), (100, 0.8), (10_000, 0.5)):
        found = drawn(data, limit, share, seed=0)
        structured = [has_structure(e) for e in found]
        assert np.mean(structured) == pytest.approx(share, abs=0.02)
        assert len(found) <= limit
        labels = [in_proportion(e) for e in found]
        assert all(labels.count((s, 0)) > 0.3 * structured.count(bool(s)) for s in (0, 1))


# ---- figures --------------------------------------------------------------------------------


def test_ex_5_17_pearson_of_two_binary_vectors() -> None:
    one, other = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0])
    assert pearson(one, other) == pytest.approx(0.577350, abs=1e-6)
    assert np.isnan(pearson(one, np.ones(4)))


def test_a_sentence_in_several_folds_is_one_draw() -> None:
    """Twice the same sentences in two folds tell no more than once."""
    rng = np.random.default_rng(0)
    values = (rng.random(60) < 0.4).astype(float)
    ids = [f"s{i}" for i in range(60)]
    once = Rows.of(ids, ["0"] * 60, 2000).mean(values)
    twice = Rows.of(ids * 2, ["0"] * 60 + ["1"] * 60, 2000).mean(np.tile(values, 2))
    assert twice[0] == once[0]
    assert twice[2] - twice[1] == pytest.approx(once[2] - once[1], rel=0.1)
    independent = Rows.of([*ids, *(f"t{i}" for i in range(60))], ["0"] * 120, 2000)
    fresh = independent.mean(np.tile(values, 2))
    assert fresh[2] - fresh[1] < 0.8 * (once[2] - once[1])


def test_folds_that_differ_widen_the_interval() -> None:
    ids, folds = [f"s{i}" for i in range(120)], [str(i // 30) for i in range(120)]
    alike = np.tile([1.0, 0, 0, 1, 0], 24)
    apart = np.concatenate([np.ones(30), np.zeros(30), np.ones(15), np.zeros(45)])
    ends = [Rows.of(ids, folds, 2000).mean(v) for v in (alike, apart)]
    assert ends[1][2] - ends[1][1] > 1.5 * (ends[0][2] - ends[0][1])


def made_grid(scores: dict[str, float], n: int = 400) -> CorpusGrid:
    """Classifiers that are consistent in these shares of sentences."""
    rng = np.random.default_rng(1)
    ids = [f"s{i}" for i in range(n)]
    results = {}
    for name, share in scores.items():
        own = (rng.random(n) < share).astype(float).tolist()
        results[name] = [
            {
                "answers": {"ids": ids, "gold": [1] * n, "student": [int(v) for v in own]},
                "explained": ids,
                "outcomes": {"student": {"lime": {"recommended": own}}},
                "causal": {"student": {"decides": own}},
            }
        ]
    return CorpusGrid(tuple(map(ClassifierName.parse, scores)), results, ("0",), 300)


def test_ranks_of_classifiers_have_intervals_over_sentences() -> None:
    grid = made_grid({"CW": 0.1, "CG": 0.3, "CFW": 0.5, "CFG": 0.7, "CDW": 0.9})
    tau = grid.tau("", "lime")
    assert tau == pytest.approx((1, 1, 1))
    assert made_grid({"CW": 0.1, "CG": 0.3}).tau("", "lime") is None
    pairs = grid.pairs("distilled", True, False)
    assert [(str(a), str(b)) for a, b in pairs] == [("CDW", "CW")]
    assert grid.differences(pairs, grid.score("lime")).mean() == pytest.approx(0.8, abs=0.07)


def test_printed_means_are_those_of_the_paper() -> None:
    """Definitions 9.1, claims on methods, to four decimals."""
    rows = Percy.settings()["published"]["rows"]
    sst, tweets = (PrintedTable.of(rows, place) for place in (0, 1))
    told = [t.differences("distilled", True, False) for t in (sst, tweets)]
    figures = ("accuracy", "lime", "shap", "integrated_gradients")
    assert [round(told[0][f], 4) for f in figures] == [-0.0124, -0.0002, 0.0139, 0.0136]
    assert [round(told[1][f], 4) for f in figures] == [-0.0001, 0.0140, 0.0264, 0.0315]
    means = [t.mean("lime", proposed=lrd) for t in (sst, tweets) for lrd in (True, False)]
    assert means == pytest.approx([0.1394, 0.1413, 0.0915, 0.0874], abs=5e-5)
    base = [t.differences("base", "C", "L")["lime"] for t in (sst, tweets)]
    assert base == pytest.approx([0.1563 - 0.1236, 0.0957 - 0.0848], abs=1e-4)
    assert sst.tau("accuracy", "lime") == pytest.approx(0.178, abs=0.001)
    assert sst.tau("lime", "shap", measured=True) == pytest.approx(0.400, abs=0.001)
    # figures that are no measurements stand beside none of ours
    assert "shap" not in sst.row(ClassifierName.parse("CB"))
    assert sst.row(ClassifierName.parse("CB"))["lime"] == 0.2038
    assert np.isnan(kendall(np.ones(4), np.arange(4.0)))
