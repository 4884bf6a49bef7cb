"""The experiments on twins and rationales: data, figures, claims, and the whole at small size."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import WordWeights, words
from veracity.auditing.audit import audit
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import Text
from veracity.data.loading import load_data, write_data
from veracity.recipes.papers import _dutrust_findings as show
from veracity.recipes.papers import dutrust as recipe
from veracity.recipes.papers import recipes
from veracity.recipes.papers.dutrust import DutrustRecipe, shortened
from veracity.reports.findings import write_findings
from veracity.results.findings import Cell, Findings
from veracity.results.robustness import paired_p

# ---- data -----------------------------------------------------------------------------------


def test_texts_are_cut_with_what_is_marked_in_them() -> None:
    text = Text.of_words(list("abcde"))
    early, late = (np.array([c in marked for c in "abcde"]) for marked in ("ad", "e"))
    data = Dataset(
        "d",
        ("n", "p"),
        (
            Example("both", text, 0, {"rationale": (early, late)}),
            Example("late", text, 0, {"rationale": (late,)}),
            Example("short", Text.of_words(["a"]), 1),
        ),
    )
    first, last = shortened(data, 3)
    assert (first.id, first.input.words) == ("both", ("a", "b", "c"))
    assert [m.tolist() for m in first.truths["rationale"]] == [[True, False, False]]
    assert last.input.words == ("a",)


def test_pairs_that_differ_behind_the_cut_are_left_out() -> None:
    texts = {"o": "a b c d", "t": "a b c e", "o2": "a x", "t2": "a y"}
    data = Dataset(
        "d",
        ("n", "p"),
        tuple(
            Example(i, Text.of_words(t.split()), i[0] == "t", {}, {"t": "o", "t2": "o2"}.get(i))
            for i, t in texts.items()
        ),
    )
    assert [e.id for e in shortened(data, 3)] == ["o2", "t2"]
    assert len(shortened(data, 4)) == 4


def test_the_published_tables_are_those_printed() -> None:
    printed = DutrustRecipe.settings()["published"]
    assert printed["lstm"]["attention"][0] == 69.8
    assert printed["encoder"]["lime"][1:4] == [37.0, 32.9, 35.0]
    assert printed["knowing"]["integrated_gradients"][-3:] == [39.3, 38.8, 39.0]
    assert printed["accuracy"]["large"] == [95.8, 69.6, 66.8, 68.2]
    for model in ("lstm", "encoder", "knowing"):
        for figures in printed[model].values():
            # originals and twins are equally many: all is their mean, as printed within 0.1
            for at in (1, 4):
                assert figures[at + 2] == pytest.approx(np.mean(figures[at : at + 2]), abs=0.151)


@pytest.mark.parametrize("what", ["courses", "models"])
@pytest.mark.parametrize("named", ["()", "('nonsense',)"])
def test_unknown_courses_and_models_are_refused(what: str, named: str) -> None:
    with pytest.raises(PluginError, match=f"expected {what} among"):
        recipes.make(f"dutrust({what}={named})")


# ---- figures --------------------------------------------------------------------------------


def step(methods: Mapping[str, Mapping[str, list[float | None]]], n: int) -> dict[str, Any]:
    """Pairs: even places hold originals, the next ones their twins."""
    return {
        "examples": [str(i) for i in range(n)],
        "partners": [str(i - i % 2) for i in range(n)],
        "twins": [bool(i % 2) for i in range(n)],
        "methods": methods,
        "texts": n,
        "pairs": n // 2,
    }


def reader(
    tried: Mapping[tuple[str, str], Any], augmented: Any = None, own: Any = None
) -> show.DutrustReader:
    results = {("try", *key): found for key, found in tried.items()}
    results |= {("augment", "t", "lstm"): augmented} if augmented else {}
    results |= {("train", "course", "lstm"): own} if own else {}
    about = {"t": {"course": "course", "file": "t.jsonl"}}
    return show.DutrustReader(DutrustRecipe.declarations(), results, about)


def test_means_are_of_one_side_and_of_what_is_defined() -> None:
    one = step({"lime": {"new_p": [1.0, 0.0, 0.0, None]}}, 4)
    cell = show.mean_cell(one, "lime", "new_p", "originals", 0.37)
    assert cell is not None
    assert (cell.value, cell.n, cell.published) == (0.5, 2, 0.37)
    every = show.mean_cell(one, "lime", "new_p")
    assert every is not None
    assert every.value == pytest.approx(1 / 3)
    assert every.low is not None
    assert every.low <= every.value <= (every.high or 0)
    assert show.mean_cell(one, "lime", "map") is None


def test_both_ways_to_rank_stand_beside_the_papers_figure() -> None:
    one = step({"lime": {"new_p": [1.0, 1.0, 1.0, 0.0], show.BY_SIZE: [0.0, 1.0, 0.0, 0.0]}}, 4)
    (table,) = reader({("t", "lstm"): one}).method_tables()
    cells = dict(zip(table.columns[1:], dict(table.rows)["LSTM, lime"], strict=True))
    by_size, by_sign = (cells[f"New_P by {way}"] for way in ("size", "sign"))
    assert isinstance(by_size, Cell) and isinstance(by_sign, Cell)
    assert (by_size.value, by_sign.value) == (0.25, 0.75)
    assert by_size.published == by_sign.published == 0.223


def test_words_ranked_by_size_and_by_sign_are_told_apart(tmp_path: Path) -> None:
    model = WordWeights({"good": 1.0, "fine": 1.0, "kind": 1.0, "bad": -2.5})
    texts = ("good fine kind bad", "good fine kind x")
    examples = tuple(Example(str(i), words(t), 1) for i, t in enumerate(texts))
    data = Dataset("d", ("negative", "positive"), examples)
    metrics = ["erasure(ratio=0.3)", "erasure(profile=paper, ratio=0.3)"]
    run = audit({"m": model}, data, ["occlusion"], metrics, out=tmp_path, extras=False).run
    rows = recipe._rows(run, ["0", "1"])["occlusion"]
    # good and fine keep the answer and the rest loses it; by size bad and good come first
    assert rows["new_p"] == [1.0, 0.0]
    assert rows[show.BY_SIZE] == [0.0, 0.0]
    assert len(rows) == 4


def test_micro_f1_pools_counts_and_draws_pairs_whole() -> None:
    counts: dict[str, list[float | None]] = {
        "hits": [2.0, 1.0, 0.0, 0.0],
        "chosen": [3.0, 3.0, 4.0, 2.0],
        "known": [3.0, 1.0, 2.0, 2.0],
    }
    one = step({"lime": counts}, 4)
    cell = show.micro_cell(one, "lime")
    assert cell is not None
    assert cell.value == pytest.approx(2 * 3 / (12 + 8))
    # two pairs: three draws are possible, of F1 0.6, 0.3 and 0
    assert cell.low == 0
    assert cell.high == pytest.approx(0.6)


def rows(*means: float, n: int = 40) -> list[list[float]]:
    rng = np.random.default_rng(0)
    return [[m + 0.01 * float(e) for e in rng.standard_normal(n)] for m in means]


def claim_of(statement: str, tried: Any, augmented: Any = None) -> Any:
    (found,) = (c for c in reader(tried, augmented).claims() if statement in c.statement)
    return found


@pytest.mark.parametrize(
    ("means", "verdict"),
    [((0.7, 0.5, 0.3), "confirmed"), ((0.7, 0.3, 0.5), "refuted"), ((0.5,) * 3, "open")],
)
def test_an_order_is_confirmed_refuted_or_open(means: tuple[float, ...], verdict: str) -> None:
    attention, lime, gradients = rows(*means)
    methods = {
        "attention": {"map": attention},
        "lime(samples=9)": {"map": lime},
        "integrated_gradients": {"map": gradients},
    }
    tried = {("t", "encoder"): step(methods, 40)}  # type: ignore[arg-type]
    found = claim_of("By MAP the order of methods is attention > lime", tried)
    assert found.verdict == verdict


def test_models_are_compared_text_by_text() -> None:
    (low, high) = rows(0.3, 0.5)
    tried = {
        ("t", "lstm"): step({"attention": {"map": high}, "lime": {"map": high}}, 40),  # type: ignore[dict-item]
        ("t", "encoder"): step({"attention": {"map": low}, "lime": {"map": low}}, 40),  # type: ignore[dict-item]
    }
    assert claim_of("more consistent than the encoder's", tried).verdict == "confirmed"
    swapped = {("t", "lstm"): tried["t", "encoder"], ("t", "encoder"): tried["t", "lstm"]}
    assert claim_of("more consistent than the encoder's", swapped).verdict == "refuted"


def tried_twins(rights: Mapping[str, Mapping[str, bool]], **more: Any) -> Any:
    """Steps of models by which texts they get right: `3` is an original, `3b` one of its twins."""
    found = {}
    for model, right in rights.items():
        pairs = [(t[:-1], t) for t in right if not t.isdecimal()]
        sides = [(right[o], right[t]) for o, t in pairs]
        names = ((True, True), (True, False), (False, True), (False, False))
        counts = dict(
            zip(("both", "lost", "gained", "neither"), map(sides.count, names), strict=True)
        )
        own = [v for t, v in right.items() if t.isdecimal()]
        share = {"correct": sum(own), "total": len(own)}
        p = paired_p([o for o, _ in pairs], sides)
        found["t", model] = {
            **step({}, 0), "right": right, "robustness_pairs": pairs, **more,
            "robustness": {**counts, "originals": share, "p": p},
        }  # fmt: skip
    return found


def test_a_fall_is_that_of_the_pairs_which_are_tested() -> None:
    # a thousand right originals have no twin; of forty pairs ten are gained and none is lost
    right = {str(i): True for i in range(1000)} | {str(i): False for i in range(1000, 1040)}
    right |= {f"{i}b": i < 1010 for i in range(1000, 1040)}
    found = claim_of("worse on twins", tried_twins({"lstm": right}))
    assert found.verdict == "refuted" and "−25.0%" in found.seen


def test_a_model_may_do_worse_than_at_home() -> None:
    right = {str(i): i < 50 for i in range(100)} | {f"{i}b": True for i in range(100)}
    own = {"right": 90, "texts": 100}
    seen = list(reader(tried_twins({"lstm": right}), own=own).claims())
    (found,) = (c for c in seen if "own test set" in c.statement)
    assert found.verdict == "confirmed" and "+40.0%" in found.seen


@pytest.mark.parametrize(("helps", "verdict"), [(True, "confirmed"), (False, "open")])
def test_pretraining_is_judged_by_type_within_originals(helps: bool, verdict: str) -> None:
    twins = {f"{i}{kind}": kind for i in range(20) for kind in "nk"}
    lstm = {str(i): True for i in range(20)} | dict.fromkeys(twins, False)
    encoder = lstm | {t: helps for t, kind in twins.items() if kind == "n"}
    types = {t: {"n": "negative", "k": "idr"}[kind] for t, kind in twins.items()}
    tried = tried_twins({"lstm": lstm, "encoder": encoder}, adv_types=types)
    assert claim_of("Pretraining helps more", tried).verdict == verdict


def test_training_on_twins_is_judged_by_what_it_changes() -> None:
    gain = {"low": 0.0, "high": 0.0, "texts": 9}
    found = {
        "gains": [
            {"name": "originals", "difference": 0.05, "p": 0.001, **gain},
            {"name": "pattern-made", "difference": 0.09, "p": 0.001, **gain},
            {"name": "hand-made", "difference": -0.01, "p": 0.5, **gain},
        ]
    }
    verdicts = {c.statement: c.verdict for c in reader({}, found).claims()}
    assert list(verdicts.values()) == ["confirmed", "refuted", "open"]


# ---- the whole ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a user would bring it: pairs without labels, pairs with them, and rationales."""
    folder = tmp_path_factory.mktemp("given")
    made = load_data("made_reviews(n=60, seed=9)")
    (folder / "dutrust").mkdir()
    rows = []
    for i, e in enumerate(made.examples[:6]):
        words = list(e.input.words)
        shared = {"context": e.input.text, "sent_token": words}
        twin = {"context": f"well {e.input.text}", "sent_token": ["well", *words]}
        rows.append({"id": i, **shared, "sample_type": "ori", "rel_ids": [100 + i]})
        rows.append({"id": 100 + i, **twin, "sample_type": "disturb"})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "dutrust" / "senti_en.jsonl").write_text(lines, "utf-8")
    (folder / "cad_imdb").mkdir()
    paired = ["Sentiment\tText\tbatch_id"]
    for i, e in enumerate(made.examples[6:26]):
        names = ("Negative", "Positive")
        paired += [f"{names[e.label]}\t{e.input.text}\t{i}"]
        paired += [f"{names[1 - e.label]}\tindeed {e.input.text}\t{i}"]
    with gzip.open(folder / "cad_imdb" / "test_paired.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(paired) + "\n")
    (folder / "ham_yelp").mkdir()
    marked = made.select(range(26, 36))
    write_data(marked, folder / "ham.jsonl")
    with gzip.open(folder / "ham_yelp" / "ham.jsonl.gz", "wb") as packed:
        packed.write((folder / "ham.jsonl").read_bytes())
    return folder


@pytest.fixture
def small(encoder_folder: Path) -> dict[str, Any]:
    corpus = {"stand_in": "made_reviews(n=200, seed=3)", "encoder": str(encoder_folder)}
    return {
        "courses": {"sentences": corpus, "reviews": corpus},
        "texts": {"sentences": 200, "reviews": 200},
        "explained": {"all": 8, "ham_yelp": 4},
        "knowing_on": ["sentences"],
        "twins": 12,
        "augmented": 80,
        "models": {
            "lstm": "attention_lstm(size=12, hidden=8, attention=8)",
            "encoder": "transformer",
            "knowing": "transformer",
        },
        "methods": ["integrated_gradients(steps=50)", "attention", "lime(samples=30)"],
        "lstm_training": {"epochs": 2},
    }


@pytest.mark.filterwarnings("ignore:.*Raise steps")
def test_the_whole_is_done_once_and_told_on_a_page(
    small: dict[str, Any], given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = DutrustRecipe(courses=("sentences", "reviews"), methods="attention, lime(samples=30)")
    with pytest.raises(PluginError, match="attention"):
        recipes.make("dutrust(methods=atention)")
    seen: list[Any] = []
    settings: Any = {"scale": "smoke", "sizes": small, "data": given, "workers": 1}
    found = chosen.run(tmp_path / "run", **settings, watch=seen.append)
    titles = [t.title for t in found.tables]
    assert "Training on pattern-made twins" in titles
    assert {"Explanations of dutrust_english", "Explanations of ham_yelp"} <= set(titles)
    by_title = {t.title: t for t in found.tables}
    # without labels nothing is right or wrong, but explanations of twins are compared
    unlabelled = dict(by_title["Robustness"].rows)["dutrust_english, LSTM"]
    assert unlabelled[4] == "no labels"
    assert by_title["Explanations of dutrust_english"].columns[1] == "MAP"
    assert "Macro-F1" in by_title["Explanations of ham_yelp"].columns
    for title in ("Explanations of dutrust_english", "Explanations of ham_yelp"):
        at = by_title[title].columns.index("New_P by size") - 1
        for name, cells in by_title[title].rows:
            assert all(isinstance(cell, Cell) for cell in cells[at : at + 2])
            # attention has no negative score, so that both ways are one
            assert "attention" not in name or cells[at] == cells[at + 1]
    assert "MAP" not in by_title["Explanations of ham_yelp"].columns
    models = {name.split(", ")[0] for name, _ in by_title["Explanations of ham_yelp"].rows}
    assert models == {"LSTM", "encoder"}
    assert any("eraser_movies" in note for note in found.notes)
    steps = [s for s in seen if not s.step]
    assert (steps[-1].done, steps[-1].total) == (len(steps) - 1, len(steps) - 1)
    page = write_findings(found, tmp_path / "run").read_text("utf-8")
    assert "encoder, sentiment first" in page
    assert Findings.read(tmp_path / "run").tables[0].rows[0][0] == found.tables[0].rows[0][0]

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("done before")

    monkeypatch.setattr(recipe, "trained_once", never)
    monkeypatch.setattr(recipe, "audit", never)
    again = chosen.run(tmp_path / "run", **settings)
    assert [t.title for t in again.tables] == titles


def test_what_is_tried_is_not_learnt(small: dict[str, Any], given: Path) -> None:
    sizes = {**DutrustRecipe.at_scale("smoke"), **small}
    tried = dict(recipe._trials(given, ("sentences", "reviews"), sizes))
    known = load_data("made_reviews(n=200, seed=3)").select(range(5))
    parts = recipe._course("sentences", None, [known], sizes, 0)
    learnt = {e.input.text for p in (parts.train, parts.validation, parts.test) for e in p}
    assert not learnt & {e.input.text for e in known}
    assert set(tried) == {"dutrust_english", "cad_imdb", "ham_yelp"}


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("label\ttext\n", "utf-8")
    with pytest.raises(DataError, match="expected a folder that holds some of cad_imdb"):
        DutrustRecipe().run(tmp_path / "run", scale="smoke", data=tmp_path / "x.tsv", seed=0)
