"""Worker processes that end with their parent, and whose own end is noticed at once.

The pool of the standard library writes the work into a pipe whose other end it holds itself: where
a worker dies before it has read, it waits for ever. Here each worker has a connection of its own
that ends with it, and one job at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from typing import Any, Literal

from ..core.errors import RunError, VeracityError
from ..core.progress import Progress, Watcher

Task = Callable[[Any, Watcher], Any]
"""Takes a job, and what sends its progress."""

POLL_SECONDS = 0.5
"""Between two looks whether a process is still there, where no connection tells."""

EXIT_SECONDS = 5.0
"""What an idle worker has to leave by itself."""

DIED = "a worker process ended unexpectedly, perhaps for lack of memory"
KEPT = "What was written is kept: try again with fewer --workers"
NOT_STARTED = (
    "the worker processes could not start{why}. A script must call this under "
    "`if __name__ == '__main__':`; in a session or notebook use one worker"
)

Kind = Literal["ready", "progress", "result", "failure", "end"]


def results(
    task: Task,
    jobs: Iterable[Any],
    *,
    workers: int,
    progress: Callable[[Any, Progress], None],
) -> Generator[Any, None, None]:
    """What becomes of each job, as they are done. The job of a worker that dies is done once more,
    with one worker fewer."""
    numbered, lost, again = enumerate(jobs), deque[tuple[int, Any]](), set[int]()

    def assign(worker: _Worker) -> None:
        worker.job = lost.popleft() if lost else next(numbered, None)
        if worker.job is not None:
            worker.send(pickle.dumps(worker.job[1]))

    with _Pool(workers) as pool:
        pool.start(task)
        while True:
            for worker in pool.workers:
                if worker.job is None:
                    assign(worker)
            if all(worker.job is None for worker in pool.workers):
                break
            for worker in pool.ready():
                kind, content = worker.receive()
                if kind == "progress":
                    assert worker.job is not None
                    progress(worker.job[1], content)
                elif kind == "result":
                    assign(worker)  # before anything else is done with the result
                    yield content
                elif kind == "failure" and not _is_out_of_memory(content):
                    raise content
                elif kind != "ready":
                    pool.discard(worker)
                    if not worker.ready and (worker.process.exitcode or 0) > 0:
                        raise RunError(NOT_STARTED.format(why=""))  # nor will any other
                    if not pool.workers or (worker.job and worker.job[0] in again):
                        raise content if kind == "failure" else RunError(f"{DIED}. {KEPT}")
                    if worker.job is not None:
                        again.add(worker.job[0])
                        lost.append(worker.job)
                    warnings.warn(f"{DIED}. Going on with one worker fewer", stacklevel=2)
        pool.dismiss()


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether fewer workers may help; PyTorch says it in words."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and ("allocate memory" in message or "out of memory" in message)
    )


# ---- in the parent ---------------------------------------------------------------------------


class _Worker:
    """A process, the connection to it, and the job that it has, with its number."""

    def __init__(self) -> None:
        # spawned, not forked: a forked copy of a process with running threads can hang
        context = multiprocessing.get_context("spawn")
        self.connection, self.far_end = context.Pipe()
        # what a process is started with must fit into a pipe that nobody may ever read
        self.process = context.Process(target=_serve, args=(self.far_end,))
        self.job: tuple[int, Any] | None = None
        self.ready = False

    def start(self) -> None:
        try:
            self.process.start()
        finally:
            self.far_end.close()  # so that only the worker holds it, and it ends with the worker

    def send(self, content: bytes) -> None:
        with contextlib.suppress(OSError):  # that it is dead is noticed where it is listened to
            self.connection.send_bytes(content)

    def receive(self) -> tuple[Kind, Any]:
        try:
            packed = self.connection.recv_bytes() if self.connection.poll() else None
        except (EOFError, OSError):
            packed = None
        if packed is None:
            return "end", None
        kind, content = pickle.loads(packed)
        if kind == "failure":
            error, trace = content
            if not (self.ready or isinstance(error, VeracityError) or _is_out_of_memory(error)):
                error = RunError(NOT_STARTED.format(why=f" ({error})"))
            error.__cause__ = _WorkerTraceback(trace)
            content = error
        self.ready = True
        return kind, content

    @property
    def gone(self) -> bool:
        """Whether it ended and all that it sent was read."""
        return self.process.exitcode is not None and not self.connection.poll()


class _WorkerTraceback(Exception):
    """Where in a worker an error arose, for a traceback."""


class _Pool:
    """Workers that none outlives a block, or this process."""

    def __init__(self, workers: int) -> None:
        self.workers = [_Worker() for _ in range(workers)]

    def __enter__(self) -> _Pool:
        # at exit the standard library waits for processes: they are ended before, in any case
        self.end = Finalize(None, _kill, (tuple(self.workers),), exitpriority=10)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, task: Task) -> None:
        try:
            packed = pickle.dumps(task)
        except Exception as error:
            raise RunError(
                f"a model or a plug-in cannot be sent to a worker process ({error}). Define it in "
                "a module, not in a function or a session, or use one worker"
            ) from error
        with _signals_blocked():
            for worker in self.workers:
                worker.start()
        for worker in self.workers:
            worker.send(packed)

    def ready(self) -> list[_Worker]:
        """Those with something to receive, be it their end."""
        readable = wait([worker.connection for worker in self.workers], POLL_SECONDS)
        # a process of its own that a worker leaves behind may hold its end of the connection
        return [w for w in self.workers if w.connection in readable or w.gone]

    def discard(self, worker: _Worker) -> None:
        """One that has ended, or that shall free its memory."""
        self.workers.remove(worker)
        worker.connection.close()
        _wait_for([worker], POLL_SECONDS)
        _kill([worker])

    def dismiss(self) -> None:
        """Lets idle workers leave in order."""
        for worker in self.workers:
            worker.connection.close()
        _wait_for(self.workers, EXIT_SECONDS)


def _kill(workers: Sequence[_Worker]) -> None:
    started = [w for w in workers if w.process.pid is not None]
    for worker in started:
        worker.process.kill()
    _wait_for(started, EXIT_SECONDS)


def _wait_for(workers: Sequence[_Worker], seconds: float) -> None:
    """Until they have ended. To join one would also wait for processes that it leaves behind."""
    deadline = time.monotonic() + seconds
    while any(w.process.exitcode is None for w in workers) and time.monotonic() < deadline:
        time.sleep(0.005)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """What is started within does not hear ^C and the end of a terminal: its parent does, and ends
    it. Nor does a signal reach us while a process is told half of what it is: it would complain."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # as it starts, it lets signals through again
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGTERM}
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in a worker -----------------------------------------------------------------------------


def _serve(connection: Connection) -> None:
    """Takes the task, then jobs, until nobody gives any."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _end_with_parent()
    lock = threading.Lock()

    def send(kind: Kind, content: Any) -> None:
        packed = pickle.dumps((kind, content))
        with lock:
            connection.send_bytes(packed)

    task: Task | None = None
    with contextlib.suppress(EOFError, OSError):  # nobody is there any more
        while True:
            packed = connection.recv_bytes()
            try:
                if task is None:
                    task = pickle.loads(packed)
                    send("ready", None)
                else:
                    job = pickle.loads(packed)
                    send("result", task(job, lambda progress: send("progress", progress)))
            except BaseException as error:
                send("failure", (_portable(error), traceback.format_exc()))
                if task is None:
                    return


def _portable(error: BaseException) -> BaseException:
    """The error itself where it survives the journey, else what it says."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind = RunError if isinstance(error, VeracityError) else RuntimeError
        return kind(f"{type(error).__name__}: {error}")
    return error


PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Whatever ends the parent. Linux kills us itself, whatever we compute; elsewhere, and where
    the parent ended before we asked for that, a thread looks."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    while os.getppid() == parent.pid and not wait([parent.sentinel], POLL_SECONDS):
        pass
    os._exit(1)
