"""What an audit must reach for a build to pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.classifiers import Classifier
from ..core.errors import DataError, PluginError
from ..core.examples import Dataset
from ..core.metrics import Metric, Quantity
from ..core.plugins import nearest
from ..explainers import explainers as known_explainers
from ..metrics import metrics as known_metrics
from ..metrics.accuracy import FIGURES, Accuracy
from ..results.standings import Standing
from .explaining import check_ability

SHARE = Quantity("a share of the texts", "higher", share=True)


@dataclass(frozen=True)
class Threshold:
    """`[method:]metric.quantity=value`: what an audit must reach for a build to pass."""

    method: str | None
    metric: str
    quantity: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """A metric by itself is its quantity of the same name: `accuracy=0.8`."""
        left, equals, number = text.rpartition("=")
        place, dot, quantity = left.rpartition(".")
        method, colon, metric = (place if dot else left).rpartition(":")
        try:
            value = float(number)
            if not (equals and metric) or (dot and not quantity) or not math.isfinite(value):
                raise ValueError
            return cls(method if colon else None, metric, quantity if dot else metric, value)
        except ValueError:
            raise PluginError(
                f"cannot read the bar {text!r}: expected metric.quantity=value such as "
                "erasure.compactness=0.2 or accuracy=0.8, or method:metric.quantity=value"
            ) from None

    @property
    def name(self) -> str:
        return f"{self.metric}.{self.quantity}"

    def is_of(self, metric: str) -> bool:
        """Whether it is a bar of a metric with these settings."""
        return _goes_by(self.metric, metric)


def _goes_by(name: str | None, spec: str) -> bool:
    """Whether this is a name of a plug-in, with its settings or without."""
    return name in (spec, spec.split("(")[0])


def check_thresholds(
    bars: Sequence[Threshold], metrics: Sequence[str], profile: str = "recommended"
) -> None:
    """Bars that name a quantity of a metric, before hours are spent; an empty list means all."""
    computed = _computed(metrics, profile)
    names = {
        f"{name}.{quantity}"
        for m in computed
        for name in (m.spec, m.plugin_name())
        for quantity in _quantities(m)
    }
    for bar in bars:
        name = bar.name
        metric = next((m for m in computed if bar.is_of(m.spec)), None)
        of_label = isinstance(metric, Accuracy) and "_of_" in bar.quantity
        if metric is None or (name not in names and not of_label):
            raise PluginError(f"no quantity {name} is computed: {nearest(name, names)}")
        if metric.of_model and bar.method:
            raise PluginError(f"{name} is of the model: leave {bar.method}: out of the bar")
        quantity = _quantities(metric).get(bar.quantity, SHARE)
        least, most = (0, 1) if quantity.share else quantity.bounds or (-math.inf, math.inf)
        if bar.value < least if quantity.better == "lower" else bar.value > most:
            wanted = "at most" if quantity.better == "lower" else "at least"
            percent = f". Did you mean {bar.value / 100:g}?" if 2 <= bar.value <= 100 else ""
            raise PluginError(
                f"nothing can reach {name} of {wanted} {bar.value:g}: it lies between {least} and "
                f"{most}{percent}"
            )


def check_reachable(
    bars: Sequence[Threshold],
    data: Dataset,
    models: Mapping[str, Classifier],
    metrics: Sequence[str] = (),
    profile: str = "recommended",
) -> None:
    """Bars that these data and models allow to be told at all, before the audit begins."""
    for bar in bars:
        named = [m for m in _computed(metrics, profile) if bar.is_of(m.spec)]
        # by default a metric is done for each kind of truth that the data know
        tried = [v for m in named for v in ([m] if metrics else m.variants(data.truth_kinds))]
        if tried and all(m.missing(data) for m in tried):
            raise DataError(f"the bar {bar.metric} cannot be told: {tried[0].missing(data)}")
        label = bar.quantity.rpartition("_of_")[2]
        for m in models.values() if isinstance(named[0], Accuracy) else ():
            if "_of_" in bar.quantity and label not in {*m.labels, *data.labels}:
                raise PluginError(f"no label is called {label!r}: {nearest(label, m.labels)}")
        for model in models.values() if bar.method else ():
            check_ability(known_explainers.make(bar.method or "", profile), model)


def missed_thresholds(
    standings: Sequence[Standing],
    bars: Sequence[Threshold],
    summaries: Mapping[str, Any] | None = None,
) -> list[str]:
    """A sentence for each bar that the best method, the named one, or the model itself does not
    reach; `summaries` are those of the run."""
    found = []
    for bar in bars:
        of_models = dict(_of_models(bar, summaries or {}))
        found += [
            f"{model}: expected {bar.name} of at least {bar.value:g}, the model reaches {value:.4f}"
            for model, value in of_models.items()
            if not value >= bar.value
        ]
        if not of_models:
            found += _missed_by_methods(standings, bar)
    return found


def _missed_by_methods(standings: Sequence[Standing], bar: Threshold) -> list[str]:
    compared = [s for s in standings if s.name == bar.quantity and bar.is_of(s.metric)]
    if not compared:
        names = sorted({f"{s.metric}.{s.name}" for s in standings})
        raise PluginError(f"no quantity {bar.name} in this audit; it has: {', '.join(names)}")
    found = []
    for s in compared:
        # the best first: of several settings of one method any may reach it
        named = [e for e in s.entries if _goes_by(bar.method, e.method)]
        if bar.method and not named:
            raise PluginError(f"no method {bar.method!r} was run on {s.model}")
        entry = named[0] if named else s.best
        mean = float("nan") if entry is None else entry.mean
        reached = mean <= bar.value if s.better == "lower" else mean >= bar.value
        if entry is None or not reached:
            wanted = "at most" if s.better == "lower" else "at least"
            who = "no method" if entry is None else entry.method
            found.append(
                f"{s.model}: expected {s.metric}.{s.name} of {wanted} {bar.value:g}, "
                f"{who} reaches {mean:.4f}"
            )
    return found


def _computed(metrics: Sequence[str], profile: str) -> list[Metric]:
    """What an audit computes: what is named, or all that is usual, and how often it is right."""
    made = [known_metrics.make(m, profile) for m in (metrics or known_metrics.names())]
    return [*(m for m in made if metrics or m.usual), Accuracy()]


def _quantities(metric: Metric) -> Mapping[str, Quantity]:
    if isinstance(metric, Accuracy):
        return dict.fromkeys(FIGURES, SHARE)
    return {name: q for name, q in metric.effective_quantities.items() if q.better}


def _of_models(bar: Threshold, summaries: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    """What each model itself reaches, where the bar is of models."""
    for model, by_method in summaries.items():
        for metric, figures in by_method.get("", {}).items():
            if bar.is_of(metric) and bar.quantity in figures:
                value = figures[bar.quantity]
                yield model, float("nan") if value is None else float(value)
