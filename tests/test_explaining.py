"""What is typed after `explain`: settings that are kept, and texts and pictures told apart."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image as Pictures
from typer.testing import CliRunner

import veracity
from made_pictures import Corner, made_pictures
from test_pictures import linear, pixel
from veracity.cli.main import app
from veracity.cli.resumable_lines import ResumableLines
from veracity.core.attributions import Attribution
from veracity.core.errors import DataError, ModelError, PluginError, RunError
from veracity.core.explainers import Explainer
from veracity.core.images import Image
from veracity.core.inputs import ANY_KIND
from veracity.explainers import explainers
from veracity.explainers.lime import Lime
from veracity.metrics import metrics
from veracity.models.adapters.endpoints import Endpoint
from veracity.models.architectures import architectures
from veracity.models.loading import save_model
from veracity.results.conclusions import conclude

# ---- settings that somebody named -------------------------------------------------------------

NAMED = (
    ("lime(samples=1000)", "lime", "lime(samples=1000, draw=coin, hiding=black)"),
    ("lime", "lime", "lime(samples=200, draw=coin, hiding=black)"),
    ("gradient(norm=l2)", "gradient", "gradient(norm=l2)"),
    ("gradient", "gradient", "gradient(norm=l1)"),
    ("attention(layers=last)", "attention", "attention(layers=last)"),
    ("input_x_gradient(absolute=False)", "input_x_gradient", "input_x_gradient(absolute=False)"),
    ("occlusion", "occlusion", "occlusion(hiding=black)"),
    ("exposure(truth=planted, top=3)", "exposure", "exposure(top=3)"),
    ("exposure", "exposure", "exposure(top=1)"),
)


@pytest.mark.parametrize(("spec", "of_texts", "of_pictures"), NAMED)
def test_what_stands_in_brackets_is_kept(spec: str, of_texts: str, of_pictures: str) -> None:
    known: Any = metrics if spec.startswith("exposure") else explainers
    assert known.make(spec).for_kind("text").spec == of_texts
    made = known.make(spec).for_kind("image")
    assert made.spec == of_pictures
    again = known.make(made.spec).for_kind("image")
    assert again == made and again.spec == made.spec
    travelled = pickle.loads(pickle.dumps(made))
    assert travelled == made and travelled.spec == travelled.for_kind("image").spec == made.spec


def test_what_is_given_to_a_constructor_is_kept() -> None:
    for made in (Lime(1000), Lime(samples=1000), explainers.make("shap").with_questions(1000)):
        assert "samples=1000" in made.for_kind("image").spec
    assert explainers.make("lime").for_kind("image").with_questions(1000).spec == (
        "lime(samples=1000, draw=coin, hiding=black)"
    )
    variants = metrics.make("erasure").for_kind("image").variants(())
    assert [m.spec for m in variants] == ["erasure(hiding=black)", "erasure(hiding=mean)"]


def test_settings_that_contradict_what_suits_are_told() -> None:
    with pytest.raises(PluginError, match="explained with layers=rollout"):
        explainers.make("attention(product=True)").for_kind("image")
    with pytest.raises(DataError, match="hides by delete, which images cannot be"):
        veracity.explain(Corner(), made_pictures(1).examples[0].input, "occlusion(hiding=delete)")


def test_a_model_is_explained_as_was_asked() -> None:
    for spec, size in (("gradient(norm=l2)", np.sqrt(13)), ("gradient", 5)):
        (found,) = veracity.explain(linear(), pixel(255, 255, 0), spec, target="yes")
        assert found.scores[0] == pytest.approx(size, abs=1e-5)
    assert found.method == "gradient(norm=l1)"


def test_a_run_holds_what_was_asked_and_goes_on(tmp_path: Path) -> None:
    asked: Any = (Corner(), made_pictures(4), "lime(samples=1000)", "exposure(top=3)")
    for computed in (True, False):
        done = veracity.audit(*asked, out=tmp_path / "run", extras=False)
        assert bool(done.computed) is computed
    assert list(done.run.config.explainers) == ["lime(samples=1000, draw=coin, hiding=black)"]
    assert "exposure(top=3)" in done.run.config.metrics


@dataclass(frozen=True)
class Foreign(Explainer):
    """A method of somebody else that copies itself when it learns."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    suited: ClassVar[Any] = {"image": {"norm": "l1"}}

    norm: str = "l2"

    @property
    def learns(self) -> bool:
        return True

    def fitted(self, model: Any, train: Any) -> Foreign:
        return replace(self)

    def explain(
        self, model: Any, inputs: Sequence[Any], targets: Sequence[int], rngs: Sequence[Any]
    ) -> list[Attribution[Any]]:
        return [
            Attribution(one, target, np.full(one.n_features, float(self.norm == "l2")))
            for one, target in zip(inputs, targets, strict=True)
        ]


