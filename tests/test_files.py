"""Nothing of somebody else's is written over, and nothing that is read fills the machine."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from commands import run_command
from veracity import audit
from veracity.core.errors import LimitError, ModelError, PluginError, RunError, VeracityError
from veracity.core.files import CHECKSUM, FolderKind, check_own, parse_json, sole_writer
from veracity.core.limits import BYTES, LIMITS
from veracity.core.schema import check_schema
from veracity.data.loading import load_data
from veracity.data.splits import Splits
from veracity.models.architecture import Training
from veracity.models.architectures import architectures
from veracity.models.embeddings import vectors_for
from veracity.models.loading import load_model, save_model
from veracity.models.training import train
from veracity.results.run import Run

REVIEWS = "made_reviews(n=40)"
KIND = FolderKind("an audit", "run.json")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def changed(path: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text())
    if isinstance(content, dict):
        content.pop(CHECKSUM, None)
    path.write_text(json.dumps(change(content) or content))


@pytest.fixture(scope="module")
def model_folder(made: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small untrained model, saved."""
    folder = tmp_path_factory.mktemp("model") / "m"
    architecture = architectures.make("text_cnn(size=4, filters=2, widths=(2, 3))")
    few = made.train.select(range(30))
    save_model(architecture.start(few, seed=0), architecture, folder, record={})
    return folder


@pytest.fixture(scope="module")
def run_folder(made: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small audit with several parts of each kind."""
    folder = tmp_path_factory.mktemp("run") / "r"
    audited(made, folder)
    return folder


def audited(made: Splits, folder: Path) -> Any:
    return audit(
        load_model(known, labels=made.test.labels),
        made.test.select(range(12)),
        ["occlusion", "random_scores"],
        ["erasure"],
        out=folder,
        batch_size=4,
        extras=False,
    )


def known(texts: list[str]) -> Any:
    share = np.array([0.1 + 0.8 * ("e" in t[:20]) for t in texts])
    return np.stack([1 - share, share], axis=1)


# ---- other people's folders -------------------------------------------------------------------


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with all that verbs once took for their own work beside it."""
    folder = tmp_path_factory.mktemp("theirs") / "encoder"
    for name in (
        "config.json",
        "model.safetensors",
        "checkpoint/weights-3.safetensors",
        "checkpoint/notes.txt",
        "steps/thesis.tex",
        "models/ours.bin",
        "suspects.json",
        "suspects.html",
        "run.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'{{"theirs": "{name}"}}')
    return folder


@pytest.mark.parametrize(
    "verb",
    [
        ("train", "text_cnn(size=4, filters=2)", REVIEWS, "--epochs", "1"),
        ("train", "transformer(encoder='FOLDER')", REVIEWS, "--epochs", "1"),
        ("pretrain", "FOLDER", REVIEWS),
        ("audit", "MODEL", REVIEWS, "--methods", "occlusion"),
        ("robustness", "MODEL", REVIEWS, "--by", "keyboard"),
        ("suspects", "MODEL", REVIEWS),
        ("dryrun", "text_cnn(size=4, filters=2)", REVIEWS, "--methods", "occlusion"),
        ("augment", "text_cnn(size=4, filters=2)", REVIEWS, REVIEWS, "--by", "keyboard"),
        ("run", "planted_text", "--scale", "smoke"),
        ("demo",),
    ],
    ids=lambda verb: f"{verb[0]}{len(verb)}",
)
def test_no_verb_writes_into_a_folder_of_others(
    verb: tuple[str, ...], foreign: Path, model_folder: Path, tmp_path: Path
) -> None:
    names = {"FOLDER": str(foreign), "MODEL": str(model_folder)}
    given = [a.replace("FOLDER", names["FOLDER"]).replace("MODEL", names["MODEL"]) for a in verb]
    before = contents(foreign)
    result = run_command(*given, "--out", str(foreign), cwd=tmp_path)
    assert result.returncode == 2 and "holds other files" in result.stderr
    assert contents(foreign) == before


def test_an_encoder_is_not_trained_on_itself(encoder_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "encoder"))
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "pytorch_model.bin").write_bytes(b"theirs")
    before = contents(folder)
    spec = f"transformer(encoder='{folder}')"
    arguments = ("train", spec, REVIEWS, "--epochs", "1", "--out", str(folder))
    result = run_command(*arguments, cwd=tmp_path)
    assert result.returncode == 2 and "holds other files" in result.stderr
    assert contents(folder) == before


