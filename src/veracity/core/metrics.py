"""What a test of explanations is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from .attributions import Attribution
from .changes import DECOY, MANIPULATION, PLANTED
from .classifiers import Classifier
from .examples import Dataset, Example
from .inputs import BoolArray, FloatArray, Hiding, Input, TakesInputs, input_kind, input_kinds
from .plugins import Plugin

Row = Mapping[str, float]

Quality = Literal["faithfulness", "plausibility", "stability"]
"""What a test speaks of: whether an explanation is true of the model, whether people would give it,
or whether it stays when little changes."""

CHANGED = "changed"
"""The quantity of erasure that says how often answers change, which anybody understands."""
FIRST = 5
"""So many words it hides for that, unless its settings say otherwise."""

Twins = bool | Literal["kept", "changed"]
"""None of them, all, or those whose label is that of the original, or is another."""


@dataclass(frozen=True)
class Case:
    """One explanation to be judged, with all that a judge may ask about."""

    example: Example[Any]
    model: Classifier
    probabilities: FloatArray  # (labels,) of the whole input
    attribution: Attribution[Any]
    original: Case | None = None
    """Of an adversarial twin: its original by the same method; None where there is none."""

    explain_again: Callable[[], Attribution[Any]] | None = None
    """Explains the input once more, by the same method with the same random numbers."""

    @property
    def answer(self) -> int:
        """The label that the model gives to the whole input."""
        return int(np.argmax(self.probabilities))

    @property
    def right(self) -> bool:
        """Whether the model answers the label of the example."""
        return self.answer == self.example.label


@dataclass(frozen=True)
class Quantity:
    """One number a metric gives per example: which way is better, and what it says."""

    about: str
    better: Literal["higher", "lower", ""] = ""
    headline: bool = False
    """True for the one quantity by which this metric ranks methods in a verdict."""
    share: bool = False
    """Whether its mean is a share of texts: one or zero for each, or how likely it is one."""
    bounds: tuple[float, float] | None = None
    """What no value lies beyond, where that is known: nor does an interval of the mean."""
    searched: bool = False
    """Whether a search for the most damaging words shows what can be reached."""

    def of_kind(self, kind: str) -> Quantity:
        """In the words for a kind of input."""
        return replace(self, about=input_kind(kind).nouns.fill(self.about))


class Metric(Plugin, TakesInputs, ABC):
    """A test whose rows, one per case, can be averaged, compared and tested in pairs."""

    purpose: ClassVar[str]
    """What a method that does well here is good for: completes 'To …, use …'. As in what quantities
    say, `{units}` stands for what the inputs have: words, or segments; see `Nouns`."""

    quantities: ClassVar[Mapping[str, Quantity]]

    of_model: ClassVar[bool] = False
    """True when the explanation plays no part: then it is computed once per model."""

    of_pairs: ClassVar[Twins] = False
    """Which twins are compared with their originals, if any: without pairs it is not defined."""

    of_labels: ClassVar[bool] = False
    """True when it matters which label is right: without labels it is not defined."""

    ranks: ClassVar[bool] = True
    """False where no method is to be chosen by it, as it tells of the model: no headline then."""

    usual: ClassVar[bool] = True
    """False for what takes so long that it is done only where it is named."""

    @property
    def truth_kind(self) -> str | None:
        """The kind of truth masks without which the metric is not defined."""
        return None

    def missing(self, data: Dataset[Input]) -> str:
        """What the metric needs and these data lack, and what to do; nothing if they have it."""
        if unfit := self.unfit(data.kind):
            return f"{self.spec} {unfit}, which {data.name} holds. Choose another"
        if self.of_labels and not data.labelled:
            return f"{self.spec} needs to know which label is right; {data.name} has none. Label it"
        if self.of_pairs and not data.pairs:
            return (
                f"{self.spec} compares texts with their adversarial twins; {data.name} holds no "
                "pair of them. Give originals their twins' ids in rel_ids, or twins their "
                "original's in partner"
            )
        if self.truth_kind not in (None, *data.truth_kinds):
            return (
                f"{self.spec} needs examples with truth masks of the kind {self.truth_kind!r}; "
                f"{data.name} has {', '.join(data.truth_kinds) or 'none'}. Choose with "
                f"{self.plugin_name()}(truth=…)"
            )
        return ""

    @property
    def quality(self) -> Quality:
        """What it speaks of; a method that is true of the model comes before one that pleases."""
        return "faithfulness"

    @property
    def effective_quantities(self) -> Mapping[str, Quantity]:
        """The quantities as these settings read them."""
        return self.quantities

    @classmethod
    def purpose_of(cls, kind: str) -> str:
        """What it is good for, in the words for a kind of input."""
        return input_kind(kind).nouns.fill(cls.purpose)

    @property
    def is_searched(self) -> bool:
        """Whether a search for the most damaging features shows what can be reached."""
        return any(q.searched for q in self.effective_quantities.values())

    def variants(self, truth_kinds: Sequence[str]) -> tuple[Metric, ...]:
        """The settings under which it is run where nobody chose any, on data with such truths."""
        return (self,)

    def maskings(self, n_units: int) -> frozenset[tuple[Hashable, ...]]:
        """The maskings that it asks about in terms of a ranking of so many words, such as (way of
        hiding, order, "without", 5); what two metrics name alike is asked once. By default none."""
        return frozenset()

    def n_questions(self, n_units: int) -> int | None:
        """How many questions the explanation of a text of so many words costs at most; None where
        nobody knows."""
        return None

    @abstractmethod
    def score(self, cases: Sequence[Case]) -> list[Row]:
        """One row per case; NaN where a quantity is not defined."""

    def summary(self, rows: Sequence[Row]) -> Row:
        """Means over the rows in which a quantity is defined."""
        return means(rows)


class HidingMetric(Metric):
    """A metric that hides features: run under two ways of hiding unless one is chosen, since a
    method that hides as the metric does is at home there. Its subclasses are dataclasses."""

    hiding: Hiding

    def variants(self, truth_kinds: Sequence[str]) -> tuple[Metric, ...]:
        ways = next(kind.hidings for kind in input_kinds() if self.hiding in kind.hidings)
        other = next(way for way in ways if way != self.hiding)
        return (self, self.altered(hiding=other))

    def n_questions(self, n_units: int) -> int | None:
        return len(self.maskings(n_units)) or None


@dataclass(frozen=True)
class TruthMetric(Metric):
    """A metric against features known to matter; examples without them give an empty row."""

    usual_truths: ClassVar[tuple[str, ...]] = ("rationale", PLANTED)
    """The kinds of truth to try where nobody chose one."""

    counts_unmarked: ClassVar[bool] = False
    """Whether a text that a change left without any such feature counts, with none of them."""

    truth: str = "rationale"

    @property
    def truth_kind(self) -> str | None:
        return self.truth

    @property
    def quality(self) -> Quality:
        return "faithfulness" if self.truth in (PLANTED, DECOY) else "plausibility"

    def variants(self, truth_kinds: Sequence[str]) -> tuple[Metric, ...]:
        kinds = [kind for kind in self.usual_truths if kind in truth_kinds]
        return tuple(self.altered(truth=kind) for kind in kinds) or (self,)

    def n_questions(self, n_units: int) -> int | None:
        return 0  # truths are told, not asked for

    def score(self, cases: Sequence[Case]) -> list[Row]:
        known = [self._masks(case.example) for case in cases]
        return [
            self.row(case, masks) if masks else {} for case, masks in zip(cases, known, strict=True)
        ]

    def _masks(self, example: Example) -> tuple[BoolArray, ...]:
        found = example.truths.get(self.truth, ())
        changed = self.truth in (PLANTED, DECOY) and MANIPULATION in example.facts
        if not found and changed and self.counts_unmarked:
            return (np.zeros(example.input.n_features, dtype=np.bool_),)
        return found

    @abstractmethod
    def row(self, case: Case, masks: Sequence[BoolArray]) -> Row:
        """The quantities of one case, against one or several alternative sets."""


def means(rows: Sequence[Row]) -> dict[str, float]:
    """Per name, the mean of the defined values; NaN when there is none."""
    defined: dict[str, list[float]] = {name: [] for row in rows for name in row}
    for row in rows:
        for name, value in row.items():
            if not np.isnan(value):
                defined[name].append(value)
    return {name: float(np.mean(v)) if v else float("nan") for name, v in defined.items()}
