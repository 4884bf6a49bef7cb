"""Several commands write to one folder at the same time."""

from __future__ import annotations

import random
import time
from pathlib import Path

from ..case import Broken
from ..commands import VERBS, command, finish, forked, prepared, same, start, usual_seconds

ABOUT = "two or three writers on one folder"
SHARE = 1.0
DEADLINE = 240.0


def prepare(place: Path) -> None:
    prepared(place)


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    verb = list(VERBS)[number % len(VERBS)]
    words = command(verb, place)
    started = []
    for i in range(rng.choice((2, 2, 3))):
        started.append(start(words, work, name=f"said-{i}"))
        time.sleep(rng.random() ** 3 * usual_seconds(place, verb))
    ended = [finish(one) for one in started]
    for one in ended:
        one.expect(0, 2)
    if all(one.code for one in ended):
        raise Broken(f"no writer of {len(ended)} got through: {ended[0].err[-160:]!r}")
    if verb != "train":
        forked(words, work).expect(0)
    same(place, verb, work / "out")
    return verb