def test_a_folder_says_whose_it_is(tmp_path: Path) -> None:
    folder, other = tmp_path / "f", FolderKind("a dry run", "dryrun.json")
    with sole_writer(folder, KIND):
        (folder / "part").write_text("half done")
    check_own(folder, KIND)
    with pytest.raises(RunError, match="or a dry run of ours; it holds an audit of ours"):
        check_own(folder, other)
    (folder / "run.lock").write_text("")  # as earlier versions left it
    with pytest.raises(RunError, match="holds other files"):
        check_own(folder, KIND)
    (folder / "run.json").write_text("{}")
    check_own(folder, KIND)
    (folder / "run.lock").unlink()
    with pytest.raises(RunError, match="holds other files"):
        check_own(folder, KIND)
    (folder / "run.json").write_text('{"format": 1}')
    check_own(folder, KIND)
    (folder / "run.lock").write_text("of somebody else")
    with pytest.raises(RunError, match="holds other files"):
        check_own(folder, KIND)


@pytest.mark.parametrize("kind", ["file", "link", "nowhere", "lock"])
def test_places_that_are_no_folder_of_ours(kind: str, tmp_path: Path) -> None:
    place, theirs = tmp_path / "place", tmp_path / "theirs"
    theirs.write_text("theirs")
    if kind == "lock":
        place.mkdir()
        (place / "run.lock").symlink_to(theirs)
    elif kind == "file":
        place.write_text("theirs")
    else:
        place.symlink_to(theirs if kind == "link" else tmp_path / "gone")
    with pytest.raises(RunError, match="Choose another"), sole_writer(place, KIND):
        pass
    assert theirs.read_text() == "theirs" and not (tmp_path / "gone").exists()


def test_training_removes_only_what_it_wrote(made: Splits, tmp_path: Path) -> None:
    from veracity.experiments.training import trained_once

    architecture, out = architectures.make("text_cnn(size=4, filters=2)"), tmp_path / "m"
    parts = Splits(made.train.select(range(30)), *[made.test.select(range(10))] * 2)

    def told(_: Any) -> None:
        notes = out / "checkpoint" / "notes"
        notes.mkdir(exist_ok=True)
        (notes / "why.txt").write_text("mine")

    trained_once(
        architecture, parts, out, data={"name": "d"}, training=Training(epochs=2), watch=told
    )
    assert (out / "veracity.json").exists()
    assert contents(out / "checkpoint") == {"notes/why.txt": b"mine"}


def test_a_file_of_others_is_not_written_over(model_folder: Path, tmp_path: Path) -> None:
    model = str(model_folder)
    words = tmp_path / "words.json"
    words.write_text(
        json.dumps(
            {"labels": ["a", "b"], "words": [["x"], ["y"]], "scores": {}, "cased": False}
            | {"facts": {}}
        )
    )
    for name, *arguments in (
        ("a.jsonl", "explain", model, "a film", "--method", "occlusion", "--out"),
        ("b.html", "explain", model, "a film", "--method", "occlusion", "--html"),
        ("c.html", "truths", "show", str(words), "--html"),
        ("d.jsonl", "plant", REVIEWS, "--out"),
        ("e.jsonl", "data", "attack", REVIEWS, "--by", "keyboard", "--out"),
        ("f.jsonl", "data", "convert", REVIEWS, "--to", "records", "--out"),
    ):
        (tmp_path / name).write_text("theirs")
        result = run_command(*arguments, str(tmp_path / name), cwd=tmp_path)
        assert result.returncode == 2 and "is there already" in result.stderr, arguments
        assert (tmp_path / name).read_text() == "theirs"


def test_a_folder_of_ours_keeps_a_page_of_others(model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "suspects.json").write_text('{"format": 1, "found": "before"}')
    (folder / "suspects.html").write_text("theirs")
    before = contents(folder)
    result = run_command("suspects", str(model_folder), REVIEWS, "--out", str(folder), cwd=tmp_path)
    assert result.returncode == 2 and "no page of ours" in result.stderr
    assert contents(folder) == before


