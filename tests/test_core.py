"""Inputs, ranking, alignment and plug-in texts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import words
from veracity.core.attributions import Attribution, count_from_ratio, ranking
from veracity.core.counts import counted
from veracity.core.errors import MissingExtra, PluginError
from veracity.core.inputs import MASK_WORD, Alignment, Hiding, Text
from veracity.core.plugins import parse_spec, split_specs
from veracity.core.schema import from_json
from veracity.explainers import explainers
from veracity.metrics import metrics


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(n, "question") for n in (0, 1, 1200)] == [
        "0 questions", "1 question", "1,200 questions"
    ]  # fmt: skip
    assert (counted(1.2, "query", "queries"), counted(2, "query", "queries")) == (
        "1 query", "2 queries"
    )  # fmt: skip
    assert Text.nouns.counted(1) == "1 text" and Text.nouns.counted(2) == "2 texts"


def test_ex_0_4_ranking_and_ties() -> None:
    scores = np.array([0.2, 0.5, 0.2, -0.7])
    assert ranking(scores).tolist() == [1, 0, 2, 3]
    assert ranking(scores, "abs").tolist() == [3, 1, 0, 2]


def test_ex_0_5_count_from_ratio() -> None:
    assert [count_from_ratio(0.29, n) for n in (7, 10, 100)] == [3, 3, 29]
    assert count_from_ratio(0.07, 100) == 7
    assert count_from_ratio(0.07, 100, "round") == count_from_ratio(0.07, 100, "floor") == 7
    assert count_from_ratio(0.29, 0) == 0
    assert count_from_ratio(0.01, 5) == 1
    assert count_from_ratio(1.0, 3) == 3


def test_ex_3_15_piece_to_word_alignment() -> None:
    alignment = Alignment.by_offsets([(0, 2), (2, 4)], [(0, 3), (3, 4)])
    assert alignment.to_features(np.array([0.2, 0.4])) == pytest.approx([0.4, 0.2])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_alignment_preserves_totals(lengths: list[int], data: st.DataObject) -> None:
    ends = np.cumsum(lengths).tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    cuts = data.draw(st.sets(st.integers(1, ends[-1]), max_size=6)) | {ends[-1]}
    edges = sorted(cuts)
    pieces = list(zip([0, *edges[:-1]], edges, strict=True))
    scores = np.arange(1.0, len(pieces) + 1)
    found = Alignment.by_offsets(pieces, spans).to_features(scores)
    assert found.sum() == pytest.approx(scores.sum())


def test_special_pieces_belong_to_no_word() -> None:
    alignment = Alignment.by_offsets([(0, 0), (0, 4), (0, 0)], [(0, 4), (5, 6)])
    assert alignment.to_features(np.array([9.0, 1.0, 9.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Hiding.DELETE, "good, slow"),
        (Hiding.MASK, f"good, {MASK_WORD} slow"),
        (Hiding.PAD, "good,  slow"),
    ],
)
def test_hiding_a_word(how: Hiding, expected: str) -> None:
    text = words("good, but slow")
    assert text.words == ("good", ",", "but", "slow")
    hidden = text.keep(np.array([True, True, False, True]), how)
    assert hidden.text == expected
    assert [hidden.text[a:b] for a, b in hidden.spans] == list(hidden.words)
    assert hidden.n_features == (3 if how == Hiding.DELETE else 4)


def test_deletion_never_glues_words() -> None:
    text = Text("well-made", ((0, 4), (4, 5), (5, 9)))
    assert text.keep(np.array([True, False, True]), Hiding.DELETE).text == "well made"
    chinese = words("这部电影很好")
    shown = np.ones(chinese.n_features, dtype=bool)
    shown[1] = False
    assert " " not in chinese.keep(shown, Hiding.DELETE).text


def test_keeping_everything_is_the_text_itself() -> None:
    text = words("  odd   spacing ")
    assert text.keep(np.ones(2, dtype=bool), Hiding.DELETE) is text
    with pytest.raises(ValueError, match="one flag per word"):
        text.keep(np.ones(3, dtype=bool), Hiding.DELETE)


def test_attribution_checks_its_length_and_chooses() -> None:
    text = words("a fine dull film")
    with pytest.raises(ValueError, match="one score per feature"):
        Attribution(text, 1, np.zeros(3))
    a = Attribution(text, 1, np.array([0.0, 0.5, -0.7, 0.1]))
    assert a.top(2).tolist() == [False, True, False, True]
    assert [f.positions for f in a.evidence(3)] == [(1,), (3,)]
    assert [f.positions for f in a.counter_evidence(3)] == [(2,)]


def test_an_attribution_shows_itself_escaped() -> None:
    a = Attribution(Text.of_words(["<script>", "x"]), 0, np.array([1.0, -1.0]), method="<m>")
    html = a._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<m>" not in html


def test_specs_print_and_parse() -> None:
    assert explainers.make("lime(samples=500)").spec == "lime(samples=500)"
    assert explainers.make("lime(samples=1000)").spec == "lime"
    assert explainers.make("lime( kernel = paper )").spec == "lime(kernel=paper)"
    assert metrics.make("erasure(ratios=[0.1, 0.2])").spec == "erasure(ratios=(0.1, 0.2))"
    assert split_specs("lime(samples=5, bow=False), occlusion") == [
        "lime(samples=5, bow=False)",
        "occlusion",
    ]
    assert parse_spec("x(a=true, b=False, c=null)") == ("x", {"a": True, "b": False, "c": None})
    assert parse_spec("x(a=1, b=(1, 2), c=word)") == ("x", {"a": 1, "b": (1, 2), "c": "word"})


@pytest.mark.parametrize("name", explainers.names())
def test_explainer_specs_round_trip(name: str) -> None:
    made = explainers.make(name)
    assert made.spec == name
    assert explainers.make(made.spec) == made


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("lme", "did you mean 'lime'"),
        ("lime(sample=5)", "did you mean 'samples'"),
        ("lime(samples=many)", "expected samples to be int"),
        ("lime(samples=True)", "expected samples to be int"),
        ("lime(kernel=square)", "root or paper"),
        ("lime(hiding=erase)", "delete"),
        ("lime(samples=1)", "at least 2 samples"),
        ("lime(500)", "cannot read"),
        ("lime(samples=open('x'))", "cannot read"),
        ("__import__('os').system('true')", "cannot read"),
        ("", "cannot read"),
    ],
)
def test_bad_specs_are_told(spec: str, says: str) -> None:
    with pytest.raises(PluginError, match=says.replace("(", r"\(").replace(")", r"\)")):
        explainers.make(spec)


def test_only_plugins_pass_as_objects() -> None:
    made = explainers.make("lime")
    assert explainers.make(made) is made
    with pytest.raises(PluginError, match="expected a name"):
        explainers.make(metrics.make("erasure"))  # type: ignore[arg-type]


def test_errors_survive_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(MissingExtra("jieba", "chinese", "Chinese")))
    assert "pip install 'veracity[chinese]'" in str(error)


@dataclass(frozen=True)
class Leaf:
    name: str
    value: float


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    ends: tuple[bool, bool]
    counts: Mapping[str, int]
    better: Literal["higher", "lower"] = "higher"
    note: str | None = None


TREE: dict[str, Any] = {
    "leaves": [{"name": "a", "value": None}, {"name": "b", "value": 2}],
    "ends": [True, False],
    "counts": {"x": 1},
}


def test_a_record_is_read_back_as_its_types_say() -> None:
    found = from_json(Tree, TREE)
    assert np.isnan(found.leaves[0].value) and found.leaves[1] == Leaf("b", 2.0)
    assert (found.ends, found.counts) == ((True, False), {"x": 1})
    assert (found.better, found.note) == ("higher", None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"leaves": [{"name": "a"}]}, r"it.leaves\[0\] to be an object with 'value'"),
        ({"leaves": [{"name": 1, "value": 1}]}, r"it.leaves\[0\].name to be str"),
        ({"leaves": [{"name": "a", "value": "1"}]}, "value to be float"),
        ({"leaves": "ab"}, "it.leaves to be a list"),
        ({"ends": [True]}, "a list of 2"),
        ({"counts": {"x": True}}, "it.counts.x to be int"),
        ({"counts": {"x": 10**400}}, "a smaller number"),
        ({"leaves": [{"name": "a", "value": -1e308}]}, "value to be a smaller number"),
        ({"leaves": [{"name": "a", "value": float("inf")}]}, "value to be a smaller number"),
        ({"better": "sideways"}, "one of higher, lower"),
        ({"more": 1}, "an object with leaves, ends"),
    ],
)
def test_a_record_that_is_not_as_its_types_say_is_told(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_json(Tree, TREE | change)
