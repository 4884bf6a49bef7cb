"""Binary trees over the words of a text: read from brackets, made of heads or by rule, and brought
from one way of cutting a text into words to another (definitions 1.10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias, TypeVar

from ..core.errors import DataError
from ..core.inputs import Span, Text
from ..core.limits import DEPTH

_ESCAPED = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""How treebanks write signs that would be taken for brackets, and quotation marks."""

Split: TypeAlias = Callable[[int, int], int]
"""Where the second part of the words from one to another begins."""


@dataclass(frozen=True, slots=True)
class Node:
    """The words from `start` to before `end`; two parts, or none if it is a single word."""

    start: int
    end: int
    parts: tuple[int, int] | None = None
    """Where the nodes of its two halves stand in the tree."""
    label: int | None = None


@dataclass(frozen=True)
class Tree:
    """Words, and nodes of which each stands before its parts: the root comes first."""

    words: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def phrases(self) -> tuple[int, ...]:
        """The places of nodes of more than one word; of a single word, its own."""
        return tuple(i for i, n in enumerate(self.nodes) if n.parts) or (0,)

    @property
    def spans(self) -> frozenset[Span]:
        """Which words make up phrases."""
        return frozenset((n.start, n.end) for n in self.nodes if n.parts)

    def smallest(self) -> tuple[int, ...]:
        """By word, the place of the smallest phrase that holds it."""
        found = [0] * len(self.words)
        for i in self.phrases:  # inner ones come later
            node = self.nodes[i]
            found[node.start : node.end] = [i] * (node.end - node.start)
        return tuple(found)

    def keep(self, shown: Sequence[bool]) -> Tree | None:
        """The tree of some of the words: nodes with nothing in one half are the other half."""
        if len(shown) != len(self.words):
            raise ValueError(f"expected one flag per word ({len(self.words)}), got {len(shown)}")
        return self._regrown([[w] if s else [] for w, s in zip(self.words, shown, strict=True)])

    def fitted(self, text: Text) -> Tree:
        """This tree over the words of a text that it spells. A word of several leaves goes where
        its first letter is; several words of one leaf branch to the right."""
        found = self._regrown(_dealt(self.check(text), text))
        if found is None:
            raise DataError(f"expected a text with words to fit a tree to, got {text.text!r:.60}")
        return found

    def check(self, text: Text) -> tuple[str, ...]:
        """The leaves as they stand in a text that this is the tree of."""
        leaves = self.spellings.get(spelling(text.text))
        if leaves is None:
            raise DataError(
                f"expected a tree over the words of the text, {text.text!r:.60}; its leaves spell "
                f"{' '.join(self.words)!r:.60}"
            )
        return leaves

    @property
    def spellings(self) -> dict[str, tuple[str, ...]]:
        """How a text may be spelt whose tree this is, and the leaves that spell it so."""
        written = tuple(_ESCAPED.get(w, w).replace("\\/", "/") for w in self.words)
        return {spelling("".join(leaves)): leaves for leaves in (written, self.words)}

    def _regrown(self, leaves: Sequence[Sequence[str]]) -> Tree | None:
        """The same tree where each leaf holds so many words."""
        before = [0, *accumulate(map(len, leaves))]
        at = [(before[n.start], before[n.end]) for n in self.nodes]

        def opened(item: tuple[int, Span]) -> tuple[Node, list[tuple[int, Span]]]:
            i, (start, end) = item
            label = self.nodes[i].label if item[1] == at[i] else None
            halves = [i]
            while len(halves) == 1 and self.nodes[halves[0]].parts:
                parts = self.nodes[halves[0]].parts or ()
                halves = [p for p in parts if at[p][0] < at[p][1]]
            if len(halves) == 2:
                inside = [(p, at[p]) for p in halves]
            elif end - start > 1:  # a leaf of several words
                inside = [(halves[0], (start, start + 1)), (halves[0], (start + 1, end))]
            else:
                inside = []
            return Node(start, end, None, label), inside

        words = tuple(word for some in leaves for word in some)
        return _grown(words, (0, at[0]), opened) if words else None


def spelling(text: str) -> str:
    """The signs of a text without spaces and capitals: by this, texts and trees know each other."""
    return re.sub(r"\s+", "", text).lower()


def _dealt(leaves: Sequence[str], text: Text) -> list[list[str]]:
    """By leaf, the words of the text that begin in it."""
    behind = list(accumulate(len(re.sub(r"\s+", "", leaf)) for leaf in leaves))
    found: list[list[str]] = [[] for _ in leaves]
    place = position = leaf = 0
    for word, (start, _) in zip(text.words, text.spans, strict=True):
        place += sum(not c.isspace() for c in text.text[position:start])
        position = start
        while leaf < len(leaves) - 1 and behind[leaf] <= place:
            leaf += 1
        found[leaf].append(word)
    return found


# ---- by rule ----------------------------------------------------------------------------------


Item = TypeVar("Item")


def _grown(
    words: Sequence[str], root: Item, opened: Callable[[Item], tuple[Node, Sequence[Item]]]
) -> Tree:
    """The tree whose nodes and their halves come of opening one after the other."""
    nodes: list[Node] = []
    links: list[list[int]] = []
    waiting: list[tuple[Item, int]] = [(root, -1)]
    while waiting:
        item, parent = waiting.pop()
        node, halves = opened(item)
        if parent >= 0:
            links[parent].append(len(nodes))
        waiting += [(half, len(nodes)) for half in reversed(halves)]
        nodes.append(node)
        links.append([])
    linked = (
        replace(n, parts=(two[0], two[1])) if two else n
        for n, two in zip(nodes, links, strict=True)
    )
    return Tree(tuple(words), tuple(linked))