# ---- sizes and devices ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_refused(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    with pytest.raises(VeracityError, match="named pipe" if kind == "pipe" else "device"):
        load_data(path)


def test_links_are_followed_to_files(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("text,label\ngood film,1\nbad film,0\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "data")
    assert len(load_data(tmp_path / "link.csv")) == 2


@pytest.mark.parametrize(
    ("name", "content", "setting"),
    [
        ("x.csv", "text,label\n" + "a film,1\n" * 200, "BYTES"),
        ("x.csv.gz", "text,label\n" + "a film,1\n" * 200, "BYTES"),
        ("x.csv", "text,label\n" + ",\n" * 200, "VALUES"),
        ("x.json", "[" + "{}," * 200 + "{}]", "VALUES"),
        ("x.jsonl", '{"text": [' + "1," * 200 + "1]}", "VALUES"),
    ],
)
def test_a_limit_is_told_and_can_be_set(
    name: str, content: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    monkeypatch.setenv(f"VERACITY_MAX_{setting}", "100")
    with pytest.raises(LimitError, match=f"at most 100 .*got .*set VERACITY_MAX_{setting} higher"):
        load_data(tmp_path / name)


def test_a_packed_file_is_unpacked_only_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tracemalloc

    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"text,label\n" + b"a" * 50_000_000))
    monkeypatch.setenv("VERACITY_MAX_BYTES", "1_000_000")
    tracemalloc.start()
    with pytest.raises(LimitError, match="at most 1,000,000 bytes"):
        load_data(tmp_path / "x.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_column_that_repeats_one_value_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary lets a few bytes stand for any number of large texts."""
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["word " * 2000])
    pq.write_table(pa.table({"text": once, "label": [0] * 100_000}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 20_000
    monkeypatch.setenv("VERACITY_MAX_BYTES", "2000000")
    with pytest.raises(LimitError, match=r"x.parquet: expected at most 2,000,000 bytes"):
        load_data(tmp_path / "x.parquet")


def test_a_line_too_long_is_a_fault_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"text": t, "label": 0} for t in ("good film", "x" * 500, "bad film")]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    monkeypatch.setenv("VERACITY_MAX_LINE", "200")
    with pytest.warns(UserWarning, match="line 2: expected at most 200 characters"):
        assert len(load_data(tmp_path / "x.jsonl", skip_bad=True)) == 2


def test_nesting_is_bounded() -> None:
    assert parse_json("[" * 100 + "]" * 100)
    for depth in (101, 900, 100_000):
        with pytest.raises(ValueError, match="at most 100 lists and objects inside each other"):
            parse_json("[" * depth + "]" * depth)
    # what stands beside each other is no nesting, and brackets in texts are none
    assert len(parse_json("[" + "[]," * 500 + '"' + "[" * 500 + '"]')) == 501


def test_a_limit_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
    for wrong in ("much", "-1", "0", "9" * 30):
        monkeypatch.setenv(BYTES.name, wrong)
        with pytest.raises(PluginError, match="expected VERACITY_MAX_BYTES to be a number"):
            BYTES.check(1, "x")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.bin", b"3 1000000000000000\nword "),
        ("v.txt.gz", gzip.compress(b"word " + b"1 " * 5000, mtime=0)),
    ],
)
def test_vectors_cannot_ask_for_more_than_they_hold(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("VERACITY_MAX_LINE", "1000")
    with pytest.raises(VeracityError, match=r"ends early|at most 1,000 characters"):
        dict(vectors_for(str(tmp_path / name), {"word"}))


# ---- what is loaded ---------------------------------------------------------------------------

HUGE = "text_cnn(size=4, filters=9999, widths=(2, 3))"


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("veracity.json", lambda c: c.update(architecture=HUGE), "by its settings"),
        ("veracity.json", lambda c: c.update(format=99), "this version reads 1"),
        ("veracity.json", lambda c: c.update(labels="ab"), "a list of names"),
        ("veracity.json", lambda c: c.update(labels=["a", "a"]), "two different labels"),
        ("veracity.json", lambda c: c.update(labels=["a", 1]), "a list of names"),
        ("veracity.json", lambda c: c.update(labels=["a", "b", "c"]), "by its settings"),
        ("veracity.json", lambda c: c.update(architecture=7), "architecture to be str"),
        ("vocabulary.json", lambda c: c[:-1], "words, but has embeddings of"),
        ("vocabulary.json", lambda c: [*c[:-1], c[0]], "each word once"),
        ("vocabulary.json", lambda c: [*c[:-1], 7], "a list of words"),
        ("vocabulary.json", lambda c: {"a": 1}, "a list of words"),
    ],
)
def test_parts_of_a_model_are_held_against_each_other(
    name: str, change: Callable[[Any], Any], says: str, model_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "m"))
    changed(folder / name, change)
    with pytest.raises(ModelError, match=says):
        load_model(folder)


