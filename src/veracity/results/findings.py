"""What an experiment found, beside what its paper printed: tables, claims and figures as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..core.files import read_json, reading, write_json
from ..core.schema import from_json
from .claims import Claim as Claim
from .claims import ClaimVerdict, Comparison
from .statistics import mean_intervals

FILE = "findings.json"

Published = float | Sequence[float] | None
"""What a paper prints: a figure, or a figure and its standard deviation."""


@dataclass(frozen=True)
class Cell:
    """One figure: ours with its spread or interval, and the published one where there is one."""

    value: float
    spread: float | None = None
    """Standard deviation over runs."""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    published: float | None = None
    published_spread: float | None = None
    marked: bool = False
    """Worth a look: the best of its column, or one that does not count."""

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        *,
        published: Published = None,
        within: tuple[float, float] = (-np.inf, np.inf),
    ) -> Cell:
        """Mean, standard deviation over runs and, of three or more, the interval of the mean as
        far as it lies within what is possible."""
        known = np.array([v for v in values if not np.isnan(v)], dtype=np.float64)
        mean = float(known.mean()) if len(known) else float("nan")
        spread = float(known.std(ddof=1)) if len(known) > 1 else None
        low = high = None
        if len(known) > 2:
            low, high = (float(end) for end in np.clip(mean_intervals(known[:, None])[0], *within))
        return cls(mean, spread, low, high, len(known), *_printed(published))

    @classmethod
    def at(
        cls, interval: Sequence[float], *, n: int | None = None, published: Published = None
    ) -> Cell:
        """A figure and the ends of its interval."""
        value, low, high = interval
        return cls(value, None, low, high, n, *_printed(published))


def _printed(published: Published) -> tuple[float | None, float | None]:
    if not isinstance(published, Sequence):
        return published, None
    mean, spread = (*published, None)[:2]
    return mean, spread


Value = Cell | str | None


@dataclass(frozen=True)
class Table:
    """Rows of figures under one heading."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Value, ...]], ...]
    unit: Literal["", "%"] = ""

    @property
    def worded(self) -> tuple[bool, ...]:
        """Which columns hold words and no figure: the names of rows, and others."""
        columns = ([cells[i] for _, cells in self.rows] for i in range(len(self.columns) - 1))
        kinds = ({type(cell) for cell in column if cell is not None} for column in columns)
        return (True, *(kind == {str} for kind in kinds))


@dataclass(frozen=True)
class Points:
    """A named series of points, drawn as dots, a line, both, or bars."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    line: bool = False
    dashed: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    bars: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        points: Iterable[tuple[float, float]],
        *,
        line: bool = False,
        dashed: bool = False,
    ) -> Points:
        """From pairs of x and y."""
        known = list(points)
        return cls(name, tuple(x for x, _ in known), tuple(y for _, y in known), line, dashed)

    @classmethod
    def level(cls, name: str, ends: tuple[float, float], y: float) -> Points:
        """A dashed line at one height."""
        return cls.of(name, [(x, y) for x in ends], line=True, dashed=True)


@dataclass(frozen=True)
class Figure:
    """A plot as data: the page draws it."""

    title: str
    about: str
    x: str
    y: str
    series: tuple[Points, ...]
    names: tuple[str, ...] = ()
    """What stands at 0, 1, 2 … on the x axis, where that is no number."""


@dataclass(frozen=True)
class Word:
    """A word of a shown text: its height and what it is."""

    word: str
    value: float
    kind: str = ""


@dataclass(frozen=True)
class ShownText:
    """A text with a bar for each of its words."""

    title: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class ShownPanel:
    """A picture as PNG in base64, and what it shows."""

    name: str
    png: str


@dataclass(frozen=True)
class ShownPictures:
    """Pictures side by side."""

    title: str
    about: str
    panels: tuple[ShownPanel, ...]


@dataclass(frozen=True)
class Findings:
    """All that a page needs."""

    recipe: str
    title: str
    lead: str
    config: Mapping[str, Any]
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    texts: tuple[ShownText, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: tuple[ShownPictures, ...] = ()

    @property
    def statements(self) -> dict[str, list[Claim]]:
        """Each sentence of the paper once, with every look at it."""
        found: dict[str, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.statement, []).append(claim)
        return found

    @property
    def verdicts(self) -> dict[ClaimVerdict, int]:
        """How many looks ended how, those with an answer first."""
        counts = Counter(claim.verdict for claim in self.claims)
        return {v: counts[v] for v in get_args(ClaimVerdict) if counts[v]}

    def write(self, folder: Path) -> Path:
        """The findings as JSON, all of them or none."""
        content = {"asked" if k == "config" else k: v for k, v in asdict(self).items()}
        return write_json(folder / FILE, content)

    @staticmethod
    def are_here(folder: Path) -> bool:
        """Whether an experiment left its findings in this folder."""
        return (folder / FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> Findings:
        """The findings that `write` left in a folder."""
        path = folder / FILE
        missing = f"{folder} holds no {FILE}: the experiment is not finished"
        with reading(path, missing=missing, remedy="Run the recipe again"):
            content = read_json(path)
            for claim in content["claims"]:  # earlier versions had another word for it
                claim["verdict"] = claim["verdict"].replace("not confirmed", "refuted")
            content["config"] = content.pop("asked")
            found: Findings = from_json(cls, content)
        claims = (
            replace(claim, comparisons=tuple(map(_unbounded, claim.comparisons)))
            for claim in found.claims
        )
        return replace(found, claims=tuple(claims))


def _unbounded(look: Comparison) -> Comparison:
    """Without a bound where none is kept: JSON has no infinity."""
    least = -math.inf if math.isnan(look.least) else look.least
    return replace(look, least=least, most=math.inf if math.isnan(look.most) else look.most)
