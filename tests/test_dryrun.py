"""Dry runs: what is planted and learnt, who shows it, and what is told of it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from commands import run_command
from edited import edited
from made_run import ATTACK
from veracity.auditing.selection import select_explainers
from veracity.core.errors import DataError, ModelError, PluginError, RunError
from veracity.core.files import as_read
from veracity.data.loading import load_data
from veracity.data.splits import Splits
from veracity.engine.executors import Local, default_workers
from veracity.experiments.cues import KINDS
from veracity.experiments.dryrun import DryRunResult, run_dryrun
from veracity.experiments.dryrun_findings import (
    _cell,
    _standings,
    difference_lower_bound,
    findings,
    sees,
)
from veracity.experiments.dryrun_plan import ENCODER_SCALES, SCALES, plan_dryrun
from veracity.experiments.dryrun_record import FILE, DryRun, Trial, judged
from veracity.experiments.dryrun_sentences import headline, remarks
from veracity.models.architecture import LATER
from veracity.models.loading import RECORD, load_model, read_record
from veracity.reports.dryrun import DryRunPage, build_dryrun, write_dryrun
from veracity.reports.terminal import print_dryrun
from veracity.results.guarantees import Reliance, luck
from veracity.results.run import Run
from veracity.results.statistics import cluster_intervals, mean_intervals, wilson


def test_where_no_method_is_named_those_are_tried_that_an_audit_takes() -> None:
    """A search for a ceiling is no method, and an audit refuses it."""
    for scale in (*SCALES.values(), *ENCODER_SCALES.values()):
        assert select_explainers(scale.methods, kind="text", profile="recommended", questions=None)


# ---- arithmetic -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "chance", "verdict"),
    [
        (0.51, 0.9, (0.1, 0.2), "exposes"),
        (0.50, 0.9, (0.1, 0.2), "unclear"),  # one half itself is not more than half
        (0.10, 0.49, (0.1, 0.2), "hides"),
        (0.10, 0.50, (0.1, 0.2), "unclear"),
        (0.60, 0.7, (0.75, 0.85), "hides"),  # long cues: chance asks for more than half
        (0.80, 0.9, (0.75, 0.85), "unclear"),
        (0.86, 0.9, (0.75, 0.85), "exposes"),
    ],
)
def test_verdicts_by_hand(
    low: float, high: float, chance: tuple[float, float], verdict: str
) -> None:
    assert sees(low, high, *chance) == verdict


def test_a_dry_run_that_goes_on_under_other_versions_says_so(tmp_path: Path) -> None:
    asked = {
        "same": {"model": "lstm", "training": {}, "keep": 0.5, "limit": None},
        "data": {"name": "made", "size": 1, "labels": ["a", "b"]},
        "cues": {},
        "seeds": 1,
        "methods": ["lime"],
        "skipped": [],
        "trials": [],
    }
    first = DryRun.start(tmp_path, asked)
    assert DryRun.start(tmp_path, asked).made == first.made
    path = tmp_path / "dryrun.json"
    with edited(path) as content:
        content["made"]["versions"]["torch"] = "0.1"
    with pytest.warns(UserWarning, match=r"was begun with torch 0\.1 \(now"):
        DryRun.start(tmp_path, asked)
    assert DryRun.open(tmp_path).made.resumed[0].versions == first.made.versions


def test_intervals_over_seeds_and_texts() -> None:
    rng = np.random.default_rng(1)
    one = rng.integers(0, 2, size=(60, 2)).astype(float)
    # one cluster: texts alone
    assert cluster_intervals([one]) == pytest.approx(mean_intervals(one))
    # two models that differ altogether: either may be drawn twice
    apart = [np.ones((30, 1)), np.zeros((30, 1))]
    assert cluster_intervals(apart).tolist() == [[0.0, 1.0]]
    assert np.ptp(mean_intervals(np.concatenate(apart))) < 0.3
    # what is not defined is left out, and nothing at all is not defined
    gaps = np.array([[1.0, np.nan], [1.0, np.nan]])
    found = cluster_intervals([gaps])
    assert found[0].tolist() == [1.0, 1.0] and np.isnan(found[1]).all()
    assert np.isnan(cluster_intervals([np.zeros((0, 2))])).all()


def test_a_difference_of_two_shares_by_their_intervals() -> None:
    """Newcombe (1998), table II, row a: 56 of 70 and 48 of 80, from 0.0524."""
    low, high = wilson(56, 70)[0], wilson(48, 80)[1]
    assert difference_lower_bound(56 / 70, low, 48 / 80, high) == pytest.approx(0.0524, abs=5e-5)
    assert np.isnan(difference_lower_bound(0.8, 0.7, np.nan, np.nan))


def test_what_is_shown_of_any_model_exposes_nothing() -> None:
    """One method shows the cue where it was learnt, one everywhere, one where nobody looked."""
    trial = Trial(name="a", cue="word", strength=1.0, seed=0, changes="", status="scored", why="")
    methods = ["tells", "always"]

    def scored(*shares: float) -> Any:
        seen = np.column_stack([np.arange(40) < 40 * share for share in shares]).astype(float)
        same = dict.fromkeys(("seen", "first", "rank"), seen)
        return {**same, "chance": np.full((40, 2), 0.1), "mark": np.zeros((40, 1))}

    tables = {"a": scored(1.0, 1.0)}
    (standing, *_) = _standings(tables, {}, methods, []).values()
    cell = _cell([trial], tables, {"a": scored(0.1, 0.9)}, methods, [], standing)
    assert [cell.sights[m].sees for m in methods] == ["exposes", "unclear"]
    assert [cell.sights[m].false_alarm for m in methods] == [False, True]
    assert cell.sights["tells"].clean == pytest.approx(0.1)
    assert 0 < cell.sights["tells"].clean_low < 0.1 < cell.sights["tells"].clean_high
    # of folders without the column, as before
    before = _cell([trial], tables, {}, methods, [], standing)
    assert [before.sights[m].sees for m in methods] == ["exposes", "exposes"]
    assert np.isnan(before.sights["tells"].clean) and not before.sights["tells"].false_alarm


def test_what_accuracy_allows_to_say() -> None:
    def told(accuracy: float, n: int = 300) -> tuple[str, str]:
        return judged(
            Reliance(accuracy=accuracy, n=n, bound=0.5, ceiling=1.0, luck=luck(accuracy, n, 0.5))
        )

    assert told(0.99)[0] == "scored"
    status, why = told(0.51)
    assert status == "not learnt"
    assert "the model did not learn this cue: accuracy 0.510 on 300 texts" in why
    assert told(0.8)[0] == "learnt in part"
    assert told(1.0, n=5)[0] == "too few texts"


# ---- plans ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "error", "says"),
    [
        ("text_cn", {}, PluginError, "did you mean 'text_cnn'"),
        ("http://127.0.0.1:1/predict", {}, ModelError, "cannot be trained here"),
        ("model.pkl", {}, ModelError, "cannot be trained here"),
        ("package.module:predict", {}, ModelError, "cannot be trained here"),
        ("no/such/folder", {}, ModelError, "cannot be trained here"),
        ("lstm", {"scale": "huge"}, PluginError, "no scale is called 'huge'"),
        ("lstm", {"cues": "wrod"}, PluginError, "did you mean 'word'"),
        ("lstm", {"cues": "reassign"}, PluginError, "plants nothing"),
        ("lstm", {"cues": "insert(marks=('a', 'b', 'c'))"}, DataError, "one per label"),
        ("lstm", {"cues": "insert(table=((1.0, 0.0), (0.0, 1.0)))"}, PluginError, "no table"),
        ("lstm", {"strengths": [0.5]}, PluginError, "above 0.5, which is chance"),
        ("lstm", {"strengths": [1.2]}, PluginError, "up to 1"),
        ("lstm", {"keep": 2.0}, PluginError, "--keep between 0 and 1"),
        ("lstm", {"keep": 0.9, "strengths": [0.9]}, PluginError, "forces a model to nothing"),
        ("lstm", {"keep": 1.0}, PluginError, "forces a model to nothing"),
        ("lstm", {"methods": "lim"}, PluginError, "did you mean 'lime'"),
        ("lstm", {"methods": "attention"}, ModelError, "needs a model with"),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_trained(
    model: str, options: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        plan_dryrun(model, "made_reviews(n=60)", out=tmp_path / "d", **options)
    assert not (tmp_path / "d").exists()


SETTINGS: dict[str, Any] = {"epochs": 6, "batch_size": 16, "learning_rate": 0.01, "patience": 1}


def _record(folder: Path, spec: str) -> None:
    """What a dry run reads of a model folder: its architecture and how it was trained."""
    folder.mkdir()
    record = {"format": 1, "architecture": spec, "labels": ["a", "b"], "training": SETTINGS}
    (folder / RECORD).write_text(json.dumps(record))


def test_models_come_from_specs_and_folders(encoder_folder: Path, tmp_path: Path) -> None:
    from veracity.models.architecture import Training

    spec = "text_cnn(size=32, dropout=0.3, filters=32)"
    _record(tmp_path / "m", spec)
    ours = plan_dryrun(tmp_path / "m", "made_reviews(n=60)")
    assert ours.architecture.spec == spec
    assert ours.design.training == Training(**SETTINGS)
    encoder = plan_dryrun(encoder_folder, "made_reviews(n=60)")
    assert encoder.architecture.spec == f"transformer(encoder={str(encoder_folder)!r})"
    assert {cue.name for cue in encoder.cues} == set(ENCODER_SCALES["smoke"].cues)
    assert "attention" in encoder.methods and "grad_cam" not in encoder.methods
    assert ("grad_cam", "needs a model with convolutional filters") in encoder.skipped
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="has neither"):
        plan_dryrun(tmp_path / "empty", "made_reviews(n=60)")


def test_capitals_are_tried_with_a_model_that_sees_them_unless_told() -> None:
    def specs(model: str) -> dict[str, str]:
        plan = plan_dryrun(model, "made_reviews(n=60)", cues="word, capitals", seeds=1)
        return {cue.name: plan.architecture_for(cue).spec for cue in plan.cues}

    free = specs("text_cnn(size=8, embeddings=random)")
    assert "cased=True" in free["capitals"] and "cased" not in free["word"]
    assert "cased" not in specs("text_cnn(size=8, embeddings=random, cased=False)")["capitals"]


def test_scales_grow_and_plans_count() -> None:
    for scales in (SCALES, ENCODER_SCALES):
        work = [len(s.cues) * len(s.strengths) * s.seeds * s.sentences for s in scales.values()]
        assert work == sorted(work) and len(set(work)) == 3
    plan = plan_dryrun(
        "lstm(embeddings=random)", "made_reviews(n=60)", strengths=[1.0, 0.9], seeds=3
    )
    assert len(plan.trials) == len(SCALES["smoke"].cues) * 2 * 3
    assert len({t.name for t in plan.trials}) == len(plan.trials)
    assert default_workers(1) == 1
    # a cue with its own strength is tried at that alone
    own = "insert(marks=('so', 'thus'), strength=0.8)"
    plan = plan_dryrun("lstm(embeddings=random)", "made_reviews(n=60)", cues=["word", own], seeds=1)
    assert [t.strength for t in plan.trials if t.cue == own] == [0.8]


def test_every_kind_plants_something_in_made_reviews() -> None:
    from veracity.changes import changed
    from veracity.core.changes import DECOY, PLANTED

    data = load_data("made_reviews(n=100)")
    for kind in KINDS.values():
        after = changed(data, ["reassign", kind.planting(2)])
        assert np.mean([PLANTED in e.truths for e in after]) > 0.6, kind.title
        assert bool(kind.decoys) == (DECOY in after.truth_kinds)
    with pytest.raises(PluginError, match="can tell 3 labels apart"):
        KINDS["ending"].planting(4)


# ---- a real one -----------------------------------------------------------------------------


def test_a_learnt_cue_is_scored_and_one_out_of_sight_is_not(rehearsal: DryRunResult) -> None:
    dry, found = rehearsal.record, rehearsal.findings
    by_cue = {t.cue: t for t in dry.trials}
    assert {t.status for t in dry.trials if t.cue == "word"} == {"scored"}
    blind = by_cue["capitals"]
    assert blind.status == "not learnt" and not blind.audit
    assert 0.3 < blind.accuracy < 0.7
    assert [cell.cue for cell in found.cells] == ["word"]
    said = " ".join(remarks(dry, found))
    assert re.search(
        r"Not scored: capitals \(100 %\); the model did not learn this cue: accuracy 0\.\d+", said
    )
    assert not (dry.folder / "audits" / blind.name).exists()


def test_occlusion_shows_the_word_and_chance_does_not(rehearsal: DryRunResult) -> None:
    (cell,) = rehearsal.findings.cells
    assert cell.sights["occlusion"].sees == "exposes"
    assert cell.sights["random_scores"].sees != "exposes"
    assert 0 < cell.chance < 0.5
    assert abs(cell.sights["random_scores"].share - cell.chance) < 0.3
    first, *_, last = rehearsal.findings.profiles
    assert first.worst >= last.worst and last.method == "random_scores" and last.baseline
    occlusion = next(p for p in rehearsal.findings.profiles if p.method == "occlusion")
    assert occlusion.planted.mean > occlusion.planted.expected
    assert occlusion.decoys is not None and occlusion.decoys.mean < occlusion.planted.mean
    said = headline(rehearsal.record, rehearsal.findings)
    assert "occlusion" in said and "would have shown you the one planted cue" in said
    assert said in str(rehearsal)


def test_a_model_that_never_saw_the_word_raises_few_alarms(rehearsal: DryRunResult) -> None:
    dry, found = rehearsal.record, rehearsal.findings
    (cell,) = found.cells
    sight = cell.sights["occlusion"]
    assert sight.clean < 0.5 < sight.share and sight.gain_low > 0
    for trial in cell.trials:
        clean = dry.clean[trial.name]
        assert clean.model == f"models/clean-seed{trial.seed}" and clean.accuracy > 0.9
        run = dry.run(clean)
        assert not run.config.reliance and {"decoy", "planted"} <= {*run.config.dataset.truth_kinds}
        # none of its texts was a lesson of the model that is shown it
        lessons = read_record(dry.folder / clean.model)["data"]["reading"]
        assert lessons["changes"] == ""
    assert "shown in" in " ".join(remarks(dry, found)) and not dry.lacks_clean
    assert not dry.clean[next(t.name for t in dry.trials if t.cue == "capitals")].audit


def test_figures_are_those_of_the_audits(rehearsal: DryRunResult) -> None:
    """Counted anew from the explanations themselves."""
    (cell,) = rehearsal.findings.cells
    seen, n = 0, 0
    for trial in cell.trials:
        run = rehearsal.record.run(trial)
        (model,) = run.models
        stored = run.attributions(model, "occlusion")
        for e in run.examples():
            top = np.argsort(-np.abs(stored[e.id].scores), kind="stable")[:3]
            seen += bool(e.truths["planted"][0][top].any())
            n += 1
    assert len(cell.trials) == 2
    assert cell.sights["occlusion"].n == n
    assert cell.sights["occlusion"].share == pytest.approx(seen / n)


def test_models_and_audits_are_ordinary_folders(rehearsal: DryRunResult) -> None:
    from veracity.auditing.training_sets import training_sets
    from veracity.core.examples import Dataset

    trial = next(t for t in rehearsal.record.trials if t.status == "scored")
    folder = rehearsal.folder / trial.model
    assert (folder / RECORD).exists() and not (folder / "checkpoint").exists()
    model = load_model(folder)
    # what it was trained on can be read again, cue and all
    lesson = training_sets({"m": model}, None, seed=trial.seed)["m"]
    assert isinstance(lesson, Dataset) and len(lesson) == trial.trained_on
    assert "planted" in lesson.truth_kinds
    run = Run.open(rehearsal.folder / trial.audit)
    told = run.config.reliance[run.models[0]]
    assert told.forced and told.n == trial.tested_on > run.config.dataset.size


def test_given_again_it_makes_nothing(rehearsal: DryRunResult, again: Any) -> None:
    before = _files(rehearsal.folder)
    second = again()
    assert (second.made, second.reused) == (0, 4)
    assert second.findings == rehearsal.findings
    after = _files(rehearsal.folder)
    assert {k for k in before if before[k] != after[k]} <= {FILE, "run.lock"}
    # earlier versions kept all trials in one file
    shutil.rmtree(rehearsal.folder / "steps")
    third = again()
    assert (third.made, third.reused) == (0, 4) and third.findings == rehearsal.findings
    # and knew nothing of models that never saw a cue, nor of steps that become shorter
    with edited(rehearsal.folder / FILE) as content:
        content.pop("clean")
        content["asked"].pop("clean")
        training = content["asked"]["same"]["training"]
        assert [training.pop(name) for name in LATER] == [as_read(v) for v in LATER.values()]
    shutil.rmtree(rehearsal.folder / "steps")
    old = DryRun.open(rehearsal.folder)
    assert old.lacks_clean and findings(old).no_clean
    assert "the same command without --no-clean" in " ".join(remarks(old, findings(old)))
    assert "false alarms" not in build_dryrun(old)
    fourth = again()
    assert (fourth.made, fourth.reused) == (0, 4) and fourth.findings == rehearsal.findings
    with pytest.raises(RunError, match="another keep"):
        again(keep=0.6)
    with pytest.raises(RunError, match="another number of sentences"):
        again(sentences=11)


def test_not_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(RunError, match="holds other files"):
        plan_dryrun("lstm(embeddings=random)", "made_reviews(n=60)", out=tmp_path)
    plan = plan_dryrun("lstm(embeddings=random)", "made_reviews(n=60)", out=tmp_path / "new")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").write_text("")
    with pytest.raises(RunError, match="holds other files"):
        run_dryrun(plan, Local())


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.stat().st_size)
        for p in folder.rglob("*")
        if p.is_file() and p.name != "run.json"
    }


def test_kill_and_resume(tmp_path: Path) -> None:
    """kill -9 between two trials; nothing that was written is computed anew."""
    _record(tmp_path / "m", "text_cnn(size=16, filters=16, widths=(1, 2))")
    command = [
        "dryrun", "m", "made_reviews(n=600)", "--cues", "word,tag", "--strengths", "1.0", "--seeds",
        "1", "--methods", "occlusion,random_scores", "--sentences", "10", "--workers", "1",
        "--out", "d", "--json",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "veracity", *command],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = tmp_path / "d" / "audits" / "word-1-seed0" / "summaries.json"
    deadline = time.monotonic() + 240  # on a busy machine
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert first.exists()
    assert not (tmp_path / "d" / "report.html").exists(), "it was killed too late"
    half = DryRun.open(tmp_path / "d")
    assert half.missing
    assert "still missing" in " ".join(remarks(half, findings(half)))
    written = {
        k: v
        for k, v in _files(tmp_path / "d").items()
        if k.startswith(("audits/word", "models/word")) and k.endswith((".parquet", "safetensors"))
    }
    assert written
    resumed = run_command(*command, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "2 trainings and up to 2 audits of text_cnn" in resumed.stderr
    assert "2 cues, 1 seed, 2 methods; 1 training and up to 2 audits for false" in resumed.stderr
    told = json.loads(resumed.stdout)
    after = _files(tmp_path / "d")
    assert {k: after[k] for k in written} == written, "a written part was touched"
    assert {t["status"] for t in told["trials"]} == {"scored"}
    assert {m["method"] for m in told["methods"]} == {"occlusion", "random_scores"}
    assert (tmp_path / told["report"]).exists()
    assert (tmp_path / "d" / "audits" / "tag-1-seed0" / "report.html").exists()
    assert told["made"] + told["reused"] == 2


def test_what_a_person_is_told(rehearsal: DryRunResult, tmp_path: Path) -> None:
    bad = run_command("dryrun", "text_cn", "made_reviews(n=60)", cwd=tmp_path)
    assert bad.returncode == 2 and "did you mean 'text_cnn'" in bad.stderr
    bad = run_command(
        *["dryrun", "lstm", "made_reviews(n=60)", "--strengths", "high"], cwd=tmp_path
    )
    assert bad.returncode == 2 and "numbers such as 1.0,0.9" in bad.stderr
    shown = run_command("dryrun", "--help", cwd=tmp_path).stdout
    assert all(scale in shown for scale in SCALES) and all(cue in shown for cue in KINDS)
    console = Console(width=120, record=True, file=io.StringIO())
    print_dryrun(console, rehearsal.record, rehearsal.findings)
    text = console.export_text()
    assert headline(rehearsal.record, rehearsal.findings).split(".")[0] in " ".join(text.split())
    assert "✓" in text and "✗" in text and "by chance" in text


# ---- the page -------------------------------------------------------------------------------


def test_the_page_is_rebuilt_without_torch(rehearsal: DryRunResult, tmp_path: Path) -> None:
    page = tmp_path / "elsewhere" / "page.html"
    code = (
        "import sys; sys.argv = ['veracity', 'report', sys.argv[1], '--out', sys.argv[2]]; "
        "from veracity.cli.main import app; app(standalone_mode=False); "
        "heavy = {'torch', 'transformers', 'sklearn', 'veracity.explainers', 'veracity.metrics'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(rehearsal.folder), str(page)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.lstrip().startswith("<!DOCTYPE html>")
    (link, *_) = re.findall(r'href="([^"]+/report\.html)"', text)
    assert (page.parent / link).resolve().is_file()


def test_the_page_says_it_all(rehearsal: DryRunResult) -> None:
    path = write_dryrun(rehearsal.record)
    assert path == rehearsal.folder / "report.html"
    page = path.read_text(encoding="utf-8")
    assert page == build_dryrun(rehearsal.record)
    assert headline(rehearsal.record, rehearsal.findings) in page
    assert "the model did not learn this cue: accuracy" in page and "not scored" in page
    for p in rehearsal.findings.profiles:
        assert page.count(f'">{p.method.replace("_", "_<wbr>")}<') > 1
    data = json.loads(
        re.search(r'id="sentence-data">(.*?)</script>', page, re.DOTALL)[1]  # type: ignore[index]
    )
    assert data["models"] == ["a word anywhere (100 %)"]
    for item in data["items"]:
        text = data["texts"][item["text"]]
        words = text["pieces"][1::2]
        assert {words[i] for i in text["marks"]["planted"]} <= {"meanwhile", "elsewhere"}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    trial = Trial(
        name="t", cue=ATTACK, strength=1.0, seed=0, changes=ATTACK, status="not learnt", why=ATTACK
    )
    asked = {
        "same": {
            "model": ATTACK,
            "data set": "0",
            "training": {"epochs": 1},
            "keep": 0.5,
            "limit": None,
            "number of sentences": 3,
        },
        "data": {"name": ATTACK, "size": 3, "labels": [ATTACK, "b"]},
        "cues": {
            ATTACK: {
                "title": ATTACK,
                "change": ATTACK,
                "strengths": [1.0],
                "decoys": False,
                "architecture": "x",
            }
        },
        "seeds": 1,
        "methods": [ATTACK],
        "skipped": [{"explainer": ATTACK, "why": ATTACK}],
        "trials": ["t"],
    }
    dry = DryRun.start(tmp_path, asked).with_trials([trial.to_dict()])
    page = build_dryrun(dry)
    assert ATTACK not in page and "&lt;script&gt;alert(1)" in page
    assert "Nothing can be said" in page
    assert DryRun.open(tmp_path).trials[0].why == ATTACK
    with edited(tmp_path / FILE) as content:
        content["trials"][0]["cue"] = "another"
    with pytest.raises(RunError, match="cues that it does not name"):
        DryRun.open(tmp_path)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(RunError, match="damaged"):
        DryRun.open(tmp_path)
    with pytest.raises(RunError, match="veracity dryrun"):
        DryRun.open(tmp_path / "nowhere")


def test_the_page_counts_as_the_metric_does(rehearsal: DryRunResult) -> None:
    """Words that tie are shown perhaps, words without a score never: as scored, not as ranked."""
    profiles = tuple(replace(p, baseline=False) for p in rehearsal.findings.profiles)
    found = replace(rehearsal.findings, profiles=profiles)  # as if random scores were a method
    (cell,) = found.cells
    shares: dict[str, list[float]] = {}
    for trial in cell.trials[::-1]:
        one_trial = replace(found, cells=(replace(cell, trials=(trial,)),))
        page = DryRunPage(rehearsal.record, one_trial, rehearsal.folder)
        seen = page.seen[cell.key]
        for (method, _), share in seen.items():
            shares.setdefault(method, []).append(share)
    for method, sight in cell.sights.items():
        assert np.mean(shares[method]) == pytest.approx(sight.share)
    one = page.contrast
    assert one is not None
    assert seen[one.shows, one.sentence.example.id] == 1.0
    assert seen[one.fails, one.sentence.example.id] == 0.0


def test_texts_of_one_model_are_no_independent_draws() -> None:
    """Two models that agree on every text tell as much as two draws do, one model as its texts."""
    seen = np.column_stack([np.ones(40), np.zeros(40)])
    trial = Trial(name="a", cue="word", strength=1.0, seed=0, changes="", status="scored", why="")
    other = replace(trial, name="b", seed=1)
    one = _standings({"a": {"seen": seen}}, {trial.key: [trial]}, ["shows", "hides"], [])
    assert not any(e.tied_with_best for s in one.values() for e in s.entries)
    both = {"a": {"seen": seen}, "b": {"seen": seen}}
    two = _standings(both, {trial.key: [trial, other]}, ["shows", "hides"], [])
    for standing in two.values():
        tied = {e.method: e.tied_with_best for e in standing.entries}
        assert tied == {"shows": False, "hides": True}
        assert standing.entries[0].n == 80


def test_headlines_by_hand(rehearsal: DryRunResult) -> None:
    """The sentences follow the counts, whatever the figures are."""
    dry, found = rehearsal.record, rehearsal.findings
    (cell,) = found.cells
    other = replace(cell, strength=0.9)
    cells = (cell, other)
    keys = (cell.key, other.key)
    one, two = (replace(p, exposes=(), hides=(), unclear=()) for p in found.methods[:2])
    all_of_it = replace(found, cells=cells, profiles=(replace(one, exposes=keys), two))
    assert headline(dry, all_of_it) == f"{one.method} would have shown you all 2 planted cues."
    part = replace(found, cells=cells, profiles=(replace(one, exposes=keys[:1]), two))
    assert "No method would have shown you all 2" in headline(dry, part)
    assert f"{one.method} came closest with 1 of 2" in headline(dry, part)
    apart = replace(cell, by_mark={0: 0.1, 1: 0.9})
    said = " ".join(remarks(dry, replace(found, cells=(apart,))))
    assert "90 % of texts with “elsewhere” and 10 % of texts with “meanwhile”" in said
    assert "one-sided" not in build_dryrun(dry) and not cell.one_sided
    rounded = replace(found, cells=(replace(cell, by_mark={0: 0.125, 1: 0.625}),))
    told = " ".join(remarks(dry, rounded))
    assert "63 % of texts with “elsewhere” and 13 % of texts with “meanwhile”" in told
    assert "<b>13 %</b>" in build_dryrun(dry, found=rounded)
    none = replace(found, cells=cells, profiles=(replace(one, hides=keys), two))
    assert headline(dry, none) == "No method would have shown you any of 2 planted cues."
    assert f"{one.method} hid 2 of 2: a word anywhere (100 %, 90 %)" in " ".join(remarks(dry, none))
    assert "One seed only" in " ".join(remarks(dry, replace(found, seeds=1)))
    assert "One seed only" not in " ".join(remarks(dry, found))


def test_a_model_on_other_data_is_not_taken(made: Splits, tmp_path: Path) -> None:
    from veracity.experiments.training import trained_once
    from veracity.models.architecture import Training
    from veracity.models.architectures import architectures

    small = Splits(*(part.select(range(40)) for part in (made.train, made.validation, made.test)))
    tiny = architectures.make("text_cnn(size=4, filters=2)")

    def once(fingerprint: str) -> Any:
        about = {"name": "made", "fingerprint": fingerprint}
        return trained_once(tiny, small, tmp_path / "m", data=about, training=Training(epochs=1))

    assert once("a").fresh
    again = once("a")
    assert not again.fresh and again.record["test"]["accuracy"] >= 0
    with pytest.raises(RunError, match="trained on other data"):
        once("b")
