"""Reports are whole, small, safe and true to the run, and need the run's folder alone."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from edited import edited
from made_run import ATTACK, BREAKOUT, GIVES_NGRAMS, METRICS, QUALITY, made_run, words_of
from veracity.core.attributions import Attribution
from veracity.reports.agreement import agreement, rank_correlations
from veracity.reports.explanations import Explanation, write_explanations
from veracity.reports.html import LARGEST, build_report, write_report
from veracity.reports.latex import escaped, latex_table
from veracity.reports.plots import panel, ticks
from veracity.reports.scoreboard import board
from veracity.reports.sentences import choose, embedded, explained, payload
from veracity.reports.showing import correlation, count, duration, number, printable
from veracity.reports.terminal import print_attributions, print_conclusions, print_standings
from veracity.results.conclusions import conclude
from veracity.results.run import Run
from veracity.results.standings import compare, standings
from veracity.results.verdicts import verdicts


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made_run(tmp_path_factory.mktemp("runs") / "run", size=30, long=400)


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return build_report(run)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="sentence-data">(.*?)</script>', page, re.DOTALL)
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


# ---- the page -----------------------------------------------------------------------------------


def test_half_a_character_in_a_damaged_run_is_shown_as_lost(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", models=["m"], methods=["occlusion"], size=6)
    record = run.folder / "run.json"
    whole = record.read_text("utf-8")
    record.write_text(whole.replace("made-up classifier", "made-up \\ud800classifier"), "utf-8")
    with edited(record) as without:
        without["metadata"]["versions"] = {}
    again = Run.open(run.folder)
    assert "\ud800classifier" in again.config.models["m"].about
    assert "made-up ?classifier" in write_report(again).read_text("utf-8")


def test_a_report_is_built_without_torch_or_plug_ins(run: Run, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from veracity.results.run import Run; "
        "from veracity.reports.html import write_report; import veracity.reports.terminal; "
        "write_report(Run.open(sys.argv[1]), Path(sys.argv[2])); "
        "heavy = {'torch', 'transformers', 'sklearn', 'veracity.explainers', 'veracity.metrics'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    path = tmp_path / "somewhere" / "page.html"
    done = subprocess.run(
        [sys.executable, "-c", code, str(run.folder), str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_report_lies_in_the_run_folder_and_is_the_same_each_time(run: Run, page: str) -> None:
    path = write_report(run)
    assert path == run.folder / "report.html"
    assert path.read_text(encoding="utf-8") == page
    assert [p.name for p in run.folder.glob(".*")] == []


def test_the_verdicts_head_the_page(run: Run, page: str) -> None:
    assert page.index("<h2 id=") == page.index('<h2 id="verdict-h">')
    for verdict in verdicts(standings(run)):
        assert verdict.use is None or f"<strong>{verdict.use}</strong>" in page


def test_a_page_allows_only_its_own_parts(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "style=" not in page


def test_what_was_skipped_and_all_settings_are_told(page: str) -> None:
    assert "the model has no attention" in page
    assert "samples=500, hiding=delete" in page
    # of six methods one is chance; three quantities are behind verdicts, two are not
    assert (
        "30 between methods and 15 with chance behind the verdicts; 20 between methods and 10 with "
        "chance in the other quantities on reviews-cnn" in page
    )


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = made_run(
        tmp_path / "run",
        name=BREAKOUT,
        labels=(ATTACK, BREAKOUT),
        models=[ATTACK],
        methods=["random_scores", ATTACK, BREAKOUT],
        size=4,
        long=0,
    )
    page = build_report(hostile)
    assert ATTACK not in page
    assert "<img" not in page
    assert page.count("<script") == 2 == page.count("</script>")
    data = data_of(page)
    assert data["labels"] == [ATTACK, BREAKOUT]
    assert any(ATTACK in "".join(t["pieces"]) for t in data["texts"])


def test_texts_are_kept_to_the_character(run: Run, page: str) -> None:
    data = data_of(page)
    whole = {e.id: e.input for e in run.examples()}
    assert len(data["texts"]) == len(whole)
    for text in data["texts"]:
        assert "".join(text["pieces"]) == whole[text["id"]].text
        assert tuple(text["pieces"][1::2]) == whole[text["id"]].words


def test_scores_are_those_of_the_run(run: Run, page: str) -> None:
    data = data_of(page)
    item = data["items"][0]
    model = data["models"][item["model"]]
    example = data["texts"][item["text"]]["id"]
    for place, scores in item["scores"].items():
        stored = run.attributions(model, data["methods"][int(place)])[example]
        assert scores == pytest.approx(stored.scores, rel=1e-2)
    assert item["said"] == int(np.argmax(run.predictions(model)[example]))


def test_a_methods_own_ngrams_are_on_the_page(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", models=["m"], methods=["occlusion", GIVES_NGRAMS], size=6)
    data = data_of(build_report(run))
    stored = run.attributions("m", GIVES_NGRAMS)
    for item in data["items"]:
        assert list(item["ngrams"]) == ["1"]
        fragments = stored[data["texts"][item["text"]]["id"]].fragments or ()
        for kind, shown in item["ngrams"]["1"].items():
            own = [f for f in fragments if f.kind == kind][:3]
            assert [n["words"] for n in shown] == [list(f.positions) for f in own]
            assert [n["score"] for n in shown] == pytest.approx([f.score for f in own], rel=1e-2)
    cut = json.loads(payload(run, explained(run), room=60_000).json)
    beyond = [n for i in cut["items"] for k in i["ngrams"]["1"].values() for n in k]
    assert any(not n["words"] for n in beyond)  # said to lie beyond, not left out
    longest = {i["text"]: len(cut["texts"][i["text"]]["pieces"]) // 2 for i in cut["items"]}
    for item in cut["items"]:
        for shown in item["ngrams"]["1"].values():
            assert all(w < longest[item["text"]] for n in shown for w in n["words"])


def test_pages_without_ngrams_say_nothing_of_them(page: str) -> None:
    assert "counter-evidence (dotted line)" not in page
    assert all(item["ngrams"] == {} for item in data_of(page)["items"])


@pytest.mark.parametrize(("size", "long", "n_methods"), [(260, 0, 6), (8, 40_000, 14)])
def test_reports_stay_small(tmp_path: Path, size: int, long: int, n_methods: int) -> None:
    methods = [f"method_{i}" for i in range(n_methods)]
    large = made_run(tmp_path / "run", models=["m"], methods=methods, size=size, long=long)
    page = build_report(large)
    assert len(page.encode()) < LARGEST
    data = data_of(page)
    shown, all_of_them = len(data["items"]), len(large.examples())
    assert shown <= 200
    if shown < all_of_them:
        assert f"{shown} of {all_of_them} explained sentences" in page
    if long:
        cut = next(t for t in data["texts"] if t["words"] == long)
        assert 0 < len(cut["pieces"]) // 2 < long


def test_only_as_many_sentences_as_there_is_room_for(run: Run) -> None:
    found = explained(run)
    small = payload(run, found, room=20_000)
    assert 0 < len(small.places) < len(payload(run, found, room=3_000_000).places)
    assert len(small.json.encode()) < 21_000


def test_the_most_disputed_sentences_are_shown_first(run: Run) -> None:
    sentences = explained(run)[0].sentences
    chosen = choose(sentences, 10, seed=1)
    ordered = sorted(s.agreement for s in sentences if not math.isnan(s.agreement))
    assert [s.agreement for s in chosen[:5]] == ordered[:5]
    assert len({s.example.id for s in chosen}) == 10
    assert chosen == choose(sentences, 10, seed=1) != choose(sentences, 10, seed=2)


@pytest.mark.parametrize(
    ("methods", "metrics", "said"),
    [
        (["occlusion"], METRICS, "Only one method was run"),
        (["occlusion"], {"accuracy": METRICS["accuracy"]}, "No test of explanations was run"),
        (["occlusion", "attention"], {}, "No methods were compared"),
        (["random_scores"], METRICS, "no method could be scored"),
    ],
)
def test_small_runs_make_whole_pages(
    tmp_path: Path, methods: list[str], metrics: dict[str, Any], said: str
) -> None:
    small = made_run(
        tmp_path / "run", models=["m"], methods=methods, metrics=metrics, size=2, long=0
    )
    page = build_report(small)
    assert said in page
    assert page.rstrip().endswith("</html>")


def test_undefined_values_are_shown_and_counted(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", models=["m"], methods=["occlusion", "attention"], size=4)
    nothing = [(e.id, {"precision": math.nan}) for e in run.examples()]
    metric = next(iter(METRICS))
    run.write_scores("m", "attention", metric, 0, nothing)
    assert f"{len(nothing)} undefined" in build_report(run)


def test_embedded_json_cannot_leave_its_element() -> None:
    hostile = {"a": "</script><!-- & \u2028\u2029"}
    text = embedded(hostile)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == hostile


# ---- agreement, plots, numbers ------------------------------------------------------------------


def test_rank_correlations_are_spearmans() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, size=(2, 20)).astype(float)
    # by the definition: a value's rank is the mean of the places it and its equals take
    slow = [[np.mean([sorted(v).index(x), 20 - sorted(-v).index(-x)]) for x in v] for v in (a, b)]
    found = rank_correlations([a, b, np.zeros(20), None])
    assert found[0, 1] == pytest.approx(np.corrcoef(np.array(slow))[0, 1])
    assert found[0, 0] == pytest.approx(1)
    assert np.isnan(found[2:]).all()


def test_methods_that_look_at_nothing_do_not_count_as_disagreement() -> None:
    up, down = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])
    found = agreement({"a": {"x": up}, "b": {"x": up}, "r": {"x": down}}, ["r"])
    assert found.by_example["x"] == pytest.approx(1)
    assert found.matrix[0].tolist() == pytest.approx([1, 1, -1])


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.2, 0.71), (-3, 4), (5, 5), (1e-7, 3e-7), (0, 9e6)]
)
def test_ticks_span_the_values(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 7
    assert found[0] <= low + 1e-12
    assert high - 1e-12 <= found[-1]


def test_dots_stand_in_their_panel(run: Run) -> None:
    for standing in standings(run):
        drawn = panel(standing, ["random_scores"])
        assert drawn.chance is not None
        assert all(d.x is not None and d.low <= d.x <= d.high for d in drawn.dots)
        assert drawn.description.startswith(standing.entries[0].method)


def test_boards_put_the_best_first_and_chance_last(run: Run) -> None:
    found = [s for s in standings(run) if s.model == run.models[0]]
    shown = board(run.models[0], found, baselines=["random_scores"])
    assert shown.rows[-1].method == "random_scores"
    assert {r.method for r in shown.rows} == set(QUALITY)
    assert shown.rows[0].method in ("lime(samples=500)", "shap(samples=500)")


def test_numbers_are_easy_to_read() -> None:
    assert [number(v) for v in (0.1234, -2.0, 0.0, math.nan)] == ["0.123", "−2.000", "0.000", "–"]
    assert number(1e-6) == "1.0e−06"
    assert number(0.5, signed=True) == "+0.500"
    assert [correlation(v) for v in (-0.001, 1.0, math.nan)] == ["0.00", "1.00", "–"]
    assert [count(v) for v in (500.0, 1.25)] == ["500", "1.2"]
    assert [duration(v) for v in (2, 0.0214, 2e-5, 0)] == ["2 s", "21.4 ms", "20 µs", "0 s"]


# ---- terminal and LaTeX -------------------------------------------------------------------------

NASTY = "[bold red]dull[/] \x1b[31mtedious\x1b[0m \x07\x9b2J\r \u202ekaew <b>"


def printed(attribution: Attribution, *, color: bool) -> str:
    console = Console(
        file=io.StringIO(),
        force_terminal=color,
        no_color=not color,
        color_system="truecolor" if color else None,
        width=200,
    )
    print_attributions(console, [attribution], ["no", "[red]yes\x1b[0m"])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_explanations_as_a_page_escape_everything(tmp_path: Path) -> None:
    text = words_of(f"{NASTY} <script>alert(1)</script>")
    attribution = Attribution(text, 1, np.linspace(-1, 1, text.n_features), method="<i>m</i>")
    labels = ("<b>no</b>", "yes", "maybe")
    one = Explanation("<a>", attribution, np.array([0.7, 0.2, 0.1]), labels)
    page = write_explanations([one], tmp_path / "e.html", model="<u>").read_text("utf-8")
    assert not re.search("<script>alert|<i>m|<b>no|<a>|<u>", page)
    assert '&lt;b&gt;no&lt;/b&gt; <b class="num">0.700</b>, yes <b class="num">0.200' in page
    assert page.count('<span class="w ') == 3 + text.n_features
    assert "−1.000" in page


def test_top_words_are_marked_where_there_is_no_colour() -> None:
    text = words_of("a dull clumsy film")
    said = printed(Attribution(text, 1, np.array([0.1, -2.0, 1.0, 0.0])), color=False)
    assert "a[+3] dull[−1] clumsy[+2] film" in said


def test_nothing_in_a_text_steers_the_terminal() -> None:
    text = words_of(NASTY)
    attribution = Attribution(text, 1, np.linspace(-1, 1, text.n_features), method="[b]m\x1b]0;")
    plain = printed(attribution, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain)
    assert " red]dull[/] " in plain
    assert "[red]yes" in plain
    coloured = printed(attribution, color=True)
    own = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", own)
    assert "\x1b[31m" not in coloured
    assert "48;2;0;114;178" in coloured
    assert "48;2;213;94;0" in coloured


def test_emoji_stay_whole() -> None:
    assert printable("👩‍👩‍👧 ❤️ 电影") == "👩‍👩‍👧 ❤️ 电影"


def test_standings_are_printed_with_their_verdicts(run: Run) -> None:
    console = Console(file=io.StringIO(), width=4000)
    found = conclude(run)
    print_conclusions(console, run, found)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    for one in found.models:
        # what the model is worth comes first, what to do last
        places = [said.index(one.health.summary), *(said.index(v.sentence) for v in one.verdicts)]
        places += [said.index(one.recommendation.sentence), said.rindex(one.recommendation.repeat)]
        assert places == sorted(places)
    assert "precision ↑" in said


def test_chosen_standings_are_printed_alone(run: Run) -> None:
    console = Console(file=io.StringIO(), width=400)
    print_standings(console, [s for s in standings(run) if s.name == "recall"])
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "recall ↑" in said
    assert "precision" not in said


def test_latex_tables_mark_the_best_and_what_ties_with_it(run: Run) -> None:
    found = [s for s in standings(run) if s.headline]
    table = latex_table(found)
    first = found[0]
    assert first.best
    assert rf"$\mathbf{{{first.best.mean:.3f}}}$" in table
    tied = next(e for e in first.entries if e.tied_with_best)
    assert rf"\underline{{${tied.mean:.3f}$}}" in table
    assert r"gradient(times\_input=True) &" in table
    assert table.count(r"\midrule") == len(run.models)
    rows = [
        line for line in table.splitlines() if line.endswith(r"\\") and "multicolumn" not in line
    ]
    assert {line.count(" & ") for line in rows} == {3}


def test_latex_characters_are_escaped() -> None:
    said = escaped(r"50%_of {$a} & #1 ~x^2 \input <b> [x]" + "\x1b")
    for character in "%_{$&#":
        assert re.search(rf"(?<!\\)\{character}", re.sub(r"\\text\w+\{\}|\{.\}", "", said)) is None
    assert r"\textbackslash{}input" in said
    assert "\x1b" not in said
    values = np.array([[0.9, 0.1], [0.8, 0.2]])
    assert r"a\_b\%" in latex_table([compare(values, ["a_b%", "c&d"])])
    assert r"c\&d" in latex_table([compare(values, ["a_b%", "c&d"])])


def test_ticks_of_values_that_hardly_differ_span_something() -> None:
    for low, high in ((0.0, 0.0), (0.0, 1e-17), (0.3, 0.3 + 1e-13)):
        found = ticks(low, high)
        assert len(found) > 1 and found[0] < found[-1]
