"""A worker is killed, as the out-of-memory killer does it: while it starts, or at its work."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from ..commands import (
    WITH_WORKERS,
    Started,
    command,
    epochs,
    finish,
    forked,
    kept,
    marked,
    parts,
    prepared,
    same,
    start,
    usual_seconds,
)

ABOUT = "kills of workers, from the moment they appear"
SHARE = 12.0
DEADLINE = 240.0

PROMISED = 30.0
"""Seconds after which a sentence must have been said, or the work be done all the same."""


def prepare(place: Path) -> None:
    prepared(place, WITH_WORKERS)


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    verb = WITH_WORKERS[number // 2 % len(WITH_WORKERS)]
    words = command(verb, place, workers=2)
    starting = number % 2 == 0
    started = start(words, work)
    killed = _kill(rng, started, starting)
    folder = work / "out"
    # on a machine that is busy with other things even an undisturbed run may take longer
    finish(started, within=max(PROMISED, 3 * usual_seconds(place, verb))).expect(0, 2)
    before, past = parts(folder), epochs(folder)
    # as the message advises: again, mostly with fewer workers
    forked(command(verb, place, workers=rng.choice((1, 1, 2))), work).expect(0)
    kept(before, past, folder)
    same(place, verb, folder)
    return f"{verb} {'in start-up' if starting else 'at work'}" if killed else "none to kill"


def _kill(rng: random.Random, started: Started, starting: bool) -> bool:
    """One worker; while the pool starts within two seconds of its appearing, often at once."""
    workers: list[int] = []
    wanted = rng.randint(1, 2)
    until = time.monotonic() + 60
    while len(workers) < wanted and started.running() and time.monotonic() < until:
        workers = [p for p in marked(started.mark) if _is_worker(p)]
        time.sleep(0.002)
    delay = rng.choice((0.0, rng.random() * 2)) if starting else 2 + rng.random() * 4
    time.sleep(delay)
    workers = [p for p in marked(started.mark) if _is_worker(p)]
    if not workers:
        return False
    try:
        os.kill(rng.choice(sorted(workers)), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _is_worker(process: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
