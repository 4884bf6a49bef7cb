"""How much of a method's score is its own luck: what another draw would have said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .run import Run
from .standings import Standing

if TYPE_CHECKING:
    import pyarrow as pa

WITHIN = 1.96
"""So many standard errors hold 95 of 100 draws."""

NOTES = {
    "error": "standard error of its scores",
    "stability": "share of its five strongest words that another draw would find again",
}
"""What methods note about their own error."""


@dataclass(frozen=True)
class Noise:
    """One score of one method on texts that it explained twice, with different random numbers."""

    model: str
    method: str
    metric: str
    name: str
    headline: bool
    texts: int
    """Explained twice."""
    scored: int
    """Texts behind the mean in the table."""
    sd: float
    """Standard deviation of a text's score from draw to draw."""
    spread: float
    """Standard deviation of the score between texts; noise is part of it."""

    @property
    def share(self) -> float:
        """The part of the variance between texts that is the method's own noise, at most 1."""
        return min(1.0, self.sd**2 / self.spread**2) if self.spread > 0 else 0.0

    @property
    def standard_error(self) -> float:
        """What noise adds to the standard error of the mean over all texts."""
        return self.sd / math.sqrt(self.scored)

    @property
    def reach(self) -> float:
        """The mean of another draw would be as near as this 95 times in 100."""
        return WITHIN * math.sqrt(2) * self.standard_error


@dataclass(frozen=True)
class OwnError:
    """What a method says of its own error, averaged over texts."""

    model: str
    method: str
    name: str
    about: str
    texts: int
    mean: float


def noise(run: Run) -> list[Noise]:
    """Every quantity that has a better side, of every method that drew twice; none of older runs.

    Two draws of one text differ by twice the variance of one: sd² = mean (a - b)² / 2.
    """
    if not any(run.second_draw.folder.glob("scores/**/*.parquet")):
        return []
    first, second = _values(run.scores()), _values(run.second_draw.scores())
    found = []
    for (model, method, metric, name), again in second.items():
        about = run.asked["metrics"][metric]["quantities"].get(name, {})
        before = first.get((model, method, metric, name), {})
        both = [e for e in again if e in before]
        if not about.get("better") or not both:
            continue
        apart = np.array([again[e] - before[e] for e in both])
        values = np.array(list(before.values()))
        found.append(
            Noise(
                model,
                method,
                metric,
                name,
                bool(about.get("headline")),
                len(both),
                len(values),
                float(np.sqrt(np.mean(apart**2) / 2)),
                float(values.std(ddof=1)) if len(values) > 1 else math.nan,
            )
        )
    return found


@dataclass(frozen=True)
class Lead:
    """The distance of the best two methods, beside what their draws alone could make of it."""

    model: str
    metric: str
    name: str
    best: str
    next: str
    difference: float
    luck: float
    """Draws alone move the difference by less than this 95 times in 100."""


def leads(standings: Sequence[Standing], found: Sequence[Noise]) -> list[Lead]:
    """For every headline quantity on which one of the best two methods draws."""
    of = {(one.model, one.metric, one.name, one.method): one for one in found}
    told = []
    for s in standings:
        first = [e for e in s.entries if e.n and not e.is_chance][:2]
        drawn = [of[key] for e in first if (key := (s.model, s.metric, s.name, e.method)) in of]
        if s.headline and len(first) == 2 and drawn:
            luck = WITHIN * math.sqrt(sum(one.standard_error**2 for one in drawn))
            apart = abs(first[0].mean - first[1].mean)
            best, other = (e.method for e in first)
            told.append(Lead(s.model, s.metric, s.name, best, other, apart, luck))
    return told


def own_errors(run: Run) -> list[OwnError]:
    """What methods noted about their own error, per model."""
    found = []
    for model in run.models:
        for method in run.explainers:
            rows = run.attributions(model, method).values()
            for name, about in NOTES.items():
                noted = [row["notes"].get(name, math.nan) for row in rows]
                values = [v for v in noted if math.isfinite(v)]
                if values:
                    mean = float(np.mean(values))
                    found.append(OwnError(model, method, name, about, len(values), mean))
    return found


def questions_per_text(run: Run) -> dict[tuple[str, str], float]:
    """What each method asked each model about a text, on average."""
    return {(c.model, c.explainer): c.questions / c.examples for c in run.costs() if c.examples}


def _values(table: pa.Table) -> dict[tuple[str, str, str, str], dict[str, float]]:
    """Scores by model, method, metric and quantity, then by example; without those undefined."""
    found: dict[tuple[str, str, str, str], dict[str, float]] = {}
    names = ("model", "explainer", "metric", "name", "example", "value")
    columns = [table[name].to_pylist() for name in names]
    for model, method, metric, name, example, value in zip(*columns, strict=True):
        if method and math.isfinite(value):
            found.setdefault((model, method, metric, name), {})[example] = value
    return found
