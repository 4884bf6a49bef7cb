"""What was measured of networks that must use a mark: points, lines, and how sure their means are
(definitions 9.5)."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.files import written_whole
from ...experiments.experiment import StepResult
from ...results.claims import Comparison
from ...results.guarantees import shapley_range
from ...results.statistics import defined_mean, percentiles, resampled_sums
from ._planted_images_runs import NAMES, PictureRun, parameters

ENOUGH = 3
"""Fewer runs say nothing about what recurs, and fewer points make no line."""

CHANCE = "random_scores"
POINTS = "points.csv"


class AttrPoint(NamedTuple):
    """The mean Attr% of one method over the test pictures of one class."""

    experiment: str
    run: str
    pair: str
    confusable: bool
    manipulation: str
    settings: str
    group: int
    level: int
    r: float
    seed: int
    checkpoint: str
    accuracy: float
    bound: float
    luck: float
    method: str
    label: str
    marked: bool
    region: float
    attr: float
    n: int
    undefined: int

    @property
    def line(self) -> str:
        """The points that differ only in what an experiment varies have this in common."""
        which = self.run if self.experiment == "accuracy" else str(self.group)
        return f"{self.manipulation} {which} {self.marked}"

    @property
    def unit(self) -> str:
        """What is trained independently: a run, or the runs of a group."""
        return self.run if self.experiment == "region" else self.line.rsplit(" ", 1)[0]

    @property
    def inside(self) -> bool:
        """Whether its share is what is due to the mark at least (definitions 5.5)."""
        return self.attr >= shapley_range(self.accuracy, self.r)[0]


X: dict[str, Callable[[AttrPoint], float]] = {
    "region": lambda p: p.region,
    "accuracy": lambda p: p.accuracy,
    "visibility": lambda p: p.level,
    "correlation": lambda p: p.r,
}
"""What an experiment varies."""


class Line(NamedTuple):
    """One run along its training, or one group."""

    unit: str
    marked: bool
    confusable: bool
    points: tuple[tuple[float, float], ...]

    @property
    def rho(self) -> float:
        """Spearman's rank correlation; NaN of fewer points than make a line, or all alike."""
        from scipy.stats import rankdata

        known = [(x, y) for x, y in self.points if not np.isnan(y)]
        if len(known) < ENOUGH:
            return float("nan")
        x, y = (rankdata(v) for v in zip(*known, strict=True))
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            return float("nan")
        return float(np.corrcoef(x, y)[0, 1])


def bootstrapped(
    name: str,
    values: Sequence[float],
    units: Sequence[str],
    *,
    percent: bool = True,
    **claimed: Any,
) -> Comparison:
    """A mean and its bootstrap interval over what was trained independently."""
    low, high = bootstrap(values, units)
    return Comparison(
        name=name,
        value=defined_mean(values),
        low=low,
        high=high,
        units="trainings",
        n=len(set(units)),
        test="bootstrap",
        percent=percent,
        **claimed,
    )


def bootstrap(values: Sequence[float], units: Sequence[str]) -> tuple[float, float]:
    """The interval of a mean where units, each with one value or several, are drawn anew."""
    names = {name: place for place, name in enumerate(dict.fromkeys(units))}
    if len(names) < ENOUGH:
        return float("nan"), float("nan")
    sums = np.zeros((len(names), 2))
    np.add.at(sums, [names[u] for u in units], np.stack([values, np.ones(len(values))], axis=1))
    drawn = resampled_sums(sums, draws=2000)
    ((low, high),) = percentiles((drawn[:, 0] / drawn[:, 1])[:, None])
    return float(low), float(high)


def mean_of(
    name: str,
    points: Sequence[AttrPoint],
    value: Callable[[AttrPoint], float] = lambda p: p.attr,
    **claimed: Any,
) -> Comparison:
    """Of so many points, by default of their Attr%."""
    units = [p.unit for p in points]
    return bootstrapped(name, [value(p) for p in points], units, **claimed)


