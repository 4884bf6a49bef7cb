"""What people are shown of pictures: sentences, pages, files and terminals."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pictures
from rich.console import Console
from typer.testing import CliRunner

import veracity
from made_pictures import Corner, made_picture_run, made_pictures
from made_run import ATTACK
from veracity.auditing.planning import plan_questions
from veracity.cli.main import app
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, PluginError
from veracity.core.images import Image
from veracity.core.inputs import Text
from veracity.core.truths import WordSets
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.architectures import architectures
from veracity.models.loading import save_model
from veracity.reports.html import LARGEST, build_report
from veracity.reports.latex import latex_table
from veracity.reports.pictures import (
    OPPOSES,
    SUPPORTS,
    Spot,
    coloured_map,
    known_regions,
    map_side,
    outline,
    outline_class,
    overlay,
    place_of,
    region_name,
    shown_picture,
)
from veracity.reports.terminal import print_conclusions
from veracity.reports.terminal_pictures import picture_protocol, sent
from veracity.results.conclusions import conclude
from veracity.results.run import Run
from veracity.truths import learnt_truth

OF_TEXTS = re.compile(r"\b(words?|texts?|sentences?)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made_picture_run(tmp_path_factory.mktemp("runs") / "run", name=f"a {ATTACK}")


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return build_report(run)


# ---- sentences --------------------------------------------------------------------------------


def test_an_audit_of_pictures_speaks_of_pictures_and_segments(run: Run) -> None:
    said = conclude(run)
    console = Console(width=160, record=True, file=io.StringIO())
    print_conclusions(console, run, said)
    shown = console.export_text()
    assert "12 pictures" in shown
    assert "segments" in said.models[0].recommendation.effect
    assert OF_TEXTS.findall(shown) == []
    assert OF_TEXTS.findall(latex_table(said.standings).partition(r"\caption")[2]) == []


def test_a_search_and_a_doubt_are_told_of_pictures(tmp_path: Path) -> None:
    audit = veracity.audit(
        Corner(), made_pictures(12), "occlusion, random_scores", out=tmp_path / "run"
    )
    console = Console(width=160, record=True, file=io.StringIO())
    print_conclusions(console, audit.run, audit.conclusions)
    shown = console.export_text()
    assert "to the best found on 12 pictures searched" in re.sub(r"\s+", " ", shown)
    assert OF_TEXTS.findall(shown) == []
    # what no method does is a sentence that goes on after "But"
    assert "But To" not in shown


def test_what_does_not_settle_is_told_of_pictures() -> None:
    one = made_pictures(1).examples[0].input
    told = r"on 1 of 1 pictures the top segments have not settled after 40 samples"
    with pytest.warns(UserWarning, match=told):
        veracity.explain(Corner(), one, "lime(samples=40, settled=1.0)")
    with pytest.raises(PluginError, match="for pictures of up to 12 segments, this one has 64"):
        veracity.explain(Corner(), one, "shap(form=exact)")


def test_what_reads_words_alone_says_so(tmp_path: Path) -> None:
    data: Any = made_pictures(4)
    for refused in (
        lambda: veracity.suspects(Corner(), data),
        lambda: learnt_truth("integer_program", None, data),
        lambda: WordSets(data.labels, (frozenset(), frozenset())).check(data),
        lambda: veracity.pretrain("minilm", data, lexicon={"good": 1}),
    ):
        with pytest.raises(DataError, match="is for texts, and made pictures holds pictures"):
            refused()
    asked = ["plant", "made_shapes(n=4, side=8)", "--by", "watermark", "--out", "planted.jsonl"]
    done = CliRunner().invoke(app, asked)
    assert "`veracity dryrun` plants marks in pictures" in str(done.exception)


def test_training_is_told_of_pictures(tmp_path: Path) -> None:
    asked = ["train", "picture_cnn(widths=(4,))", "made_shapes(n=20, side=8)", "--epochs", "1"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "model")])
    assert "16 pictures to train on" in done.stderr and "(2 pictures)" in done.output
    assert OF_TEXTS.findall(done.output) == []


def test_what_is_planned_is_told_of_pictures() -> None:
    plan = plan_questions(made_pictures(3), [explainers.make("occlusion")], [])
    assert "each picture once" in str(plan)
    assert OF_TEXTS.findall(str(plan)) == []


@pytest.mark.parametrize("name", metrics.names())
def test_what_a_test_says_of_itself_is_filled_in(name: str) -> None:
    metric = metrics.get(name)
    for kind in (Text.kind, *((Image.kind,) if not metrics.make(name).unfit(Image.kind) else ())):
        about = [q.of_kind(kind).about for q in metric.quantities.values()]
        said = " ".join([metric.purpose_of(kind), *about])
        assert "{" not in said
        assert kind == Text.kind or OF_TEXTS.findall(said) == []


# ---- pages ------------------------------------------------------------------------------------


def test_a_page_holds_each_picture_once_and_loads_nothing(page: str) -> None:
    assert page.count("data:image/webp") + page.count("data:image/png") == 12 * (1 + 2)
    assert page.count('<article class="card"') == 12
    assert "img-src data:;" in page
    assert not re.search(r'(src|href)="(?!#|data:image/)', page)
    assert ATTACK not in page


def test_maps_are_told_to_who_does_not_see_them(page: str) -> None:
    said = re.findall(r"<title>(occlusion[^<]*strongest[^<]*)</title>", page)
    assert len(said) == 12
    told = "strongest segment in the upper left, inside the planted region; it supports"
    # of a dark corner black hides nothing
    assert sum(told in one for one in said) == 6


def test_sizes_are_not_said_to_support() -> None:
    """How large a gradient is says where to look, and nothing for or against a label."""
    sides = {
        name: explainers.make(name).for_kind(Image.kind).signed
        for name in ("gradient", "smooth_grad", "input_x_gradient", "attention")
    }
    assert not any(sides.values())
    assert explainers.make("input_x_gradient").signed and explainers.make("lime").signed
    example = made_pictures(1).examples[0]
    (found,) = veracity.explain(Corner(), example.input, "occlusion(hiding=mean)")
    told = overlay(found, known_regions(example), "dark", signed=False).alt
    assert told.endswith("strongest segment in the upper left, inside the planted region")


def test_a_region_is_named_below_a_map_where_there_are_several() -> None:
    spot = Spot(segment=0, score=1.0, place="at the top", regions="outside the planted region")
    assert spot.short == "at the top, outside"
    both = replace(spot, regions="inside the planted region, outside the decoy")
    assert both.short == "at the top, inside the planted region, outside the decoy"
    assert replace(spot, regions="").short == "at the top"
    assert (region_name("rationale"), outline_class("rationale")) == (
        "region that ought to matter",
        "told",
    )


def test_weight_on_the_region_is_plotted_by_class(page: str) -> None:
    assert page.count('class="panel class-panel"') == 2
    assert "dark: Attr%" in page


def test_two_hundred_pictures_stay_below_the_limit() -> None:
    rng = np.random.default_rng(0)
    side = map_side(200 * 8)
    size = 0
    for example in made_pictures(8, (12, 16)):
        # as smooth as a photograph, with the noise of a camera; maps as rough as they can be
        smooth = Pictures.fromarray(example.input.pixels).resize((256, 192))
        pixels = np.asarray(smooth) + rng.normal(0, 6, (192, 256, 3))
        one = Image(pixels.clip(0, 255).astype(np.uint8))
        size += shown_picture(replace(example, input=one, truths={})).size
        noise = Attribution(one, 0, rng.laplace(size=one.n_features), method="noise")
        size += 8 * overlay(noise, {}, "dark", side=side).size
    assert size / 8 * 200 < 0.9 * LARGEST


def test_an_outline_goes_around_what_is_marked() -> None:
    mask = np.zeros((4, 6), dtype=np.bool_)
    mask[1:3, 2:5] = True
    assert outline(mask) == "M2 1h3M2 3h3M2 1v2M5 1v2"
    assert outline(np.zeros((4, 6), dtype=np.bool_)) == ""
    scattered = np.random.default_rng(0).random((128, 128)) < 0.6
    assert len(outline(scattered)) < 10_000


def test_a_place_is_named_as_one_would_say_it() -> None:
    def at(row: int, column: int) -> str:
        mask = np.zeros((9, 9), dtype=np.bool_)
        mask[row, column] = True
        return place_of(mask.ravel(), (9, 9))

    assert [at(0, 0), at(4, 4), at(8, 4), at(4, 8)] == [
        "in the upper left",
        "in the centre",
        "at the bottom",
        "at the right",
    ]


def test_colours_tell_sides_and_strengths() -> None:
    found = coloured_map(np.array([[1.0, -1.0, 0.0, 0.5]]))
    assert tuple(found[0, 0, :3]) == SUPPORTS
    assert tuple(found[0, 1, :3]) == OPPOSES
    assert found[0, 2, 3] == 0
    assert found[0, 0, 3] > found[0, 3, 3] > 0
    assert not coloured_map(np.zeros((2, 2))).any()


def test_regions_are_joined_by_kind() -> None:
    example = made_pictures(1).examples[0]
    (mask,) = known_regions(example).values()
    assert mask.sum() == 3 * 4


# ---- one picture ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "corner.py").write_text(
        "import numpy as np\n"
        "def predict(pictures):\n"
        "    light = np.array([np.asarray(p)[:3, :4].mean() for p in pictures]) / 255\n"
        "    return np.stack([1 - light, light], axis=1)\n"
    )
    (tmp_path / "pictures").mkdir()
    for i, example in enumerate(made_pictures(2)):
        Pictures.fromarray(example.input.pixels).save(tmp_path / "pictures" / f"{i}.png")
    return tmp_path


def explained(*arguments: str) -> str:
    asked = ["explain", "corner.py:predict", *arguments, "--labels", "dark,light"]
    done = CliRunner().invoke(app, [*asked, "--method", "occlusion"], env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.stdout


def test_a_picture_is_explained(folder: Path) -> None:
    said = explained("pictures/1.png", "--out", "map.png")
    assert "in the upper left" in said
    assert "answer light" in said
    assert "map.png" in said
    with Pictures.open(folder / "map.png") as picture:
        assert picture.size == (648, 240)


def test_a_folder_of_pictures_is_explained_as_a_page(folder: Path) -> None:
    explained("pictures", "--html", "page.html")
    page = (folder / "page.html").read_text("utf-8")
    assert page.count("<article") == 2
    assert "occlusion(hiding=black): strongest segment in the upper left; it supports" in page
    assert not re.search(r'(src|href)="(?!#|data:image/)', page)
    assert "word" not in page.partition("<main")[2].partition("</main>")[0]


def test_a_picture_is_explained_as_json_lines(folder: Path) -> None:
    explained("pictures/0.png", "pictures/1.png", "--out", "maps.jsonl")
    rows = [json.loads(line) for line in (folder / "maps.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["pictures/0.png", "pictures/1.png"]
    assert [len(row["scores"]) for row in rows] == [64, 64]


def test_a_picture_is_brought_to_the_size_that_a_model_reads(folder: Path) -> None:
    """As an audit does, whose report says how to explain a picture."""
    network = architectures.make("picture_cnn(widths=(4,))")
    model = network.start(made_pictures(2, (8, 16)), seed=0)
    save_model(model, network, folder / "model", record={})
    asked = ["explain", "model", "pictures/0.png", "--method", "gradient", "--json"]
    with pytest.warns(UserWarning, match=r"1 of 1 picture of pictures/0.png is resized to 16×8"):
        done = CliRunner().invoke(app, asked)
    (found,) = json.loads(done.stdout)["attributions"]
    assert (found["width"], found["height"], len(found["scores"])) == (16, 8, 64)


def test_a_picture_is_shown_in_a_notebook() -> None:
    (found,) = veracity.explain(Corner(), made_pictures(1).examples[0].input, "occlusion")
    assert re.search(r'<img src="data:image/(webp|png);base64,', found._repr_html_())


def test_a_picture_that_cannot_be_read_is_told(folder: Path) -> None:
    (folder / "bad.png").write_text("no picture")
    asked = ["explain", "corner.py:predict", "bad.png", "--labels", "dark,light"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code != 0
    assert "expected a picture as PNG, JPEG or WebP" in done.output + str(done.exception)


def test_terminals_are_known_by_their_environment() -> None:
    assert picture_protocol({"TERM": "xterm-kitty"}) == "kitty"
    assert picture_protocol({"TERM_PROGRAM": "iTerm.app"}) == "iterm2"
    assert picture_protocol({"TERM": "foot"}) == "sixel"
    assert picture_protocol({"TERM": "xterm-256color"}) == ""
    assert picture_protocol({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "x"}) == ""


def test_terminals_are_sent_whole_pictures() -> None:
    picture = Pictures.fromarray(made_pictures(1).examples[0].input.pixels)
    (one,) = sent(picture, "iterm2")
    assert one.startswith("\x1b]1337;File=inline=1")
    parts = list(sent(picture.resize((90, 90)), "kitty"))
    assert len(parts) > 1
    assert all(p.startswith("\x1b_G") and p.endswith("\x1b\\") for p in parts)
    assert [p.partition(";")[0][-1] for p in parts] == ["1"] * (len(parts) - 1) + ["0"]
    sixels = "".join(sent(picture, "sixel"))
    assert sixels.startswith("\x1bPq")
    assert sixels.count("-") == 24 // 6