def test_many_layers_are_counted_before_they_are_made(model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "m"))
    spec = f"text_cnn(size=4, filters=2, widths=({'2, ' * 10_000}))"
    changed(folder / "veracity.json", lambda c: c.update(architecture=spec))
    with pytest.raises(ModelError, match="more layers than its file has weights"):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_hidden_layers": 10**7}, "sets num_hidden_layers to 10,000,000"),
        ({"num_labels": 10**9, "id2label": None}, "sets num_labels to 1,000,000,000"),
        ({"vocab_size": 10**10}, "VERACITY_MAX_EXTRA_WEIGHTS"),
        ({"hidden_size": 10**6}, "VERACITY_MAX_EXTRA_WEIGHTS"),
        ({"max_position_embeddings": 10**10}, "VERACITY_MAX_EXTRA_WEIGHTS"),
        ({"id2label": {"0": "a", "1": "a"}}, "a name of its own"),
    ],
)
def test_a_configuration_is_held_against_its_weights(
    change: dict[str, Any], says: str, encoder_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "e"))
    changed(folder / "config.json", lambda c: c.update(change))
    with pytest.raises(VeracityError, match=says):
        load_model(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../model.safetensors", "/etc/passwd"])
def test_an_index_names_only_safetensors_of_its_folder(
    name: str, encoder_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "e"))
    weights = load_file(folder / "model.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="and nothing else"):
        load_model(folder)
    index["weight_map"] = dict.fromkeys(weights, "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_model(folder).labels == ("negative", "positive")


@pytest.mark.parametrize("damage", ["cut", "shapes", "gone", "history", "numbers", "text"])
def test_any_damage_to_a_checkpoint_starts_over(damage: str, made: Splits, tmp_path: Path) -> None:
    architecture = architectures.make("text_cnn(size=4, filters=2)")
    few, folder = made.train.select(range(30)), tmp_path / "c"

    def trained(epochs: int, checkpoint: Path | None) -> Any:
        asked = Training(epochs=epochs, patience=9)
        return train(architecture, few, few, training=asked, checkpoint=checkpoint)

    trained(1, folder)
    optimiser = folder / "optimiser-1.safetensors"
    if damage == "cut":
        optimiser.write_bytes(optimiser.read_bytes()[:-7])
    elif damage == "shapes":
        save_file({k: torch.zeros(3) for k in load_file(optimiser)}, optimiser)
    elif damage == "gone":
        optimiser.unlink()
    elif damage == "text":
        optimiser.write_bytes(b"\x80\x04K\x01.")
    else:
        wrong = {"history": lambda c: c.update(best=7), "numbers": _no_numbers}[damage]
        changed(folder / "state.json", wrong)
    with pytest.warns(UserWarning, match="is damaged .* training starts over"):
        again = trained(2, folder)
    whole = trained(2, None)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])


def _no_numbers(content: Any) -> None:
    content["history"][0]["validation_accuracy"] = "high"


def test_lost_examples_are_written_again(made: Splits, run_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "r"))
    before = (folder / "examples.parquet").read_bytes()
    for content in (None, b"PAR1 nonsense", next(folder.glob("pred*/*/*")).read_bytes()):
        (folder / "examples.parquet").unlink()
        if content is not None:
            (folder / "examples.parquet").write_bytes(content)
        assert audited(made, folder).computed == 0
        assert (folder / "examples.parquet").read_bytes() == before


