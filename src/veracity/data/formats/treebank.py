"""Sentences as trees in brackets, such as those of the Stanford treebank (Socher et al. 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...core.errors import DataError
from ...core.inputs import Text
from ..format import Format, Values, turned
from ..readers import RawRow, RawTable
from ..treebanks import COLUMN
from ..trees import read_tree


@dataclass(frozen=True)
class Treebank(Format):
    """Trees in brackets with a label at every node: a text has that of its root. Beside a `text`
    of its own a tree must fit it."""

    fields: ClassVar[frozenset[str]] = frozenset({COLUMN})

    def recognises(self, table: RawTable) -> bool:
        trees = (row.values.get(COLUMN) for row in table.rows if not row.fault)
        return super().recognises(table) and str(next(trees, "")).lstrip().startswith("(")

    def records(self, table: RawTable) -> Iterator[RawRow]:
        return turned(table, _record)


def _record(row: Values) -> Values:
    """The words of a text that is given apart from its tree are found as those of any other."""
    line = row.pop(COLUMN)
    try:
        tree = read_tree(line if isinstance(line, str) else "")
        given = row.get("text")
        if isinstance(given, str):
            tree.check(Text(given, ()))
    except DataError as error:
        raise ValueError(str(error)) from None
    label = tree.nodes[0].label
    known = {} if "text" in row else {"text": " ".join(tree.words), "tokens": list(tree.words)}
    known |= {} if label is None else {"label": str(label)}
    facts = row.get("facts")
    own = facts if isinstance(facts, dict) else {}
    return {**known, **row, "facts": {**own, COLUMN: line}}
