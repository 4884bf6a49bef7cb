"""How far a model that is right on texts is right on their adversarial twins (SPEC 7.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, FloatArray
from .statistics import mcnemar, sign_flip_test, wilson

UNTYPED = "untyped"
"""Where data do not say of which type a text is."""


@dataclass(frozen=True)
class Share:
    """How many of some texts a model is right on, and the 95 % interval of its accuracy."""

    name: str
    correct: int
    total: int
    low: float
    high: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.total if self.total else float("nan")


@dataclass(frozen=True)
class Robustness:
    """A model's accuracy on originals and twins, by type, and whether twins are harder for it."""

    originals: Share
    twins: Share
    all: Share
    by_sentiment: tuple[Share, ...]
    """Of all texts: the type belongs to the text, not to the pair."""
    by_attack: tuple[Share, ...]
    """Of twins, by what was done to them."""
    both: int
    lost: int
    gained: int
    neither: int
    """Pairs with both right, the original alone, the twin alone, and none."""
    p: float
    """How likely the two sides differ as much by chance."""

    def __post_init__(self) -> None:
        for counts, of in ((self.by_attack, self.twins), (self.by_sentiment, self.all)):
            if (sum(s.correct for s in counts), sum(s.total for s in counts)) != (
                of.correct,
                of.total,
            ):
                raise ValueError(f"expected types that add up to {of}, got {counts}")

    @property
    def micro_accuracy(self) -> float:
        """The accuracies by attack, weighted by how many twins there are of each."""
        total = sum(s.total for s in self.by_attack)
        return sum(s.accuracy * s.total for s in self.by_attack) / total if total else float("nan")

    @property
    def pairs(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    def __str__(self) -> str:
        o, t = self.originals, self.twins
        return (
            f"right on {o.accuracy:.1%} of {o.total} originals ({o.low:.1%} to {o.high:.1%}) and "
            f"{t.accuracy:.1%} of {t.total} twins ({t.low:.1%} to {t.high:.1%}); of {self.pairs} "
            f"pairs {self.lost} are lost and {self.gained} gained (p {self.p:.2g})"
        )


def robustness(data: Dataset, answers: FloatArray) -> Robustness:
    """From data with twins and a model's probabilities for them. (examples, labels)"""
    if len(answers) != len(data):
        raise DataError(f"expected one answer per example ({len(data)}), got {len(answers)}")
    if not data.labelled:
        raise DataError(f"{data.name} has no labels, so nobody knows which answers are right")
    gold = np.array([e.label for e in data], dtype=np.int64)
    right = np.argmax(answers, axis=1) == gold if len(data) else np.zeros(0, dtype=np.bool_)
    place = {e.id: i for i, e in enumerate(data)}
    twin = np.array([_is_twin(e) for e in data], dtype=np.bool_)
    everything = np.ones(len(data), dtype=np.bool_)
    sides = [(bool(right[place[o.id]]), bool(right[place[t.id]])) for o, t in data.pairs]
    lost, gained = sides.count((True, False)), sides.count((False, True))
    return Robustness(
        _share("originals", data, right, ~twin),
        _share("twins", data, right, twin),
        _share("all", data, right, everything),
        _by("sentiment_type", data, right, everything),
        _by("adv_type", data, right, twin),
        sides.count((True, True)),
        lost,
        gained,
        sides.count((False, False)),
        _p(data, sides, mcnemar(lost, gained)),
    )


def _is_twin(example: Example) -> bool:
    return example.facts.get("sample_type", "ori" if example.partner is None else "adv") == "adv"


def _by(fact: str, data: Dataset, right: BoolArray, some: BoolArray) -> tuple[Share, ...]:
    kinds = np.array([e.facts.get(fact) or UNTYPED for e in data], dtype=object)
    names = sorted(set(kinds[some]), key=lambda name: (name == UNTYPED, name))
    return tuple(_share(name, data, right, some & (kinds == name)) for name in names)


def _share(name: str, data: Dataset, right: BoolArray, some: BoolArray) -> Share:
    """Texts of one pair tend to be right or wrong together: they count for as many as they tell."""
    places = np.flatnonzero(some)
    n, correct = len(places), int(right[places].sum())
    if not n:
        return Share(name, 0, 0, *wilson(0, 0))
    rate = correct / n
    beyond: dict[str, float] = defaultdict(float)
    for i in places:
        beyond[_pair(data.examples[i])] += float(right[i]) - rate
    spread = n * rate * (1 - rate)
    dependence = max(1.0, sum(b * b for b in beyond.values()) / spread) if spread else 1.0
    return Share(name, correct, n, *wilson(correct / dependence, n / dependence))


def _pair(example: Example) -> str:
    return example.id if example.partner is None else example.partner


def _p(data: Dataset, sides: Sequence[tuple[bool, bool]], of_pairs: float) -> float:
    """Where an original has several twins its pairs are not independent: originals are compared
    with the mean of their twins instead."""
    differences: dict[str, list[int]] = defaultdict(list)
    for (original, _), (before, after) in zip(data.pairs, sides, strict=True):
        differences[original.id].append(int(before) - int(after))
    if all(len(d) == 1 for d in differences.values()):
        return of_pairs
    return sign_flip_test([float(np.mean(d)) for d in differences.values()])
