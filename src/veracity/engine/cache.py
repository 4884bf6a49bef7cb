"""What a model was asked before need not be asked again."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar

import numpy as np

from ..core.inputs import FloatArray

MOST_ANSWERS = 200_000
"""So many answers are kept; the ones not used for longest go first."""

MOST_FEATURES = 5_000_000
"""And so many features of the inputs that were asked: a word takes a hundred bytes and more."""


class AnswerCache:
    """Answers of models that do not change while they are remembered."""

    def __init__(self) -> None:
        self.answers: OrderedDict[tuple[int, Hashable], FloatArray] = OrderedDict()
        self.models: dict[int, object] = {}  # held, so that no other model gets their number
        self.features = 0

    def keep(self, model: object, key: Hashable, answer: FloatArray) -> None:
        """Remember an answer, and forget old ones to make room."""
        self.models[id(model)] = model
        if (id(model), key) not in self.answers:
            self.features += getattr(key, "n_features", 0)
        self.answers[id(model), key] = answer
        self.answers.move_to_end((id(model), key))
        while len(self.answers) > MOST_ANSWERS or self.features > MOST_FEATURES:
            (_, old), _ = self.answers.popitem(last=False)
            self.features -= getattr(old, "n_features", 0)

    def __reduce__(self) -> tuple[type[AnswerCache], tuple[()]]:
        return AnswerCache, ()  # a worker starts with an empty one


_memory: ContextVar[AnswerCache | None] = ContextVar("memory", default=None)


@contextlib.contextmanager
def caching(memory: AnswerCache | None = None) -> Iterator[AnswerCache]:
    """Within it, models are asked the same question once: several methods and metrics that look at
    the same inputs share what they ask. Models must not change in the meantime."""
    chosen = memory if memory is not None else AnswerCache()
    token = _memory.set(chosen)
    try:
        yield chosen
    finally:
        _memory.reset(token)


def cached_answers(
    model: object, keys: Sequence[Hashable], ask: Callable[[list[int]], FloatArray], width: int
) -> FloatArray:
    """A row of answers per key; `ask` gets the places of those that are new, each key once.

    What reads alike gets, to the last digit, one answer.
    """
    places: dict[Hashable, int] = {}
    which = [places.setdefault(key, len(places)) for key in keys]
    first = {place: i for i, place in zip(reversed(range(len(keys))), reversed(which), strict=True)}
    memory = _memory.get()
    found = np.zeros((len(places), width))
    new = []
    for key, place in places.items():
        known = None if memory is None else memory.answers.get((id(model), key))
        if known is None:
            new.append((key, place))
        else:
            found[place] = known
    if new:
        found[[place for _, place in new]] = ask([first[place] for _, place in new])
    if memory is not None:
        for key, place in places.items():
            memory.keep(model, key, found[place])
    return found[which]
