"""How far a model that is right on texts is right on their adversarial twins (definitions 7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..core.changes import PATTERN
from ..core.errors import DataError, RunError
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, FloatArray
from .run import Run
from .statistics import mcnemar, share_interval, sign_flip_test

FILE = "robustness.json"

UNTYPED = "untyped"
"""Where data do not say of which type a text is."""


@dataclass(frozen=True)
class GroupAccuracy:
    """How many of some texts a model is right on, and the 95 % interval of its accuracy."""

    name: str
    correct: int
    total: int
    low: float
    high: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.total if self.total else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it; what is not defined is None."""
        return {**asdict(self), "accuracy": self.accuracy if self.total else None}


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """A model's accuracy on originals and twins, by type, and whether twins are harder for it."""

    originals: GroupAccuracy
    twins: GroupAccuracy
    all: GroupAccuracy
    by_sentiment: tuple[GroupAccuracy, ...]
    """Of all texts: the type belongs to the text, not to the pair."""
    by_attack: tuple[GroupAccuracy, ...]
    """Of twins, by what was done to them."""
    both: int
    lost: int
    gained: int
    neither: int
    """Pairs with both right, the original alone, the twin alone, and none."""
    p: float
    """How likely the two sides differ as much by chance."""
    by_pattern: tuple[GroupAccuracy, ...] = ()
    """Of twins that patterns made, by pattern."""

    def __post_init__(self) -> None:
        for counts, of in ((self.by_attack, self.twins), (self.by_sentiment, self.all)):
            seen = (sum(s.correct for s in counts), sum(s.total for s in counts))
            if seen != (of.correct, of.total):
                raise ValueError(f"expected types that add up to {of}, got {counts}")

    @property
    def micro_accuracy(self) -> float:
        """The accuracies by attack, weighted by how many twins there are of each."""
        total = sum(s.total for s in self.by_attack)
        return sum(s.accuracy * s.total for s in self.by_attack) / total if total else float("nan")

    @property
    def pairs(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it."""
        by = ("by_sentiment", "by_attack", "by_pattern")
        return {
            **{k: getattr(self, k).to_dict() for k in ("originals", "twins", "all")},
            **{k: [s.to_dict() for s in getattr(self, k)] for k in by},
            "micro_accuracy": self.micro_accuracy if self.by_attack else None,
            **{k: getattr(self, k) for k in ("pairs", "both", "lost", "gained", "neither", "p")},
        }

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
    twin = np.array([is_twin(e) for e in data], dtype=np.bool_)
    everything = np.ones(len(data), dtype=np.bool_)
    sides = [(bool(right[place[o.id]]), bool(right[place[t.id]])) for o, t in data.pairs]
    by_pattern = np.array([PATTERN in e.facts for e in data], dtype=np.bool_)
    return Robustness(
        originals=group_accuracy("originals", data, right, ~twin),
        twins=group_accuracy("twins", data, right, twin),
        all=group_accuracy("all", data, right, everything),
        by_sentiment=_by("sentiment_type", data, right, everything),
        by_attack=_by("adv_type", data, right, twin),
        both=sides.count((True, True)),
        lost=sides.count((True, False)),
        gained=sides.count((False, True)),
        neither=sides.count((False, False)),
        p=paired_p([o.id for o, _ in data.pairs], sides),
        by_pattern=_by(PATTERN, data, right, by_pattern),
    )


def robustness_of(run: Run, model: str) -> Robustness:
    """From a run alone, without its model or its data."""
    examples = run.examples()
    answers = run.predictions(model)
    missing = [e.id for e in examples if e.id not in answers]
    if missing:
        raise RunError(
            f"{run.folder} holds no answer of {model} to {missing[0]!r} and {len(missing) - 1} "
            "others. Give the same command again"
        )
    data = Dataset(run.config.dataset.name, run.labels, tuple(examples))
    return robustness(data, np.array([answers[e.id] for e in examples]))


def is_twin(example: Example) -> bool:
    return example.facts.get("sample_type", "ori" if example.partner is None else "adv") == "adv"


def _by(fact: str, data: Dataset, right: BoolArray, some: BoolArray) -> tuple[GroupAccuracy, ...]:
    kinds = np.array([e.facts.get(fact) or UNTYPED for e in data], dtype=object)
    names = sorted(set(kinds[some]), key=lambda name: (name == UNTYPED, name))
    return tuple(group_accuracy(name, data, right, some & (kinds == name)) for name in names)


def group_accuracy(name: str, data: Dataset, right: BoolArray, some: BoolArray) -> GroupAccuracy:
    places = np.flatnonzero(some)
    family = data.families
    groups = [family[data.examples[i].id] for i in places]
    limits = share_interval(right[places].astype(np.float64), groups)
    return GroupAccuracy(name, int(right[places].sum()), len(places), *limits)


def paired_p(originals: Sequence[str], sides: Sequence[tuple[bool, bool]]) -> float:
    """Exact (McNemar) where each original is in one pair. Where it is in several, its pairs are not
    independent: all of them change sides together."""
    if len(set(originals)) == len(originals):
        return mcnemar(sides.count((True, False)), sides.count((False, True)))
    return sign_flip_test([float(before) - float(after) for before, after in sides], originals)
