"""The most damaging words that a search finds: what a test of erasure lets anybody reach
(definitions 5.14)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.attributions import Attribution
from ..core.classifiers import Classifier
from ..core.explainers import Explainer
from ..core.inputs import ANY_KIND, BoolArray, FloatArray, Hiding, Input, IntArray
from ..engine.inference import LazyMasks, Masks, masked_probabilities
from ._batch import Inputs, Rngs, Targets

Asking = Generator[Masks, FloatArray, IntArray]
"""Yields masks of words shown (masks, words), is sent the explained label's probabilities (masks,),
and returns the order in which words go."""

DIGITS = 6
"""Answers that differ by less are ties: batches of another size may round otherwise."""


@dataclass(frozen=True)
class Search(Explainer):
    """Words, or segments, in the order in which hiding them hurts the answer most.

    All orders are tried where these are few, else a beam search is made. It looks for what erasure
    rewards, so it is a ceiling, no method.
    """

    takes: ClassVar[tuple[str, ...]] = ANY_KIND
    ceiling: ClassVar[bool] = True
    largest: ClassVar[Mapping[str, int]] = {"beam": 1000}

    beam: int = 2
    """So many sets of words are followed; 1 is the greedy search."""
    exact: int = 9
    """Texts of so many words or fewer are searched through."""
    questions: int = 2000
    """About so many questions a text; words that they do not reach are ordered by their effect."""
    hiding: Hiding = Hiding.DELETE

    def __post_init__(self) -> None:
        if self.beam < 1 or self.questions < 1 or not 0 <= self.exact <= 16:
            raise ValueError(
                "expected a beam and questions of at least 1 and exact from 0 to 16, got "
                f"beam={self.beam}, questions={self.questions}, exact={self.exact}"
            )

    def n_questions(self, n_units: int) -> int | None:
        if n_units <= self.exact:
            return 1 << n_units
        # a step that begins within the bound is finished
        return min(self.questions, self.beam * n_units * n_units) + self.beam * n_units

    def explain(
        self, model: Classifier, inputs: Inputs, targets: Targets, rngs: Rngs
    ) -> list[Attribution[Input]]:
        searches = [
            best_order(n) if n <= self.exact else self._beam(n)
            for n in (text.n_units for text in inputs)
        ]
        masks = {i: next(search) for i, search in enumerate(searches)}
        found: list[Attribution[Input] | None] = [None] * len(inputs)
        while masks:  # all texts go step by step together, so that batches are full
            asked = list(masks)
            answers = masked_probabilities(
                model, [inputs[i] for i in asked], [masks[i] for i in asked], self.hiding
            )
            for i, rows in zip(asked, answers, strict=True):
                try:
                    masks[i] = searches[i].send(rows[:, targets[i]].round(DIGITS))
                except StopIteration as end:
                    del masks[i]
                    scores = np.zeros(inputs[i].n_units)
                    scores[end.value] = np.arange(len(scores), 0, -1)
                    found[i] = Attribution(inputs[i], targets[i], inputs[i].on_features(scores))
        return [one for one in found if one is not None]

    def _beam(self, n: int) -> Asking:
        """The beam's states are the words gone so far, in order; ties go to the earlier words."""
        states: list[tuple[int, ...]] = [()]
        totals = [0.0]  # sums of the answers along each state's way
        asked = 0
        while len(states[0]) < n and asked < self.questions:
            # two ways to one set of words are one: the one that hurt more on the way
            found: dict[frozenset[int], tuple[float, float, tuple[int, ...]]] = {}
            ways = [(*state, word) for state in states for word in range(n) if word not in state]
            sums = np.repeat(totals, n - len(states[0])).tolist()
            answers = yield without(ways, n)
            asked += len(ways)
            for way, p, total in zip(ways, answers.tolist(), sums, strict=True):
                key = frozenset(way)
                if key not in found or total + p < found[key][1]:
                    found[key] = (p, total + p, way)
            kept = sorted(found.values(), key=lambda one: (one[0], one[1], one[2]))[: self.beam]
            states, totals = [way for _, _, way in kept], [total for _, total, _ in kept]
            last = dict(zip(ways, answers.tolist(), strict=True))
        best = states[int(np.argmin(totals))]
        rest = [word for word in range(n) if word not in best]
        # by what hiding them did at the last step, next to the words that were gone before it
        effects = {way[-1]: p for way, p in last.items() if way[:-1] == best[:-1]}
        rest.sort(key=lambda word: effects.get(word, 1.0))
        return np.array([*best, *rest], dtype=np.int64)


def without(ways: Sequence[tuple[int, ...]], n: int) -> LazyMasks:
    """Everything but the words of each way, all of one length."""
    gone = np.array(ways)

    def made(places: IntArray) -> BoolArray:
        shown = np.ones((len(places), n), dtype=np.bool_)
        np.put_along_axis(shown, gone[places], False, axis=1)
        return shown

    return LazyMasks((len(ways), n), made)


def best_order(n: int) -> Asking:
    """The order of going words under which the answers, summed over all steps, are smallest: every
    set of words is asked about once, and the best way to each follows from those to smaller ones.
    """
    sets = np.arange(2**n)
    gone = (sets[:, None] >> np.arange(n)) & 1 == 1  # (sets, words)
    answers = yield ~gone
    totals = np.zeros(2**n)
    last = np.zeros(2**n, dtype=np.int64)
    sizes = gone.sum(axis=1)
    for size in range(1, n + 1):  # sets of a size hang only on smaller ones
        own = sets[sizes == size]
        without_one = own[:, None] ^ (1 << np.arange(n))
        before = np.where(gone[own], totals[without_one], np.inf)  # (sets of the size, words)
        last[own] = before.argmin(axis=1)
        totals[own] = answers[own] + before.min(axis=1)
    order, s = [], 2**n - 1
    while s:
        order.append(int(last[s]))
        s -= 1 << int(last[s])
    return np.array(order[::-1], dtype=np.int64)
