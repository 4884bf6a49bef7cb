"""What a case is, and what it may end in."""

from __future__ import annotations

import random
import resource
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from veracity.core.errors import VeracityError

MOST_MEMORY = 2 * 2**30
"""No case may take more bytes than this, unless a message names another limit."""


class Broken(Exception):
    """A promise that was not kept: what was expected and what was seen."""


class Kind(Protocol):
    """What a file in `kinds` holds."""

    ABOUT: str
    SHARE: float
    """Of the time, beside the shares of the others."""
    DEADLINE: float
    """Seconds after which a case counts as a hang."""

    def prepare(self, place: Path) -> None:
        """Writes what all cases start from."""

    def case(self, number: int, rng: random.Random, place: Path, work: Path) -> str:
        """Tries one thing in the empty folder `work` and says in a word or two what it was."""


def kind_named(name: str) -> Kind:
    import importlib

    module: ModuleType = importlib.import_module(f"torture.kinds.{name}")
    return cast(Kind, module)


def cases_of(kind: Kind) -> int | None:
    """How many there are, where they can be counted."""
    number: int | None = getattr(kind, "CASES", None)
    return number


def generator(seed: int, kind: str, number: int) -> random.Random:
    return random.Random(f"{seed}/{kind}/{number}")


def tried(action: Callable[[], object]) -> str:
    """Success or a sentence; anything else is a bug of ours."""
    try:
        action()
    except VeracityError as error:
        if not str(error).strip():
            raise Broken(f"a {type(error).__name__} that says nothing") from error
        return "told"
    return "read"


def as_seen(error: BaseException) -> str:
    """An error with the place in our code that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/veracity/" in f.filename]
    place = f" at {Path(ours[-1].filename).name}:{ours[-1].name}" if ours else ""
    said = " ".join(str(error).split())[:300]
    return said if isinstance(error, Broken) else f"{type(error).__name__}{place}: {said}"


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What asks for more gets a MemoryError, which is a failure, and the machine stays whole."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, before[1])
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
