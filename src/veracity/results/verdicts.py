"""A run's answer in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .standings import LEVEL, Entry, Standing

FEW = 5
"""Below so many texts an interval would only pretend."""


@dataclass(frozen=True)
class Verdict:
    """Which method to use on one model for one purpose."""

    model: str
    purpose: str
    metric: str
    name: str
    sentence: str
    use: str | None
    tied: tuple[str, ...]


def verdicts(standings: Sequence[Standing]) -> list[Verdict]:
    """One verdict per model and headline quantity."""
    return [_verdict(s) for s in standings if s.headline]


def _verdict(s: Standing) -> Verdict:
    best = s.best
    near = [e for e in s.entries if e.tied_with_best]
    useless = [e for e in s.entries if e.better_than_chance is False]
    if best is None:
        sentence = f"To {s.purpose}, nothing can be said: no method could be scored."
        return Verdict(s.model, s.purpose, s.metric, s.name, sentence, None, ())
    if best.better_than_chance is False:
        sentence = (
            f"To {s.purpose}, no method beats random scores: the best, {best.method}, reaches "
            f"{_figure(best)}, which chance could also give."
        )
        return Verdict(s.model, s.purpose, s.metric, s.name, sentence, None, ())
    tied = tuple(e.method for e in near)
    words = s.name.replace("_", " ")
    quantity = words if words.startswith(s.metric) else f"{s.metric} {words}"
    sentence = f"To {s.purpose}, use {best.method}: {quantity} {_figure(best)}."
    if tied:
        sentence += f" Not told apart from it: {listed(tied)}."
    elif len(s.entries) > 1:
        sentence += f" It leads every other method (corrected p < {LEVEL})."
    if useless:
        sentence += f" Not shown to beat random scores: {listed([e.method for e in useless])}."
    if not any(e.is_chance for e in s.entries):
        sentence += " Nothing was compared with chance: add random_scores."
    return Verdict(s.model, s.purpose, s.metric, s.name, sentence, best.method, tied)


def _figure(e: Entry) -> str:
    if e.n < FEW:
        return f"{e.mean:.3f} ({e.n} of the texts: too few to say how sure)"
    return f"{e.mean:.3f} (95 % interval {e.low:.3f} to {e.high:.3f}, {e.n} texts)"


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
