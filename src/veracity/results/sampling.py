"""How much of a method's score is its own luck: what another draw would have said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .columns import Column
from .run import Run
from .standings import Standing
from .statistics import Z

WITHIN = Z
"""So many standard errors hold 95 of 100 draws."""

STEADY = 0.5
"""Scores of two draws that correlate by less are mostly noise: so much of their variance is not."""

NOTES = {
    "error": "standard error of its scores",
    "stability": "share of its five strongest {units} that another draw would find again",
}
"""What methods note about their own error."""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
    found = []
    metrics = [m for m, about in run.config.metrics.items() if not about.of_model]
    for model in run.models:
        draws = [
            (first, again)
            for metric in metrics
            for second in [run.second_draw.columns(metric, model)]
            for name, first in (run.columns(metric, model) if second else {}).items()
            if first.quantity.better and (again := second.get(name)) is not None
        ]
        for method in run.explainers:
            for first, again in draws:
                if method in first.methods and method in again.methods:
                    found += _noise(first, again, method)
    return found


def _noise(first: Column, again: Column, method: str) -> list[Noise]:
    one, other = first.of(method), again.of(method)
    apart = np.array([other[e] - one[e] for e in other if e in one])
    values = np.array(list(one.values()))
    if not len(apart):
        return []
    return [
        Noise(
            model=first.model,
            method=method,
            metric=first.metric,
            name=first.name,
            headline=first.quantity.headline,
            texts=len(apart),
            scored=len(values),
            sd=float(np.sqrt(np.mean(apart**2) / 2)),
            spread=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        )
    ]


@dataclass(frozen=True, kw_only=True)
class Lead:
    """The distance of the best two methods, beside what their draws alone could make of it."""

    model: str
    metric: str
    name: str
    best: str
    next: str
    difference: float
    reach: float
    """Draws alone move the difference by less than this 95 times in 100."""


def leads(standings: Sequence[Standing], noises: Sequence[Noise]) -> Iterator[Lead]:
    """For every headline quantity on which one of the best two methods draws."""
    of = {(one.model, one.metric, one.name, one.method): one for one in noises}
    for s in standings:
        first = [e for e in s.entries if e.n and not e.is_chance][:2]
        drawn = [of[key] for e in first if (key := (s.model, s.metric, s.name, e.method)) in of]
        if s.headline and len(first) == 2 and drawn:
            reach = WITHIN * math.sqrt(sum(one.standard_error**2 for one in drawn))
            best, other = first
            yield Lead(
                model=s.model,
                metric=s.metric,
                name=s.name,
                best=best.method,
                next=other.method,
                difference=abs(best.mean - other.mean),
                reach=reach,
            )


def own_errors(run: Run) -> Iterator[OwnError]:
    """What methods noted about their own error, per model."""
    for model in run.models:
        for method in run.explainers:
            explained = run.attributions(model, method).values()
            for name, about in NOTES.items():
                noted = [one.notes.get(name, math.nan) for one in explained]
                values = [v for v in noted if math.isfinite(v)]
                if values:
                    yield OwnError(
                        model=model,
                        method=method,
                        name=name,
                        about=run.nouns.fill(about),
                        texts=len(values),
                        mean=float(np.mean(values)),
                    )


def draw_correlation(run: Run, model: str, method: str) -> float | None:
    """How far two draws of a method agree on the words of a text, on average over the texts that
    were explained twice: the share of the variance of its scores that is not its own noise. None
    where it draws nothing, or nothing twice."""
    first = run.attributions(model, method)
    found = []
    for example, again in run.second_draw.attributions(model, method).items():
        if example not in first:  # a part of the first draw was lost
            continue
        one, other = (a.unit_scores for a in (first[example], again))
        if len(one) > 2 and min(one.std(), other.std()) > 0:
            found.append(float(np.corrcoef(one, other)[0, 1]))
    return float(np.mean(found)) if found else None


def questions_per_text(run: Run) -> dict[tuple[str, str], float]:
    """What each method asked each model about a text, on average."""
    return {(c.model, c.method): c.questions_per_text for c in run.costs() if c.examples}
