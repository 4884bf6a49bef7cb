"""What experiments found: on disk, on a page, on the terminal."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from edited import edited
from veracity.core.errors import RunError
from veracity.reports.charts import chart
from veracity.reports.findings import build_findings, figure, print_findings, write_findings
from veracity.results.claims import Claim, Comparison, corrected
from veracity.results.declarations import Declarations
from veracity.results.findings import Cell, Figure, Findings, Points, ShownText, Table, Word


def some() -> Findings:
    curve = Points("best <b>", (0.1, 0.2), (1.0, 0.5), line=True, dashed=True)
    dots = Points("ours", (0.1, 0.2), (0.9, math.nan), low=(0.8, math.nan), high=(1.0, math.nan))
    return Findings(
        "planted_text",
        "Planted <script>",
        "Eleven runs",
        {"seed": 0, "texts": 12},
        (
            Table(
                "Attention",
                "Shares",
                ("words", "Attr%", "note"),
                (
                    ("articles", (Cell.of([0.1, 0.2, 0.3], published=0.103), "all & well")),
                    ("other", (Cell(math.nan, n=0), None)),
                ),
                "%",
            ),
        ),
        (Claim("it holds", "refuted", "p = 0.4"),),
        (Figure("Precision", "by rate", "rate", "precision", (curve, dots)),),
        (ShownText("first", (Word("the", 0.4, "planted"), Word("<img>", 0.1))),),
        ("a note",),
    )


def test_findings_survive_the_disk(tmp_path: Path) -> None:
    some().write(tmp_path)
    # NaN is unlike itself, so what is compared is what both print
    assert repr(Findings.read(tmp_path)) == repr(some())


def test_findings_of_earlier_versions_are_read(tmp_path: Path) -> None:
    some().write(tmp_path)
    path = tmp_path / "findings.json"
    with edited(path) as content:
        assert content["asked"] == {"seed": 0, "texts": 12} and "config" not in content
        (claim,) = content["claims"]
        claim["verdict"] = "not confirmed"
        del claim["comparisons"]
    assert Findings.read(tmp_path).claims[0].verdict == "refuted"


def look(value: float, **more: Any) -> Comparison:
    return Comparison(name="a less b", value=value, **more)


@pytest.mark.parametrize(
    ("comparison", "verdict"),
    [
        (look(0.2, low=0.1, high=0.3), "confirmed"),
        (look(0.2, low=-0.1, high=0.3), "open"),
        (look(-0.2, low=-0.3, high=-0.1), "refuted"),
        (look(0.2, p=0.01), "confirmed"),
        (look(0.2, p=0.06), "open"),
        (look(-0.2, p=0.01), "refuted"),
        (look(0.2, low=0.1, high=0.3, p=0.2), "open"),  # not after all looks
        (look(0.2), "open"),  # one figure alone
        (look(math.nan, p=0.01), "open"),
        # as good as the other: no difference is as claimed, so none has to be sure
        (look(0.0, low=-0.01, high=0.01, p=0.9, least=-0.02), "confirmed"),
        (look(-0.1, low=-0.11, high=-0.09, p=0.9, least=-0.02), "open"),
        (look(-0.1, low=-0.11, high=-0.09, p=0.01, least=-0.02), "refuted"),
        (look(0.5, low=0.4, high=0.6, least=0.35, most=0.65), "confirmed"),
        (look(0.5, low=0.3, high=0.6, least=0.35, most=0.65), "open"),
    ],
)
def test_one_rule_decides(comparison: Comparison, verdict: str) -> None:
    assert comparison.verdict == verdict


def test_a_claim_holds_of_all_or_of_some() -> None:
    yes, no, maybe = look(0.2, p=0.001), look(-0.2, p=0.001), look(0.2, p=0.4)
    assert Claim.of("s", [yes, yes]).verdict == "confirmed"
    assert Claim.of("s", [yes, maybe]).verdict == "open"
    assert Claim.of("s", [yes, no, maybe]).verdict == "refuted"
    assert Claim.of("s", [yes, no], some=True).verdict == "confirmed"
    assert Claim.of("s", [maybe, no], some=True).verdict == "open"
    assert Claim.of("s", [no, no], some=True).verdict == "refuted"
    assert Claim.of("s", []).verdict == "open"
    assert [c.p for c in corrected([yes, maybe])] == pytest.approx([0.002, 0.4])
    many = Claim.of("s", [yes] * 5 + [no] * 5, remark="all at once.")
    assert many.seen.startswith("5 of 10 as claimed; against it: a less b −0.200 (p 0.001)")
    assert many.seen.endswith("and 2 more; all at once.")
    mean = Comparison.of_mean("m", [0.1, 0.2, 0.3], units="trainings")
    assert (mean.low, mean.high) == pytest.approx((0.2 - 0.24842, 0.2 + 0.24842), abs=1e-4)
    assert Comparison.of_mean("m", [0.1], units="trainings").verdict == "open"


def test_missing_or_damaged_findings_are_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not finished"):
        Findings.read(tmp_path)
    (tmp_path / "findings.json").write_text('{"tables": 3}')
    with pytest.raises(RunError, match="damaged"):
        Findings.read(tmp_path)


def test_sentences_and_comparisons_have_one_minus_sign() -> None:
    claims = {"falls": {"statement": "It falls {least}.", "seen": "{low:+.1%} to {high:+.1%}."}}
    one = Comparison(name="fall", value=-0.099, low=-0.12, high=-0.042, percent=True)
    said = Declarations({"claims": claims}).claim(
        "falls", [one], least="well-nigh everywhere", low=-0.12, high=np.float32(-0.042)
    )
    assert said.seen == "fall −9.9% (−12.0% to −4.2%); −12.0% to −4.2%."
    assert said.statement == "It falls well-nigh everywhere."


def test_a_figure_of_nothing_is_said_to_be_unknown() -> None:
    one = Comparison.of_mean("distance from the best", [], units="rates")
    assert Claim.of("It is near.", [one], remark="none counts.").seen == (
        "distance from the best not known; none counts."
    )


def test_a_cell_has_spread_and_interval() -> None:
    cell = Cell.of([0.1, 0.2, 0.3, math.nan])
    assert [cell.value, cell.spread, cell.n] == pytest.approx([0.2, 0.1, 3])
    # t(0.975, 2) = 4.3027; 4.3027 * 0.1 / sqrt(3) = 0.24842
    assert [cell.low, cell.high] == pytest.approx([0.2 - 0.24842, 0.2 + 0.24842], abs=1e-4)
    assert Cell.of([0.5]).spread is None
    # a share of more than all, or less than none, is not possible
    wild = Cell.of([0.0, 0.1, 0.9], within=(0.0, 1.0))
    assert (wild.low, wild.high) == (0.0, 1.0)
    assert np.isnan(Cell.of([]).value)


def test_the_page_escapes_and_shows_what_was_printed(tmp_path: Path) -> None:
    page = build_findings(some())
    assert "<script>" not in page and "<img>" not in page and "best &lt;b&gt;" in page
    assert "paper 10.3 %" in page and "20.0 %" in page and "± 10.0 %" in page
    assert write_findings(some(), tmp_path).read_text("utf-8") == page


def test_headings_stand_over_their_columns() -> None:
    table = Table("t", "", ("name", "status", "gap"), (("a", ("optimal", "solved")),))
    page = build_findings(replace(some(), tables=(table,)))
    assert table.worded == (True, True, True) and '<th scope="col">gap' in page
    mixed = replace(table, rows=(*table.rows, ("b", (None, Cell(0.1)))))
    page = build_findings(replace(some(), tables=(mixed,)))
    # a word among figures stands where they stand
    assert mixed.worded == (True, True, False) and '<th scope="col" class="num">gap' in page
    assert '<td class="num">solved' in page and "<td>optimal" in page
    assert replace(table, rows=()).worded == (True, False, False)


def test_points_stand_where_their_numbers_say() -> None:
    drawn = chart(some().figures[0])
    curve, dots = drawn.series
    assert curve.path.startswith("M") and not curve.marks
    assert len(dots.marks) == 1  # an undefined point is not drawn
    assert dots.marks[0].low is not None and dots.marks[0].high is not None
    assert dots.marks[0].low > dots.marks[0].y > dots.marks[0].high  # down is more on a screen


def test_the_terminal_says_the_same() -> None:
    out = io.StringIO()
    print_findings(Console(file=out, width=120), some())
    assert "refuted: it holds" in out.getvalue()
    assert "20.0 % ± 10.0 % (paper 10.3 %)" in out.getvalue()
    assert figure(math.nan, "%") == "–"


def test_each_sentence_stands_once_with_every_look_at_it() -> None:
    looks = (
        Claim("Twins <are> harder.", "confirmed", "p = 0.01", "films"),
        Claim("Order holds.", "open", "p = 0.9"),
        Claim("Twins <are> harder.", "refuted", "p = 0.02", "<books>"),
        Claim("Twins <are> harder.", "open", "p = 0.7", "songs"),
    )
    found = replace(some(), claims=looks)
    assert [len(c) for c in found.statements.values()] == [3, 1]
    page = build_findings(found)
    assert page.count("Twins &lt;are&gt; harder.") == 1 and "&lt;books&gt;" in page
    assert "Of 4 looks: 1 confirmed, 1 refuted, 2 open." in page
    out = io.StringIO()
    print_findings(Console(file=out, width=120), found)
    lines = out.getvalue().splitlines()
    assert lines[:2] == ["Twins <are> harder.", "confirmed:   films"]
    assert "open: Order holds." in lines


def test_names_too_long_to_stand_side_by_side_are_slanted() -> None:
    dots = Points("ours", (0.0, 1.0), (0.3, 0.4))
    short = chart(Figure("t", "", "", "y", (dots,), ("a", "b")))
    long = chart(Figure("t", "", "", "y", (dots,), ("integrated_gradients" * 3, "b")))
    assert short.room == 0 and long.room > 100
    page = build_findings(Findings("idc", "t", "l", {}, figures=(long.figure,)))
    assert "rotate(-60)" in page


def test_bars_begin_at_zero_above_their_names() -> None:
    bars = Points("WGA", (-0.25, 0.75), (0.3, 0.4), low=(0.25, 0.35), high=(0.35, 0.45), bars=True)
    line = Points("people", (-0.5, 1.5), (0.35, 0.35), line=True, dashed=True)
    plot = Figure("Truths", "", "whose", "kappa", (bars, line), ("person 1", "all"))
    drawn = chart(plot)
    assert [name for _, name in drawn.x_ticks] == ["person 1", "all"]
    assert drawn.y_ticks[0][1] == "0"
    first, second = (mark.bar for mark in drawn.series[0].marks)
    assert first is not None and second is not None
    floor = drawn.y_ticks[0][0]
    assert first[1] + first[3] == pytest.approx(floor) == second[1] + second[3]
    assert second[3] / first[3] == pytest.approx(4 / 3, abs=0.02)
    assert drawn.series[0].marks[1].label == "WGA: all, 0.400"
    page = build_findings(Findings("idc", "t", "l", {}, figures=(plot,)))
    assert page.count('class="column"') == 3  # one more in the key