def cut(words: Sequence[str], split: Split) -> Tree:
    """The tree that comes of cutting the words in two again and again."""
    if not words:
        raise DataError("expected words to make a tree of, got none")

    def opened(span: Span) -> tuple[Node, Sequence[Span]]:
        start, end = span
        middle = split(start, end) if end - start > 1 else end
        return Node(start, end), ((start, middle), (middle, end)) if middle < end else ()

    return _grown(words, (0, len(words)), opened)


def balanced(words: Sequence[str]) -> Tree:
    """Halves of halves."""
    return cut(words, lambda start, end: (start + end) // 2)


def right_branching(words: Sequence[str]) -> Tree:
    """Each word beside all that follow."""
    return cut(words, lambda start, end: start + 1)


def of_heads(words: Sequence[str], heads: Sequence[int]) -> Tree:
    """The tree of a dependency parse: of all that depends on a word, what stands before it is cut
    off first, from the outside, then what stands behind it. A root is its own head; several
    sentences branch to the right."""
    above = _above(heads)

    def split(start: int, end: int) -> int:
        sentence = above[start][-1]
        if above[end - 1][-1] != sentence:
            return next(i for i in range(start, end) if above[i][-1] != sentence)
        top = min(range(start, end), key=lambda i: len(above[i]))

        def branch(i: int) -> int:
            while start <= heads[i] < end and heads[i] not in (i, top):
                i = heads[i]
            return i

        if top > start:
            first = branch(start)
            return next((i for i in range(start + 1, top) if branch(i) != first), top)
        last = branch(end - 1)
        other = (i for i in range(end - 2, start, -1) if branch(i) != last)
        return next(other, start) + 1

    return cut(words, split)


def _above(heads: Sequence[int]) -> list[list[int]]:
    """Each word and all above it, up to the root."""
    found = []
    for i in range(len(heads)):
        path = [i]
        while heads[path[-1]] != path[-1]:
            path.append(heads[path[-1]])
            if len(path) > len(heads) or not 0 <= path[-1] < len(heads):
                raise DataError(f"expected heads that lead to a root, got {list(heads)[:20]}")
        found.append(path)
    return found


# ---- brackets ---------------------------------------------------------------------------------


def read_tree(line: str) -> Tree:
    """A tree in brackets, such as `(3 (2 good) (2 film))`: a name, then a word or parts. Numbers
    are labels, other names say nothing; more than two parts branch to the right, single ones are
    what they hold. What is wrong is a DataError."""
    tokens = re.findall(r"[()]|[^ \t\r\n()]+", line)  # a word may hold a hard space
    if tokens.count("(") != tokens.count(")"):
        raise DataError(
            f"expected as many closing brackets as opening ones, got {tokens.count('(')} and "
            f"{tokens.count(')')} in {line.strip()!r:.60}"
        )
    found: list[_Part] = []
    words: list[str] = []
    open_nodes: list[list[_Part | str]] = []
    for token in tokens:
        if token == "(":
            if found:
                raise DataError(f"expected one tree in a line, got more in {line.strip()!r:.60}")
            open_nodes.append([])
            if len(open_nodes) > DEPTH.value:
                raise DataError(f"{line.strip()!r:.40}: {DEPTH.exceeded()}")
        elif not open_nodes:
            raise DataError(f"expected a tree in brackets, got {line.strip()!r:.60}")
        elif token == ")":
            part = _closed(open_nodes.pop(), words, line)
            (open_nodes[-1] if open_nodes else found).append(part)
        else:
            open_nodes[-1].append(token)
    if not found:
        raise DataError(f"expected a tree in brackets, got {line.strip()!r:.60}")
    return _grown(words, found[0], lambda part: (part.node, part.halves))


@dataclass(frozen=True)
class _Part:
    """A node while its brackets are read."""

    node: Node
    halves: tuple[_Part, ...] = ()


def _closed(inside: list[_Part | str], words: list[str], line: str) -> _Part:
    name, content = "", inside
    if inside and isinstance(inside[0], str):
        name, content = inside[0], inside[1:]
    label = int(name) if re.fullmatch("[0-9]{1,3}", name) else None
    if len(content) == 1 and isinstance(content[0], str):
        words.append(content[0])
        return _Part(Node(len(words) - 1, len(words), None, label))
    parts = [part for part in content if isinstance(part, _Part)]
    if not parts or len(parts) < len(content):
        raise DataError(
            "expected in every pair of brackets a name and a word, or a name and parts in "
            f"brackets, got something else in {line.strip()!r:.60}"
        )
    if len(parts) == 1:
        (only,) = parts
        return only if label is None else replace(only, node=replace(only.node, label=label))
    rest = parts.pop()
    for part in reversed(parts[1:]):
        rest = _Part(Node(part.node.start, rest.node.end), (part, rest))
    return _Part(Node(parts[0].node.start, rest.node.end, None, label), (parts[0], rest))


# ---- comparing --------------------------------------------------------------------------------


def bracket_f1(found: Sequence[Tree], gold: Sequence[Tree]) -> float:
    """How far the phrases of some trees are those of others over the same words: the harmonic mean
    of precision and recall over all phrases but whole texts, which every tree has."""
    shared = ours = theirs = 0
    for one, other in zip(found, gold, strict=True):
        if len(one.words) != len(other.words):
            raise DataError(
                f"expected trees over the same words, got {len(one.words)} and {len(other.words)}"
            )
        whole = {(0, len(one.words))}
        a, b = one.spans - whole, other.spans - whole
        shared, ours, theirs = shared + len(a & b), ours + len(a), theirs + len(b)
    return 2 * shared / (ours + theirs) if ours + theirs else 1.0
