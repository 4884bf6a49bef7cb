"""How far long work has come: one record, from any process, to any watcher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """So much is done of so much, and what is being done."""

    done: int
    total: int
    doing: str
    _: KW_ONLY
    seconds_left: float | None = None
    more_to_come: bool = False
    """Whether work comes on top of which nothing is known yet."""
    step: str = ""
    """Whose progress it is, of several that are under way; empty for the whole."""


@dataclass(frozen=True, kw_only=True)
class TrainingProgress(Progress):
    """Batches of an epoch that are done; at its end the epochs, and what this one came to."""

    epoch: int
    loss: float
    result: Any = None

    @classmethod
    def of_epoch(cls, result: Any, epochs: int) -> TrainingProgress:
        """An epoch is over: its result has a number and a loss, and says itself in a line."""
        n = result.number
        return cls(n + 1, epochs, str(result), epoch=n, loss=result.loss, result=result)


Watcher = Callable[[Progress], None]
