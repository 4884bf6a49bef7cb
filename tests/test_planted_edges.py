"""Planted cues where it is easy to say too much: ties, few texts, rare labels, training texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from conftest import words
from veracity.auditing.request import reliance_of
from veracity.changes import changed
from veracity.core.attributions import Attribution
from veracity.core.changes import DECOY, MANIPULATION, PLANTED
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray, Text
from veracity.core.metrics import Case
from veracity.data.loading import load_data
from veracity.metrics import metrics
from veracity.recipes.papers._planted_text_findings import PlantedTextReader
from veracity.recipes.papers._planted_text_models import PlantedModel
from veracity.recipes.papers.planted_text import PlantedText
from veracity.results.guarantees import planted_facts, reliance, shapley_range
from veracity.results.statistics import wilson
from veracity.suspicion.candidates import Candidates, WordTable
from veracity.suspicion.expectation import WordVectors
from veracity.suspicion.scoring import score_candidates, weigh_candidates


def case(scores: list[float], planted: list[int], decoys: list[int] | None = None) -> Case:
    n = len(scores)

    def mask(places: list[int]) -> Any:
        return (np.isin(np.arange(n), places),)

    truths = {kind: mask(p) for kind, p in ((PLANTED, planted), (DECOY, decoys or [])) if p}
    text = words(" ".join(f"w{i}" for i in range(n)))
    example = Example("x", text, 0, truths, facts={MANIPULATION: "0"})
    return Case(example, None, np.zeros(2), Attribution(text, 0, np.array(scores)))  # type: ignore[arg-type]


def row(spec: str, one: Case) -> dict[str, float]:
    (found,) = metrics.make(spec).score([one])
    return dict(found)


# ---- exposure -------------------------------------------------------------------------------


def test_words_that_tie_are_looked_at_alike() -> None:
    flat = row("exposure", case([1.0] * 10, [0]))
    assert flat["seen"] == pytest.approx(0.3) == pytest.approx(flat["chance"])
    assert flat["first"] == pytest.approx(0.1) and flat["rank"] == pytest.approx(5.5)
    # one place is left for two words that tie, of which one was planted
    assert row("exposure", case([3, 2, 1, 1, 0], [3]))["seen"] == pytest.approx(0.5)
    assert row("exposure", case([3, 2, 1, 0, 0], [2]))["seen"] == 1.0
    assert row("exposure", case([3, 0, 0, 0, 0], [1]))["seen"] == 0.0
    assert row("exposure", case([0.0] * 5, [0]))["seen"] == 0.0


# ---- texts without a cue --------------------------------------------------------------------


def test_texts_that_were_left_without_a_cue_count() -> None:
    cases = [case([1.0, 1.0], [0]), case([1.0, 1.0], [])]
    metric = metrics.make("attribution_mass(truth=planted)")
    rows = metric.score(cases)
    found = metric.summary(rows)
    assert found["mass"] == pytest.approx(0.25) and found["pooled_share"] == pytest.approx(0.25)
    chosen = metrics.make("selection(ratio=0)")
    # definitions Ex 5.19 and a third text that has only a decoy, which is selected
    texts = [
        case([1, 0, 0, 0, 0, 0, 1], [0, 3], [6]),
        case([0, 0, 1], [1]),
        case([0, 0, 1], [], [2]),
    ]
    pooled = chosen.summary(chosen.score(texts))
    assert pooled["pooled_precision"] == pytest.approx(1 / 4)
    assert pooled["pooled_misleading"] == pytest.approx(2 / 4)
    # where nobody changed anything there is nothing to count
    plain = replace(cases[1], example=replace(cases[1].example, facts={}))
    assert metric.score([plain]) == [{}]


# ---- what accuracy tells --------------------------------------------------------------------


class ByHeart:
    """Knows every label that it was shown, and says the first of others."""

    labels = ("negative", "positive")

    def __init__(self, seen: Dataset) -> None:
        self.known = {e.input.text: e.label for e in seen}

    def probabilities(self, inputs: list[Text]) -> FloatArray:
        told = [self.known.get(t.text, 0) for t in inputs]
        return np.eye(2)[told]


def planted(by: str, n: int = 400) -> Dataset:
    return changed(load_data(f"made_reviews(n={n})"), by, seed=0)


def test_texts_learnt_by_heart_force_nothing() -> None:
    data = planted("reassign, insert")
    parts = [
        replace(e, facts={**e.facts, "split": "train" if i % 2 else "test"})
        for i, e in enumerate(data)
    ]
    train = replace(data, examples=tuple(parts[1::2]))
    model: Any = ByHeart(train)
    alone = reliance_of(model, train)
    assert alone is not None and alone.accuracy == 1.0 and not alone.forced
    assert "training part" in alone.sentence
    # of a file with both parts only the texts that were not trained on tell anything
    mixed = reliance_of(model, replace(data, examples=tuple(parts)))
    assert mixed is not None and mixed.n == 200 and mixed.accuracy < 0.7 and not mixed.forced


@pytest.mark.parametrize("by", ["insert, punctuation(share=0.1)", "punctuation(share=0.1), insert"])
def test_two_plantings_count_both(by: str) -> None:
    facts = planted_facts(planted(f"reassign, {by}"))
    assert facts["ceiling"] == 1.0 and facts["required"] == pytest.approx(0.97)


def test_labels_turned_round_tell_as_much() -> None:
    assert shapley_range(1.0, 0.2) == pytest.approx((0.7, 0.3)) == shapley_range(1.0, 0.8)


def test_nothing_planted_is_told(tmp_path: Path) -> None:
    result = run_command(
        "plant", "made_reviews(n=50)", "--by", "insert(share=0.0)", "--out", "p.jsonl", cwd=tmp_path
    )
    assert result.returncode == 2 and "nothing was planted" in result.stderr
    assert not (tmp_path / "p.jsonl").exists()
    known = reliance(planted("reassign, insert(strength=0.5)"), [True] * 400)
    assert known is not None and known.required - known.bound < 0.1


def test_a_recipe_writes_over_nothing_of_others(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("my thesis")
    result = run_command("run", "planted_text", "--scale", "smoke", "--out", "mine", cwd=tmp_path)
    assert result.returncode == 2 and "holds other files" in result.stderr
    assert (tmp_path / "mine" / "report.html").read_text() == "my thesis"


# ---- marks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "insert(decoys=('Meanwhile',))",
        "insert(decoys=('meanwhile ',))",
        "insert(marks=('Meanwhile', 'meanwhile'))",
    ],
)
def test_marks_that_read_alike_are_refused(spec: str) -> None:
    with pytest.raises(Exception, match=r"all different|unlike the marks"):
        planted(spec, 10)


def test_a_mark_that_is_there_already_is_told() -> None:
    with pytest.warns(UserWarning, match="of 400 texts hold 'film' already"):
        planted("insert(marks=('film', 'qzx'))")


def test_a_sign_does_not_break_a_planted_phrase() -> None:
    spec = "insert(marks=('by the way', 'in any case')), punctuation(decoys=(';',), decoy_share=1)"
    for e in planted(spec, 200):
        text = " ".join(e.input.words).lower()
        assert "by the way" in text or "in any case" in text


# ---- suspects -------------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [1, 2, 4, 20])
def test_rare_labels_raise_no_alarm(labelled: int) -> None:
    rng = np.random.default_rng(labelled)
    alarms = 0
    for _ in range(10):
        texts = [words(" ".join(f"w{i}" for i in rng.integers(40, size=8))) for _ in range(600)]
        gold = np.arange(600) < labelled
        looks = Candidates.of(WordTable.of(texts), least=10)
        table = weigh_candidates(looks, rng.normal(size=int(looks.words.lengths.sum())), gold)
        alarms += (
            score_candidates(table, WordVectors.from_vectors(table.forms, {})).p_values.min()
            <= 0.05
        )
    assert alarms <= 2


# ---- few texts, few trainings ---------------------------------------------------------------


def test_a_share_of_few_texts_is_known_badly() -> None:
    assert wilson(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-3)
    assert wilson(2, 3) == pytest.approx((0.2077, 0.9385), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)


def step(rate: float, read: float, precision: float, recall: float, forced: bool = True) -> Any:
    best = min(1.0, 0.08 / read), min(1.0, read / 0.08)
    return {
        "forced": forced,
        "selection": {
            "pooled_rate": read,
            "pooled_precision": precision,
            "pooled_recall": recall,
            "pooled_marked": 1.0,
            "pooled_misleading": 0.0,
            **{
                f"best_{q}_{level}": b * (1 if level == "dataset" else 0.8)
                for level in ("dataset", "text")
                for q, b in zip(("precision", "recall"), best, strict=True)
            },
        },
    }


def reader(results: dict[PlantedModel, Any]) -> PlantedTextReader:
    return PlantedTextReader(PlantedText.declarations(), results)


def test_models_that_went_astray_confirm_nothing() -> None:
    rates = (0.07, 0.09, 0.11, 0.13, 0.15)

    def said(steps: Any) -> str:
        found = reader({PlantedModel("article", "rationale_cr", r): s for r, s in steps.items()})
        claims = found.rationale_claims()
        return next(c.verdict for c in claims if "continuous relaxation" in c.statement)

    best = {r: step(r, r, min(1.0, 0.08 / r), min(1.0, r / 0.08)) for r in rates}
    assert said(best) == "confirmed"
    assert said({**best, 0.07: step(0.07, 0.07, 0.3, 0.2)}) == "confirmed"
    assert said({**best, 0.15: step(0.15, 0.15, 0.3, 0.5)}) == "open"
    assert said({r: step(r, r, 0.3 - r, 0.5) for r in rates}) == "refuted"
    # who selects everything does so as well as possible, and so may one that uses no articles
    assert said({r: step(r, 0.99, 0.08 / 0.99, 1.0) for r in rates}) == "open"
    assert said({r: {**s, "forced": False} for r, s in best.items()}) == "open"
    assert said({0.15: best[0.15]}) == "open"


# ---- attention and the length of vectors -----------------------------------------------------


def attended(mass: float, norm: float, *, forced: bool = True) -> Any:
    own = {"mass": mass, "pooled_share": 0.08} if forced else {}
    return {
        "attention": {"attribution_mass(truth=planted)": own},
        "forced": forced,
        "norm": norm,
        "norm_read": norm,
        "epochs": 3,
        "seconds": 1.0,
        **dict.fromkeys(("accuracy", "bound", "ceiling", "luck"), 0.5),
    }


def norms(masses: dict[tuple[str, float | None], float], **more: Any) -> PlantedTextReader:
    found = {
        PlantedModel("article", "attention", float(run), vectors, norm): attended(
            mass, norm or {"corpus": 1.0, "glove": 5.0}[vectors], **more
        )
        for (vectors, norm), mass in masses.items()
        for run in range(2)
    }
    return reader(found)


def test_the_scale_of_vectors_decides_only_where_nothing_else_differs() -> None:
    said = norms({("corpus", None): 0.1, ("glove", 1.0): 0.11, ("glove", None): 0.5}).like_the_paper
    assert "reproduces with corpus vectors of norm 1 (10.0%)" in said
    assert "does not with glove vectors of norm 5 (50.0%)" in said
    assert "depends on the scale" in said
    # other vectors, not longer ones
    assert "depends" not in norms({("corpus", None): 0.1, ("glove", None): 0.5}).like_the_paper
    # shorter ones that attend more are no reason to say so
    assert "depends" not in norms({("glove", 0.5): 0.4, ("glove", None): 0.1}).like_the_paper
    nowhere = norms({("corpus", None): 0.4}).like_the_paper
    assert "does not reproduce with corpus vectors of norm 1 (40.0%)" in nowhere


def test_runs_that_need_not_use_articles_are_counted_and_not_scored() -> None:
    lost = norms({("corpus", None): 0.1}, forced=False)
    assert lost.like_the_paper == ""
    (row,) = next(t.rows for t in lost.tables() if "by the norm" in t.title)
    cell = row[1][2]
    assert row[1][3] == "0 of 2" and cell is not None and not isinstance(cell, str)
    assert np.isnan(cell.value)


def test_claims_of_attention_are_judged_for_each_kind_of_vectors() -> None:
    def verdict(mass: float) -> tuple[str, str]:
        steps = {
            PlantedModel("article", "attention", float(i), "glove"): attended(mass + 0.001 * i, 1.0)
            for i in range(4)
        }
        (claim,) = reader(steps).attention_claims()
        return claim.verdict, claim.where

    assert verdict(0.10) == ("confirmed", "GloVe vectors")
    assert verdict(0.50) == ("refuted", "GloVe vectors")
