"""How much of somebody's file is taken in: bounds with a name, told where they are met."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .errors import LimitError, PluginError


@dataclass(frozen=True)
class Limit:
    """The most that is read of something; the environment variable of its name sets another."""

    name: str
    default: int
    of: str

    @property
    def value(self) -> int:
        given = os.environ.get(self.name, "").replace("_", "").replace(",", "").strip()
        if not given:
            return self.default
        if not given.isdecimal() or not 0 < int(given[:20]) < 2**62:
            raise PluginError(
                f"expected {self.name} to be a number of {self.of}, such as {self.default}; got "
                f"{given[:40]!r}"
            )
        return int(given)

    def check(self, seen: int, what: object) -> None:
        """A sentence where there is more than the limit."""
        if seen > self.value:
            raise LimitError(f"{what}: {self.exceeded(seen)}")

    def exceeded(self, seen: int | None = None) -> str:
        """What is told where something is too large; without a number, that it goes on."""
        more = "more" if seen is None else f"{seen:,}"
        return (
            f"expected at most {self.value:,} {self.of}, got {more}. If that is what you want, set "
            f"{self.name} higher"
        )


BYTES = Limit("VERACITY_MAX_BYTES", 500_000_000, "bytes in a file, unpacked")
VALUES = Limit("VERACITY_MAX_VALUES", 20_000_000, "values in a file")
LINE = Limit("VERACITY_MAX_LINE", 10_000_000, "characters in a line or field")
NESTING = Limit("VERACITY_MAX_NESTING", 100, "lists and objects inside each other")
DEPTH = Limit("VERACITY_MAX_DEPTH", 1000, "brackets inside each other in a tree")
WEIGHTS = Limit("VERACITY_MAX_WEIGHTS", 10_000_000_000, "bytes of weights")
EXTRA_WEIGHTS = Limit(
    "VERACITY_MAX_EXTRA_WEIGHTS", 50_000_000, "weights that a model has and its file does not"
)
PIXELS = Limit("VERACITY_MAX_PIXELS", 100_000_000, "pixels in a picture")
PICTURES = Limit("VERACITY_MAX_PICTURES", 4_000_000_000, "bytes of pictures, unpacked")
FILES = Limit("VERACITY_MAX_FILES", 200_000, "files in a folder or an archive")

LIMITS = (BYTES, VALUES, LINE, NESTING, DEPTH, WEIGHTS, EXTRA_WEIGHTS, PIXELS, PICTURES, FILES)
