"""Jobs that end their workers; apart from tests, so that a worker imports little to have them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Deadly:
    """Ends its own worker at given jobs, as often as there are lives to lose."""

    folder: Path
    lives: dict[int, int] = field(default_factory=dict)
    weight: bytes = b""
    leaves: bool = False
    """Whether a process is left behind that holds all that the worker had open."""

    def __call__(self, job: int) -> int:
        for life in range(self.lives.get(job, 0)):
            try:
                (self.folder / f"{job}-{life}").touch(exist_ok=False)
            except FileExistsError:
                continue
            if self.leaves and not (left := os.fork()):
                time.sleep(60)
                os._exit(0)
            elif self.leaves:
                (self.folder / "left").write_text(str(left))
            os.kill(os.getpid(), signal.SIGKILL)
        return job * job


@dataclass(frozen=True)
class Hungry:
    """Lacks memory the first time."""

    folder: Path

    def __call__(self, job: int) -> int:
        try:
            (self.folder / "eaten").touch(exist_ok=False)
        except FileExistsError:
            return job
        raise MemoryError
