"""Numbers, signs and files at the edge of what can be read: a sentence, never a crash."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import run_command
from veracity.changes import changes
from veracity.cli.showing import print_json
from veracity.core.errors import DataError, PluginError, VeracityError
from veracity.core.plugins import Registry
from veracity.data.corpora import corpora
from veracity.data.formats import formats
from veracity.data.loading import load_data
from veracity.explainers import explainers
from veracity.metrics import metrics
from veracity.models.architectures import architectures
from veracity.models.encoders import UNLIMITED, piece_limit
from veracity.studies.sheets import Sheet, read_sheet, write_sheet
from veracity.truths import truths

REGISTRIES: tuple[Registry[Any], ...] = (
    explainers,
    metrics,
    changes,
    architectures,
    corpora,
    formats,
    truths,
)


@pytest.mark.parametrize(
    ("registry", "spec"),
    [
        (explainers, "lime(width=1e308)"),
        (explainers, "lime(width=1e-200)"),
        (explainers, "lime(samples=1000000000)"),
        (explainers, f"lime(width={10**400})"),
        (explainers, "shap(error=1e-300)"),
        (metrics, "deletion(steps=10000000)"),
        (metrics, "deletion(counts=[1, 99999999])"),
        (metrics, "local_lipschitz(seed=-5)"),
        (corpora, "made_reviews(seed=-5)"),
        (corpora, "made_reviews(n=10000000000)"),
        (architectures, "text_cnn(size=100000000)"),
        (changes, "spelling(copies=100000)"),
    ],
)
def test_every_number_has_a_range(registry: Any, spec: str) -> None:
    with pytest.raises(PluginError, match=r"expected .* to lie between"):
        registry.make(spec)


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-3, 20),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 2**63, 1e308, 5e-324, -0.0]),
)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.booleans(), st.none(), st.text(max_size=6)),
    lambda some: st.lists(some, max_size=3),
    max_leaves=4,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(st.data())
def test_spec_strings_make_a_plugin_or_a_sentence(data: st.DataObject) -> None:
    registry = data.draw(st.sampled_from(REGISTRIES))
    cls = registry.get(data.draw(st.sampled_from(registry.names())))
    keys = sorted({"profile", "nothing", *getattr(cls, "__dataclass_fields__", {})})
    chosen = data.draw(st.dictionaries(st.sampled_from(keys), VALUES, max_size=3))
    shown = ", ".join(f"{key}={value!r}" for key, value in chosen.items())
    try:
        made = registry.make(f"{cls.plugin_name()}({shown})")
    except VeracityError:
        return
    assert registry.make(made.spec).spec == made.spec


# ---- sheets ---------------------------------------------------------------------------------

LINE_SIGNS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
SHEET = Sheet("texts.csv", ("id", "text"))


@pytest.mark.parametrize("sign", ["", *LINE_SIGNS, "\r\n"])
@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@x", "\t=1", "  =1"])
def test_no_line_of_a_sheet_is_a_formula(tmp_path: Path, sign: str, formula: str) -> None:
    text = f"good{sign}{formula}" if sign else formula
    path = write_sheet(SHEET, tmp_path, [{"id": "1", "text": text}])
    content = path.read_bytes().decode("utf-8-sig")
    assert content.count('"') == 8, "a line sign outside of quotes ends a cell"
    cell = next(csv.DictReader(io.StringIO(content, newline="")))["text"]
    for line in cell.splitlines():
        assert line.lstrip()[:1] not in ("=", "+", "-", "@")
    assert read_sheet(SHEET, tmp_path)[0].values["text"] == text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.text(st.sampled_from(LINE_SIGNS + "='+-@\t \"a,;"), min_size=1, max_size=8))
def test_sheets_give_back_what_was_put_in(tmp_path: Path, text: str) -> None:
    (tmp_path / "texts.csv").unlink(missing_ok=True)
    write_sheet(SHEET, tmp_path, [{"id": "1", "text": text}])
    assert read_sheet(SHEET, tmp_path)[0].values["text"] == text


# ---- signs that a stream cannot show ------------------------------------------------------------


def test_json_is_plain_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "déjà 好 😀", "lone": "\ud800"})
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == {"text": "déjà 好 😀", "lone": "?"}


def test_a_seed_below_nothing_is_refused(tmp_path: Path) -> None:
    out = run_command("plant", "made_reviews(n=9)", "--seed", "-5", "--out", "x", cwd=tmp_path)
    assert out.returncode == 2
    assert "greater than or equal to 0" in out.stderr


# ---- files of other libraries --------------------------------------------------------------------


@pytest.mark.parametrize("said", [1e30, int(1e30), None, "512", -1, 0, float("nan"), True])
def test_a_tokeniser_without_a_sensible_limit_has_none(said: Any) -> None:
    assert piece_limit(SimpleNamespace(model_max_length=said)) == UNLIMITED
    assert piece_limit(SimpleNamespace(model_max_length=512)) == 512


def saved(folder: Path, state: Any, features: Any) -> Path:
    """A folder as the datasets library leaves it."""
    table = pa.table({"text": ["good", "bad"], "label": [1, 0]})
    sink = pa.OSFile(str(folder / "data.arrow"), "wb")
    with sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps(state), "utf-8")
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}), "utf-8")
    return folder


FILES = {"_data_files": [{"filename": "data.arrow"}], "_split": None}


@pytest.mark.parametrize("names", [None, {"0": "bad"}, "ab", 5, {}])
def test_odd_names_of_labels_are_left_alone(tmp_path: Path, names: Any) -> None:
    features = {"label": {"_type": "ClassLabel", "names": names}, "text": None}
    assert load_data(str(saved(tmp_path, FILES, features))).labels == ("0", "1")


@pytest.mark.parametrize(
    "state",
    [
        {**FILES, "_data_files": 5},
        {**FILES, "_data_files": ["data.arrow"]},
        {**FILES, "_data_files": [{}]},
        {**FILES, "_data_files": {"filename": "data.arrow"}},
        [],
    ],
)
def test_odd_metadata_are_told(tmp_path: Path, state: Any) -> None:
    with pytest.raises(DataError, match=r"state\.json: expected"):
        load_data(str(saved(tmp_path, state, {})))


def test_odd_parts_are_told(tmp_path: Path) -> None:
    saved(tmp_path, FILES, {})
    (tmp_path / "dataset_dict.json").write_text('{"splits": 5}', "utf-8")
    with pytest.raises(DataError, match="expected 'splits' to be a list, got int"):
        load_data(str(tmp_path))
