"""Whether a reader of the first few words would have seen what was planted (definitions 5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from ..core.attributions import Order, rounded_steps, tied_groups
from ..core.changes import PLANTED
from ..core.inputs import ANY_KIND, BoolArray
from ..core.metrics import Case, Quantity, Row, TruthMetric


@dataclass(frozen=True)
class Exposure(TruthMetric):
    """How often something planted is among the strongest words, or segments, of an explanation.

    Of those that tie, each is as likely to be looked at as the others, and none is that has no
    score."""

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    # a mark that covers a fifth of a picture has one of any three segments half of the time
    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {"image": {"top": 1}}
    purpose: ClassVar[str] = "expose a cue that the model should not use"
    usual_truths: ClassVar[tuple[str, ...]] = (PLANTED,)
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "seen": Quantity(
            "share of {many} with a planted {unit} among the top {units}",
            "higher",
            True,
            share=True,
        ),
        "first": Quantity("share of {many} whose top {unit} was planted", "higher", share=True),
        "rank": Quantity("rank of the first planted {unit}", "lower"),
        "chance": Quantity("share that a random map would show"),
    }

    truth: str = PLANTED
    top: int = 3
    """How many of the strongest words are looked at."""
    by: Order = "abs"

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ValueError(f"expected to look at one word at least, got top={self.top}")

    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        # a segment is planted if at least half of it is
        known = case.attribution.input.on_units(np.logical_or.reduce(masks)) >= 0.5
        if not known.any():
            return dict.fromkeys(self.quantities, float("nan"))
        scores = case.attribution.unit_scores
        above = 0
        for group in tied_groups(scores, self.by):
            planted = int(known[group].sum())
            if planted:
                break
            above += len(group)
        shown = rounded_steps(scores, self.by)[group[0]] != 0
        return {
            "seen": shown * _drawn(len(group), planted, self.top - above),
            "first": shown * _drawn(len(group), planted, 1 - above),
            "rank": above + (len(group) + 1) / (planted + 1),
            "chance": _drawn(len(known), int(known.sum()), self.top),
        }


def _drawn(n: int, marked: int, places: int) -> float:
    """The probability that so many of n things, drawn at random, hold a marked one."""
    places = min(max(places, 0), n)
    return 1 - comb(n - marked, places) / comb(n, places)
