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


class Memory:
    """Answers of models that do not change while they are remembered."""

    def __init__(self) -> None:
        self.answers: OrderedDict[tuple[int, Hashable], FloatArray] = OrderedDict()
        self.models: dict[int, object] = {}  # held, so that no other model gets their number

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()  # a worker starts with an empty one


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextlib.contextmanager
def remembering(memory: Memory | None = None) -> Iterator[Memory]:
    """Within it, models are asked the same question once: several methods and metrics that look at
    the same texts share what they ask. Models must not change in the meantime."""
    chosen = memory if memory is not None else Memory()
    token = _memory.set(chosen)
    try:
        yield chosen
    finally:
        _memory.reset(token)


def recalled(
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
        memory.models[id(model)] = model
        for key, place in places.items():
            memory.answers[id(model), key] = found[place]
            memory.answers.move_to_end((id(model), key))
        while len(memory.answers) > MOST_ANSWERS:
            memory.answers.popitem(last=False)
    return found[which]
