"""Binary trees: read, fitted to texts, cut by rule and by heads, and what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED
from veracity.core.errors import DataError
from veracity.core.inputs import Text
from veracity.data.loading import load_data
from veracity.data.splits import split
from veracity.data.treebanks import read_trees
from veracity.data.trees import (
    Tree,
    balanced,
    bracket_f1,
    of_heads,
    read_tree,
    right_branching,
)
from veracity.data.words import read_text

LINE = "(3 (2 It) (4 (4 (2 's) (4 (2 a) (4 (3 lovely) (2 film)))) (2 .)))"

needs_sst = pytest.mark.skipif(not (SHARED / "sst").exists(), reason="the treebank is not at hand")


def check_whole(tree: Tree) -> None:
    """Every node is its two halves or one word, and stands before them."""
    assert len(tree.nodes) == 2 * len(tree.words) - 1
    assert (tree.nodes[0].start, tree.nodes[0].end) == (0, len(tree.words))
    for place, node in enumerate(tree.nodes):
        if node.parts is None:
            assert node.end == node.start + 1
            continue
        left, right = (tree.nodes[p] for p in node.parts)
        assert place < min(node.parts)
        assert (left.start, left.end, right.end) == (node.start, right.start, node.end)


def test_brackets_are_read_with_labels() -> None:
    tree = read_tree(LINE)
    assert tree.words == ("It", "'s", "a", "lovely", "film", ".")
    check_whole(tree)
    labels = {(n.start, n.end): n.label for n in tree.nodes}
    assert labels[0, 6] == 3 and labels[2, 5] == 4 and labels[3, 4] == 3
    assert tree.spans == {(0, 6), (1, 6), (1, 5), (2, 5), (3, 5)}
    assert [tree.nodes[i].label for i in tree.smallest()] == [3, 4, 4, 4, 4, 4]


def test_other_names_and_shapes_become_binary() -> None:
    tree = read_tree("(ROOT (S (NP (DT The) (JJ old) (NN film)) (VP (VBZ works))))")
    check_whole(tree)
    assert tree.spans == {(0, 4), (0, 3), (1, 3)}
    assert {n.label for n in tree.nodes} == {None}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("(1 (2 good)", "expected as many closing brackets as opening ones, got 2 and 1"),
        ("(1 (2 good) film)", "expected in every pair of brackets a name and a word"),
        ("(2 )", "expected in every pair of brackets a name and a word"),
        ("good film", "expected a tree in brackets"),
        ("", "expected a tree in brackets"),
        (")(", "expected a tree in brackets"),
        ("(2 good) (2 film)", "expected one tree in a line"),
        ("(2 " * 1001 + "x" + ")" * 1001, "expected at most 1,000 brackets inside each other"),
    ],
)
def test_what_is_no_tree_is_one_sentence(line: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        read_tree(line)
    assert len(str(caught.value)) < 300


def test_a_deep_tree_is_no_recursion() -> None:
    words = [f"w{i}" for i in range(900)]
    line = "(2 x)"
    for word in words:
        line = f"(2 (2 {word}) {line})"
    tree = read_tree(line)
    check_whole(tree)
    again = tree.fitted(read_text(" ".join(tree.words)))
    assert again.spans == tree.spans == right_branching(tree.words).spans


def test_a_tree_is_fitted_to_the_words_of_a_text() -> None:
    tree = read_tree(LINE)
    text = read_text("It's a lovely film.")
    fitted = tree.fitted(text)
    check_whole(fitted)
    assert fitted.words == text.words == ("It's", "a", "lovely", "film", ".")
    # the word of two leaves stands where it begins
    assert fitted.spans == {(0, 5), (1, 5), (1, 4), (2, 4)}
    labels = {(n.start, n.end): n.label for n in fitted.nodes}
    assert labels[1, 4] == 4 and labels[0, 5] == 3
    # one leaf of several words branches to the right, and has its label as a whole
    signs = read_tree("(3 (2 -LRB-) (3 (2 good) (1 -RRB-)))")
    for spelt in ("( good )", "-lrb- good -rrb-"):
        found = signs.fitted(read_text(spelt))
        check_whole(found)
        assert found.words == read_text(spelt).words


def test_a_tree_that_does_not_fit_is_one_sentence() -> None:
    with pytest.raises(DataError, match="expected a tree over the words of the text, 'It is bad'"):
        read_tree(LINE).fitted(read_text("It is bad"))


def test_words_that_go_leave_the_other_half() -> None:
    tree = read_tree(LINE)
    kept = tree.keep([True, False, True, False, True, False])
    assert kept is not None
    check_whole(kept)
    assert kept.words == ("It", "a", "film")
    assert kept.spans == {(0, 3), (1, 3)}
    assert tree.keep([True] * 6) == tree
    assert tree.keep([False] * 6) is None


@given(st.lists(st.sampled_from(["good", "not", "it's", "a", ","]), min_size=1, max_size=30))
def test_rules_make_whole_trees(words: list[str]) -> None:
    for rule in (balanced, right_branching):
        tree = rule(words)
        check_whole(tree)
        assert tree.words == tuple(words)


@given(st.data())
def test_any_heads_make_a_whole_tree(data: st.DataObject) -> None:
    """Also where what depends on a word does not stand together."""
    n = data.draw(st.integers(1, 15))
    order = data.draw(st.permutations(range(n)))
    heads = [0] * n
    for place, word in enumerate(order):  # a root, or below one that came before
        above = data.draw(st.integers(-1, place - 1))
        heads[word] = word if above < 0 else order[above]
    check_whole(of_heads([f"w{i}" for i in range(n)], heads))


def test_heads_are_cut_from_the_outside_what_stands_before_first() -> None:
    #         0    1    2    3   4   5     the film works for me .
    heads = [1, 2, 2, 2, 3, 2]
    tree = of_heads(["the", "film", "works", "for", "me", "."], heads)
    assert tree.spans == {(0, 6), (0, 2), (2, 6), (2, 5), (3, 5)}
    two = of_heads(["it", "works", ".", "it", "shines", "."], [1, 1, 1, 4, 4, 4])
    assert two.spans == {(0, 6), (0, 3), (1, 3), (3, 6), (4, 6)}
    with pytest.raises(DataError, match="expected heads that lead to a root"):
        of_heads(["a", "b"], [1, 0])


def test_bracket_f1_counts_phrases_but_not_whole_texts() -> None:
    gold = read_tree("(2 (2 (2 a) (2 b)) (2 (2 c) (2 d)))")
    words = gold.words
    assert bracket_f1([gold], [gold]) == 1
    # of two phrases below the root one is found
    assert bracket_f1([right_branching(words)], [gold]) == 2 * 1 / (2 + 2)
    with pytest.raises(DataError, match="over the same words, got 3 and 4"):
        bracket_f1([balanced(words[:3])], [gold])


def test_a_file_of_trees_is_data(tmp_path: Path) -> None:
    (tmp_path / "mine.train.txt").write_text(f"{LINE}\n\n(1 (1 bad) (2 film))\n")
    (tmp_path / "mine.dev.txt.gz").write_bytes(gzip.compress(b"(4 (4 fine) (2 film))\n"))
    data = load_data(tmp_path)
    assert [e.facts["split"] for e in data] == ["validation", "train", "train"]
    assert data.examples[1].input.words == ("It", "'s", "a", "lovely", "film", ".")
    assert data.labels[data.examples[1].label] == "3"
    assert data.examples[1].facts["tree"] == LINE
    assert [t.words for t in read_trees(tmp_path)] == [e.input.words for e in data]


def test_wrong_trees_are_told_by_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(f"{LINE}\n(1 (1 bad) (2 film)\n")
    with pytest.raises(DataError, match="line 2: expected as many closing brackets"):
        read_trees(file)
    with pytest.raises(DataError, match="line 2: expected as many closing brackets"):
        load_data(file)
    beside = tmp_path / "mine.jsonl"
    beside.write_text('{"text": "bad films", "label": "1", "tree": "(1 (1 bad) (2 film))"}\n')
    with pytest.raises(DataError, match="line 1: expected a tree over the words of the text"):
        load_data(beside)
    with pytest.raises(DataError, match="to be a file of trees in brackets"):
        read_trees(tmp_path / "none.txt")


@needs_sst
def test_the_treebank_is_read_and_fits_its_binary_split() -> None:
    data = load_data(SHARED / "sst")
    parts = split(data)
    assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [8544, 1101, 2210]
    trees: dict[str, Tree] = {}
    for tree in read_trees(SHARED / "sst" / "sst5.trees.dev.txt.gz"):
        check_whole(tree)
        trees |= dict.fromkeys(tree.spellings, tree)
    lines = (SHARED / "sst" / "sst2.dev.tsv").read_text().splitlines()[1:]
    for line in lines:
        text = read_text(line.split("\t")[1])
        check_whole(fitted := trees["".join(text.text.split()).lower()].fitted(text))
        assert fitted.words == text.words
    assert len(lines) == 872


def test_a_text_without_words_has_no_tree() -> None:
    with pytest.raises(DataError, match="expected words to make a tree of"):
        balanced([])
    with pytest.raises(DataError, match="expected a text with words"):
        read_tree("(2 !)").fitted(Text("!", ()))
