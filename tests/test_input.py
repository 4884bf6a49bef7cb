"""Input as people have it: what a program holds, tables of any make, plug-ins with faults."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veracity.auditing.audit import audit
from veracity.auditing.explaining import explain
from veracity.auditing.labels import fit_labels_to
from veracity.core.errors import DataError, PluginError
from veracity.core.examples import Dataset
from veracity.core.plugins import blamed_on
from veracity.data.loading import load_data, validate
from veracity.data.readers import Columns
from veracity.data.splits import Splits
from veracity.explainers import explainers

TOPICS = (
    ("the striker scored twice in the final", "sport"),
    ("shares fell after the bank's report", "economy"),
    ("the probe sent pictures of the moon", "science"),
    ("parliament votes on the new law; again", "politics"),
)
RECORDS = [{"text": text, "label": label} for text, label in TOPICS]


def told(data: Dataset) -> list[tuple[str, str]]:
    return [(e.input.text, data.labels[e.label]) for e in data]


# ---- what a program holds -------------------------------------------------------------------


def _frame(records: list[dict[str, Any]]) -> Any:
    import pandas as pd

    return pd.DataFrame(records)


def _hugging(records: list[dict[str, Any]]) -> Any:
    import datasets

    return datasets.Dataset.from_list(records)


@pytest.mark.parametrize("make", [list, tuple, iter, _frame, _hugging])
def test_what_a_program_holds_is_read_as_a_file_is(make: Any) -> None:
    data = load_data(make(RECORDS))
    assert told(data) == list(TOPICS)
    assert data.labels == ("economy", "politics", "science", "sport")
    renamed = [{"body": r["text"], "topic": r["label"]} for r in RECORDS]
    for columns in (
        Columns(text="body", label="topic"),
        {"text": "body", "label": "topic"},
        "text=body,label=topic",
    ):
        assert told(load_data(make(renamed), columns=columns)) == list(TOPICS)
    with pytest.raises(DataError, match=r"'text'.*'label'.*columns seen: body, topic"):
        load_data(make(renamed))
    with pytest.raises(DataError, match=r"1 of 5 rows are faulty.*\n  line 5: the text is empty"):
        load_data(make([*RECORDS, {"text": "", "label": "sport"}]))


def test_numbers_and_gaps_of_a_frame() -> None:
    frame = _frame([{"text": "a b", "label": 1}, {"text": "c", "label": 0}, {"text": "d"}])
    data = load_data(frame[:2], labels=["no", "yes"])
    assert told(data) == [("a b", "yes"), ("c", "no")]
    _, faults = validate(frame)  # the gap has made floats of the labels
    assert [str(f) for f in faults] == ["line 3: the label is missing"]
    marked = _frame([{"text": "a b", "label": True, "rationales": np.array([1])}])
    (example,) = load_data(marked)
    assert example.truths["rationale"][0].tolist() == [False, True]


def test_texts_alone_are_unlabelled() -> None:
    data = load_data([text for text, _ in TOPICS])
    assert not data.labelled
    assert [e.input.text for e in data] == [text for text, _ in TOPICS]
    with pytest.raises(DataError, match="give each text its label"):
        load_data(["a", "b"], labels=["sport", "economy"])


def test_a_limit_keeps_labels_in_proportion() -> None:
    records = [{"text": f"a text {i}", "label": "ab"[i % 4 == 0]} for i in range(40)]
    few = load_data(records, limit=8)
    assert Counter(few.labels[e.label] for e in few) == {"a": 6, "b": 2}
    assert len(load_data(records, limit=100)) == 40


def test_labels_that_a_model_does_not_know_are_named() -> None:
    data = load_data([{"text": "x", "label": name} for name in ("good", "bad", "ugly")])
    with pytest.raises(DataError, match=r"\(bad, good\); saw ugly\. Rename"):
        fit_labels_to(data, "the model m", ("bad", "good"))


def test_names_and_parts_of_the_datasets_library() -> None:
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 0}, {"text": "c", "label": 1}]
    whole = datasets.Dataset.from_list(rows, features=features)
    assert told(load_data(whole.select([2, 0]))) == [("c", "yes"), ("a", "yes")]
    parts = datasets.DatasetDict({"train": whole, "test": whole.select([1])})
    data = load_data(parts)
    assert [e.facts["split"] for e in data] == ["train", "train", "train", "test"]


@pytest.mark.parametrize("source", [3, {"text": ["a"]}, [], [1, 2], ["a", {"text": "b"}]])
def test_what_is_no_data_is_told_what_is(source: Any) -> None:
    with pytest.raises(DataError, match="expected a path, the name of a corpus, a pandas Data"):
        load_data(source)


# ---- tables of any make ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "txt", "tsv"])
@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_what_stands_between_fields_is_recognised(tmp_path: Path, sign: str, ending: str) -> None:
    path = tmp_path / f"topics.{ending}"
    rows = [("text", "label"), *((text.replace(",", ""), label) for text, label in TOPICS)]
    path.write_text("".join(f'"{a}"{sign}{b}\n' for a, b in rows), "utf-8")
    assert told(load_data(path)) == list(rows[1:])


def test_a_header_that_two_signs_cut(tmp_path: Path) -> None:
    path = tmp_path / "topics.csv"
    path.write_text("id;text;label, as given\n1;a, b, c;x\n2;d;y\n", "utf-8")
    data = load_data(path, columns=Columns(label="label, as given"))
    assert told(data) == [("a, b, c", "x"), ("d", "y")]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_encodings_are_recognised(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("text;label\nschöne Grüße;gut\n很好;gut\n".encode(encoding))
    assert told(load_data(path)) == [("schöne Grüße", "gut"), ("很好", "gut")]


def test_other_encodings_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("text,label\nschön,gut\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"line 2.*save the file as UTF-8.*iconv -f WINDOWS-1252"):
        load_data(path)
    path.write_bytes("text,label\nschön,gut\n".encode("utf-16")[:-1])
    with pytest.raises(DataError, match="expected UTF-16, as its first bytes say"):
        load_data(path)


def test_all_that_is_wrong_with_columns_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Text,topic,part\na,b,c\n", "utf-8")
    with pytest.raises(DataError) as caught:
        load_data(path, columns=Columns(id="number"))
    for part in ("'text' for the text", "'label' for the label", "'number' for the id"):
        assert f"a column {part}" in str(caught.value)
    assert "columns seen: Text, topic, part" in str(caught.value)
    assert "--columns text=…,label=…,id=…" in str(caught.value)
    assert "'text': did you mean 'Text'?" in str(caught.value)
    with pytest.raises(DataError) as caught:
        Columns.parse("txt=a, text=b, text=c, labels, idd=d")
    for part in ("'txt'", "'b' or in 'c'", "'labels'", "'idd'"):
        assert part in str(caught.value)
    path.write_text("text,a,a,text,label\n1,2,3,4,5\n", "utf-8")
    with pytest.raises(DataError, match="'a', 'text' stands there more than once"):
        load_data(path)


# ---- other people's plug-ins ----------------------------------------------------------------

EXPLAINER = '''
from dataclasses import dataclass

from veracity.core.explainers import Explainer


@dataclass(frozen=True)
class Broken(Explainer):
    """Fails in one of several ways."""

    how: str = "raises"

    def explain(self, model, inputs, targets, rngs):
        if self.how == "raises":
            return inputs["gone"]
        return [] if self.how == "few" else [0] * len(inputs)
'''

METRIC = '''
from dataclasses import dataclass

from veracity.core.metrics import Metric, Quantity


@dataclass(frozen=True)
class Lost(Metric):
    """Fails in one of several ways."""

    purpose = "fail"
    quantities = {"x": Quantity("x", "higher", True)}
    how: str = "raises"

    def score(self, cases):
        if self.how == "raises":
            return 1 / 0
        return [{"x": 1.0}] if self.how == "few" else [{"x": "high"} for _ in cases]
'''


def loaded(folder: Path, name: str, code: str) -> Any:
    """The class that a file of somebody else holds."""
    path = folder / f"{name}.py"
    path.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, name.title())


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("raises", r"line 15\) raised TypeError: list indices must"),
        ("few", r"raised ValueError: expected 4 explanations, one per text; got 0"),
        ("numbers", r"raised TypeError: expected Attributions, got int"),
    ],
)
def test_the_fault_of_an_explainer_is_called_by_its_name(
    bag: Any, tmp_path: Path, how: str, fault: str
) -> None:
    broken = loaded(tmp_path, "broken", EXPLAINER)
    texts = [text for text, _ in TOPICS]
    with pytest.raises(PluginError, match=rf"the plug-in broken.*broken\.py.*{fault}") as caught:
        explain(bag, texts, broken(how=how))
    assert isinstance(caught.value.__cause__, TypeError | ValueError)  # where it arose is kept


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("raises", r"line 17\) raised ZeroDivisionError: division by zero"),
        ("few", r"raised ValueError: expected 6 rows, one per case; got 1"),
        ("words", r"raised ValueError: could not convert string to float: 'high'"),
    ],
)
def test_the_fault_of_a_metric_is_called_by_its_name(
    bag: Any, made: Splits, tmp_path: Path, how: str, fault: str
) -> None:
    lost = loaded(tmp_path, "lost", METRIC)
    data = made.test.select(range(6))
    with pytest.raises(PluginError, match=rf"the plug-in lost.*lost\.py.*{fault}"):
        audit(bag, data, "occlusion", [lost(how=how)], out=tmp_path / "r")


def test_our_own_faults_stay_ours(bag: Any) -> None:
    explainer = explainers.make("occlusion")
    with pytest.raises(ZeroDivisionError), blamed_on(explainer):
        1 / 0


def test_plugin_folders_with_faults_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "explainers"
    folder.mkdir(parents=True)
    (folder / "broken.py").write_text("import no_such_package\n", "utf-8")
    code = "from veracity.explainers import explainers; explainers.get('broken')"
    gone = tmp_path / "gone"
    command = f"import sys; sys.path[:0] = {sys.path!r}; {code}"
    found = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "VERACITY_PLUGINS": f"{tmp_path / 'mine'}{os.pathsep}{gone}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"VERACITY_PLUGINS names {gone}, which is not there" in found.stderr
    assert found.stderr.count("which is not there") == 1
    assert f"PluginError: the plug-in broken ({folder / 'broken.py'}, line 1)" in found.stderr
    assert "raised ModuleNotFoundError: No module named 'no_such_package'" in found.stderr
