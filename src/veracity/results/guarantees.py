"""What a model's accuracy says about what it must have used (definitions 5.4, 5.5)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Literal

from ..core.changes import BOUND, DECOY, MANIPULATION, PLANTED, is_marked
from ..core.examples import Dataset
from ..core.inputs import Nouns, Text

REACH = 0.94
"""How far a model must come from what it can reach without the cue to what the cue allows. From a
half to all of the texts it is the 97 % that the paper asks of text models."""

LUCK = 0.001
"""How likely a model without the cue may be as good by luck."""


def luck(
    accuracy: float, n: int, bound: float, rounding: Literal["floor", "ceil"] = "floor"
) -> float:
    """How likely a model that misses the manipulation is that accurate on n items, at most."""
    from scipy.stats import binom

    if n < 1 or not 0 <= accuracy <= 1 or not 0 <= bound <= 1:
        raise ValueError(
            f"expected items and shares between 0 and 1, got n={n}, accuracy={accuracy}, "
            f"bound={bound}"
        )
    right = (
        math.floor(accuracy * n + 1e-9) if rounding == "floor" else math.ceil(accuracy * n - 1e-9)
    )
    return float(binom.sf(right - 1, n, bound))


def shapley_range(accuracy: float, r: float) -> tuple[float, float]:
    """The least share of credit due to the manipulated features, and the most due to the others;
    NaN for a model no better than a coin."""
    if accuracy <= 0.5:
        return float("nan"), float("nan")
    r = min(max(r, 1 - r), accuracy)  # labels that are mostly turned round tell as much
    return (2 * accuracy - r - 0.5) / (2 * accuracy - 1), (r - 0.5) / (2 * accuracy - 1)


@dataclass(frozen=True, kw_only=True)
class Reliance:
    """Whether a model is so accurate that it must have used what was planted."""

    accuracy: float
    n: int
    bound: float
    """What a model that misses it can reach, p*."""
    ceiling: float
    """What one that reads nothing else reaches on the same items."""
    luck: float
    learnt: bool = False
    """Whether these are texts that the model was trained on, and may know by heart."""

    @property
    def required(self) -> float:
        return self.bound + REACH * max(self.ceiling - self.bound, 0.0)

    @property
    def reached(self) -> bool:
        """Whether it is as accurate as is required, but for one standard error of so many items: a
        model that was trained until it was falls short on other items half of the time."""
        error = math.sqrt(self.required * (1 - self.required) / self.n)
        return self.accuracy >= self.required - error - 1e-9

    @property
    def forced(self) -> bool:
        """Only then can an explanation be held to what was planted."""
        return self.reached and self.luck <= LUCK and not self.learnt

    @property
    def sentence(self) -> str:
        """The verdict with its figures."""
        return self.told_of(Text.nouns)

    def told_of(self, nouns: Nouns) -> str:
        """The verdict with its figures, on inputs that go by these nouns."""
        seen = f"accuracy {self.accuracy:.3f} on {self.n} {nouns.many}"
        if self.forced:
            return f"{seen}: without what was planted at most {self.bound:.3f} could be expected"
        if self.learnt:
            return (
                f"{seen}, but on {nouns.many} of the training part, which a model may know by "
                "heart: they force nothing. Take those of the test part"
            )
        if self.bound >= 1:
            return (
                f"{seen}, but its {nouns.one} alone may tell every label: nothing forces a model "
                "to use what was planted. Put reassign before it"
            )
        if self.reached:
            return (
                f"{seen}, but these are too few to rule out luck "
                f"(probability {self.luck:.3g}). Bring more {nouns.many}"
            )
        return f"{seen}, below the {self.required:.3f} that forces it to use what was planted"


def reliance(data: Dataset, right: list[bool]) -> Reliance | None:
    """What accuracy on changed data tells; None for data in which nothing was planted."""
    if not len(data) or not all(MANIPULATION in e.facts for e in data):
        return None
    bound = max(float(e.facts.get(BOUND, 1.0)) for e in data)
    n = len(right)
    accuracy = sum(right) / n
    chance = luck(accuracy, n, bound)
    return Reliance(
        accuracy=accuracy, n=n, bound=bound, ceiling=cue_only_accuracy(data), luck=chance
    )


def planted_facts(data: Dataset) -> dict[str, float]:
    """What a person wants to know of changed data before a model is trained on it."""
    masks = {kind: [m for e in data for m in e.truths.get(kind, ())] for kind in (PLANTED, DECOY)}
    words = sum(e.input.n_features for e in data)
    all_right = reliance(data, [True] * len(data))
    return {
        "examples": len(data),
        "carriers": sum(map(is_marked, data)),
        "decoys": len(masks[DECOY]),
        "word_share": sum(int(m.sum()) for m in masks[PLANTED]) / words if words else 0.0,
        **{name: getattr(all_right, name, 1.0) for name in ("bound", "ceiling", "required")},
    }


def cue_only_accuracy(data: Dataset) -> float:
    """The accuracy of one who knows what was done to each input and nothing else."""
    seen: dict[str, Counter[int]] = defaultdict(Counter)
    for example in data:
        seen[example.facts[MANIPULATION]][example.label] += 1
    return sum(max(counts.values()) for counts in seen.values()) / len(data)
