"""Statistics, standings, and the run on disk."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from edited import edited
from made_run import made_run
from veracity.core.errors import RunError
from veracity.core.files import written_whole
from veracity.core.inputs import FloatArray
from veracity.reports.showing import interval as shown_interval
from veracity.reports.showing import percent as shown_percent
from veracity.results.parts import complete_part, discard_part
from veracity.results.run import Run, slug
from veracity.results.standings import across, compare, compare_all, standings
from veracity.results.statistics import (
    holm,
    letter_groups,
    mean_intervals,
    paired_tests,
    share_interval,
    sign_flip_test,
    sign_flip_tests,
    skewed_t_tests,
    smallest_p,
    texts_needed,
    wilson,
)
from veracity.results.statistics import percent as verdict_percent
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
    assert least(n) == pytest.approx(smallest_p(n) * comparisons) and least(n) < 0.05


def test_smallest_p_by_hand() -> None:
    assert [smallest_p(n) for n in (0, 1, 2, 8)] == [1.0, 1.0, 0.5, 2 / 256]
    # 2 / 2**10 x 48 = .094, 2 / 2**11 x 48 = .047
    assert [texts_needed(k) for k in (1, 48)] == [6, 11]
    assert texts_needed(1, level=0.25) == 4  # at 3 it is .25, which is not below


def test_exact_sign_flips_are_those_of_all_patterns() -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 6, 9, 13):
        signs = np.array(np.meshgrid(*[[1, -1]] * n)).reshape(n, -1).T
        for d in (rng.normal(0.4, 1, size=n), rng.integers(-2, 4, size=n) / 10):
            exact = np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12)
            assert sign_flip_test(d) == pytest.approx(exact, abs=1e-12)
    assert sign_flip_test([1.0, -1.0]) == 1.0


def test_sampled_sign_flip_comes_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(5).normal(0.4, 1, size=13)
    exact = sign_flip_test(d)
    monkeypatch.setattr("veracity.results.statistics.EXACT_UP_TO", 12)
    assert sign_flip_test(d, draws=20_000) == pytest.approx(exact, abs=0.015)


def test_sign_flip_holds_its_level() -> None:
    rng = np.random.default_rng(0)
    p = sign_flip_tests(rng.normal(size=(40, 400)), draws=1000)
    assert 0.02 < np.mean(p < 0.05) < 0.08


def test_skewed_differences_of_mean_zero_are_not_told_apart() -> None:
    """Signs alone take half as many again for different as the level allows."""
    rng = np.random.default_rng(0)
    one, other = ((rng.gamma(0.25, size=(20, 2000)) - 0.25) / 0.5 for _ in range(2))
    by_signs, by_both = (
        float((test(one + other) < 0.005).mean()) for test in (sign_flip_tests, paired_tests)
    )
    assert by_signs > 0.02 and by_both < 0.015


def test_without_skewness_the_bent_test_is_students() -> None:
    from scipy.stats import ttest_1samp

    values = np.array([[0.1, -0.3, 0.5, 0.9, -0.3, 0.1, 0.7]]).T
    values = np.concatenate([values, 2 * values.mean() - values])  # symmetric about its mean
    expected = ttest_1samp(values[:, 0], 0).pvalue
    assert skewed_t_tests(values)[0] == pytest.approx(expected)


def test_equal_differences_leave_the_word_to_the_signs() -> None:
    equal = np.full((6, 1), 0.3)
    assert paired_tests(equal)[0] == sign_flip_tests(equal)[0] == 2.0**-5
    assert paired_tests(np.zeros((6, 1)))[0] == 1.0
    assert paired_tests(np.ones((1, 1)))[0] == 1.0


def test_holm_is_step_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]).tolist() == []


def _slow_interval(values: FloatArray, groups: list[str]) -> tuple[float, float]:
    """The same in the words of the definition: one column, one group left out after the other."""
    from scipy.stats import t

    known = [(v, g) for v, g in zip(values.tolist(), groups, strict=True) if not np.isnan(v)]
    names = sorted({g for _, g in known})
    n, mean = len(names), float(np.mean([v for v, _ in known]))
    moves = [mean - float(np.mean([v for v, g in known if g != name])) for name in names]
    error = math.sqrt((n - 1) / n * sum(m**2 for m in moves))
    skewness: float = (
        sum(m**3 for m in moves) / n / (sum(m**2 for m in moves) / n) ** 1.5 * (n - 2) / n
    )

    def cubic(x: float) -> float:
        return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / (6 * n)

    def hall(p: float) -> float:
        sought, low, high = float(t.ppf(p, n - 1)) / math.sqrt(n), -1e3, 1e3
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if cubic(middle) < sought else (low, middle)
        return low * math.sqrt(n)

    student = t.ppf(0.975, n - 1)
    return (mean - error * max(student, hall(0.975)), mean + error * max(student, -hall(0.025)))


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_intervals_are_those_of_the_definition(n: int) -> None:
    rng = np.random.default_rng(n)
    values = np.stack([rng.lognormal(size=2 * n), -rng.exponential(size=2 * n)], axis=1)
    values[n + 1 :, 1] = np.nan
    for groups in ([str(i) for i in range(2 * n)], [str(i % n) for i in range(2 * n)]):
        found = mean_intervals(values, groups)
        slow = [_slow_interval(column, groups) for column in values.T]
        assert found == pytest.approx(np.array(slow), rel=1e-6)


def test_symmetric_scores_have_students_interval() -> None:
    from scipy.stats import t

    # 2 ± t(4) x 1.5811 / root 5
    ends = mean_intervals(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]))[0]
    assert ends == pytest.approx((0.036757, 3.963243), abs=1e-6)
    two = mean_intervals(np.array([[1.0], [3.0]]))[0]
    assert two == pytest.approx((2 - t.ppf(0.975, 1), 2 + t.ppf(0.975, 1)))
    # a long tail above: the upper end is farther, the lower not nearer
    low, high = mean_intervals(np.array([[0.0], [0.0], [0.0], [0.0], [1.0]]))[0]
    assert 0.2 - low == pytest.approx(t.ppf(0.975, 4) * 0.2) and high - 0.2 > 1.5 * (0.2 - low)


def test_intervals_of_next_to_nothing() -> None:
    gaps = np.array([[1.0, np.nan, 0.1, 0.0], [np.nan, np.nan, 0.1, 0.0], [np.nan] * 4])
    one, nothing, equal, nought = mean_intervals(gaps)
    assert np.isnan(one).all() and np.isnan(nothing).all()  # one text does not tell how sure
    assert equal == pytest.approx((0.1, 0.1)) and nought.tolist() == [0.0, 0.0]
    assert np.isnan(mean_intervals(gaps, ["a", "a", "a"])).all()
    assert np.isnan(mean_intervals(np.zeros((0, 2)))).all()
    assert mean_intervals(np.zeros((3, 0))).shape == (0, 2)
    tiny = np.array([[1.0], [2.0], [7.0]])
    assert mean_intervals(1e-150 * tiny) == pytest.approx(
        1e-150 * mean_intervals(tiny), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("n", [5, 10, 20, 50, 200])
def test_intervals_cover_as_often_as_they_say(n: int) -> None:
    rng = np.random.default_rng(n)

    def covered(values: FloatArray, mean: float, groups: list[str] | None = None) -> float:
        low, high = mean_intervals(values, groups).T
        return float(np.mean((low <= mean) & (mean <= high)))

    size = (n, min(4000, 200_000 // n))
    assert covered(rng.normal(1.0, 2.0, size), 1.0) == pytest.approx(0.95, abs=0.02)
    # two of each: the same once more, in groups
    twins = np.repeat(rng.normal(size=(n, min(2000, 100_000 // n))), 2, axis=0)
    groups = [str(i // 2) for i in range(2 * n)]
    assert covered(twins, 0.0, groups) == pytest.approx(0.95, abs=0.02)
    # percentiles of draws reach .73, .80, .85, .90 and .94 here
    least = {5: 0.84, 10: 0.88, 20: 0.91, 50: 0.93, 200: 0.945}[n]
    assert covered(rng.lognormal(size=size), math.exp(0.5)) > least
    # most are 0: of five, all of them in one sample of thirteen
    drops = np.where(rng.random(size) < 0.6, 0.0, rng.beta(0.5, 2, size))
    assert covered(drops, 0.08) > {5: 0.77, 10: 0.9}.get(n, 0.94)


def test_of_one_text_a_mean_has_no_interval_and_a_share_a_wide_one() -> None:
    one = np.array([[1.0]])
    assert np.isnan(mean_intervals(one)).all()
    assert mean_intervals(one, share=True)[0] == pytest.approx((0.2065, 1.0), abs=1e-4)


@pytest.mark.parametrize("n", [5, 10, 20, 50, 200])
def test_shares_are_covered_on_average_over_rates(n: int) -> None:
    from scipy.stats import binom

    ends = np.array([wilson(hits, n) for hits in range(n + 1)])
    rates = np.linspace(0.01, 0.99, 99)
    held = (ends[:, :1] <= rates) & (rates <= ends[:, 1:])
    coverage = (binom.pmf(np.arange(n + 1)[:, None], n, rates) * held).sum(axis=0)
    assert coverage.mean() == pytest.approx(0.95, abs=0.02)
    # hits come in whole numbers: no interval covers each rate equally often
    assert coverage.min() > {5: 0.83, 10: 0.85}.get(n, 0.9)


@pytest.mark.parametrize("sizes", [[2] * 5, [2] * 20, [3] * 4, [5] * 4, [1, 1, 2, 2, 4]])
def test_more_hits_never_lower_a_share(sizes: list[int]) -> None:
    groups = [str(i) for i, size in enumerate(sizes) for _ in range(size)]
    n = len(groups)
    ends = [share_interval((np.arange(n) < hits).astype(float), groups) for hits in range(n + 1)]
    assert (np.diff(ends, axis=0) >= 0).all()


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
    assert len(said) == len({(s.model, s.purpose) for s in found if s.headline})
    for verdict in said:
        tests = [
            s
            for s in found
            if s.headline and (s.model, s.purpose) == (verdict.model, verdict.purpose)
        ]
        assert verdict.metrics == tuple(s.metric for s in tests)
        for s in tests:
            assert s.best is not None
            assert verdict.use in (
                s.best.method,
                *(e.method for e in s.entries if e.tied_with_best),
            )
            assert f"{s.best.n} texts" in verdict.sentence


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
    assert complete_part(part, []) is None
    assert part.exists()  # it was only asked about
    discard_part(part)
    assert not part.exists()
    discard_part(part)
    part.mkdir()
    with pytest.raises(RunError, match="Move it away"):
        discard_part(part)


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


@pytest.mark.parametrize("target", ["", "7", -1])
def test_a_target_that_is_no_label_is_told(tmp_path: Path, target: object) -> None:
    made_run(tmp_path)
    with edited(tmp_path / "run.json") as content:
        content["config"]["target"] = target
    with pytest.raises(RunError, match="expected the target among predicted, gold, 0, 1"):
        Run.open(tmp_path)


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


@pytest.mark.parametrize("chance", [["first", "second"], ["second", "first"]])
def test_of_two_baselines_the_one_shown_is_the_one_tested_against(chance: list[str]) -> None:
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(1, 0.1, 40), np.zeros(40), np.full(40, 0.5)], axis=1)
    (found,) = compare_all({"q": values}, ["a", "first", "second"], chance=chance)
    assert found.chance is not None and found.chance.method == chance[0]
    (untested,) = [e for e in found.entries if e.p_chance is None]
    assert untested is found.chance


@pytest.mark.parametrize("share", [0, 1e-6, 0.004, 0.5, 0.987, 0.992, 0.996, 0.9996, 1, math.nan])
def test_a_share_is_rounded_in_one_way(share: float) -> None:
    told = verdict_percent(share)
    assert told == shown_percent(share)
    assert (told in ("0 %", "100 %")) == (share in (0, 1))
    assert verdict_percent(1 - 1e-16) == "100 %"


def test_the_ends_of_an_interval_are_rounded_as_shares_are() -> None:
    assert (verdict_percent(0.125), verdict_percent(0.625)) == ("13 %", "63 %")
    assert shown_interval(0.125, 0.625) == "13–63 %"
