"""What a command's exit code says (docs/how-to/ci.md), and the signals that end one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

MISSED_THRESHOLD = 1
BAD_INPUT = 2
BUG = 70
SIGNALLED = 128
"""And the number of the signal, as shells count."""

CLOSED_PIPE = SIGNALLED + 13
"""Not 0: who reads no further has not seen whether a bar was missed, and a gate must not pass."""

RESEND_SECONDS = 2.0
"""Seconds until a signal that was swallowed on the way is given again."""

OWN_CODE_SECONDS = 0.5
"""Seconds that a signal waits for code of ours to be at work: raised within code that a library in
C++ called, it may end the process by an abort."""

RETRY_SECONDS = 0.01
"""Seconds until it looks again."""

MOST_SIGNALS = 3
"""How many signals end the command at once, where code of a model swallows the first."""

_real_exit = os._exit  # while a model answers the name itself is an error


class Signals:
    """The signal that was received, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.count = 0
        self.since = 0.0
        """When it was received, in seconds of a clock."""
        self.ended = False
        """Whether what ran has ended, so that nothing is to be raised any more."""

    def receive(self, number: int, frame: FrameType | None) -> None:
        """The first one ends what runs, and is tried again where a library swallows that, as in a
        callback. The second does not disturb what is put in order; the third ends all."""
        self.count += number != signal.SIGALRM
        if self.count >= MOST_SIGNALS:
            _real_exit(SIGNALLED + number)
        if self.ended:
            return
        if self.number is None:
            self.number, self.since = number, time.monotonic()
            signal.signal(signal.SIGALRM, self.receive)
        elif number != signal.SIGALRM:
            return
        if not _is_ours(frame) and time.monotonic() - self.since < OWN_CODE_SECONDS:
            signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
            return
        signal.setitimer(signal.ITIMER_REAL, RESEND_SECONDS, RESEND_SECONDS)
        raise KeyboardInterrupt

    def swallowed(self, lost: sys.UnraisableHookArgs) -> None:
        """What is raised where nothing can be, as in a destructor; a signal comes again for it."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)

    @classmethod
    @contextlib.contextmanager
    def handled(cls) -> Iterator[Signals]:
        """A request to end, the end of a terminal and ^C all end a block in the same way."""
        signals = cls()
        posix = hasattr(signal, "setitimer")  # elsewhere ^C alone is a signal, and raises by itself
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if posix else ()
        # what is ignored stays so: nohup, and commands in the background of a script
        before = {n: h for n in numbers if (h := signal.getsignal(n)) != signal.SIG_IGN}
        for number in before:
            signal.signal(number, signals.receive)
        hook, sys.unraisablehook = sys.unraisablehook, signals.swallowed
        try:
            yield signals
        finally:
            sys.unraisablehook = hook
            if signals.number is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            else:
                for number, handler in before.items():
                    signal.signal(number, handler)


def _is_ours(frame: FrameType | None) -> bool:
    name = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == __name__.partition(".")[0]


def ignore_signals() -> None:
    """For the moments in which a command that has said everything leaves."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)):
        signal.signal(number, signal.SIG_IGN)
