"""Second draws: what is the method's own luck, and what it asked."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import WordWeights
from veracity.auditing.audit import audit
from veracity.auditing.jobs import SUBSET_SIZE, subset_of
from veracity.core.examples import Dataset
from veracity.data.splits import Splits
from veracity.reports.html import build_report
from veracity.results.run import Run
from veracity.results.sampling import (
    draw_correlation,
    leads,
    noise,
    own_errors,
    questions_per_text,
)
from veracity.results.standings import standings

METHODS = "lime(samples=20), lime(samples=80), occlusion, random_scores"


@pytest.fixture(scope="module")
def texts(made: Splits) -> Dataset:
    return made.test.select(range(49))


@pytest.fixture(scope="module")
def bag(texts: Dataset) -> WordWeights:
    """Every word matters a little: few questions do not tell which matters most."""
    known = sorted({w for e in texts for w in e.input.words})
    weights = np.random.default_rng(0).normal(0, 0.7, len(known))
    return WordWeights(dict(zip(known, weights.tolist(), strict=True)))


@pytest.fixture(scope="module")
def run(bag: WordWeights, texts: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return audit(bag, texts, METHODS, "erasure", out=tmp_path_factory.mktemp("drawn") / "run").run


def scores(run: Run, method: str, name: str = "aopc_compactness") -> dict[str, float]:
    rows = run.scores().to_pylist()
    return {
        r["example"]: r["value"] for r in rows if r["explainer"] == method and r["name"] == name
    }


def test_the_texts_of_a_part_depend_on_their_names_alone(texts: Dataset) -> None:
    part = subset_of(texts, SUBSET_SIZE, seed=0)
    assert len(part) == SUBSET_SIZE < len(texts)
    assert part == subset_of(replace(texts, examples=texts.examples[::-1]), SUBSET_SIZE, seed=0)
    assert part != subset_of(texts, SUBSET_SIZE, seed=1)
    fewer = subset_of(texts.select(range(20)), SUBSET_SIZE, seed=0)
    assert len(fewer) == 20
    twin = replace(texts.examples[0], id="twin", partner=texts.examples[0].id)
    paired = subset_of(replace(texts, examples=(*texts.examples, twin)), SUBSET_SIZE, seed=0)
    assert ("twin" in paired) == (twin.partner in paired)


def test_methods_that_draw_are_scored_on_a_second_draw(run: Run, texts: Dataset) -> None:
    found = {(n.method, n.name): n for n in noise(run)}
    assert {method for method, _ in found} == {"lime(samples=20)", "lime(samples=80)"}
    few, many = (found[f"lime(samples={k})", "aopc_compactness"] for k in (20, 80))
    first, second = (scores(r, few.method) for r in (run, run.second_draw))
    assert set(second) == subset_of(texts, SUBSET_SIZE, seed=0)
    apart = [first[e] - second[e] for e in second]
    assert few.sd == pytest.approx(np.sqrt(sum(d * d for d in apart) / len(apart) / 2))
    assert few.spread == pytest.approx(np.std(list(first.values()), ddof=1))
    assert few.standard_error == pytest.approx(few.sd / 7), "49 texts stand behind the mean"
    assert few.sd > 1.2 * many.sd, "who asks more depends less on luck"
    assert 1 >= few.share > many.share > 0


def test_an_order_that_is_mostly_noise_is_cautioned_of_first(
    bag: WordWeights, texts: Dataset, run: Run, tmp_path: Path
) -> None:
    few, many = (draw_correlation(run, run.models[0], f"lime(samples={k})") for k in (20, 80))
    assert few is not None and many is not None and few < many
    assert draw_correlation(run, run.models[0], "occlusion") is None
    answers = bag.probabilities([e.input for e in texts]).argmax(axis=1)
    right = [replace(e, label=int(y)) for e, y in zip(texts, answers, strict=True)]
    found = audit(
        bag, replace(texts, examples=tuple(right)), "lime(samples=8), random_scores", "erasure",
        out=tmp_path / "noisy", target="positive",
    ).conclusions  # fmt: skip
    advice = found.models[0].recommendation
    assert advice.method == "lime(samples=8)"
    assert re.match(
        r"the order of lime\(samples=8\)'s words is mostly sampling noise: drawn again, its "
        r"scores correlate by 0\.[0-4]\d only",
        advice.cautions[0],
    )
    assert advice.cautions[-1].startswith("this is told of explanations for positive")


def test_second_draws_do_not_depend_on_batches(
    run: Run, bag: WordWeights, texts: Dataset, tmp_path: Path
) -> None:
    method = "lime(samples=20)"
    again = audit(bag, texts, method, "erasure", out=tmp_path / "run", batch_size=7).run
    assert scores(again.second_draw, method) == scores(run.second_draw, method)


def test_second_draws_are_resumed_and_older_runs_have_none(
    run: Run, bag: WordWeights, texts: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    assert audit(bag, texts, METHODS, "erasure", out=folder).computed == 0
    shutil.rmtree(folder / "second_draw")
    assert noise(Run.open(folder)) == []
    assert "two draws" not in build_report(Run.open(folder))
    # two methods, each its explanations and its scores
    assert audit(bag, texts, METHODS, "erasure", out=folder).computed == 4
    assert noise(Run.open(folder)) == noise(run)


def test_no_second_draw_where_it_is_not_wanted(
    bag: WordWeights, texts: Dataset, tmp_path: Path
) -> None:
    some = texts.select(range(4))
    found = audit(bag, some, METHODS, "erasure", out=tmp_path / "r", extras=False)
    assert not (found.run.folder / "second_draw").exists()


def test_the_report_tells_noise_and_own_errors(run: Run) -> None:
    page = build_report(run)
    assert f"Scores of the same {SUBSET_SIZE} texts from two draws" in page
    assert "that another draw would find again" in page
    assert {e.name for e in own_errors(run)} == {"stability"}
    stable = {e.method: e.mean for e in own_errors(run)}
    assert stable["lime(samples=20)"] < stable["lime(samples=80)"]
    (lead,) = leads(standings(run), noise(run))
    assert lead.reach > 0
    asked = questions_per_text(run)
    words = np.mean([len(e.input.words) for e in run.examples()])
    assert asked["WordWeights", "occlusion"] == pytest.approx(words + 1)
    assert asked["WordWeights", "lime(samples=20)"] <= 20
    assert asked["WordWeights", "random_scores"] == 0


def test_one_number_of_questions_for_all_that_sample(
    bag: WordWeights, texts: Dataset, tmp_path: Path
) -> None:
    methods = ["lime", "shap", "shap(samples=70)", "lime(questions=16)", "occlusion"]
    found = audit(
        bag, texts.select(range(3)), methods, "erasure", out=tmp_path / "r", questions=64
    ).run
    assert found.explainers == (
        "lime(samples=64)",
        "shap(samples=64)",
        "shap(samples=70)",
        "lime(questions=16)",
        "occlusion",
    )


def test_a_part_of_the_first_draw_may_be_lost(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    for part in (tmp_path / "run" / "attributions").rglob("*.parquet"):
        part.unlink()
    lost = Run.open(tmp_path / "run")
    assert draw_correlation(lost, lost.models[0], "lime(samples=20)") is None