def test_a_method_of_somebody_else_keeps_its_name_when_it_learns() -> None:
    data = made_pictures(2)
    for made, spec in ((Foreign(norm="l2"), "foreign(norm=l2)"), (Foreign(), "foreign(norm=l1)")):
        (found,) = veracity.explain(Corner(), data.examples[0].input, made, train=data)
        assert found.method == spec


class NeverTaught(Foreign):
    """A method that must not learn before all that was asked is known to make sense."""

    def fitted(self, model: Any, train: Any) -> NeverTaught:
        raise AssertionError("it was taught first")


def test_a_target_is_refused_before_a_method_learns() -> None:
    data = made_pictures(2)
    with pytest.raises(DataError, match="target=gold needs labelled data"):
        veracity.explain(Corner(), data.examples[0].input, NeverTaught(), target="gold", train=data)


# ---- what a model is asked before it is explained ---------------------------------------------


def only_arrays(pictures: Any) -> Any:
    """A function that names no labels and knows nothing but pictures."""
    assert all(one.dtype == np.uint8 for one in pictures)
    light = np.array([one.mean() for one in pictures]) / 255
    return np.stack([1 - light, light], axis=1)


def test_a_function_of_pictures_is_never_asked_about_a_text() -> None:
    (found,) = veracity.explain(only_arrays, [made_pictures(1).examples[0].input], "occlusion")
    assert found.input.kind == "image"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A function and a network of pictures, and pictures in folders and in an archive."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "light.py").write_text(
        "import numpy as np\n"
        "def pictures(given):\n"
        "    light = np.array([one.astype(float).mean() for one in given]) / 255\n"
        "    return np.stack([1 - light, light], axis=1)\n"
        "def texts(given):\n"
        "    short = np.array([1 / (1 + len(one.split())) for one in given])\n"
        "    return np.stack([1 - short, short], axis=1)\n"
    )
    deep = "a/quite/long/way/down/into/folders/that/people/make/of/what/they/have"
    for i, example in enumerate(made_pictures(4, (8, 16))):
        for name in (f"{deep}/{i}.png", f"good/{i}.png"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Pictures.fromarray(example.input.pixels).save(path)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for i in range(2):
            archive.write(tmp_path / "good" / f"{i}.png", f"inner/{i}.png")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("read me.txt", "nothing here")
    network = architectures.make("picture_cnn(widths=(4,))")
    model = network.start(made_pictures(2, (8, 16)), seed=0)
    save_model(model, network, tmp_path / "model", record={})
    return tmp_path


def explain(*arguments: str) -> Any:
    asked = ["explain", *arguments, "--method", "occlusion"]
    return CliRunner().invoke(app, asked, env={"COLUMNS": "200"})


def rows_of(*arguments: str) -> list[dict[str, Any]]:
    done = explain(*arguments, "--json")
    assert done.exit_code == 0, repr(done.exception)
    found: list[dict[str, Any]] = json.loads(done.stdout)["attributions"]
    return found


def test_pictures_are_named_as_files_folders_and_archives(place: Path) -> None:
    for model in ("light.py:pictures", "model"):
        assert [row["id"] for row in rows_of(model, "good/0.png")] == ["good/0.png"]
        assert len(rows_of(model, "good")) == 4
        packed = [row["id"] for row in rows_of(model, "packed.zip")]
        assert packed == ["packed.zip/inner/0.png", "packed.zip/inner/1.png"]
    assert len(rows_of("light.py:pictures", "--data", "good", "--columns", "label=")) == 4


def test_an_endpoint_of_pictures_is_sent_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []

    def answered(_: Endpoint, body: bytes, names: Sequence[str]) -> bytes:
        sent.append(json.loads(body))
        return json.dumps({"probabilities": [[0.4, 0.6]] * len(names)}).encode()

    monkeypatch.setattr(Endpoint, "_send", answered)
    assert rows_of("http://localhost:9/predict", "good/0.png")
    assert {kind for body in sent for kind in body} == {"images"}


@pytest.mark.parametrize("named", ["nofile", "other.zip", "a text of some words"])
def test_texts_for_a_model_of_pictures_are_told(place: Path, named: str) -> None:
    done = explain("model", named)
    assert isinstance(done.exception, ModelError)
    assert f"expected pictures, which this model reads; got texts ({named!r})" in str(
        done.exception
    )
    assert "that is there" in str(done.exception)


def test_an_audit_of_the_wrong_kind_is_told(cnn: Any) -> None:
    with pytest.raises(ModelError, match="expected pictures, which this model reads"):
        veracity.audit(linear(), "made_reviews(n=20)", "occlusion")
    with pytest.raises(ModelError, match="expected texts, which this model reads; got pictures"):
        veracity.audit(cnn, made_pictures(2), "occlusion")
    with pytest.raises(ModelError, match="expected texts, which this model reads; got pictures"):
        veracity.explain(cnn, made_pictures(1).examples[0].input, "occlusion")


def test_a_bad_picture_is_told_before_the_model_is_asked(place: Path) -> None:
    (place / "bad").mkdir()
    (place / "bad" / "one.png").write_text("no picture")
    for named in ("bad", "bad/one.png"):
        said = str(explain("light.py:pictures", named).exception)
        assert said.startswith("bad/one.png: expected a picture as PNG, JPEG or WebP")


def test_a_word_that_is_a_folder_is_a_word_where_texts_are_read(
    place: Path, cnn: Any, cnn_folder: Path
) -> None:
    (row,) = rows_of(str(cnn_folder), "good")
    assert row["text"] == "good"
    (place / "empty").mkdir()
    (row,) = rows_of("light.py:texts", "empty")
    assert row["text"] == "empty"
    # otherwise it is said what it was taken for
    assert "good/3.png" in explain("light.py:pictures", "good").stdout


@pytest.fixture
def cnn_folder(cnn: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "of_texts"
    save_model(cnn, cnn.architecture, folder, record={})
    return folder


# ---- what is written --------------------------------------------------------------------------


def test_a_limit_holds_for_what_is_typed(place: Path) -> None:
    assert len(rows_of("light.py:pictures", "good", "--limit", "3")) == 3
    assert len(rows_of("light.py:texts", "one text", "two texts", "--limit", "1")) == 1


@pytest.mark.parametrize("out", ["map.jpg", "map", "map.json"])
def test_endings_that_nobody_could_read_back_are_refused(place: Path, out: str) -> None:
    said = str(explain("light.py:pictures", "good", "--out", out).exception)
    assert "expected a name that ends in .jsonl or .ndjson" in said
    assert not (place / out).exists()


def test_a_picture_is_not_written_of_texts(place: Path) -> None:
    said = str(explain("light.py:texts", "a text", "--out", "map.png").exception)
    assert "map.png" in said and "choose .jsonl" in said
    assert not (place / "map.png").exists()


def test_lines_survive_a_kill_and_come_out_in_order(tmp_path: Path) -> None:
    asked = {"method": "lime", "seed": 0}
    first = ResumableLines(tmp_path / "out.jsonl", asked)
    first.open()
    first.add([(2, {"word": "drei"}), (0, {"word": "eins"})])
    with first.part.open("ab") as file:
        file.write(b'{"place": 1, "wo')  # a write that was cut off
    second = ResumableLines(tmp_path / "out.jsonl", asked)
    second.open()
    assert set(second.done) == {0, 2}
    second.add([(1, {"word": "zw\u00f6i"})])
    second.finish()
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [row["word"] for row in rows] == ["eins", "zw\u00f6i", "drei"]
    assert not second.part.exists()


def test_lines_of_other_work_are_left_alone(tmp_path: Path) -> None:
    ResumableLines(tmp_path / "out.jsonl", {"seed": 0}).open()
    with pytest.raises(RunError, match="other work"):
        ResumableLines(tmp_path / "out.jsonl", {"seed": 1}).open()


def test_lines_are_packed_where_their_name_says_so(place: Path) -> None:
    assert explain("light.py:texts", "a text", "--out", "lines.jsonl.gz").exit_code == 0
    (line,) = gzip.decompress((place / "lines.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(line)["text"] == "a text"


def test_segments_and_long_names_are_told_apart(place: Path) -> None:
    done = explain("light.py:pictures", "good/0.png", "--top", "64")
    rows = [line.split("  ")[1] for line in done.stdout.splitlines() if " the " in line]
    assert len(rows) == len(set(rows)) == 64
    assert explain("light.py:pictures", "a", "--html", "page.html").exit_code == 0
    page = (place / "page.html").read_text("utf-8")
    for i in range(4):
        name = f"a/quite/long/way/down/into/folders/that/people/make/of/what/they/have/{i}.png"
        assert f"<h3>{name}</h3>" in page and f"<title>The picture {name}</title>" in page


def test_the_command_of_a_report_cuts_pictures_as_the_audit_did(tmp_path: Path) -> None:
    data = made_pictures(12)
    cut = replace(
        data,
        examples=tuple(replace(e, input=Image(e.input.pixels, "grid(across=4)")) for e in data),
    )
    for options in ("", " --size 32x24 --segments 'grid(across=4)'"):
        done = veracity.audit(
            Corner(),
            cut,
            "occlusion, random_scores",
            out=tmp_path / f"run{len(options)}",
            extras=False,
            sources={"Corner": "corner.py:predict"},
            command=f"veracity audit corner.py:predict pictures{options}",
        )
        (said,) = conclude(done.run).models
        explain = said.recommendation.explain
        assert f"explain corner.py:predict picture.png{options} --method" in explain
