"""The disk is full: a small tmpfs, or, where nothing may be mounted, a limit on a file's size."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..commands import (
    VERBS,
    command,
    epochs,
    finish,
    forked,
    kept,
    parts,
    prepared,
    same,
    start,
    whole,
)

ABOUT = "full disks, then room again"
SHARE = 1.5
DEADLINE = 240.0

PAGE = 4096


def prepare(place: Path) -> None:
    prepared(place)


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    verb = list(VERBS)[number % len(VERBS)]
    words = command(verb, place)
    taken = sum(-(-p.stat().st_size // PAGE) * PAGE for p in whole(place, verb).rglob("*"))
    with _small_disk(work / "disk", int(taken * rng.random() * 1.1) + PAGE) as mounted:
        folder = work / "disk" / "out"
        limit = None if mounted else _at_most(rng)
        inside = [*words[:-1], str(folder)]
        finish(start(inside, work, before=limit)).expect(0, 2)
        before, past = parts(folder), epochs(folder)
        if mounted:
            _mount(work / "disk", 2**28, again=True)
        if not (verb == "train" and (folder / "veracity.json").exists()):
            forked(inside, work).expect(0)
        kept(before, past, folder)
        same(place, verb, folder)
    return f"{verb} {'tmpfs' if mounted else 'file size'}"


def _at_most(rng: random.Random) -> Callable[[], None]:
    size = rng.choice((0, 100, 1000, 4000, 16000))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[bool]:
    folder.mkdir()
    mounted = _mount(folder, size)
    try:
        yield mounted
    finally:
        if mounted:
            _c().umount2(os.fsencode(folder), 2)


@functools.cache
def _own_mounts() -> bool:
    """What this process mounts is seen by it and its children alone, and goes with them."""
    apart, private = 0x20000, 0x44000
    return not (_c().unshare(apart) or _c().mount(b"none", b"/", None, private, None))


def _mount(folder: Path, size: int, *, again: bool = False) -> bool:
    if not _own_mounts():
        return False
    options = f"size={size}".encode()
    return not _c().mount(b"none", os.fsencode(folder), b"tmpfs", 32 if again else 0, options)


def _c() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
