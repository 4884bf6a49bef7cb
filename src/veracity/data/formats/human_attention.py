"""Reviews whose words several people marked, one row per person (Sen et al. 2020)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..fields import as_list
from ..format import Format, Values
from ..readers import RawRow, RawTable

ANSWERS = {"yes": "1", "no": "0"}
"""What people were asked is whether a review is positive."""

_TAG = re.compile(r"<[^<>]+>")


@dataclass(frozen=True)
class HumanAttention(Format):
    """Human attention maps: one rationale set per person, and each person's answer as a fact."""

    people: Literal["all", "right"] = "all"
    """Whose words count: everybody's, or those of people who gave the review its label."""

    fields: ClassVar[frozenset[str]] = frozenset({"text_id", "tokens", "mask", "annotator_label"})

    def records(self, table: RawTable) -> Iterator[RawRow]:
        reviews: dict[str, list[tuple[RawRow, Values]]] = defaultdict(list)
        for row in table.rows:
            try:
                person = _person(row)
                reviews[person["id"]].append((row, person))
            except ValueError as error:
                yield RawRow(row.line, {}, str(error))
        for people in reviews.values():
            yield from self._review(people)

    def _review(self, people: list[tuple[RawRow, Values]]) -> Iterator[RawRow]:
        """One record on the line of its first person; who read another text is left out."""
        first_row, first = people[0]
        agreed = []
        for row, person in people:
            odd = [key for key in ("tokens", "label") if person[key] != first[key]]
            if odd:
                message = f"expected the {odd[0]} of line {first_row.line}, the same review"
                yield RawRow(row.line, {}, message)
            else:
                agreed.append(person)
        facts = {"annotators": str(len(agreed)), "part": first["part"]}
        counted = [p for p in agreed if p["marked"]]
        if self.people == "right":
            counted = [p for p in counted if ANSWERS.get(p["answer"]) == str(first["label"])]
        for number, person in enumerate(counted, 1):
            facts[f"annotator_{number}"] = person["answer"] or None
        yield RawRow(
            first_row.line,
            {
                **{key: first[key] for key in ("id", "text", "label", "tokens")},
                "rationales": [p["marked"] for p in counted],
                "facts": facts,
            },
        )


def _person(row: RawRow) -> Values:
    if row.fault:
        raise ValueError(row.fault)
    name = row.values.get("text_id")
    if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
        raise ValueError(f"expected text_id to name the review, got {name!r}")
    tokens = as_list(row.values.get("tokens"), "tokens")
    mask = as_list(row.values.get("mask"), "mask")
    if len(mask) != len(tokens) or any(type(m) is not int or m not in (0, 1) for m in mask):
        raise ValueError(
            f"expected the mask to hold 0 or 1 for each of {len(tokens)} tokens, got {len(mask)} "
            "values"
        )
    return {
        "id": str(name),
        "text": row.values.get("text"),
        "label": row.values.get("label"),
        "part": row.values.get("part"),
        "tokens": [_plain(token) for token in tokens],
        "marked": [i for i, marked in enumerate(mask) if marked],
        "answer": row.values.get("annotator_label"),
    }


def _plain(token: Any) -> Any:
    """A highlighter in some people's browsers left its tags in the words."""
    return _TAG.sub("", token) or token if isinstance(token, str) else token