def beyond_chance(points: Sequence[AttrPoint]) -> Comparison:
    """What lies in the region beyond what a random map has there."""
    return mean_of("Attr% less %ER", points, lambda p: p.attr - p.region)


def above_chance(points: Sequence[AttrPoint]) -> Comparison:
    """How many points lie above the diagonal."""
    return mean_of("above", points, lambda p: float(p.attr > p.region))


def trend(lines: Sequence[Line], name: str = "Spearman's ρ", **claimed: Any) -> Comparison:
    """The mean over lines of how surely Attr% rises."""
    known = [(line.unit, line.rho) for line in lines if not np.isnan(line.rho)]
    units, values = zip(*known, strict=True) if known else ((), ())
    return bootstrapped(name, values, units, percent=False, **claimed)


@dataclass(frozen=True, kw_only=True)
class PlantedImagesPoints:
    """All results as points: a mean of Attr% each."""

    results: Mapping[PictureRun, StepResult]

    @cached_property
    def points(self) -> list[AttrPoint]:
        """Every mean that was taken of a network that must use its mark."""
        return [p for run, step in self.results.items() for p in self._points(run, step)]

    def _points(self, run: PictureRun, step: StepResult) -> Iterator[AttrPoint]:
        if run.experiment == "accuracy" and step["passed"]:
            best = self.results[run.trained]
            looks = [*step["along"], {"checkpoint": "best", **_only(best, "accuracy", "scores")}]
        else:
            looks = [{"checkpoint": "best", **step}] if step.get("scores") else []
        for look in looks:
            for score in look["scores"]:
                draw = run.planted
                yield AttrPoint(
                    experiment=run.experiment,
                    run=run.trained.step,
                    pair="/".join(draw.pair),
                    confusable=draw.confusable,
                    manipulation=draw.mark.plugin_name(),
                    settings=parameters(draw.mark),
                    group=draw.group + 1,
                    level=draw.level + 1,
                    r=draw.r,
                    seed=step["seed"],
                    checkpoint=look["checkpoint"],
                    accuracy=look["accuracy"],
                    bound=step["bound"],
                    luck=step["luck"],
                    label=draw.pair[score["label"]],
                    marked=score["label"] == 1,
                    **_only(score, "method", "region", "attr", "n", "undefined"),
                )

    def write_points(self, folder: Path) -> Path:
        """Every point as a row of a table."""
        file = io.StringIO(newline="")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(AttrPoint._fields)
        rows.writerows(self.points)
        with written_whole(folder / POINTS) as out:
            out.write(file.getvalue().encode())
        return folder / POINTS

    def of(self, experiment: str, **wanted: Any) -> list[AttrPoint]:
        """The points that are such and defined."""
        return [
            p
            for p in self.points
            if p.experiment == experiment
            and not np.isnan(p.attr)
            and all(getattr(p, name) == value for name, value in wanted.items())
        ]

    def lines(self, experiment: str, method: str, manipulation: str) -> list[Line]:
        """One per group, or run, and class."""
        found: dict[str, list[AttrPoint]] = defaultdict(list)
        for p in self.of(experiment, method=method, manipulation=manipulation):
            found[p.line].append(p)
        x = X[experiment]
        return [
            Line(
                own[0].unit,
                own[0].marked,
                own[0].confusable,
                tuple(sorted((x(p), p.attr) for p in own)),
            )
            for own in found.values()
        ]

    @cached_property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(p.method for p in self.points))

    @property
    def judged(self) -> list[str]:
        """The methods that the paper speaks of."""
        return [m for m in self.methods if m != CHANCE]

    @cached_property
    def manipulations(self) -> list[str]:
        met = {run.draw.mark.plugin_name() for run in self.results if run.draw is not None}
        return [name for name in NAMES if name in met]

    def networks(self, experiment: str = "") -> dict[PictureRun, StepResult]:
        """The networks of an experiment, or all."""
        return {
            run: step
            for run, step in self.results.items()
            if run.draw is not None
            and run == run.trained
            and run.experiment == (experiment or run.experiment)
        }


def _only(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names}
