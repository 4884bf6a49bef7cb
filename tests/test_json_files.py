"""Records as JSON: written whole, NaN as null and back, one sentence where they are damaged."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from veracity.core.errors import DataError, RunError
from veracity.core.files import CHECKSUM, as_read, check_format, read_json, reading, write_json
from veracity.core.schema import from_json


@dataclass(frozen=True)
class Figure:
    """A record with a number that may not be defined."""

    name: str
    values: tuple[float, ...]


def test_what_is_not_defined_comes_back(tmp_path: Path) -> None:
    path = write_json(tmp_path / "new" / "f.json", asdict(Figure("é", (1.0, math.nan))))
    written = path.read_text("utf-8")
    assert written.startswith('{\n "name": "é",\n "values": [\n  1.0,\n  null\n ],\n "')
    back = from_json(Figure, read_json(path))
    assert back.name == "é"
    assert back.values[0] == 1.0
    assert math.isnan(back.values[1])
    assert [p.name for p in path.parent.iterdir()] == ["f.json"]


def test_a_changed_record_is_told(tmp_path: Path) -> None:
    record = {"name": "é", "figures": {10: 0.1, 2: 25.0, "b": [math.nan, -0.0]}}
    path = write_json(tmp_path / "f.json", record)
    as_written = read_json(path)
    assert as_written == as_read(record)
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content, sort_keys=True), "utf-8")
    assert read_json(path) == as_written  # laid out anew, nothing else
    path.write_text(json.dumps(content).replace("25.0", "25"), "utf-8")
    assert read_json(path) == as_written  # as other programs spell numbers
    content["figures"]["2"] = 2e300
    path.write_text(json.dumps(content), "utf-8")
    with (
        pytest.raises(RunError, match="its checksum does not fit"),
        reading(path),
    ):
        read_json(path)
    del content[CHECKSUM]  # somebody meant it
    path.write_text(json.dumps(content), "utf-8")
    assert read_json(path) == content


def test_a_value_as_it_is_read_back() -> None:
    assert as_read({"a": (1, math.inf), 2: "b"}) == {"a": [1, None], "2": "b"}


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_json(tmp_path / "f.json", [1])
    with pytest.raises(TypeError):
        write_json(path, [object()])
    assert read_json(path) == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "f.json is damaged (Expecting property name"),
        ("[]", "f.json is damaged (expected it to be an object"),
        ('{"name": 1, "values": []}', "f.json is damaged (expected it.name to be str, got '1')"),
        ('{"name": "a"}', "f.json is damaged (expected it to be an object with 'values'"),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(RunError) as told, reading(path, remedy="Make it anew"):
        from_json(Figure, read_json(path))
    assert sentence in str(told.value)
    assert str(told.value).endswith("). Make it anew")


def test_what_is_not_there_or_not_readable_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with (
        pytest.raises(RunError, match=r"^nothing was made yet$"),
        reading(path, missing="nothing was made yet"),
    ):
        read_json(path)
    path.mkdir()
    with (
        pytest.raises(DataError, match=r"f\.json cannot be read \(expected a file, got a folder"),
        reading(path, error=DataError),
    ):
        read_json(path)
    with (
        pytest.raises(DataError, match=r"^expected a figure; it has no 'name'$"),
        reading(path, expected="expected a figure", error=DataError),
    ):
        from_json(Figure, {}["name"])  # type: ignore[index]


def test_another_version_is_no_damage(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match="has format 9; this version reads 1"),
        reading(tmp_path / "f.json"),
    ):
        check_format({"format": 9}, 1, tmp_path / "f.json")
