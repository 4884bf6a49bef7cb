"""Tables, figures and claims as a recipe's TOML file declares them; code gives the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np

from .claims import Claim, Comparison
from .findings import Cell, Figure, Points, Table, Value

Rows = Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Declarations:
    """The words and published figures of a paper, by name; `{facts}` in them are filled in."""

    content: Mapping[str, Any]

    @property
    def published(self) -> Any:
        """What the paper prints."""
        return self.content.get("published", {})

    def table(
        self, name: str, rows: Rows, *, columns: Iterable[str] | None = None, **facts: Any
    ) -> Table:
        """`columns` are keys of the rows' cells, by default as declared or as they are met; one in
        which no row has anything is left out."""
        declared = self.content["tables"][name]
        titles: Mapping[str, str] = declared.get("columns", {})
        met = dict.fromkeys(key for cells in rows.values() for key in cells)
        keys = [
            key
            for key in columns or titles or met
            if any(cells.get(key) is not None for cells in rows.values())
        ]
        return Table(
            _filled(declared["title"], facts),
            _filled(declared["about"], facts),
            (declared["rows"], *(titles.get(key, key) for key in keys)),
            tuple((row, tuple(cells.get(key) for key in keys)) for row, cells in rows.items()),
            declared.get("unit", ""),
        )

    def figure(
        self, name: str, series: Iterable[Points], *, names: Sequence[str] = (), **facts: Any
    ) -> Figure:
        """Points and lines; `names` stand on the x axis where that has no numbers."""
        title, about, x, y = (
            _filled(self.content["figures"][name][part], facts)
            for part in ("title", "about", "x", "y")
        )
        return Figure(title, about, x, y, tuple(series), tuple(names))

    def claim(
        self,
        name: str,
        comparisons: Iterable[Comparison],
        *,
        where: str = "",
        some: bool = False,
        **facts: Any,
    ) -> Claim:
        """The paper's sentence, decided by the one rule, with a remark of ours."""
        declared = self.content["claims"][name]
        return Claim.of(
            _filled(declared["statement"], facts),
            comparisons,
            remark=_filled(declared.get("seen", ""), facts),
            where=where,
            some=some,
        )

    def note(self, name: str, **facts: Any) -> str:
        """How something was done."""
        return _filled(self.content["notes"][name], facts)


class _Typeset(Formatter):
    """Numbers in sentences with the minus sign that they have in tables, not a hyphen."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        found = super().format_field(value, format_spec)
        return found.replace("-", "−") if isinstance(value, int | float | np.number) else found


def _filled(said: str, facts: Mapping[str, Any]) -> str:
    return _Typeset().vformat(said, (), facts)


def beside(
    series: Mapping[str, Mapping[str, Cell]],
    names: Sequence[str],
    *,
    gap: float = 0.25,
    bars: bool = False,
) -> list[Points]:
    """A point or bar with its interval for each name and series, those of one name side by side."""
    points = []
    for place, (title, cells) in enumerate(series.items()):
        offset = gap * (place - (len(series) - 1) / 2)
        kept = {i: cells[name] for i, name in enumerate(names) if name in cells}
        x = tuple(i + offset for i in kept)
        y = tuple(cell.value for cell in kept.values())
        low = tuple(c.value if c.low is None else c.low for c in kept.values())
        high = tuple(c.value if c.high is None else c.high for c in kept.values())
        points.append(Points(title, x, y, low=low, high=high, bars=bars))
    return points
