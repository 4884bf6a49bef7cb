"""Texts beside their adversarial twins: what a model said and what a method marked
(definitions 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import DataError, PluginError, RunError
from ..core.examples import UNLABELLED, Dataset, Example
from ..core.inputs import Text
from ..core.plugins import nearest
from ..metrics.consistency import Consistency
from ..metrics.movement import Movement, changed_words
from .run import Run
from .statistics import defined_mean
from .verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class Side:
    """One text of a pair with its explanation."""

    id: str
    input: Text
    scores: tuple[float, ...]
    top: tuple[int, ...]
    """Places of the top words, the most important first."""
    rationales: tuple[tuple[int, ...], ...]
    """Places of the words of each set that people marked."""
    label: str
    answer: str
    explained: str
    """The label that the scores speak for."""

    @property
    def wrong(self) -> bool:
        return self.label not in (self.answer, UNLABELLED)

    @property
    def top_words(self) -> tuple[str, ...]:
        return tuple(self.input.words[i] for i in self.top)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A text and its twin, and what changed from one to the other."""

    original: Side
    twin: Side
    attack: str
    """What was done to the original, if the data say so."""
    map: float
    entered: tuple[str, ...]
    left: tuple[str, ...]
    """Words that are top words of the twin alone, and of the original alone."""
    shared: int
    """How many of the twin's top words are among the original's."""
    new: tuple[str, ...]
    """The twin's words that are not its original's, in order."""
    found: float
    """Of a twin that turned label and answer: the share of these among as many top words."""
    chance: float
    """The share that a random order finds."""

    @property
    def turned(self) -> bool:
        """Whether the twin has another label, so that its explanation should differ."""
        return self.original.label != self.twin.label

    @property
    def one_wrong(self) -> bool:
        return self.original.wrong != self.twin.wrong


@dataclass(frozen=True)
class Pairs:
    """All pairs of a dataset, those with exactly one wrong answer first."""

    model: str
    data: str
    method: str
    measure: Consistency
    pairs: tuple[Pair, ...]

    @property
    def one_wrong(self) -> int:
        return sum(pair.one_wrong for pair in self.pairs)

    @property
    def alike(self) -> tuple[Pair, ...]:
        """Those that should be explained alike."""
        return tuple(p for p in self.pairs if self.measure.twins == "all" or not p.turned)

    @property
    def turned(self) -> tuple[Pair, ...]:
        """Those whose label changed, and the answer with it, so that the new words turned it."""
        return tuple(p for p in self.pairs if not np.isnan(p.found))

    @property
    def unranked(self) -> int:
        """Pairs without MAP: one of both has words but no scores."""
        return sum(bool(np.isnan(pair.map)) for pair in self.alike)

    @property
    def mean_map(self) -> float:
        """MAP over the pairs in which it is defined."""
        return defined_mean([pair.map for pair in self.alike])

    @property
    def mean_found(self) -> float:
        return defined_mean([pair.found for pair in self.turned])

    @property
    def mean_chance(self) -> float:
        return defined_mean([pair.chance for pair in self.turned])


def pairs_of(run: Run, model: str, method: str) -> Pairs:
    """What a run holds about the pairs in its data; needs neither the data nor the model."""
    for name, known, kind in ((model, run.models, "model"), (method, run.explainers, "method")):
        if name not in known:
            raise PluginError(f"no {kind} {name!r} in {run.folder}: {nearest(name, known)}")
    data = Dataset(run.config.dataset.name, run.labels, tuple(run.examples()))
    found = run.attributions(model, method)
    answers = run.predictions(model)
    missing = [e.id for pair in data.pairs for e in pair if e.id not in found]
    if missing:
        raise RunError(
            f"{run.folder} holds no explanation of {missing[0]!r} by {method} of {model}, and of "
            f"{len(missing) - 1} others. Give the audit command again"
        )
    if not data.pairs:
        raise DataError(
            f"expected texts with adversarial twins; {data.name} holds no pair of them. Give "
            "originals their twins' ids in rel_ids, or twins their original's in partner"
        )
    measure = Consistency()

    def side(example: Example) -> Side:
        one = found[example.id]
        marked = example.truths.get("rationale", ())
        return Side(
            id=example.id,
            input=example.input,
            scores=tuple(one.scores.tolist()),
            top=measure.top(one),
            rationales=tuple(tuple(np.flatnonzero(mask).tolist()) for mask in marked),
            label=data.labels[example.label],
            answer=data.labels[int(np.argmax(answers[example.id]))],
            explained=data.labels[one.target],
        )

    pairs = []
    for original, twin in data.pairs:
        one, other = side(original), side(twin)
        explained = found[original.id], found[twin.id]
        alike = measure.asks(original, twin)
        turned = one.label != other.label
        new = changed_words(original.input.words, twin.input.words) if turned else ()
        moved = Movement().compared(*explained, one.answer != other.answer) if turned else {}
        entered, left, shared = top_word_changes(one.top_words, other.top_words)
        pair = Pair(
            original=one,
            twin=other,
            attack=twin.facts.get("adv_type", ""),
            map=measure.compared(*explained)["map"] if alike else float("nan"),
            entered=entered,
            left=left,
            shared=shared,
            new=tuple(twin.input.words[i] for i in np.flatnonzero(new)),
            found=moved.get("found", float("nan")),
            chance=moved.get("share", float("nan")),
        )
        pairs.append(pair)
    ordered = sorted(pairs, key=lambda pair: not pair.one_wrong)  # stable: else as in the data
    return Pairs(model, data.name, method, measure, tuple(ordered))


def telling_method(run: Run, model: str, verdicts: Sequence[Verdict]) -> str:
    """The method to show pairs by where nobody chose one: what the run's verdicts recommend first,
    or else the first that looks at the model at all."""
    unable = {s.explainer for s in run.config.skipped if s.model == model}
    able = [e for e in run.explainers if e not in unable]
    advised = [v.use for v in verdicts]
    informed = [e for e in able if e not in run.config.baselines]
    return next(name for name in (*advised, *informed, *able) if name in able)


def top_word_changes(
    original: Sequence[str], twin: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """The words that entered and those that left, each once and the most important first, and how
    many stayed."""
    return (
        tuple(dict.fromkeys(word for word in twin if word not in original)),
        tuple(dict.fromkeys(word for word in original if word not in twin)),
        sum(word in original for word in twin),
    )
