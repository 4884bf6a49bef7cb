"""Marks that tell the label, in pictures: the paper's experiments, small."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pictures

from veracity.changes.centre_brightness import CentreBrightness
from veracity.core.changes import MANIPULATION, ORIGINAL_LABEL, PLANTED
from veracity.core.errors import DataError, PluginError
from veracity.core.images import Image
from veracity.core.inputs import FloatArray
from veracity.recipes.papers import recipes
from veracity.recipes.papers._planted_images_draws import Draw
from veracity.recipes.papers._planted_images_points import AttrPoint, Line, bootstrap, trend
from veracity.recipes.papers._planted_images_runs import PictureRun, parameters
from veracity.recipes.papers.planted_images import (
    PlantedImages,
    of_each_label,
    outlined,
    pictures,
    planted_pair,
    shares,
)
from veracity.recipes.recipe import Setup
from veracity.reports.findings import build_findings
from veracity.results.claims import Comparison
from veracity.results.findings import Cell, Findings

TINY: dict[str, Any] = {
    "side": 16,
    "sizes": [30, 20, 20],
    "model": "picture_cnn(widths=(8, 8))",
    "segments": "grid",
    "runs": 1,
    "groups": 1,
    "levels": [1, 3, 5],
    "each": 1,
    "correlations": [0.5, 1.0],
    "training": {"epochs": 10, "batch_size": 10, "learning_rate": 0.01, "stop_at": 0.99},
    "species_training": {"epochs": 1, "batch_size": 20},
    "methods": {
        "gradient": 3,
        "grad_cam": 3,
        "smooth_grad(samples=2)": 2,
        "lime(samples=10)": 2,
        "shap(form=expected_gradients, samples=4)": 2,
        "random_scores": 3,
    },
    "along": {"gradient": 2, "shap(form=expected_gradients, samples=4)": 2},
}


def setup(folder: Path, **sizes: Any) -> Setup:
    return Setup(folder, "smoke", {**PlantedImages.at_scale("smoke"), **TINY, **sizes})


def test_a_pair_is_planted_as_drawn(tmp_path: Path) -> None:
    parts = pictures(setup(tmp_path))
    assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [120, 80, 80]
    recipe = recipes.make("planted_images(manipulations=('watermark',))")
    assert isinstance(recipe, PlantedImages)
    (draw,) = [
        run.draw
        for run in recipe.experiment(setup(tmp_path)).runs
        if run.draw is not None and run.experiment == "region"
    ]
    found = planted_pair(parts, draw, seed=0)
    assert found.test.labels == draw.pair and len(found.train) == 60
    kept = np.mean([found.train.labels[e.label] == e.facts[ORIGINAL_LABEL] for e in found.train])
    assert 0.35 < kept < 0.65
    # the mark is on pictures of the second label alone; the region is that of all
    for e in found.test:
        assert (e.facts[MANIPULATION] == "0") <= (e.label == 1)
        assert np.array_equal(e.truths[PLANTED][0], found.test.examples[0].truths[PLANTED][0])
    assert [e.label for e in of_each_label(found.test, 2)].count(1) == 2


def test_runs_are_those_that_are_asked_for(tmp_path: Path) -> None:
    paper = PlantedImages().experiment(setup(tmp_path, **_sizes_of_runs("paper")))
    counts = {name: sum(r.experiment == name for r in paper.runs) for name in _NAMES}
    # shapes have two pairs that look alike, the birds four
    assert counts == {"region": 100, "accuracy": 100, "visibility": 50, "correlation": 120}
    steps = {step.name: step for step in paper.steps()}
    assert len(steps) == len(paper.runs)
    for run in paper.runs:
        # what is kept along training is looked at without training again
        if run.experiment == "accuracy":
            assert run.trained in paper.runs and steps[run.step].needs == (run.trained,)
    laptop = PlantedImages().experiment(setup(tmp_path, **_sizes_of_runs("laptop")))
    assert sum(r.draw is not None and r == r.trained for r in laptop.runs) == 60
    few = recipes.make("planted_images(experiments=('accuracy',), manipulations=('striped_hue',))")
    assert isinstance(few, PlantedImages)
    assert [r.step for r in few.experiment(setup(tmp_path)).runs] == [
        *("marks", "species", "region-striped_hue-0", "accuracy-striped_hue-0")
    ]
    with pytest.raises(PluginError, match="expected experiments among region, accuracy"):
        recipes.make("planted_images(experiments=('regoin',))")
    with pytest.raises(PluginError, match="such as 'crow/raven'"):
        recipes.make("planted_images(pairs=('crow',))")
    with pytest.raises(DataError, match="two pairs of labels that look alike"):
        PlantedImages(pairs=("circle/square", "circle/star")).experiment(setup(tmp_path))


_NAMES = ("region", "accuracy", "visibility", "correlation")


def _sizes_of_runs(scale: str) -> dict[str, Any]:
    sizes = PlantedImages.at_scale(scale)
    return {k: sizes[k] for k in ("runs", "groups", "levels", "each", "correlations")}


class Reading:
    """Answers the second label where a row of the picture is darker than the rest of it."""

    labels = ("one", "other")

    def probabilities(self, inputs: list[Image]) -> FloatArray:
        dark = [one.pixels[:2].mean() < one.pixels[2:].mean() for one in inputs]
        return np.array([[0.1, 0.9] if d else [0.9, 0.1] for d in dark])


def test_shares_are_by_class_and_undefined_ones_are_counted(tmp_path: Path) -> None:
    parts = pictures(setup(tmp_path))
    recipe = PlantedImages(experiments=("correlation",), manipulations=("centre_brightness",))
    run = next(r for r in recipe.experiment(setup(tmp_path)).runs if r.draw is not None)
    test = planted_pair(parts, run.planted, seed=0).test
    found = shares(Reading(), test, {"occlusion": 4, "random_scores": 8}, seed=0)
    assert [(f["method"], f["label"], f["n"]) for f in found] == [
        *(("occlusion", 0, 4), ("occlusion", 1, 4), ("random_scores", 0, 8)),
        ("random_scores", 1, 8),
    ]
    region = float(test.examples[0].truths[PLANTED][0].mean())
    for one in found:
        assert one["region"] == pytest.approx(region)
        assert 0 <= one["undefined"] <= one["n"]
        assert math.isnan(one["attr"]) == (one["undefined"] == one["n"])


def test_the_edge_of_a_region_is_drawn() -> None:
    pixels = np.zeros((4, 5, 3), dtype=np.uint8)
    region = np.zeros((4, 5), dtype=np.bool_)
    region[1:4, 1:4] = True
    drawn = outlined(pixels, region.ravel()).pixels.any(axis=2)
    assert drawn.tolist() == (region & ~np.pad([[True]], ((2, 1), (2, 2)))).tolist()


def test_lines_are_judged_by_ranks_over_units() -> None:
    def line(unit: str, *y: float) -> Line:
        return Line(unit, True, True, tuple((float(x), v) for x, v in enumerate(y)))

    assert line("a", 0.1, 0.2, 0.9).rho == pytest.approx(1.0)
    assert line("a", 0.3, 0.1, 0.2).rho == pytest.approx(-0.5)
    assert math.isnan(line("a", 0.1, 0.2).rho) and math.isnan(line("a", 0.1, 0.1, 0.1).rho)
    lines = [line(u, 0.1, 0.2, 0.9) for u in "abc"] + [line("c", 0.9, 0.2, 0.1)]
    found = trend([*lines, line("d", 0.1, 0.2)])
    assert found.value == pytest.approx(0.5) and found.n == 3
    assert found.low < 0.5 < found.high
    # a unit with many values is drawn as one, and of two nothing is sure
    assert bootstrap([0.0] * 50 + [1.0, 1.0], ["a"] * 50 + ["b", "c"])[1] == 1.0
    assert all(map(math.isnan, bootstrap([0.0, 1.0], ["a", "b"])))


def test_a_page_shows_marks_rounded_and_shares_without_a_plus() -> None:
    mark = CentreBrightness(radius=42.18900645537217, delta=-0.3)
    assert parameters(mark, digits=4) == "centre_brightness(radius=42.19, delta=-0.3)"
    assert "42.18900645537217" in parameters(mark)  # points.csv keeps all of it
    share = Comparison(name="runs", value=0.5, low=0.2, high=0.8, percent=True, signed=False)
    assert str(share) == "runs 50.0% (20.0% to 80.0%)"
    assert str(replace(share, signed=True)) == "runs +50.0% (+20.0% to +80.0%)"


def test_ex_5_5_points_within_the_range() -> None:
    def point(attr: float, accuracy: float, r: float) -> AttrPoint:
        given: dict[str, Any] = {"attr": attr, "accuracy": accuracy, "r": r}
        return AttrPoint(**{name: given.get(name, 0) for name in AttrPoint._fields})

    assert point(0.81, 1.0, 0.7).inside and not point(0.79, 1.0, 0.7).inside
    assert point(0.78, 0.95, 0.7).inside and not point(0.77, 0.95, 0.7).inside
    assert point(0.5, 1.0, 1.0).inside


def plain_pictures(folder: Path, sizes: Sequence[int]) -> Path:
    """Nearly one colour each, hardly another for each label: a mark is soon seen on them."""
    rng = np.random.default_rng(0)
    tints = {"circle": (20, 0, 0), "square": (0, 20, 0), "triangle": (0, 0, 20), "cross": (9, 9, 9)}
    for part, n in zip(("train", "val", "test"), sizes, strict=True):
        for label, tint in tints.items():
            place = folder / part / label
            place.mkdir(parents=True)
            for i in range(n):
                pixels = 130 + np.array(tint) + rng.integers(-8, 9, (16, 16, 3))
                Pictures.fromarray(pixels.astype(np.uint8)).save(place / f"{i}.png")
    return folder


def test_planted_images_runs_and_goes_on(tmp_path: Path) -> None:
    data = plain_pictures(tmp_path / "plain", TINY["sizes"])
    tmp_path = tmp_path / "run"
    recipe = recipes.make("planted_images(manipulations=('centre_brightness', 'striped_noise'))")

    def go() -> Findings:
        return recipe.run(tmp_path, scale="smoke", sizes=TINY, data=data, workers=1)

    first = go()
    tables = {t.title: t for t in first.tables}
    runs = tables["Every network"]
    assert len(runs.rows) == 2 + 2 * 3 + 2 * 2 * 2
    passed = {name for name, cells in runs.rows if "yes" in cells}
    assert {name for name, _ in runs.rows if "centre brightness" in name} < passed
    with (tmp_path / "points.csv").open(newline="") as file:
        points = list(csv.DictReader(file))
    assert list(points[0]) == list(AttrPoint._fields)
    # six methods and two classes of every network that passes, and nothing of the others
    scored = {p["run"] for p in points if p["experiment"] != "accuracy"}
    assert len(scored) == len(passed) < len(runs.rows)
    for p in points:
        assert float(p["accuracy"]) > 0.95 or p["experiment"] == "accuracy"
        assert 0 < float(p["region"]) < 1 and int(p["n"]) in (2, 3)
        assert p["undefined"] != "0" or 0 <= float(p["attr"]) <= 1
    kept = [p for p in points if p["experiment"] == "accuracy"]
    assert {p["checkpoint"] for p in kept} > {"best"}
    models = sorted(tmp_path.glob("steps/*/model/model.safetensors"))
    assert len(models) == 1 + len(runs.rows)
    confusion = tables["What is taken for what, with nothing planted"]
    cells = [c for c in confusion.rows[0][1] if isinstance(c, Cell)]
    assert len(confusion.rows) == 4 and sum(c.value for c in cells) == pytest.approx(1.0)
    marks, maps = first.pictures
    assert [p.name for p in marks.panels][:3] == [
        "as it is",
        "peripheral blur",
        "centre brightness",
    ]
    assert [p.name for p in maps.panels] == [
        *("marked picture", "gradient", "grad_cam", "smooth_grad", "lime", "shap", "random_scores")
    ]
    assert {"Labels that look alike are confused more than others."} < set(first.statements)
    page = build_findings(first)
    assert page.count("data:image/png;base64,") == 13 and "img-src data:" in page
    written = {m: m.stat().st_mtime_ns for m in models}
    assert repr(go()) == repr(first) == repr(Findings.read(tmp_path))
    assert {m: m.stat().st_mtime_ns for m in models} == written
    step = json.loads((tmp_path / "steps/region-centre_brightness-0/found.json").read_text())
    assert step["asked"]["which"][1].startswith("centre_brightness(radius=")


def test_folders_of_pictures_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part, n in (("train", 4), ("val", 2), ("test", 3)):
        for label in ("crow", "raven", "gull", "tern"):
            folder = tmp_path / "birds" / part / label
            folder.mkdir(parents=True)
            for i in range(n):
                pixels = rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)
                Pictures.fromarray(pixels).save(folder / f"{i}.png")
    given = Setup(tmp_path, "smoke", {**TINY, "sizes": [3, 2, 9]}, tmp_path / "birds")
    parts = pictures(given)
    assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [12, 8, 12]
    assert isinstance(one := parts.train.examples[0].input, Image) and one.shape == (16, 16)
    named = PlantedImages(pairs=("crow/raven", "gull/tern"))
    assert named.known_pairs(parts.train, {}) == [("crow", "raven"), ("gull", "tern")]


def test_texts_are_refused(tmp_path: Path) -> None:
    given = Setup(tmp_path, "smoke", {**TINY}, "made_reviews(n=20)")
    with pytest.raises(DataError, match="pictures"):
        pictures(given)


def test_a_step_is_called_by_what_it_is_about() -> None:
    from veracity.changes.watermark import Watermark

    draw = Draw(mark=Watermark(), pair=("crow", "raven"), r=0.6, group=1, level=2)
    assert PictureRun("visibility", draw).step == "visibility-watermark-1-level3"
    assert PictureRun("correlation", draw).step == "correlation-watermark-1-r0.6"
    assert str(PictureRun("region", draw)) == "region, watermark 2: crow / raven"
    assert PictureRun("accuracy", draw).trained == PictureRun("region", draw)
