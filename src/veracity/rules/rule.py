"""Rules about which clause of a text ought to decide, and where they apply (definitions 4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ..core.errors import DataError
from ..core.inputs import BoolArray, Span, Text
from ..data.words import is_chinese

Mode = Literal["strict", "first", "all"]
"""Exactly one structure in a text, the first of them, or each."""

Side = Literal["before", "after"]

PATTERN_SECONDS = 1.0
"""A pattern that takes longer over one text would not end."""

SIDES = ("dominant", "other")
"""The groups of a pattern, and the kinds of truth masks."""


@dataclass(frozen=True)
class ClausePair:
    """Two clauses of one text, of which the dominant one ought to decide."""

    rule: str
    dominant: BoolArray
    other: BoolArray
    sign: Span
    """The words that join the clauses, from and to; empty where a pattern has none."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Two clauses joined by a keyword, or found by a pattern, and which of them dominates."""

    name: str
    about: str = ""
    """What the rule says, in a line."""
    keywords: tuple[str, ...] = ()
    """Words, or words in a row, that stand between the clauses; case does not matter."""
    dominant: Side = "after"
    """Of keywords: which clause ought to decide, the one before them or after them."""
    pattern: str = ""
    """Instead of keywords: a regular expression with the groups `dominant` and `other`."""
    language: str = ""
    """Texts of other languages than this, en or zh, are passed over; empty for all."""

    def __post_init__(self) -> None:
        if bool(self.keywords) == bool(self.pattern):
            seen = "both" if self.pattern else "neither"
            raise ValueError(f"expected keywords or a pattern, got {seen}")
        if not all(isinstance(k, str) and k.split() for k in self.keywords):
            raise ValueError(f"expected each keyword to be a word or words, got {self.keywords!r}")
        if self.dominant not in get_args(Side):
            raise ValueError(f"expected dominant to be before or after, got {self.dominant!r}")
        if self.language not in ("", "en", "zh"):
            raise ValueError(f"expected language to be en or zh, got {self.language!r}")
        if self.pattern:
            lacking = [side for side in SIDES if side not in self._compiled.groupindex]
            if lacking:
                raise ValueError(
                    f"expected a pattern with the groups dominant and other, such as "
                    f"'(?P<other>.+)\\\\. (?P<dominant>.+)'; {' and '.join(lacking)} missing"
                )

    @classmethod
    def of(cls, name: str, given: Any) -> Rule:
        """A rule as a table of TOML tells it."""
        known = {f.name for f in dataclasses.fields(cls)} - {"name"}
        if not isinstance(given, dict):
            raise ValueError(f"expected a table such as [{name}], got {given!r}")
        if unknown := given.keys() - known:
            raise ValueError(
                f"unknown {', '.join(sorted(unknown))}; a rule has {', '.join(sorted(known))}"
            )
        for key, value in given.items():
            kind = list if key == "keywords" else str
            if not isinstance(value, kind):
                wanted = "a list of words" if kind is list else "text"
                raise ValueError(f"expected {key} to be {wanted}, got {value!r}")
        return cls(name=name, **{**given, "keywords": tuple(given.get("keywords", ()))})

    @cached_property
    def _compiled(self) -> Any:
        # the standard library's patterns cannot be told to stop
        import regex

        try:
            return regex.compile(self.pattern, flags=regex.IGNORECASE | regex.DOTALL)
        except (regex.error, RecursionError) as error:
            raise ValueError(f"cannot read the pattern {self.pattern!r}: {error}") from None

    @cached_property
    def _phrases(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(k.lower().split()) for k in self.keywords)

    @cached_property
    def _first_words(self) -> frozenset[str]:
        return frozenset(phrase[0] for phrase in self._phrases)

    def applies(self, text: Text) -> bool:
        """Whether the text may be of the rule's language."""
        return not self.language or is_chinese(text.text) == (self.language == "zh")

    def found(self, text: Text) -> Iterator[ClausePair]:
        """Every place where the rule finds clauses, empty ones too, from left to right."""
        if self.pattern:
            yield from self._matches(text)
            return
        lowered = [w.lower() for w in text.words]
        for start, word in enumerate(lowered):
            if word not in self._first_words:
                continue
            length = max(
                (len(p) for p in self._phrases if tuple(lowered[start : start + len(p)]) == p),
                default=0,
            )
            if length:
                before, after = _range(text, 0, start), _range(text, start + length, None)
                sides = (before, after) if self.dominant == "before" else (after, before)
                yield ClausePair(self.name, *sides, (start, start + length))

    def _matches(self, text: Text) -> Iterator[ClausePair]:
        try:
            for match in self._compiled.finditer(text.text, timeout=PATTERN_SECONDS):
                sides = [_inside(text, match.span(side)) for side in SIDES]
                yield ClausePair(self.name, sides[0], sides[1], (0, 0))
        except TimeoutError:
            raise DataError(
                f"the pattern of the rule {self.name} came to no end within {PATTERN_SECONDS:g} s "
                f"on a text of {len(text.text):,} characters. Write it so that it need not try "
                "again and again, for instance without a repetition inside another"
            ) from None


def _range(text: Text, start: int, end: int | None) -> BoolArray:
    mask = np.zeros(text.n_features, dtype=np.bool_)
    mask[start:end] = True
    return mask


def _inside(text: Text, span: Span) -> BoolArray:
    """The words that lie in a stretch of characters."""
    return np.array([span[0] <= a and b <= span[1] for a, b in text.spans], dtype=np.bool_)


@dataclass(frozen=True)
class FoundClauses:
    """What was found in a text, and else why nothing was."""

    structures: tuple[ClausePair, ...]
    reason: str = ""
    """Why a text with a sign of a rule was passed over; empty where there is none."""


def detect(text: Text, rules: Sequence[Rule], mode: Mode = "strict") -> FoundClauses:
    """The structures of a text; keywords are taken as words, whatever they mean there."""
    signs = [s for rule in rules if rule.applies(text) for s in rule.found(text)]
    signs.sort(key=lambda s: s.sign)
    whole = [s for s in signs if _says(text, s.dominant) and _says(text, s.other)]
    if not signs:
        return FoundClauses(())
    if mode == "strict" and len(signs) > 1:
        return FoundClauses((), "more than one keyword")
    if not whole:
        return FoundClauses((), "a clause without words")
    return FoundClauses(tuple(whole if mode == "all" else whole[:1]))


def _says(text: Text, clause: BoolArray) -> bool:
    """Whether there is a word in it that is no mere sign."""
    return any(any(c.isalnum() for c in text.words[i]) for i in np.flatnonzero(clause))
