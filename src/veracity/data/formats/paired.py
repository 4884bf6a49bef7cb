"""Reviews and what people rewrote them to, so that the label flips (Kaushik et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..format import Format
from ..readers import RawRow, RawTable

_ROLES = ("original", "revised")


@dataclass(frozen=True)
class Paired(Format):
    """Counterfactual pairs: `Sentiment`, `Text`, `batch_id`; of a pair the original is first."""

    fields: ClassVar[frozenset[str]] = frozenset({"Sentiment", "Text", "batch_id"})

    def records(self, table: RawTable) -> Iterator[RawRow]:
        first: dict[str, RawRow] = {}
        seen: dict[str, int] = {}
        for row in table.rows:
            given = row.values.get("batch_id")
            name = "" if given is None else str(given)
            if row.fault or not name:
                yield RawRow(row.line, {}, row.fault or "expected a batch_id that names the pair")
                continue
            place = seen[name] = seen.get(name, 0) + 1
            original = first.setdefault(name, row)
            if place > len(_ROLES):
                message = f"expected two rows of pair {name!r}; two stand above, from line "
                yield RawRow(row.line, {}, f"{message}{original.line}")
                continue
            text = row.values.get("Text")
            if place == len(_ROLES) and text == original.values.get("Text"):
                # the published files hold some
                message = f"the same text as its original on line {original.line}: left out"
                yield RawRow(row.line, {}, message, "warning")
                continue
            yield RawRow(
                row.line,
                {
                    "id": f"{name}-{_ROLES[place - 1]}",
                    "text": text.replace("<br />", "\n") if isinstance(text, str) else text,
                    "label": row.values.get("Sentiment"),
                    "sample_type": "ori" if place == 1 else "adv",
                    "partner": None if place == 1 else f"{name}-{_ROLES[0]}",
                },
            )
