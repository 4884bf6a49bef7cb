"""Somebody else's code: whatever it does but answer is an error under its name."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import NoReturn

import numpy as np

from .errors import ModelError, VeracityError

PACKAGE = Path(__file__).resolve().parents[1]

_real_exit = os._exit


class _ExitCalled(BaseException):
    """Raised instead of ending this process."""


@contextmanager
def guarded(name: str, doing: str = "", *, advice: str = "") -> Iterator[None]:
    """For the time that a stranger's code runs: it answers, or it has failed. A model that leaves
    by `sys.exit(0)` must not pass for one that was audited. What it prints is no result of ours,
    and what it changes of the process is changed back."""
    try:
        with (
            redirect_stdout(sys.stderr),
            _directory_restored(),
            _settings_restored(),
            _exit_as_error(),
        ):
            yield
    except VeracityError:
        raise  # a sentence already
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise ModelError(f"{name} {describe_failure(error, doing)}{advice}") from error


@contextmanager
def _directory_restored() -> Iterator[None]:
    """Back to this folder, wherever code went: our files have relative paths."""
    try:
        directory = Path.cwd()
    except OSError:  # it is gone
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            if Path.cwd() != directory:
                os.chdir(directory)


@contextmanager
def _settings_restored() -> Iterator[None]:
    """What code may set for all: warnings and numpy's as errors, how deep calls may go."""
    depth, filters = sys.getrecursionlimit(), warnings.filters[:]
    try:
        with np.errstate():
            yield
    finally:
        if sys.getrecursionlimit() != depth:
            sys.setrecursionlimit(depth)
        if warnings.filters != filters:  # else each warning would count as a new one
            warnings.resetwarnings()
            warnings.filters[:] = filters  # type: ignore[index]


@contextmanager
def _exit_as_error() -> Iterator[None]:
    """Code that ends the process on the spot would choose our exit code; processes that it has
    begun may end."""
    process = os.getpid()

    def fail(status: int) -> NoReturn:
        if os.getpid() == process:
            raise _ExitCalled(status)
        _real_exit(status)

    before, os._exit = os._exit, fail
    try:
        yield
    finally:
        os._exit = before


def describe_failure(error: BaseException, doing: str = "") -> str:
    """What code did instead of answering, for the middle of a sentence."""
    message = error_message(error)
    if isinstance(error, _ExitCalled):
        return f"called os._exit({message}){doing} instead of answering"
    if isinstance(error, SystemExit):
        return f"called sys.exit({message}){doing} instead of answering"
    return f"raised {type(error).__name__}{doing}" + (f": {message}" if message else "")


def error_message(error: BaseException) -> str:
    """An error's message; the errors of strangers may fail even at that."""
    try:
        return str(error)
    except BaseException as other:
        if is_interrupt(other):
            raise
        return "(a message that cannot be printed)"


def is_interrupt(error: BaseException) -> bool:
    """Whether a person stopped the work. Code may raise KeyboardInterrupt, too: where a handler of
    ours raises it for a signal, that is seen by where it comes from."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    handler = signal.getsignal(signal.SIGINT)
    ours = is_own_file(getattr(getattr(handler, "__code__", None), "co_filename", ""))
    return not ours or is_own_file(raised_at(error)[0])


def raised_at(error: BaseException) -> tuple[str, int]:
    """The file and line that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)


def is_own_file(file: str) -> bool:
    """Whether a file is one of this package."""
    return bool(file) and Path(file).resolve().is_relative_to(PACKAGE)
