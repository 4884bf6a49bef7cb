"""Where jobs run: in this process, in worker processes, or wherever an executor takes them."""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from queue import Empty
from typing import Any, Protocol, TypeVar

from ..core.errors import RunError

Job = TypeVar("Job")
Result = TypeVar("Result")


MOST_WORKERS = 8
"""So many processes at most unless more are asked for: each holds a model and its data."""


def default_workers(jobs: int = MOST_WORKERS) -> int:
    """A process per core for trainings, since one training gains little from a second core."""
    return max(1, min(os.cpu_count() or 1, MOST_WORKERS, jobs))


OFTEN = 0.5
"""Seconds between two pieces of news of one kind from a worker, and between two looks for them."""

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
        try:
            pickle.dumps(work)
        except Exception as error:
            raise RunError(
                f"a model or a plug-in cannot be sent to a worker process ({error}). Define it in "
                "a module, not in a function or a session, or use one worker"
            ) from error
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        # spawned, not forked: a forked copy of a process with running threads can hang
        context = get_context("spawn")
        news = context.Queue() if hear else None
        with ProcessPoolExecutor(
            min(self.workers, len(jobs)),
            mp_context=context,
            initializer=_prepare,
            initargs=(work, threads, news),
        ) as pool:
            begun = False
            numbers = {pool.submit(_do, i, job): i for i, job in enumerate(jobs)}
            waiting: set[Future[Any]] = set(numbers)
            try:
                while waiting:
                    pause = None if hear is None else OFTEN
                    done, waiting = wait(waiting, timeout=pause, return_when=FIRST_COMPLETED)
                    if hear is not None:
                        open_ = {numbers[future] for future in (*done, *waiting)}
                        for i, told in _waiting_in(news):
                            if i in open_:  # what comes behind a result is old
                                hear(jobs[i], told)
                    for future in done:
                        result, warned = future.result()
                        begun = True
                        for text in warned:
                            warnings.warn(text, stacklevel=2)
                        yield result
            except BrokenProcessPool:
                raise RunError(
                    "a worker process ended unexpectedly, perhaps for lack of memory. What was "
                    "written is kept: try again with fewer --workers"
                    if begun
                    else "the worker processes could not start. A script must call this under "
                    "`if __name__ == '__main__':`; in a session or notebook use one worker"
                ) from None
            finally:
                for future in waiting:
                    future.cancel()


# ---- what a job tells while it works ---------------------------------------------------------

_ear: Callable[[Any], None] | None = None


def tell(news: Any) -> None:
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


def _waiting_in(queue: Any) -> Iterator[tuple[int, Any]]:
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return


class _Reporter:
    """Sends news to the process that gave the jobs out; what comes too fast is left out."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.last: dict[tuple[int, type], float] = {}

    def __call__(self, number: int, news: Any) -> None:
        now, kind = time.monotonic(), (number, type(news))
        if now - self.last.get(kind, -OFTEN) >= OFTEN:
            self.last[kind] = now
            self.queue.put((number, news))


# ---- in a worker -----------------------------------------------------------------------------

_work: Callable[[Any], Any] | None = None
_reporter: _Reporter | None = None
_cores: int | None = None


def cores() -> int:
    """How many cores this process may use: a worker has its share."""
    return _cores or os.cpu_count() or 1


def _prepare(work: Callable[[Any], Any], threads: int, news: Any) -> None:
    """Keeps the work in the worker, so that models travel once and not with every job."""
    global _work, _reporter, _cores
    _work, _cores = work, threads
    if news is not None:
        news.cancel_join_thread()  # a worker that is done does not wait to be heard
        _reporter = _Reporter(news)
    import torch

    torch.set_num_threads(threads)


def _do(number: int, job: Any) -> tuple[Any, list[str]]:
    """The result, and what was warned of: to be said once, by the process that people look at."""
    assert _work is not None
    with warnings.catch_warnings(record=True) as said, _heard(number, _reporter):
        try:
            result = _work(job)
        except Exception as error:
            for warned in said:  # it may tell why
                error.add_note(f"warned before: {warned.message}")
            raise
    return result, [str(warned.message) for warned in said]
