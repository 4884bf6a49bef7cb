"""Dry runs and audits of pictures: what a mark tells, who shows it, and who shows it anyway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veracity
from test_picture_changes import pictures
from veracity.changes import changed, changes
from veracity.changes.reassign import Reassign
from veracity.core.changes import BOUND, MANIPULATION, PLANTED, is_marked
from veracity.core.errors import DataError, ModelError, PluginError
from veracity.core.examples import Dataset
from veracity.core.images import Image
from veracity.experiments.cues import PICTURE_KINDS, cues_of, telling, usual_keep
from veracity.experiments.dryrun import DryRunResult, dryrun
from veracity.experiments.dryrun_plan import PICTURE_SCALES, plan_dryrun
from veracity.experiments.dryrun_record import DryRun
from veracity.experiments.dryrun_sentences import headline, remarks
from veracity.models.architecture import Training
from veracity.reports.dryrun import EXAMPLES, build_dryrun, write_dryrun
from veracity.reports.html import LARGEST
from veracity.results.guarantees import planted_facts, reliance

CNN = "picture_cnn(widths=(8, 16))"
STAMP = "stamp(size=64, top=150, left=150)"
EXPLAINED = 30


# ---- what a mark tells, by hand (definitions 5.4, 6.2) ----------------------------------------


def table(strength: float, n_labels: int) -> Any:
    labels = tuple("abcdefgh"[:n_labels])
    return replace(PICTURE_KINDS["stamp"].planting(n_labels), strength=strength).probabilities(
        labels
    )


@pytest.mark.parametrize(
    ("strength", "n_labels", "expected"),
    [
        (1.0, 2, 1.0),
        (0.9, 2, 0.9),  # with the mark 0.9 are of the last label, without it 0.9 of the first
        (1.0, 3, 2 / 3),  # without the mark, either of two
        (0.8, 3, (0.8 + 0.9) / 3),  # a tenth of each other label has the mark, too
        (1.0, 8, 0.25),
    ],
)
def test_what_a_mark_alone_tells(strength: float, n_labels: int, expected: float) -> None:
    assert telling(table(strength, n_labels)) == pytest.approx(expected)


def test_reliance_where_every_picture_has_the_region() -> None:
    """Ceiling and carriers go by what was done, not by where one looks."""
    data = changed(pictures(10, 16), ["reassign(r=0.5)", "stamp"])
    # 4 marked, of which 3 have the last label; 6 unmarked, of which 4 have the first
    made = [("0", 1)] * 3 + [("0", 0)] + [("none", 0)] * 4 + [("none", 1)] * 2
    examples = tuple(
        replace(e, label=label, facts={**e.facts, MANIPULATION: mark})
        for e, (mark, label) in zip(data, made, strict=True)
    )
    known = reliance(replace(data, examples=examples), [True] * 7 + [False] * 3)
    assert known is not None
    assert (known.accuracy, known.bound, known.ceiling) == pytest.approx((0.7, 0.5, 0.7))
    assert known.required == pytest.approx(0.5 + 0.94 * 0.2)
    assert known.luck == pytest.approx(0.171875)  # 7 or more of 10 by a coin: 176 of 1024
    facts = planted_facts(replace(data, examples=examples))
    assert (facts["carriers"], facts["examples"]) == (4, 10)
    assert all(PLANTED in e.truths for e in data)
    # a third of three labels: 3 marked of the last, and of the others 3 at most are guessed
    three = changed(pictures(9, 16, labels=("a", "b", "c")), ["reassign(r=1.0)", "stamp"])
    assert [is_marked(e) for e in three] == [e.label == 2 for e in three]
    assert planted_facts(three)["ceiling"] == pytest.approx(2 / 3)
    assert {e.facts[BOUND] for e in three} == {"1"}


def test_cues_are_those_of_the_kind_of_data() -> None:
    two, eight = pictures(8, 16), pictures(16, 16, labels=tuple("abcdefgh"))
    assert [c.name for c in cues_of(list(PICTURE_KINDS), [1.0], two, 0.5)] == list(PICTURE_KINDS)
    assert (usual_keep(two), usual_keep(eight)) == (0.5, 0.125)
    assert cues_of("stamp", [1.0], eight, 0.125)  # 0.25 of the labels, where chance has 0.125
    with pytest.raises(PluginError, match=r"alone tells 0\.25 of them.*Take --keep 0\.125"):
        cues_of("stamp", [1.0], eight, 0.5)
    with pytest.raises(PluginError, match="no cue is called 'word'"):
        cues_of("word", [1.0], two, 0.5)
    with pytest.raises(PluginError, match="insert takes inputs of the kind text"):
        cues_of("insert", [1.0], two, 0.5)
    with pytest.raises(PluginError, match="plants nothing"):
        cues_of("reassign", [1.0], two, 0.5)
    with pytest.raises(DataError, match="no label is called 'maybe'"):
        cues_of("stamp(labels=('maybe',))", [1.0], two, 0.5)
    assert Reassign(r=usual_keep(eight)).bound(8) == pytest.approx(0.125)


@pytest.mark.parametrize("name", PICTURE_KINDS)
def test_named_marks_are_seen_at_small_sides(name: str) -> None:
    data = veracity.load_data("made_shapes(n=20, side=32)")
    mark = PICTURE_KINDS[name].planting(2)
    for before, after in zip(data, changed(data, [mark]), strict=True):
        if before.label == 1:
            gap = np.abs(after.input.pixels.astype(int) - before.input.pixels).max(axis=2)
            assert is_marked(after)
            assert (gap > 16).sum() >= 12, "a dozen pixels that look otherwise"


def test_plans_go_by_the_kind_of_data() -> None:
    work = [len(s.cues) * len(s.strengths) * s.seeds * s.sentences for s in PICTURE_SCALES.values()]
    assert work == sorted(work) and len(set(work)) == 3
    plan = plan_dryrun(CNN, "made_shapes(n=60, side=16)")
    assert {c.name for c in plan.cues} == set(PICTURE_KINDS)
    assert len(plan.trials) == 12 and list(plan.clean_models) == ["clean-seed0", "clean-seed1"]
    assert "occlusion(hiding=black)" in plan.methods and "grad_cam" in plan.methods
    assert not any(m.startswith(("search", "decision_tree")) for m in plan.methods)
    assert plan.config()["top"] == 1 and plan.config()["data"]["kind"] == "image"
    assert plan_dryrun(CNN, "made_shapes(n=60, side=16)", clean=False).clean_models == {}


# ---- a real one -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> DryRunResult:
    """Two marks that the smallest network learns in a few epochs."""
    return dryrun(
        CNN,
        "made_shapes(n=500, side=16)",
        cues=f"{STAMP}, striped_noise(p=0.6)",
        strengths=[1.0],
        methods="occlusion, smooth_grad(samples=5), random_scores",
        seeds=1,
        sentences=EXPLAINED,
        training=Training(
            epochs=40, batch_size=32, learning_rate=0.02, patience=None, stop_at=0.995
        ),
        out=tmp_path_factory.mktemp("dry") / "run",
    )


def test_marks_are_learnt_and_both_labels_explained(marked: DryRunResult) -> None:
    dry = marked.record
    assert {t.status for t in dry.trials} == {"scored"}
    for trial in dry.trials:
        assert trial.bound == 0.5 and trial.ceiling == 1.0 and "pictures" in trial.why
        assert 0 < trial.carriers < trial.tested_on == 50
        examples = dry.run(trial).examples()
        assert len(examples) == trial.texts == EXPLAINED
        assert 0 < sum(map(is_marked, examples)) < EXPLAINED  # absence is evidence, too
    for cell in marked.findings.cells:
        assert set(cell.by_mark) == {-1, 0}


def test_the_strongest_segment_is_looked_at(marked: DryRunResult) -> None:
    """Counted anew from the explanations themselves."""
    (cell,) = (c for c in marked.findings.cells if c.cue == STAMP)
    run = marked.record.run(cell.trials[0])
    stored = run.attributions(run.models[0], "occlusion(hiding=black)")
    hits, shares = [], []
    for e in run.examples():
        known = e.input.on_units(np.logical_or.reduce(e.truths[PLANTED])) >= 0.5
        sizes = np.abs(stored[e.id].unit_scores)
        hits.append(known[sizes == sizes.max()].mean())
        shares.append(known.mean())
    sight = cell.sights["occlusion(hiding=black)"]
    assert sight.share == pytest.approx(np.mean(hits)) and sight.first == pytest.approx(sight.share)
    assert cell.chance == pytest.approx(np.mean(shares))


def test_models_without_the_mark_show_what_is_a_false_alarm(marked: DryRunResult) -> None:
    dry, found = marked.record, marked.findings
    assert not dry.lacks_clean and not found.no_clean
    for clean in dry.clean.values():
        assert clean.model == "models/clean-seed0" and clean.accuracy > 0.95
        assert clean.texts == EXPLAINED
        run = dry.run(clean)
        assert not run.config.reliance and run.config.dataset.kind == "image"
    (cell,) = (c for c in found.cells if c.cue == STAMP)
    best = max((s for m, s in cell.sights.items() if m != "random_scores"), key=lambda s: s.share)
    assert best.share > 0.7 and best.clean < 0.2 and best.sees == "exposes"
    assert cell.sights["random_scores"].sees != "exposes"
    said = " ".join(remarks(dry, found))
    assert "on models that never saw the cue" in said and "--no-clean" not in said


def test_pages_speak_of_pictures(marked: DryRunResult) -> None:
    page = write_dryrun(marked.record).read_text("utf-8")
    assert page == build_dryrun(marked.record)
    assert "In how many pictures a method’s strongest segment is a planted one" in page
    assert "any one segment" in page and "clean" in page
    assert "500 pictures; labels" in page  # and no sample of more than there are
    # of each mark a few pictures, held in the page, and a report with all of them
    assert page.count('<article class="card"') == 2 * EXAMPLES and "img-src data:;" in page
    assert "<span>cue <b>striped_noise(p=0.6) (100 %)</b></span>" in page
    assert "carries what was planted" in page and "planted region" in page
    assert "sizes only, blue whatever they speak for" in page  # smooth_grad
    for trial in marked.record.trials:
        assert (marked.folder / trial.audit / "report.html").exists()
    assert len(page.encode()) < LARGEST
    told = [headline(marked.record, marked.findings), *remarks(marked.record, marked.findings)]
    for line in (*told, *(t.why for t in marked.record.trials)):
        assert "text" not in line and "word" not in line
    assert DryRun.open(marked.folder).nouns.units == "segments"


# ---- audits ---------------------------------------------------------------------------------


class Corner:
    """Reads pictures of 16 × 8 pixels."""

    labels = ("no", "yes")

    def __init__(self, height: int = 8, width: int = 16) -> None:
        self.shape = (height, width)

    def probabilities(self, inputs: Any) -> Any:
        assert {one.shape for one in inputs} <= {self.shape}
        p = np.array([one.pixels[0, 0].mean() / 255 for one in inputs])
        return np.stack([1 - p, p], axis=1)


def test_pictures_are_brought_to_the_size_a_model_reads(tmp_path: Path) -> None:
    data: Dataset[Image] = changed(pictures(6, 24), [changes.make("striped_noise(top=112, p=1.0)")])
    with pytest.warns(UserWarning, match=r"6 of 6 pictures .* resized to 16×8 pixels"):
        done = veracity.audit(
            {"corner": Corner()},
            data,
            "occlusion, random_scores",
            ["attribution_mass(truth=planted)"],
            out=tmp_path / "run",
            extras=False,
        )
    for e in done.run.examples():
        assert e.input.shape == (8, 16)
        (mask,) = e.truths[PLANTED]
        # of 24 rows the middle twelve are kept, of which the stripe covers 12 and 13
        assert np.flatnonzero(mask.reshape(8, 16).all(axis=1)).tolist() == [4]
    with pytest.raises(ModelError, match=r"different sizes \(a 16×8 and b 8×8\)"):
        veracity.audit({"a": Corner(), "b": Corner(8, 8)}, data, "occlusion", out=tmp_path / "two")
