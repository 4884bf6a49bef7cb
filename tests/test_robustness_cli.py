"""Models on adversarial twins, from the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import veracity.experiments.augmentation
import veracity.models.training
import veracity.reports.html
import veracity.reports.pairs  # noqa: F401  commands are forked from here: to load once is enough
from commands import run_command as run
from edited import edited
from veracity.core.files import as_read
from veracity.models.architecture import LATER

MODEL = """
import math
labels = ["negative", "positive"]
WEIGHTS = {"good": 2.0, "bad": -2.0, "hard": -3.0}
def predict(texts):
    sums = [0.1 + sum(WEIGHTS.get(w, 0.0) for w in t.split()) for t in texts]
    return [[1 / (1 + math.exp(z)), 1 / (1 + math.exp(-z))] for z in sums]
def gloomy(texts):
    return [[0.9, 0.1]] * len(texts)
"""

ROWS: tuple[dict[str, Any], ...] = (
    {"id": 1, "text": "a good company , easy to find", "label": "positive", "rel_ids": [2],
     "rationales": [[1]], "sentiment_type": "single"},
    {"id": 2, "text": "umm a good company , hard to find", "label": "positive", "adv_type": "idr",
     "rationales": [[2]], "sentiment_type": "single"},
    {"id": 3, "text": "bad food", "label": "negative", "rel_ids": [4], "rationales": [[0]],
     "sentiment_type": "single"},
    {"id": 4, "text": "food that is bad", "label": "negative", "adv_type": "negative",
     "rationales": [[3]], "sentiment_type": "obscure"},
    {"id": 5, "text": "never again", "label": "negative", "sentiment_type": "obscure"},
)  # fmt: skip


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def told(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "words.py").write_text(MODEL)
    lines(tmp_path / "pairs.jsonl", *ROWS)
    return tmp_path


# ---- accuracy and pages ---------------------------------------------------------------------


def test_one_command_gives_the_table_and_the_page(place: Path) -> None:
    asked = ("robustness", "words:predict", "pairs.jsonl", "--out", "r")
    found = told(run(*asked, "--json", cwd=place))
    assert found["pages"] == ["r/pairs.html"]
    (one,) = found["models"].values()
    # right on 1, 3 and 4: "hard" misleads it on 2, and "never again" has no word that it knows
    assert (one["originals"]["correct"], one["originals"]["total"]) == (2, 3)
    assert (one["twins"]["correct"], one["twins"]["total"]) == (1, 2)
    assert one["all"]["accuracy"] == pytest.approx(3 / 5)
    assert {s["name"]: s["accuracy"] for s in one["by_attack"]} == {"idr": 0.0, "negative": 1.0}
    assert {s["name"]: (s["correct"], s["total"]) for s in one["by_sentiment"]} == {
        "single": (2, 3), "obscure": (1, 2),
    }  # fmt: skip
    assert one["micro_accuracy"] == one["twins"]["accuracy"]
    assert (one["both"], one["lost"], one["gained"], one["neither"], one["p"]) == (1, 1, 0, 0, 1.0)
    assert json.loads((place / "r/robustness.json").read_text("utf-8")) == found["models"]
    page = (place / "r/pairs.html").read_text("utf-8")
    assert page.index("1 → 2") < page.index("3 → 4")  # one wrong answer comes first
    assert "1 of 2" in page and "all types (micro)" in page
    plain = run(*asked, cwd=place)
    assert "originals" in plain.stdout and "66.7 %" in plain.stdout
    assert "only the original 1" in plain.stdout and "Pairs: r/pairs.html" in plain.stdout


def test_patterns_make_the_twins_and_models_stand_beside_each_other(place: Path) -> None:
    asked = ("robustness", "words:predict", "made_reviews(n=100)", "--also", "words:gloomy")
    found = told(run(*asked, "--by", "keyboard, dispensable", "--out", "r", "--json", cwd=place))
    names = list(found["models"])
    assert len(names) == 2 and len(found["pages"]) == 2
    assert all((place / page).exists() for page in found["pages"])
    for one in found["models"].values():
        patterns = {s["name"]: s["total"] for s in one["by_pattern"]}
        assert set(patterns) == {"keyboard", "dispensable"}
        assert sum(patterns.values()) == one["twins"]["total"] == one["pairs"]
    shown = run(*asked, "--by", "keyboard, dispensable", "--out", "r", cwd=place)
    assert all(name.split(":")[-1] in shown.stdout for name in names)
    assert shown.stdout.count("Pairs: ") == 2


def test_without_pairs_it_says_what_to_do(place: Path) -> None:
    lines(place / "alone.jsonl", *({k: r[k] for k in ("id", "text", "label")} for r in ROWS))
    result = run("robustness", "words:predict", "alone.jsonl", cwd=place)
    assert result.returncode == 2
    assert "rel_ids" in result.stderr and "--by" in result.stderr
    wrong = run("robustness", "words:predict", "pairs.jsonl", "--by", "insert", cwd=place)
    assert wrong.returncode == 2 and "makes no twins" in wrong.stderr


def test_an_audit_of_pairs_writes_their_page(place: Path) -> None:
    asked = ("audit", "words:predict", "pairs.jsonl", "--methods", "random_scores, occlusion")
    found = told(run(*asked, "--out", "r", "--json", cwd=place))
    assert found["pages"] == ["r/pairs.html"]
    judged = {(s["metric"], s["name"]) for s in found["standings"]}
    assert {("consistency", "map"), ("rationale_match", "average_precision")} <= judged
    assert "explained by" in (place / "r/pairs.html").read_text("utf-8")
    assert '<a href="pairs.html">' in (place / "r/report.html").read_text("utf-8")
    again = run("report", "r", "--pairs", "--method", "random_scores", "--out", "x.html", cwd=place)
    assert again.stdout.strip() == "x.html"
    assert '<code class="long">random_scores</code>' in (place / "x.html").read_text("utf-8")
    typo = run("report", "r", "--pairs", "--method", "oclusion", cwd=place)
    assert typo.returncode == 2 and "did you mean 'occlusion'" in typo.stderr
    typo = run("report", "r", "--pairs", "--model", "predit", cwd=place)
    assert typo.returncode == 2 and "no model 'predit'" in typo.stderr
    alone = run("report", "r", "--method", "occlusion", cwd=place)
    assert alone.returncode == 2 and "--pairs" in alone.stderr


def test_a_sample_keeps_pairs_together_from_the_command_line(place: Path) -> None:
    rows = [
        {"id": f"{kind}{i}", "text": f"{word} film {i}", "label": ("negative", "positive")[i % 2]}
        | ({"partner": f"o{i}"} if kind == "t" else {})
        for kind, word in (("o", "good"), ("t", "bad"))
        for i in range(20)
    ]
    lines(place / "many.jsonl", *rows)
    asked = ("many.jsonl", "--limit", "7", "--out", "r", "--json")
    (one,) = told(run("robustness", "words:predict", *asked, cwd=place))["models"].values()
    assert (one["originals"]["total"], one["twins"]["total"], one["pairs"]) == (3, 3, 3)


# ---- training on twins ----------------------------------------------------------------------

TRAINED = "text_cnn(size=8, filters=4, widths=(1,), embeddings=random)"


def reviews(place: Path) -> None:
    """Texts to train on, and pairs to test: one of them stands in both, one has two sentiments."""
    good, bad = ["good", "fine", "great", "lovely"], ["bad", "dull", "awful", "boring"]
    train = [
        {"text": f"the film number {i} was {w}", "label": label}
        for i in range(10)
        for label, some in (("pos", good), ("neg", bad))
        for w in some
    ]
    lines(place / "train.jsonl", *train)
    pairs: list[dict[str, Any]] = []
    for i in range(6):
        text = "the film number 0 was good" if i == 0 else f"a plot number {i} , so {good[i % 4]}"
        kind = ("single", "obscure", "multiple")[2 if i == 5 else i % 2]
        pairs.append({"id": f"o{i}", "text": text, "label": "pos", "sentiment_type": kind,
                      "rel_ids": [f"t{i}"]})  # fmt: skip
        pairs.append({"id": f"t{i}", "text": f"well , {text}", "label": "pos", "adv_type": "idr",
                      "sample_type": "adv"})  # fmt: skip
    lines(place / "twins.jsonl", *pairs)


def _as_before(folder: Path) -> None:
    """What earlier versions left of augmentation: no steps, and no setting that came later."""
    shutil.rmtree(folder / "steps")
    for path in (folder / "models").glob("*/veracity.json"):
        with edited(path) as record:
            training = record["data"]["asked"][1]
            assert [training.pop(name) for name in LATER] == [as_read(v) for v in LATER.values()]


def test_augmented_training_is_compared_and_resumed(tmp_path: Path) -> None:
    reviews(tmp_path)
    asked = (
        "augment", TRAINED, "train.jsonl", "twins.jsonl", "--by", "keyboard(copies=2)",
        "--tested-by", "dispensable, keyboard", "--out", "a", "--epochs", "2", "--seeds", "2",
    )  # fmt: skip
    found = told(run(*asked, "--json", cwd=tmp_path))
    assert [g["name"] for g in found["gains"]] == ["originals", "pattern-made", "hand-made"]
    by_kind = {g["name"]: g for g in found["gains"]}
    # the original with several sentiments takes no part, the one that is in both is not trained on
    assert (found["left_out"], found["held_out"]) == (1, 1)
    assert by_kind["originals"]["texts"] == by_kind["hand-made"]["texts"] == 5
    assert by_kind["pattern-made"]["texts"] > by_kind["pattern-made"]["originals"] == 5
    assert found["added_texts"] > found["train_texts"]  # two copies of nearly every text
    for gain in found["gains"]:
        assert gain["difference"] == pytest.approx(
            gain["augmented"]["accuracy"] - gain["plain"]["accuracy"]
        )
        assert gain["low"] <= gain["difference"] <= gain["high"] and 0 < gain["p"] <= 1
        assert len(gain["by_seed"]) == 2
        assert sum(gain["by_seed"]) / 2 == pytest.approx(gain["difference"])
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "a/models").rglob("*.json")}
    assert len([p for p in kept if p.name == "veracity.json"]) == 4
    again = run(*asked, cwd=tmp_path)
    assert "hand-made" in again.stdout and "pairs take no part" in again.stdout
    assert {p: p.stat().st_mtime_ns for p in kept} == kept  # nothing was trained anew
    _as_before(tmp_path / "a")
    assert told(run(*asked, "--json", cwd=tmp_path)) == found
    assert json.loads((tmp_path / "a/augmentation.json").read_text("utf-8")) == {
        k: v for k, v in found.items() if k not in ("found", "report")
    }
    page = (tmp_path / found["report"]).read_text("utf-8")
    assert "Hand-made: differences by training" in page and "<svg" in page
    other = run(*asked, "--learning-rate", "0.1", cwd=tmp_path)
    assert other.returncode == 2 and "another way" in other.stderr
    elsewhere = run(*asked[:-6], "--out", ".", cwd=tmp_path)
    assert elsewhere.returncode == 2 and "other files" in elsewhere.stderr


def test_augmentation_needs_pairs_that_people_wrote(tmp_path: Path) -> None:
    reviews(tmp_path)
    asked = ("augment", TRAINED, "train.jsonl", "train.jsonl", "--by", "keyboard", "--out", "a")
    result = run(*asked, cwd=tmp_path)
    assert result.returncode == 2 and "it holds no pair" in result.stderr
    assert not (tmp_path / "a").exists()


def test_pairs_without_labels_are_audited_and_not_judged(place: Path) -> None:
    rows = ({k: v for k, v in row.items() if k != "label"} for row in ROWS)
    lines(place / "nolabels.jsonl", *rows)
    asked = ("nolabels.jsonl", "--columns", "label=")
    methods = ("--methods", "random_scores, occlusion", "--out", "u")
    found = told(run("audit", "words:predict", *asked, *methods, "--json", cwd=place))
    assert found["pages"] == ["u/pairs.html"]
    page = (place / "u/pairs.html").read_text("utf-8")
    assert 'id="accuracy"' not in page and "one answer is wrong" not in page
    assert "map" in {s["name"] for s in found["standings"]}
    reviews(place)
    for verb in (
        ("robustness", "words:predict", *asked),
        ("augment", TRAINED, "train.jsonl", *asked, "--by", "keyboard", "--out", "n"),
    ):
        refused = run(*verb, cwd=place)
        assert refused.returncode == 2 and "has no labels" in refused.stderr


def test_a_report_is_never_written_over_other_files(place: Path) -> None:
    lines(place / "mine.csv", {"dear": "data"})
    told(run("audit", "words:predict", "pairs.jsonl", "--methods", "occlusion", "--out", "o",
             "--json", cwd=place))  # fmt: skip
    for more in ((), ("--pairs",)):
        refused = run("report", "o", *more, "--out", "mine.csv", cwd=place)
        assert refused.returncode == 2 and "no page of ours" in refused.stderr
        assert run("report", "o", *more, "--out", "o/run.json", cwd=place).returncode == 2
        for _ in range(2):  # a page of ours may be made anew
            assert run("report", "o", *more, "--out", "p.html", cwd=place).returncode == 0
    assert "dear" in (place / "mine.csv").read_text("utf-8")


def test_twins_of_patterns_alone_are_not_hand_made(place: Path) -> None:
    reviews(place)
    run("data", "attack", "train.jsonl", "--by", "keyboard", "--out", "made.jsonl", cwd=place)
    asked = ("augment", TRAINED, "train.jsonl", "made.jsonl", "--by", "keyboard", "--out", "m")
    refused = run(*asked, cwd=place)
    assert refused.returncode == 2 and "made by patterns" in refused.stderr
