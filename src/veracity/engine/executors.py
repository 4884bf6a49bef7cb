"""Where jobs run: in this process, in worker processes, or wherever an executor takes them."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .processes import results

Job = TypeVar("Job")
Result = TypeVar("Result")


MOST_WORKERS = 8
"""So many processes at most unless more are asked for: each holds a model and its data."""


def default_workers(jobs: int = MOST_WORKERS) -> int:
    """A process per core for trainings, since one training gains little from a second core."""
    return max(1, min(os.cpu_count() or 1, MOST_WORKERS, jobs))


OFTEN = 0.5
"""Seconds between two pieces of news of one kind from a worker."""

Hearer = Callable[[Any, Any], None]
"""Takes a job and what it told."""


class Executor(Protocol):
    """Runs the same work on many jobs. Jobs are independent; results come in any order."""

    def map(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]: ...


@dataclass(frozen=True)
class Local:
    """This machine: one process, or several that each get the work once."""

    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"expected at least one worker, got {self.workers}")

    def map(
        self,
        work: Callable[[Job], Result],
        jobs: Sequence[Job],
        *,
        hear: Hearer | None = None,
    ) -> Iterator[Result]:
        """Results as they are done; the first failure stops the rest. What a job tells while it
        works is heard here, whichever process it works in."""
        if self.workers == 1 or len(jobs) <= 1:
            for job in jobs:
                with _heard(job, hear):
                    result = work(job)
                yield result
            return
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        task = _Task(work, threads, heard=hear is not None)
        found = results(
            task,
            jobs,
            workers=min(self.workers, len(jobs)),
            hear=lambda i, news: hear(jobs[i], news) if hear is not None else None,
        )
        with closing(found):
            for result, warned in found:
                for text in warned:
                    warnings.warn(text, stacklevel=2)
                yield result


# ---- what a job tells while it works ---------------------------------------------------------

_ear: Callable[[Any], None] | None = None


def report_progress(news: Any) -> None:
    """From within a job, for whoever gave it out; unheard where nobody listens."""
    if _ear is not None:
        _ear(news)


@contextmanager
def _heard(job: Any, hear: Hearer | None) -> Iterator[None]:
    """Jobs within a job, which nobody listens to themselves, are heard as that job."""
    global _ear
    if hear is None:
        yield
        return
    before, _ear = _ear, lambda news: hear(job, news)
    try:
        yield
    finally:
        _ear = before


# ---- in a worker -----------------------------------------------------------------------------

_cores: int | None = None


def cores() -> int:
    """How many cores this process may use: a worker has its share."""
    return _cores or os.cpu_count() or 1


@dataclass(frozen=True)
class _Task:
    """The work as a worker does it: with its share of the cores, and heard by its parent."""

    work: Callable[[Any], Any]
    threads: int
    heard: bool

    def __call__(self, job: Any, send: Callable[[Any], None]) -> tuple[Any, list[str]]:
        """The result, and what was warned of: to be said once, by the process that people look
        at."""
        global _cores
        _cores = self.threads
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.threads)
        else:  # it takes seconds to import, and not all work needs it
            os.environ["OMP_NUM_THREADS"] = str(self.threads)
        hear = _Reporter(send) if self.heard else None
        with warnings.catch_warnings(record=True) as said, _heard(job, hear):
            try:
                result = self.work(job)
            except Exception as error:
                for warned in said:  # it may tell why
                    error.add_note(f"warned before: {warned.message}")
                raise
        return result, [str(warned.message) for warned in said]


class _Reporter:
    """Sends news to the process that gave the jobs out; what comes too fast is left out."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send
        self.last: dict[type, float] = {}

    def __call__(self, job: Any, news: Any) -> None:
        now, kind = time.monotonic(), type(news)
        if now - self.last.get(kind, -OFTEN) >= OFTEN:
            self.last[kind] = now
            self.send(news)
