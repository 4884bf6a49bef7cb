"""Trees for texts: from a treebank, the packaged parser, or by rule."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from conftest import SHARED
from test_trees import LINE, check_whole, needs_sst
from veracity.core.errors import DataError, MissingExtra
from veracity.core.inputs import Text
from veracity.data import parsing
from veracity.data.parsing import Parser
from veracity.data.treebanks import read_trees
from veracity.data.trees import balanced, bracket_f1, read_tree, right_branching
from veracity.data.words import read_text


def test_a_text_is_parsed_over_its_own_words() -> None:
    parser = Parser()
    text = read_text("The film isn't bad, but its ending disappoints me.")
    tree = parser.tree(text)
    check_whole(tree)
    assert tree.words == text.words
    words = {" ".join(text.words[start:end]) for start, end in tree.spans}
    assert {"The film", "its ending"} <= words
    assert parser.tree(text) is tree
    # a copy, for another process, remembers nothing and says the same
    assert pickle.loads(pickle.dumps(parser)) == parser
    # each text alone: no neighbour matters
    assert Parser().tree(text) == tree


@pytest.mark.parametrize(
    "text",
    ["good", "¡", "a  b", "⁇ film", "no. yes. maybe!", "it's it's it's", "1/2-way \xa0 x", "😀 ok"],
)
def test_any_text_has_a_tree(text: str) -> None:
    read = read_text(text)
    tree = Parser().tree(read)
    check_whole(tree)
    assert tree.words == read.words


def test_words_that_cannot_be_seen_branch_to_the_right() -> None:
    hidden = Text("  ", ((0, 0), (1, 1), (2, 2)))
    assert Parser().tree(hidden) == right_branching(["", "", ""])


def test_sources_are_asked_in_turn(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(LINE)
    parser = Parser((str(file), "balanced"))
    known, other = Text.of_words(read_tree(LINE).words), read_text("one two three four")
    assert parser.tree(known).spans == {(0, 6), (1, 6), (1, 5), (2, 5), (3, 5)}
    assert parser.tree(other) == balanced(other.words)
    assert Parser(("right",)).tree(other) == right_branching(other.words)
    with pytest.raises(DataError, match=r"none for 'one two three four'\. Add a source"):
        Parser((str(file),)).tree(other)
    with pytest.raises(DataError, match="there is no file 'spcay'"):
        Parser(("spcay",)).tree(other)
    with pytest.raises(ValueError, match="expected a source of trees"):
        Parser(())


def test_a_missing_parser_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    parsing._pipeline.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'veracity\[trees\]'"):
        Parser().tree(read_text("a film"))


@needs_sst
def test_parsed_trees_are_nearer_to_gold_than_rules() -> None:
    gold = read_trees(SHARED / "sst" / "sst5.trees.dev.txt.gz")[:120]
    texts = [Text.of_words(tree.words) for tree in gold]
    parser = Parser()
    parsed = bracket_f1([parser.tree(text) for text in texts], gold)
    rules = [
        bracket_f1([rule(t.words) for t in texts], gold) for rule in (balanced, right_branching)
    ]
    assert parsed > 0.5 > 0.3 > max(rules)
