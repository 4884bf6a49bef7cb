"""Where jobs run: in this process, in worker processes, or wherever an executor takes them."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from ..core.progress import Progress, Watcher
from .processes import results

Job = TypeVar("Job")
Result = TypeVar("Result")


MOST_WORKERS = 8
"""So many processes at most unless more are asked for: each holds a model and its data."""


def default_workers(jobs: int = MOST_WORKERS) -> int:
    """A process per core for trainings, since one training gains little from a second core."""
    return max(1, min(os.cpu_count() or 1, MOST_WORKERS, jobs))


INTERVAL = 0.5
"""Seconds between two reports of a worker that does the same thing."""

JobWatcher = Callable[[Any, Progress], None]
"""Takes a job that is under way and how far it has come."""


class Executor(Protocol):
    """Runs the same work on many jobs. Jobs are independent and are taken as they can be done;
    results come in any order. `progress` gets what jobs report while they are under way."""

    def map(
        self,
        work: Callable[[Job], Result],
        jobs: Iterable[Job],
        *,
        progress: JobWatcher | None = None,
    ) -> Iterator[Result]: ...


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
        jobs: Iterable[Job],
        *,
        progress: JobWatcher | None = None,
    ) -> Iterator[Result]:
        """Results as they are done; the first failure stops the rest. A worker has one job at a
        time, and no job is taken before a worker is free for it."""
        jobs = iter(jobs)
        first = list(islice(jobs, self.workers))
        jobs = chain(first, jobs)
        if len(first) <= 1:
            for job in jobs:
                with _reporting(job, progress):
                    result = work(job)
                yield result
            return
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        task = _Task(work, threads, watched=progress is not None)
        found = results(task, jobs, workers=len(first), progress=progress or (lambda *_: None))
        with closing(found):
            for result, warned in found:
                for text in warned:
                    warnings.warn(text, stacklevel=2)
                yield result


# ---- what a job reports while it works -------------------------------------------------------

_watcher: Watcher | None = None


def report_progress(progress: Progress) -> None:
    """From within a job, to whoever gave it out."""
    if _watcher is not None:
        _watcher(progress)


@contextmanager
def _reporting(job: Any, watcher: JobWatcher | None) -> Iterator[None]:
    """Jobs within a job, which nobody watches themselves, report as that job."""
    global _watcher
    if watcher is None:
        yield
        return
    before, _watcher = _watcher, lambda progress: watcher(job, progress)
    try:
        yield
    finally:
        _watcher = before


# ---- in a worker -----------------------------------------------------------------------------

_cores: int | None = None


def cores() -> int:
    """How many cores this process may use: a worker has its share."""
    return _cores or os.cpu_count() or 1


@dataclass(frozen=True)
class _Task:
    """The work as a worker does it: with its share of the cores, and watched by its parent."""

    work: Callable[[Any], Any]
    threads: int
    watched: bool

    def __call__(self, job: Any, send: Watcher) -> tuple[Any, list[str]]:
        """The result, and what was warned of: to be said once, by the process that people look
        at."""
        global _cores
        _cores = self.threads
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.threads)
        else:  # it takes seconds to import, and not all work needs it
            os.environ["OMP_NUM_THREADS"] = str(self.threads)
        watcher = _Reporter(send) if self.watched else None
        with warnings.catch_warnings(record=True) as caught, _reporting(job, watcher):
            try:
                result = self.work(job)
            except Exception as error:
                for warned in caught:  # it may tell why
                    error.add_note(f"warned before: {warned.message}")
                raise
        return result, [str(warned.message) for warned in caught]


class _Reporter:
    """Sends progress to the process that gave the jobs out; what comes too fast is left out."""

    def __init__(self, send: Watcher) -> None:
        self.send = send
        self.last: dict[str, float] = {}

    def __call__(self, job: Any, progress: Progress) -> None:
        now, doing = time.monotonic(), progress.doing
        if now - self.last.get(doing, -INTERVAL) >= INTERVAL:
            self.last[doing] = now
            self.send(progress)