@pytest.mark.parametrize("kind", ["predictions", "attributions", "scores"])
def test_a_part_of_another_batch_is_computed_anew(
    kind: str, made: Splits, run_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "r"))
    first, second = sorted((folder / kind).rglob("*.parquet"))[:2]
    assert first.parent == second.parent
    shutil.copy(second, first)
    before = Run.open(run_folder).scores().to_pylist()
    assert audited(made, folder).computed == 1
    assert Run.open(folder).scores().to_pylist() == before


def test_a_part_of_another_method_is_computed_anew(
    made: Splits, run_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "r"))
    one, other = (next((folder / "attributions").glob(f"*/{m}*")) for m in ("occ", "random"))
    shutil.copy(other / "00000.parquet", one / "00000.parquet")
    assert audited(made, folder).computed == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["config"].pop("dataset"), "an object with 'dataset'"),
        (lambda c: c["config"].update(models=["m"]), "models to be an object"),
        (lambda c: c["config"]["metrics"].update(erasure=7), "metrics.erasure to be an object"),
        (lambda c: c["config"].update(seed="x"), "seed to be int"),
        (lambda c: c["config"].update(plan={"sentence": 3}), "plan.sentence to be str"),
        (lambda c: c.update(metadata=None), "metadata to be an object"),
        (lambda c: c.update(format={}), "this version reads"),
        (lambda c: [], "damaged"),
    ],
)
def test_an_edited_run_gives_a_sentence(
    change: Callable[[Any], Any], says: str, run_folder: Path, tmp_path: Path
) -> None:
    def edit(content: Any) -> Any:
        found = change(content)
        return [content] if found == [] else content

    shutil.copy(run_folder / "run.json", tmp_path)
    changed(tmp_path / "run.json", edit)
    with pytest.raises(RunError, match=says):
        Run.open(tmp_path)


def test_forms() -> None:
    form = {"a": int, "b?": [str], "c?": {"*": float | None}}
    check_schema({"a": 1, "b": ["x"], "c": {"y": 1.0, "z": None}, "d": "ignored"}, form)
    for wrong, says in (
        ({"a": True}, "a to be int, got 'True'"),
        ({"b": []}, "an object with 'a'"),
        ({"a": 1, "b": ["x", 2]}, r"b\[1\] to be str"),
        ({"a": 1, "c": {"y": "1"}}, "c.y to be float"),
        ([], "to be an object"),
    ):
        with pytest.raises(ValueError, match=says):
            check_schema(wrong, form)


def test_every_limit_stands_in_the_documents() -> None:
    chapter = (Path(__file__).parents[1] / "docs/explanation/limits.md").read_text()
    assert [limit.name for limit in LIMITS if f"`{limit.name}`" not in chapter] == []


def test_documents_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    with (tmp_path / "val.jsonl").open("w") as file:
        for n in range(4):
            (tmp_path / "docs" / f"{n}.txt").write_text("great film " * 50)
            row = {"annotation_id": f"{n}.txt", "classification": "POS", "evidences": []}
            file.write(json.dumps(row) + "\n")
    monkeypatch.setenv("VERACITY_MAX_BYTES", "2000")
    with pytest.raises(LimitError, match=r"the documents in .*at most 2,000 bytes"):
        load_data(tmp_path)


def test_a_table_that_is_damaged_inside_gives_a_sentence(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"text": ["good film é", "bad"], "label": [1, 0]}),
        tmp_path / "x.parquet",
        compression="none",
        use_dictionary=False,
    )
    raw = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(raw.replace("é".encode(), b"\xc3\x28"))
    with pytest.raises(VeracityError, match="expected a whole Parquet file"):
        load_data(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tokenizer_config.json", lambda c: c.update(model_max_length="long")),
        # no Exception, but a panic of the library below
        ("tokenizer.json", lambda c: c["post_processor"]["special_tokens"].clear()),
    ],
)
def test_whatever_a_tokeniser_raises_is_told(
    name: str, change: Callable[[Any], Any], encoder_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "e"))
    changed(folder / name, change)
    with pytest.raises(ModelError, match="and a tokeniser"):
        load_model(folder)


def test_a_folder_in_the_place_of_a_part_is_told(
    made: Splits, run_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "r"))
    part = next((folder / "predictions").rglob("*.parquet"))
    part.unlink()
    part.mkdir()
    with pytest.raises(RunError, match="Move it away"):
        audited(made, folder)
