"""What a command's exit code says (docs/exits.md), and the signals that end one."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

FAILED_BAR = 1
BAD_INPUT = 2
BUG = 70
SIGNALLED = 128
"""And the number of the signal, as shells count."""

CLOSED_PIPE = SIGNALLED + 13
"""Not 0: who reads no further has not seen whether a bar was missed, and a gate must not pass."""

AGAIN = 3.0
"""Seconds until a signal that was swallowed on the way is given again."""


class Signals:
    """The signal that was received, if any."""

    def __init__(self) -> None:
        self.number: int | None = None

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Ends what runs. Where a library swallows that, as in a callback, it is tried again."""
        if self.number is None:
            self.number = number
            if hasattr(signal, "setitimer"):
                signal.signal(signal.SIGALRM, self.receive)
                signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        raise KeyboardInterrupt

    @classmethod
    @contextlib.contextmanager
    def heard(cls) -> Iterator[Signals]:
        """A request to end, the end of a terminal and ^C all end a block in the same way."""
        signals = cls()
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        # what is ignored stays so: nohup, and commands in the background of a script
        before = {n: h for n in numbers if (h := signal.getsignal(n)) != signal.SIG_IGN}
        for number in before:
            signal.signal(number, signals.receive)
        try:
            yield signals
        finally:
            if signals.number is not None and hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
