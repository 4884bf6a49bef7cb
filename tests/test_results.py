"""Statistics, standings, and the run on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from made_run import made_run
from veracity.core.errors import RunError
from veracity.core.files import written_whole
from veracity.results.lines import Lines
from veracity.results.run import Run, is_whole, slug
from veracity.results.standings import across, compare, compare_all, standings
from veracity.results.statistics import (
    EXACT_UP_TO,
    bootstrap_intervals,
    holm,
    letter_groups,
    mean_intervals,
    share_interval,
    sign_flip_test,
    sign_flip_tests,
    smallest_p,
    texts_needed,
    wilson,
)
from veracity.results.verdicts import verdicts


def test_ex_8_6_sign_flip() -> None:
    assert sign_flip_test([0.5, 0.5, 0.5, 0.5]) == pytest.approx(0.125)
    assert sign_flip_test([1, 0.5, -0.5, 0.5, 1]) == pytest.approx(0.25)
    from scipy.stats import ttest_1samp

    t = ttest_1samp([1, 0.5, -0.5, 0.5, 1], 0)
    assert (t.statistic, t.pvalue) == pytest.approx((1.825742, 0.141927), abs=1e-6)


def test_sign_flip_edge_cases() -> None:
    assert sign_flip_test([0.0, 0.0]) == 1.0
    assert sign_flip_test([0.0, 0.3, np.nan]) == 1.0
    assert sign_flip_test([1.0] * 12) == pytest.approx(2 / 2**12)


@pytest.mark.parametrize("comparisons", [1, 3, 48, 2100])
def test_fewer_texts_than_needed_can_never_tell(comparisons: int) -> None:
    n = texts_needed(comparisons)

    def least(texts: int) -> float:
        table = np.zeros((texts, comparisons))
        table[:, 0] = 1.0  # one method ahead on every text, all others equal
        return float(holm(sign_flip_tests(table))[0])

    assert least(n - 1) >= 0.05
    if n <= EXACT_UP_TO:
        assert least(n) == pytest.approx(smallest_p(n) * comparisons) and least(n) < 0.05


def test_smallest_p_by_hand() -> None:
    assert [smallest_p(n) for n in (0, 1, 2, 8)] == [1.0, 1.0, 0.5, 2 / 256]
    # 2 / 2**10 x 48 = .094, 2 / 2**11 x 48 = .047
    assert [texts_needed(k) for k in (1, 48)] == [6, 11]
    assert texts_needed(1, level=0.25) == 4  # at 3 it is .25, which is not below


def test_sampled_sign_flip_comes_near_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    d = rng.normal(0.4, 1, size=13)
    exact_signs = np.array(np.meshgrid(*[[1, -1]] * 13)).reshape(13, -1).T
    exact = np.mean(np.abs(exact_signs @ d) >= abs(d.sum()) - 1e-12)
    assert sign_flip_test(d, draws=20_000) == pytest.approx(exact, abs=0.015)


def test_sign_flip_holds_its_level() -> None:
    rng = np.random.default_rng(0)
    p = sign_flip_tests(rng.normal(size=(40, 400)), draws=1000)
    assert 0.02 < np.mean(p < 0.05) < 0.08


def test_holm_is_step_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]).tolist() == []


def test_intervals_cover_the_mean_and_skip_what_is_not_defined() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(100):
        values = rng.normal(1.0, 2.0, size=(60, 1))
        low, high = bootstrap_intervals(values, draws=400)[0]
        covered += low <= 1.0 <= high
    assert covered > 85
    gaps = np.array([[1.0, np.nan], [3.0, np.nan]])
    (low, high), nothing = bootstrap_intervals(gaps)
    assert 1 <= low <= high <= 3
    assert np.isnan(nothing).all()


def test_a_share_that_was_never_seen_is_not_surely_nought() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        hits = (rng.random((20, 1)) < 0.02).astype(float)
        low, high = mean_intervals(hits, share=True)[0]
        covered += low <= 0.02 <= high
    assert covered > 360  # drawing finds no width in the two thirds that hold no hit
    seldom = np.zeros((10, 2))
    seldom[0, 0] = 1.0
    assert mean_intervals(seldom, share=True)[1] == pytest.approx(wilson(0, 10))
    # twins that are all alike tell as much as their originals
    pairs = [str(i // 2) for i in range(10)]
    assert mean_intervals(seldom, pairs, share=True)[1] == pytest.approx(wilson(0, 5))
    assert share_interval(np.array([1.0, np.nan, 0.0])) == pytest.approx(wilson(1, 2))
    nothing = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert np.isnan(mean_intervals(nothing, share=True)[1]).all()
    # what is no share is drawn
    plain = np.array([[0.0], [0.5], [1.0]])
    assert mean_intervals(plain) == pytest.approx(bootstrap_intervals(plain))


def test_letters_say_what_could_not_be_told_apart() -> None:
    different = np.zeros((3, 3), dtype=bool)
    different[0, 2] = different[2, 0] = True
    assert letter_groups(different) == ["a", "ab", "b"]
    assert letter_groups(np.zeros((2, 2), dtype=bool)) == ["a", "a"]
    assert letter_groups(~np.eye(3, dtype=bool)) == ["a", "b", "c"]


def test_compare_names_the_best_and_its_ties() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(80, 1))
    values = base + np.array([0.0, 0.001, 1.0]) + rng.normal(0, 0.1, size=(80, 3))
    found = compare(values, ["low", "same", "high"])
    assert found.entries[0].method == "high"
    assert found.best is not None
    assert found.best.method == "high"
    assert not any(e.tied_with_best for e in found.entries)
    lower = compare(values, ["low", "same", "high"], better="lower")
    assert lower.best is not None
    assert lower.best.method in ("low", "same")
    assert [e.method for e in lower.entries if e.tied_with_best] in (["low"], ["same"])


def test_a_lead_that_shared_texts_deny_is_no_lead() -> None:
    """B beats A wherever both are defined; A is only defined on the easy texts."""
    easy = np.linspace(0.8, 0.9, 30)
    values = np.full((100, 2), np.nan)
    values[:30, 0] = easy
    values[:30, 1] = easy + 0.05
    values[30:, 1] = 0.1
    found = compare(values, ["A", "B"])
    assert found.best is not None
    assert found.best.method == "A"
    assert [e.method for e in found.entries if e.tied_with_best] == ["B"]


def test_letters_never_repeat() -> None:
    signs = letter_groups(~np.eye(60, dtype=bool))
    assert len(set(signs)) == 60


def test_an_undefined_method_is_tied_with_nobody() -> None:
    found = compare(np.array([[0.9, np.nan], [0.8, np.nan], [0.7, np.nan]]), ["good", "none"])
    assert [e.tied_with_best for e in found.entries] == [False, False]
    assert found.entries[1].n == 0


def test_a_run_gives_standings_and_verdicts(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    found = standings(run)
    assert {s.model for s in found} == set(run.models)
    said = verdicts(found)
    assert len(said) == sum(s.headline for s in found)
    for verdict in said:
        standing = next(
            s
            for s in found
            if (s.model, s.metric, s.name) == (verdict.model, verdict.metric, verdict.name)
        )
        assert standing.best is not None
        assert standing.best.method in verdict.sentence


def test_methods_can_be_compared_across_runs(tmp_path: Path) -> None:
    runs = {name: made_run(tmp_path / name) for name in ("one", "two")}
    found = across(runs)
    methods = {e.method for e in found[0].entries}
    assert {m.split("/")[0] for m in methods} == {"one", "two"}


def test_runs_on_different_data_are_not_compared(tmp_path: Path) -> None:
    runs = {"one": made_run(tmp_path / "one"), "two": made_run(tmp_path / "two", size=9)}
    with pytest.raises(RunError, match="different data"):
        across(runs)


def test_the_run_is_readable_by_others(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    import duckdb

    folder = tmp_path / "run" / "scores"
    counted = duckdb.sql(f"select count(*) from read_parquet('{folder}/**/*.parquet')")
    assert counted is not None
    assert counted.fetchall() == [(run.scores().num_rows,)]
    assert run.scores().column_names == [
        "dataset",
        "model",
        "explainer",
        "metric",
        "example",
        "name",
        "value",
    ]


def test_a_damaged_part_is_named_and_made_again(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    part = next((tmp_path / "run" / "scores").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(RunError, match=part.name):
        run.scores()
    assert not is_whole(part)
    assert not part.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "damaged"), ("{}", "damaged"), (json.dumps({"format": 99}), "format 99")],
)
def test_a_damaged_run_is_told(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=says):
        Run.open(tmp_path)
    with pytest.raises(RunError, match="there is none"):
        Run.open(tmp_path / "other")


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "a" / "file"
    with pytest.raises(RuntimeError), written_whole(target) as file:
        file.write(b"half")
        raise RuntimeError
    assert list(target.parent.iterdir()) == []
    with written_whole(target) as file:
        file.write(b"all")
    assert target.read_bytes() == b"all"
    assert [p.name for p in target.parent.iterdir()] == ["file"]


def test_slugs_are_readable_and_distinct() -> None:
    assert slug("lime") == "lime"
    assert slug("lime(samples=5)") != slug("lime(samples=5.)")
    assert slug("../../etc") != "../../etc"
    assert "/" not in slug("a/b")


def test_lines_survive_a_kill_and_come_out_in_order(tmp_path: Path) -> None:
    asked = {"method": "lime", "seed": 0}
    first = Lines(tmp_path / "out.jsonl", asked)
    first.open()
    first.add([(2, {"word": "drei"}), (0, {"word": "eins"})])
    with first.part.open("ab") as file:
        file.write(b'{"place": 1, "wo')  # a write that was cut off
    second = Lines(tmp_path / "out.jsonl", asked)
    second.open()
    assert set(second.done) == {0, 2}
    second.add([(1, {"word": "zw\u00f6i"})])
    second.finish()
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [row["word"] for row in rows] == ["eins", "zw\u00f6i", "drei"]
    assert not second.part.exists()


def test_lines_of_other_work_are_left_alone(tmp_path: Path) -> None:
    Lines(tmp_path / "out.jsonl", {"seed": 0}).open()
    with pytest.raises(RunError, match="other work"):
        Lines(tmp_path / "out.jsonl", {"seed": 1}).open()


def test_nobody_beats_chance_where_both_were_scored_and_chance_was_better() -> None:
    shared, alone = np.full((20, 1), 5.0), np.full((100, 1), np.nan)
    chance = np.concatenate([np.full((20, 1), 6.0), np.zeros((100, 1))])
    values = np.hstack([np.concatenate([shared, alone]), chance])
    (found,) = compare_all({"q": values}, ["a", "random"], chance=["random"])
    entry = next(e for e in found.entries if e.method == "a")
    assert entry.mean == 5 > chance.mean() and entry.p_chance is not None
    assert entry.p_chance < 0.05 and entry.better_than_chance is False


def test_groups_change_sides_together() -> None:
    values = [1.0] * 100 + [-1.0] * 30
    groups = ["one"] * 100 + [str(i) for i in range(30)]
    # the mean is above 0, and its test must be of that mean: one group of 31 tells nothing
    assert np.mean(values) > 0.5 and sign_flip_test(values, groups) > 0.9
    assert sign_flip_test(values) < 0.001
    # the scale of differences does not matter
    assert sign_flip_test([1e-13] * 10) == sign_flip_test([1e-3] * 10) == 2 / 1024
