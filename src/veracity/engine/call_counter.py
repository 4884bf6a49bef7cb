"""Counting the questions put to a model, since that is what an endpoint costs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class CallCounter:
    """How many texts, or points on the way to a text, a model was asked about."""

    questions: int = 0


_current: ContextVar[CallCounter | None] = ContextVar("tally", default=None)


@contextlib.contextmanager
def count_calls() -> Iterator[CallCounter]:
    """Counts what is asked inside the block."""
    tally = CallCounter()
    token = _current.set(tally)
    try:
        yield tally
    finally:
        _current.reset(token)


def add_calls(questions: int) -> None:
    """Says that so many questions were put."""
    tally = _current.get()
    if tally is not None:
        tally.questions += questions
