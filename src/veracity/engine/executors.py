"""Where jobs run: in this process, in worker processes, or wherever an executor takes them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from ..core.errors import RunError

Job = TypeVar("Job")
Result = TypeVar("Result")


MOST_WORKERS = 8
"""So many processes at most unless more are asked for: each holds a model and its data."""


def default_workers(jobs: int = MOST_WORKERS) -> int:
    """A process per core for trainings, since one training gains little from a second core."""
    return max(1, min(os.cpu_count() or 1, MOST_WORKERS, jobs))


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

    def map(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Results as they are done; the first failure stops the rest."""
        if self.workers == 1 or len(jobs) <= 1:
            yield from map(work, jobs)
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
        with ProcessPoolExecutor(
            min(self.workers, len(jobs)),
            mp_context=get_context("spawn"),
            initializer=_prepare,
            initargs=(work, threads),
        ) as pool:
            begun = False
            waiting: set[Future[Any]] = {pool.submit(_do, job) for job in jobs}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        begun = True
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


_work: Callable[[Any], Any] | None = None


def _prepare(work: Callable[[Any], Any], threads: int) -> None:
    """Keeps the work in the worker, so that models travel once and not with every job."""
    global _work
    _work = work
    import torch

    torch.set_num_threads(threads)


def _do(job: Any) -> Any:
    assert _work is not None
    return _work(job)
