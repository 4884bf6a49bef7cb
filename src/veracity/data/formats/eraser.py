"""Documents with spans of evidence (DeYoung et al. 2020)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.examples import Dataset
from ...core.inputs import BoolArray, Span
from ..fields import as_list, as_number
from ..format import Format, Values, turned
from ..readers import RawRow, RawTable

LENGTHS = "sentence_lengths"


@dataclass(frozen=True)
class Eraser(Format):
    """ERASER: `tokens`, `evidence` as [start, end) places of words, or the published folder."""

    sets: Literal["joined", "spans"] = "joined"
    """One rationale of all spans, as that benchmark scores, or each span, and where spans come in
    groups each group, as one that suffices."""

    fields: ClassVar[frozenset[str]] = frozenset({"tokens", "evidence"})

    def records(self, table: RawTable) -> Iterator[RawRow]:
        return turned(table, self._record)

    def _record(self, values: Values) -> Values:
        n = len(as_list(values.get("tokens"), "tokens"))
        lengths = as_list(values.pop(LENGTHS, None), LENGTHS)
        if lengths and (not all(map(_whole, lengths)) or sum(lengths) != n):
            raise ValueError(
                f"expected sentence_lengths to be whole numbers that add up to the {n} tokens, "
                f"got {lengths}"
            )
        groups = [_spans(one, n) for one in as_list(values.pop("evidence", None), "evidence")]
        if self.sets == "joined" and groups:
            groups = [[span for spans in groups for span in spans]]
        sets = [sorted({i for a, b in spans for i in range(a, b)}) for spans in groups]
        facts = {LENGTHS: json.dumps(lengths)} if lengths else {}
        if query := values.pop("query", None):
            facts["query"] = query
        return {**values, "rationales": sets, "facts": facts}

    def rows(self, dataset: Dataset) -> Iterator[Values]:
        for e in dataset:
            sets = e.truths.get("rationale", ())
            yield {
                "id": e.id,
                "label": as_number(dataset.labels[e.label]),
                "tokens": list(e.input.words),
                LENGTHS: json.loads(e.facts.get(LENGTHS, f"[{e.input.n_features}]")),
                "evidence": [list(span) for mask in sets for span in _runs(mask)],
                **({"query": e.facts["query"]} if "query" in e.facts else {}),
            }


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _spans(value: Any, n: int) -> list[Span]:
    """One span, or a group of several."""
    grouped = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return [_span(one, n) for one in value] if grouped else [_span(value, n)]


def _span(value: Any, n: int) -> Span:
    if not isinstance(value, list) or len(value) != 2 or not all(map(_whole, value)):
        raise ValueError(f"expected evidence to be [start, end) places of words, got {value!r}")
    start, end = value
    if not start < end <= n:
        raise ValueError(
            f"the evidence [{start}, {end}) is out of range or empty: the text has {n} words"
        )
    return start, end


def _runs(mask: BoolArray) -> list[Span]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
