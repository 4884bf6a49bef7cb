"""Does a small change of a text leave its explanation as it was? (definitions 5.8)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.attributions import Attribution, Order, count_from_ratio, ranking
from ..core.examples import Example
from ..core.metrics import Case, Metric, Quality, Quantity, Row, Twins

Variant = Literal["printed", "own_rank"]
Membership = Literal["string", "multiset"]


@dataclass(frozen=True)
class Consistency(Metric):
    """How far an adversarial twin's words are ranked as those of its original are (MAP).

    Of a twin with another label an explanation should differ: `movement` asks that. Where nobody
    gave labels every twin counts."""

    purpose: ClassVar[str] = "say of a slightly changed text what it said of the original"
    of_pairs: ClassVar[Twins] = "kept"
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "map": Quantity(
            "share of a twin's first words that are among its original's first, averaged over all "
            "depths (MAP)",
            "higher",
            True,
            bounds=(0, 1),
        ),
        "shared": Quantity(
            "share of a twin's top words that are among its original's top words",
            "higher",
            bounds=(0, 1),
        ),
    }

    variant: Variant = "printed"
    """Whether a word may be found at any depth so far, or at its own rank only."""
    membership: Membership = "string"
    """Whether a repeated word is found as often as it stands there, or once per occurrence."""
    ratio: float = 0.29
    by: Order = "signed"
    twins: Literal["kept", "all"] = "kept"
    """Those that keep their original's label, or all, as the paper has it."""

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"expected a ratio above 0 and up to 1, got {self.ratio}")

    def n_questions(self, n_units: int) -> int | None:
        return 0

    @property
    def quality(self) -> Quality:
        return "stability"

    def score(self, cases: Sequence[Case]) -> list[Row]:
        nothing = dict.fromkeys(self.quantities, float("nan"))
        return [
            self.compared(case.original.attribution, case.attribution)
            if case.original is not None and self.asks(case.original.example, case.example)
            else nothing
            for case in cases
        ]

    def asks(self, original: Example, twin: Example) -> bool:
        """Whether this pair should be explained alike."""
        return self.twins == "all" or original.label == twin.label

    def compared(self, original: Attribution, twin: Attribution) -> Row:
        """One pair; NaN where one of the two has words but no scores, and so ranks nothing."""
        if _silent(original) or _silent(twin):
            return dict.fromkeys(self.quantities, float("nan"))
        before, after = (ranked_words(a, by=self.by) for a in (original, twin))
        tops = (before[: len(self.top(original))], after[: len(self.top(twin))])
        return {
            "map": mean_overlap(before, after, variant=self.variant, membership=self.membership),
            "shared": shared(*tops, self.membership),
        }

    def top(self, one: Attribution) -> tuple[int, ...]:
        """Places of the top words, the most important first; none where there are no scores."""
        k = 0 if _silent(one) else count_from_ratio(self.ratio, len(one.scores))
        return tuple(int(i) for i in ranking(one.scores, self.by)[:k])


def _silent(attribution: Attribution) -> bool:
    return len(attribution.scores) > 0 and not attribution.scores.any()


def ranked_words(attribution: Attribution, *, by: Order = "signed") -> list[str]:
    """The words of a text, the most important first."""
    return [attribution.input.words[i] for i in ranking(attribution.scores, by)]


def mean_overlap(
    original: Sequence[str],
    twin: Sequence[str],
    *,
    variant: Variant = "printed",
    membership: Membership = "string",
) -> float:
    """MAP of Wang et al. 2021: the mean over depths i of the share of the twin's first i words
    that are among the original's first i. Not symmetric; 0 for a twin without words."""
    n = len(twin)
    if not n:
        return 0.0
    place: dict[Hashable, int] = {}
    for i, word in enumerate(_named(original, membership)):
        place.setdefault(word, i)
    since = np.full(n, n)  # (n,) the depth from which each of the twin's words is found
    for i, word in enumerate(_named(twin, membership)):
        met = place.get(word, n)
        if variant == "printed" or met <= i:
            since[i] = min(n, max(i, met))
    hits = np.bincount(since, minlength=n + 1)[:n].cumsum()
    return float(np.mean(hits / np.arange(1, n + 1)))


def shared(
    original: Sequence[str], twin: Sequence[str], membership: Membership = "string"
) -> float:
    """The share of the twin's words that are among the original's; 0 for none."""
    known = set(_named(original, membership))
    found = [word in known for word in _named(twin, membership)]
    return sum(found) / len(found) if found else 0.0


def _named(words: Sequence[str], membership: Membership) -> Iterable[Hashable]:
    """Words by which occurrences are told apart: not at all, or each copy by its number."""
    if membership == "string":
        return words
    seen: Counter[str] = Counter()
    named = []
    for word in words:
        named.append((word, seen[word]))
        seen[word] += 1
    return named
