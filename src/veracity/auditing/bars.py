"""What an audit must reach for a build to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import PluginError
from ..core.plugins import nearest
from ..metrics import metrics as known_metrics
from ..results.standings import Standing


@dataclass(frozen=True)
class Bar:
    """`[method:]metric.quantity=value`: what an audit must reach for a build to pass."""

    method: str | None
    metric: str
    quantity: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Bar:
        left, equals, number = text.rpartition("=")
        place, dot, quantity = left.rpartition(".")
        method, colon, metric = place.rpartition(":")
        try:
            if not (equals and dot and quantity and metric):
                raise ValueError
            return cls(method if colon else None, metric, quantity, float(number))
        except ValueError:
            raise PluginError(
                f"cannot read the bar {text!r}: expected metric.quantity=value such as "
                "erasure.compactness=0.2, or method:metric.quantity=value"
            ) from None


def check_bars(bars: Sequence[Bar], metrics: Sequence[str], profile: str = "recommended") -> None:
    """Bars that name a quantity of a metric, before hours are spent; an empty list means all."""
    asked = [known_metrics.make(m, profile) for m in (metrics or known_metrics.names())]
    names = {f"{n}.{q}" for m in asked for n in (m.spec, m.plugin_name()) for q in m.quantities}
    for bar in bars:
        name = f"{bar.metric}.{bar.quantity}"
        if name not in names:
            raise PluginError(f"no quantity {name} is computed: {nearest(name, names)}")


def missed(standings: Sequence[Standing], bars: Sequence[Bar]) -> list[str]:
    """A sentence for each bar that the best method, or the named one, does not reach."""
    found = []
    for bar in bars:
        compared = [
            s
            for s in standings
            if s.name == bar.quantity and bar.metric in (s.metric, s.metric.split("(")[0])
        ]
        if not compared:
            names = sorted({f"{s.metric}.{s.name}" for s in standings})
            raise PluginError(
                f"no quantity {bar.metric}.{bar.quantity} in this audit; it has: {', '.join(names)}"
            )
        for s in compared:
            named = [e for e in s.entries if e.method == bar.method]
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
