"""Models on twins: how often they stay right, which pairs part them, what training gains."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import WordWeights, words
from made_cases import data_of, marked, shown
from veracity.auditing.audit import audit
from veracity.core.errors import DataError, PluginError, RunError
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import FloatArray
from veracity.experiments.augmentation_record import gains_of
from veracity.metrics.consistency import Consistency
from veracity.reports.pairs import pairs_page, write_pairs
from veracity.results.pairs import pairs_of, top_word_changes
from veracity.results.robustness import Robustness, robustness
from veracity.results.run import Run
from veracity.results.statistics import grouped_interval, mcnemar, mean_intervals, wilson

# ---- robustness -----------------------------------------------------------------------------


def answered(*rows: tuple[str, bool, str | None, str, str]) -> tuple[Dataset, FloatArray]:
    """Rows of id, whether the model is right, partner, sentiment type, adversarial type."""
    examples = tuple(
        Example(
            i,
            words(f"text {i}"),
            n % 2,
            partner=partner,
            facts={
                k: v for k, v in (("sentiment_type", sentiment), ("adv_type", attack)) if v != ""
            },
        )
        for n, (i, _, partner, sentiment, attack) in enumerate(rows)
    )
    given = [n % 2 if right else 1 - n % 2 for n, (_, right, *_) in enumerate(rows)]
    return Dataset("tested", ("negative", "positive"), examples), np.eye(2)[given]


def test_ex_7_4_micro_accuracy() -> None:
    right = {"idr": [True] * 3 + [False], "csk": [True] + [False] * 5}
    rows = [
        row
        for attack, flags in right.items()
        for i, flag in enumerate(flags)
        for row in (
            (f"{attack}{i}", True, None, "single", ""),
            (f"{attack}{i}-twin", flag, f"{attack}{i}", "obscure", attack),
        )
    ]
    found = robustness(*answered(*rows))
    by_attack = {s.name: s for s in found.by_attack}
    assert by_attack["idr"].accuracy == pytest.approx(0.75)
    assert by_attack["csk"].accuracy == pytest.approx(0.166667, abs=1e-6)
    assert found.micro_accuracy == pytest.approx(0.4)
    assert found.micro_accuracy == pytest.approx(found.twins.accuracy)
    assert (found.originals.accuracy, found.all.accuracy) == pytest.approx((1.0, 0.7))
    assert {s.name: s.accuracy for s in found.by_sentiment} == pytest.approx(
        {"single": 1.0, "obscure": 0.4}
    )
    assert (found.both, found.lost, found.gained, found.neither) == (4, 6, 0, 0)
    assert found.p == pytest.approx(2 / 2**6)
    assert "40.0% of 10 twins" in str(found)


def test_types_must_add_up() -> None:
    found = robustness(*answered(("a", True, None, "single", ""), ("b", False, "a", "", "")))
    assert [s.name for s in found.by_attack] == ["untyped"]
    assert [s.name for s in found.by_sentiment] == ["single", "untyped"]
    assert found.micro_accuracy == found.twins.accuracy == 0.0
    with pytest.raises(ValueError, match="add up"):
        replace(found, by_attack=())


def test_who_is_a_twin() -> None:
    data, answers = answered(("a", True, None, "", ""), ("b", False, None, "", ""))
    adverse = replace(data.examples[1], facts={"sample_type": "adv"})
    found = robustness(replace(data, examples=(data.examples[0], adverse)), answers)
    assert (found.originals.total, found.twins.total, found.pairs) == (1, 1, 0)
    assert found.p == 1.0
    with pytest.raises(DataError, match="one answer per example"):
        robustness(data, answers[:1])
    nothing = robustness(data.select([]), np.zeros((0, 2)))
    assert np.isnan(nothing.all.accuracy)
    assert (nothing.all.low, nothing.all.high) == (0.0, 1.0)


def test_mcnemar_and_wilson_by_hand() -> None:
    assert mcnemar(8, 2) == mcnemar(2, 8) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0
    assert wilson(8, 10) == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_texts_that_are_right_together_count_for_less() -> None:
    def both(same: bool) -> Robustness:
        rows: list[tuple[str, bool, str | None, str, str]] = []
        for i in range(20):
            rows.append((f"o{i}", i < 10, None, "", ""))
            rows.append((f"t{i}", i < 10 if same else i % 2 == 0, f"o{i}", "", ""))
        return robustness(*answered(*rows))

    together, apart = both(True), both(False)
    assert (together.all.low, together.all.high) == pytest.approx(wilson(10, 20))
    # that they are independent is seen in 20 pairs only: spread 10 and dependence 1, and as much as
    # 2 x 3.8415 / 4 of spread more with dependence 2
    size = 40 / ((10 + 2 * 1.9207) / (10 + 1.9207))
    limits = wilson(size / 2, size)
    assert (apart.all.low, apart.all.high) == pytest.approx(limits, abs=1e-4)
    assert (together.twins.low, together.twins.high) == pytest.approx(wilson(10, 20))


def test_several_twins_of_one_original_are_no_independent_pairs() -> None:
    rows: list[tuple[str, bool, str | None, str, str]] = []
    for i in range(3):
        rows.append((f"o{i}", True, None, "", ""))
        rows += [(f"t{i}-{j}", False, f"o{i}", "", "") for j in range(4)]
    found = robustness(*answered(*rows))
    assert (found.lost, found.pairs) == (12, 12)
    assert found.p == pytest.approx(2 / 2**3)  # three originals, not twelve pairs


# ---- pairs ----------------------------------------------------------------------------------


def test_ex_7_5_what_entered_and_left() -> None:
    entered, left, stayed = top_word_changes(("company", "good", "find"), ("umm", "good", "find"))
    assert (entered, left, stayed) == (("umm",), ("company",), 2)
    assert top_word_changes(("a", "b", "b"), ("c", "c", "a")) == (("c",), ("b",), 1)


@pytest.fixture
def evil() -> Dataset:
    """Two pairs, of which the model gets one text of the second wrong; hostile to a page."""
    rows = [
        ("o1", "a great film", 1, None, (1,)),
        ("t1", "a great great film", 1, "o1", (1, 2)),
        ("o2", "a <script>alert(1)</script> dull film", 0, None, ()),
        ("t2", "a dull film , great & \"fine\" 'so'", 0, "o2", ()),
        ("<b>alone</b>", "fine", 1, None, ()),
    ]
    return Dataset(
        "<i>evil</i>",
        ("<u>bad</u>", "good"),
        tuple(
            Example(
                i,
                words(text),
                label,
                {"rationale": (marked(words(text).n_features, *places),)} if places else {},
                partner,
                {"adv_type": "<idr>"} if partner else {},
            )
            for i, text, label, partner, places in rows
        ),
    )


class Bag(WordWeights):
    labels = ("<u>bad</u>", "good")


@pytest.fixture
def evil_run(evil: Dataset, tmp_path: Path) -> Run:
    model = Bag({"great": 2.0, "dull": -1.5, "fine": 0.5}, bias=0.1)
    return audit({"m": model}, evil, "occlusion", "erasure", out=tmp_path / "r").run


def test_pairs_with_one_wrong_answer_come_first(evil_run: Run) -> None:
    found = pairs_of(evil_run, "m", "occlusion")
    assert [p.twin.id for p in found.pairs] == ["t2", "t1"]
    first, second = found.pairs
    assert first.one_wrong and first.twin.wrong and not first.original.wrong
    assert not second.one_wrong
    assert (second.original.label, second.original.answer) == ("good", "good")
    assert second.original.rationales == ((1,),)
    assert second.attack == "<idr>"
    # the model reads a word once however often it stands there: hiding one of two changes nothing
    assert second.original.top_words == ("great",)
    assert second.original.explained == "good"
    assert "dull" in first.left and "great" in first.entered
    stored = evil_run.attributions("m", "occlusion")
    assert first.map == Consistency().compared(stored["o2"], stored["t2"])["map"]
    assert np.isnan(second.map)
    assert found.mean_map == first.map
    assert found.one_wrong == 1


def test_what_a_run_does_not_hold_is_said(evil_run: Run, bag: WordWeights, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no model 'n'"):
        pairs_of(evil_run, "n", "occlusion")
    with pytest.raises(PluginError, match="did you mean 'occlusion'"):
        pairs_of(evil_run, "m", "oclusion")
    data = data_of(("a", "a great film", None), ("b", "a dull film", None))
    alone = audit({"m": bag}, data, "occlusion", "erasure", out=tmp_path / "alone").run
    with pytest.raises(DataError, match="no pair"):
        pairs_of(alone, "m", "occlusion")
    evil_run.attribution_part("m", "occlusion", 0).unlink()
    with pytest.raises(RunError, match=r"no explanation of 'o1'.*again"):
        pairs_of(evil_run, "m", "occlusion")


def test_the_page_shows_both_texts_and_escapes_everything(
    evil: Dataset, evil_run: Run, tmp_path: Path
) -> None:
    answers = evil_run.predictions("m")
    found = pairs_of(evil_run, "m", "occlusion")
    rates = robustness(evil, np.array([answers[e.id] for e in evil]))
    page = write_pairs(found, tmp_path / "pairs.html", robustness=rates).read_text("utf-8")
    for hostile in ("<script", "<i>evil", "<u>bad", "<idr>", "<b>alone"):
        assert hostile not in page
    said = shown(page)
    for e in evil.examples[:4]:
        assert e.input.text in said
    assert "Entered the top words" in said and "one answer is wrong" in said
    assert page.index("o2 → t2") < page.index("o1 → t1")
    assert "Marked: great great" in said
    assert "originals3 of 3" in said
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)
    plain = pairs_page(found)
    assert 'id="accuracy"' not in plain


def test_a_page_of_many_pairs_says_what_it_leaves_out(
    evil_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pairs_of(evil_run, "m", "occlusion")
    monkeypatch.setattr("veracity.reports.pairs.MOST_PAIRS", 1)
    page = pairs_page(found)
    assert "1 more pair is not shown" in page
    assert "o2 → t2" in page and "o1 → t1" not in page


def test_the_chapter_on_twins_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = (Path(__file__).parents[1] / "docs" / "how-to" / "twins.md").read_text("utf-8")
    rows, code = (
        re.findall(rf"```{kind}\n(.*?)```", chapter, re.DOTALL)[0] for kind in ("json", "python")
    )
    (tmp_path / "pairs.jsonl").write_text(rows, "utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "twins.md", "exec"), {"__name__": "twins"})
    said = capsys.readouterr().out
    assert "right on 100.0% of 2 originals" in said and "0.0% of 2 twins" in said
    assert "{'idr': 0.0, 'negative': 0.0} 0.0" in said
    assert "('hard'" in said
    assert "umm" in (tmp_path / "run" / "pairs.html").read_text("utf-8")
    found = Run.open(tmp_path / "run")
    assert {"consistency", "rationale_match", "deletion"} <= found.config.metrics.keys()


# ---- training on twins ----------------------------------------------------------------------


def test_gains_by_hand() -> None:
    rows: list[tuple[str, str | None]] = [(f"o{i}", None) for i in range(4)]
    rows += [(f"p{i}{c}", f"o{i}") for i in range(4) for c in "ab"]
    data = data_of(*((i, f"text {i}", partner) for i, partner in rows))
    kinds = {"originals": np.arange(4), "made": np.arange(4, 12), "none": np.arange(0)}
    plain = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]], dtype=bool)
    more = np.array([[1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]], dtype=bool)
    originals, made = gains_of(data, kinds, plain, more)
    # 3 of 4 right before, 2 of 4 after; one text lost, none gained: McNemar of (0, 1) is 1
    assert (originals.plain.accuracy, originals.augmented.accuracy) == (0.75, 0.5)
    assert (originals.difference, originals.p) == (-0.25, 1.0)
    assert (originals.plain.low, originals.plain.high) == pytest.approx(wilson(3, 4))
    # 1 of 8 and 7 of 8: +6/8. Two twins of one original are no independent draws: three originals
    # gain 1 each and the fourth 0, of whose 2**3 signs two are as extreme as all alike
    assert (made.texts, made.originals) == (8, 4)
    assert made.difference == pytest.approx(0.75)
    assert made.p == pytest.approx(2 / 8)
    assert made.low <= 0.75 <= made.high <= 1.0
    assert made.by_seed == (0.75,)
    # a second training in which nothing changes halves the differences, and leaves their signs
    twice = gains_of(data, kinds, np.vstack([plain, plain]), np.vstack([more, plain]))[1]
    assert twice.difference == pytest.approx(0.375)
    assert twice.by_seed == (0.75, 0.0)
    assert twice.p == pytest.approx(2 / 8)
    with pytest.raises(DataError, match="shapes"):
        gains_of(data, kinds, plain[:, :3], more)


def test_groups_are_drawn_whole() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=40), 10)
    alone = [str(i) for i in range(400)]
    low, high = grouped_interval(values, [str(i // 10) for i in range(400)])
    narrow = grouped_interval(values, alone)
    assert high - low > 2.5 * (narrow[1] - narrow[0])  # 40 draws, not 400: about the root of ten
    assert narrow == pytest.approx(tuple(mean_intervals(values[:, None])[0]))
    assert all(np.isnan(grouped_interval(np.zeros(0), [])))
