"""Standings laid out as tables: methods in rows, quantities in columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.inputs import Nouns, Text
from ..results.standings import LEVEL, Entry, Standing

ARROWS = {"higher": "↑", "lower": "↓", "": ""}


MOST_COLUMNS = 5
"""So many quantities fit side by side on a desk."""


@dataclass(frozen=True)
class ScoreRow:
    """One method's entries, in the order of the columns; None where it was not scored."""

    method: str
    baseline: bool
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Board:
    """One model's table."""

    model: str
    columns: tuple[Standing, ...]
    rows: tuple[ScoreRow, ...]


def leading(columns: Sequence[Standing]) -> list[Standing]:
    """What is shown first: every compared quantity while they are few, else the headlines."""
    compared = [s for s in columns if s.better]
    if len(compared) <= MOST_COLUMNS:
        return compared
    return [s for s in compared if s.headline]


def board(model: str, columns: Sequence[Standing], *, baselines: Collection[str] = ()) -> Board:
    """Methods by their mean place over the columns that have a better end; chance comes last."""
    methods = list(dict.fromkeys(e.method for s in columns for e in s.entries))
    methods.sort(key=lambda m: (m in baselines, _mean_place(m, columns)))
    entries = [{e.method: e for e in s.entries} for s in columns]
    rows = tuple(ScoreRow(m, m in baselines, tuple(of.get(m) for of in entries)) for m in methods)
    return Board(model, tuple(columns), rows)


def _mean_place(method: str, columns: Sequence[Standing]) -> float:
    places = [
        place
        for s in columns
        if s.better
        for place, e in enumerate(s.entries)
        if e.method == method and not math.isnan(e.mean)
    ]
    return float(np.mean(places)) if places else math.inf


def against_chance(entry: Entry, nouns: Nouns = Text.nouns) -> tuple[str, str]:
    """A sign and words for a method that did not beat chance; nothing for one that did."""
    if entry.better_than_chance is not False or not entry.n:
        return "", ""
    if not entry.could_beat_chance:
        few = entry.n_unlike_chance > 0
        return ("?", f"too few {nouns.many}") if few else ("=", f"as chance in every {nouns.one}")
    below = entry.p_chance is not None and entry.p_chance < LEVEL
    return ("▽", "below chance") if below else ("≈", "not shown to beat chance")


def comparisons(columns: Sequence[Standing]) -> str:
    """How many pairs were tested, family by family."""
    families = {
        (bool(s.headline), s.comparisons, s.chance_comparisons) for s in columns if s.better
    }
    return "; ".join(
        f"{own} between methods and {with_chance} with chance "
        f"{'behind the verdicts' if headline else 'in the other quantities'}"
        for headline, own, with_chance in sorted(families, reverse=True)
    )
