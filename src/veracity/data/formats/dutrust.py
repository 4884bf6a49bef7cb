"""Sentences with reference words, twins and alternative rationales, as PaddleNLP gives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.errors import DataError
from ...core.examples import UNLABELLED, Dataset
from ..fields import as_list, as_number
from ..format import Format, Values, turned
from ..readers import RawRow, RawTable
from ..records import twins_of

_NAMES = {"id": ("id", "sent_id"), "label": ("label", "sent_label"), "text": ("context",)}
_KINDS = {"disturb": "adv"}


@dataclass(frozen=True)
class Dutrust(Format):
    """DuTrust: `context`, `sent_token`, `sample_type` ori or disturb, `rel_ids`, `rationales`."""

    fields: ClassVar[frozenset[str]] = frozenset({"context", "sent_token"})

    def records(self, table: RawTable) -> Iterator[RawRow]:
        nameless = not any(name in table.columns for name in _NAMES["label"])
        return turned(table, lambda values: _record(values, nameless), _NAMES["id"])

    def rows(self, dataset: Dataset) -> Iterator[Values]:
        twins = twins_of(dataset)
        ids = {e.id for e in dataset}
        for e in dataset:
            if e.partner is None and e.id not in twins:
                kind = e.facts.get("sample_type", "ori")
            else:
                kind = "ori" if e.partner is None else "adv"
            if kind == "adv" and e.partner not in ids:
                raise DataError(
                    f"{e.id}: expected its original {e.partner!r} in the same data; this format "
                    "names twins on their originals only"
                )
            row: Values = {"id": as_number(e.id), "context": e.input.text}
            row["sent_token"] = list(e.input.words)
            if dataset.labelled:
                row["sent_label"] = as_number(dataset.labels[e.label])
            row["sample_type"] = "ori" if kind == "ori" else "disturb"
            if kind == "ori":
                row["rel_ids"] = [as_number(name) for name in twins.get(e.id, ())]
            if "rationale" in e.truths:
                row["rationales"] = [np.flatnonzero(m).tolist() for m in e.truths["rationale"]]
            yield row


def _record(values: Values, nameless: bool) -> Values:
    found = {
        ours: next((values[name] for name in theirs if name in values), None)
        for ours, theirs in _NAMES.items()
    }
    sets = as_list(values.get("rationales"), "rationales")
    kind = values.get("sample_type")
    return {
        **{name: value for name, value in values.items() if name not in ("context", "sent_token")},
        **found,
        "label": UNLABELLED if nameless else found["label"],
        "tokens": values.get("sent_token"),
        "sample_type": _KINDS.get(kind, kind) if isinstance(kind, str) else kind,
        # some releases hold the places as text, and not in order
        "rationales": [sorted(map(_place, as_list(one, "a rationale set"))) for one in sets],
    }


def _place(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f"expected a rationale to hold places of words, got {value!r}")
    return int(value)
