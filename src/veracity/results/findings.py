"""What an experiment found, beside what its paper printed: tables, claims and figures as data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..core.errors import RunError
from ..core.files import read_json, written_whole
from .statistics import mean_intervals

FILE = "findings.json"

Verdict = Literal["confirmed", "not confirmed", "open"]


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
        published: float | None = None,
        published_spread: float | None = None,
        within: tuple[float, float] = (-np.inf, np.inf),
    ) -> Cell:
        """Mean, standard deviation over runs and, of three or more, the interval of the mean as
        far as it lies within what is possible."""
        known = np.array([v for v in values if not np.isnan(v)], dtype=np.float64)
        if not len(known):
            return cls(float("nan"), n=0, published=published, published_spread=published_spread)
        mean = float(known.mean())
        if len(known) < 2:
            return cls(mean, n=1, published=published, published_spread=published_spread)
        spread = float(known.std(ddof=1))
        if len(known) < 3:
            return cls(mean, spread, None, None, len(known), published, published_spread)
        low, high = (float(end) for end in np.clip(mean_intervals(known[:, None])[0], *within))
        return cls(mean, spread, low, high, len(known), published, published_spread)


@dataclass(frozen=True)
class Table:
    """Rows of figures under one heading."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | str | None, ...]], ...]
    unit: Literal["", "%"] = ""

    @property
    def worded(self) -> tuple[bool, ...]:
        """Which columns hold words and no figure: the names of rows, and others."""
        columns = ([cells[i] for _, cells in self.rows] for i in range(len(self.columns) - 1))
        kinds = ({type(cell) for cell in column if cell is not None} for column in columns)
        return (True, *(kind == {str} for kind in kinds))


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what we saw of it."""

    statement: str
    verdict: Verdict
    seen: str
    where: str = ""
    """On which texts or with which model, where one sentence was looked at more than once."""


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
class Findings:
    """All that a page needs."""

    recipe: str
    title: str
    lead: str
    asked: Mapping[str, Any]
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    texts: tuple[ShownText, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def statements(self) -> dict[str, list[Claim]]:
        """Each sentence of the paper once, with every look at it."""
        found: dict[str, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.statement, []).append(claim)
        return found

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many looks ended how, those with an answer first."""
        counts = Counter(claim.verdict for claim in self.claims)
        return {v: counts[v] for v in get_args(Verdict) if counts[v]}

    def write(self, folder: Path) -> Path:
        """The findings as JSON, all of them or none."""
        path = folder / FILE
        with written_whole(path) as file:
            file.write(json.dumps(_plain(asdict(self)), indent=1, ensure_ascii=False).encode())
        return path

    @staticmethod
    def are_here(folder: Path) -> bool:
        """Whether an experiment left its findings in this folder."""
        return (folder / FILE).exists()

    @classmethod
    def read(cls, folder: Path) -> Findings:
        """The findings that `write` left in a folder."""
        try:
            content = read_json(folder / FILE)
            return _findings(content)
        except FileNotFoundError:
            raise RunError(f"{folder} holds no {FILE}: the experiment is not finished") from None
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{folder / FILE} is damaged ({error}). Run the recipe again") from None


def _plain(value: Any) -> Any:
    """JSON knows no NaN: a figure that is not defined is null."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _numbers(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(map(_number, values))


def _cell(value: Any) -> Cell | str | None:
    if not isinstance(value, dict):
        return None if value is None else str(value)
    return Cell(**{**value, "value": _number(value["value"])})


def _findings(content: dict[str, Any]) -> Findings:
    tables = tuple(
        Table(
            t["title"],
            t["about"],
            tuple(t["columns"]),
            tuple((name, tuple(_cell(c) for c in cells)) for name, cells in t["rows"]),
            t["unit"],
        )
        for t in content["tables"]
    )
    figures = tuple(
        Figure(
            f["title"],
            f["about"],
            f["x"],
            f["y"],
            tuple(
                Points(
                    p["name"],
                    _numbers(p["x"]),
                    _numbers(p["y"]),
                    p["line"],
                    p["dashed"],
                    _numbers(p["low"]),
                    _numbers(p["high"]),
                    p.get("bars", False),
                )
                for p in f["series"]
            ),
            tuple(f.get("names", ())),
        )
        for f in content["figures"]
    )
    texts = tuple(
        ShownText(
            t["title"], tuple(Word(**{**w, "value": _number(w["value"])}) for w in t["words"])
        )
        for t in content["texts"]
    )
    claims = tuple(Claim(**claim) for claim in content["claims"])
    rest = {k: content[k] for k in ("recipe", "title", "lead", "asked")}
    return Findings(
        **rest,
        tables=tables,
        claims=claims,
        figures=figures,
        texts=texts,
        notes=tuple(content["notes"]),
    )
