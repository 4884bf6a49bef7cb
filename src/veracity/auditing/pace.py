"""How long the rest of some work will take, told by what is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Pace:
    """Jobs differ by kind in what a text takes: each kind is timed by itself, and what several
    processes do at once counts once."""

    ahead: Counter[Hashable]
    """By kind of job, the texts still to be done."""
    started: float = field(default_factory=time.monotonic)
    seconds: dict[Hashable, float] = field(default_factory=dict)
    texts: Counter[Hashable] = field(default_factory=Counter)

    def done(self, kind: Hashable, texts: int, seconds: float, *, computed: bool) -> None:
        """A job is over; what was there already tells nothing of what is not."""
        self.ahead[kind] -= texts
        if computed:
            self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds
            self.texts[kind] += texts
        else:
            self.started += seconds

    def left(self, now: float | None = None) -> tuple[float, bool]:
        """Seconds, and whether kinds of which nothing is known yet come on top."""
        passed = (time.monotonic() if now is None else now) - self.started
        busy = sum(self.seconds.values())
        at_once = max(1.0, busy / passed) if passed > 0 else 1.0
        known = {kind: self.seconds[kind] / n for kind, n in self.texts.items()}
        rest = sum(known[kind] * n for kind, n in self.ahead.items() if kind in known)
        unknown = any(n > 0 and kind not in known for kind, n in self.ahead.items())
        return rest / at_once, unknown
