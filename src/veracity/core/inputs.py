"""What a classifier reads: inputs of any kind, and texts, whose words have character offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, compress, islice
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from .counts import counted
from .errors import DataError, PluginError

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Span = tuple[int, int]


class Hiding(StrEnum):
    """The ways of taking a feature away: of words three, of pixels four (definitions 0.7)."""

    DELETE = "delete"
    PAD = "pad"
    MASK = "mask"
    BLACK = "black"
    MEAN = "mean"
    BLUR = "blur"
    LINEAR = "linear"


@dataclass(frozen=True)
class Nouns:
    """What people call inputs of a kind and what is hidden of them, in sentences."""

    one: str
    many: str
    unit: str
    units: str
    feature: str = "feature"
    features: str = "features"
    long: str = "long"
    """What an input with many features is; and how that is called."""
    length: str = "length"
    more_units: str = "longer ones"
    """What to bring so that an input has more of them."""
    sample: str = "INPUT"
    """What stands for one in a command."""

    def counted(self, n: float) -> str:
        """`1 text`, `1,200 texts`."""
        return counted(n, self.one, self.many)

    def fill(self, said: str) -> str:
        """A text with places such as `{units}` that are to be filled in; other braces stay."""
        for name in ("one", "many", "unit", "units", "feature", "features"):
            said = said.replace(f"{{{name}}}", getattr(self, name))
        return said


PAD_WORD = ""
"""A padded word: nothing, in its place. Real words are never empty, so it cannot be confused."""

MASK_WORD = "\u2047"
"""A masked word. A double question mark: no vocabulary holds it, word patterns skip it."""


MOST_GAPS = 10_000
"""So much of what stands between words is remembered of a text."""


class Input(Protocol):
    """What a model reads. Its features are what explanations score; its units, of one feature or
    many, are what people look at and what is hidden. Inputs are frozen, equal and hashed by
    content; `str` gives what messages call one, and what `explain` draws random numbers by."""

    kind: ClassVar[str]
    nouns: ClassVar[Nouns] = Nouns("input", "inputs", "feature", "features")
    hidings: ClassVar[tuple[Hiding, ...]] = (Hiding.DELETE, Hiding.MASK, Hiding.PAD)
    """The ways in which its units can be hidden, the usual two first."""

    @property
    def n_features(self) -> int: ...

    @property
    def key(self) -> str:
        """All of its content, or a digest of it: what a fingerprint of data knows it by."""
        ...

    def __hash__(self) -> int:
        return hash(self.key)

    def keep(self, shown: BoolArray, how: Hiding) -> Self:
        """This input with only the shown units. (n_units,)"""
        ...

    def to_row(self) -> dict[str, Any]:
        """What a run stores of it, by column."""
        ...

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `to_row` gave, read back."""
        ...

    @property
    def n_units(self) -> int:
        return self.n_features

    def units(self) -> IntArray | None:
        """The unit of each feature; None where each feature is one. → (n_features,)"""
        return None

    def groups(self, by: str) -> IntArray:
        """Which units go together, numbered from 0; each alone where a kind of input does not know
        such groups. → (n_units,)"""
        return np.arange(self.n_units)

    def on_features(self, values: NDArray[AnyScalar]) -> NDArray[AnyScalar]:
        """What is true of a unit is true of each of its features. (n_units,) → (n_features,)"""
        units = self.units()
        return values if units is None else values[units]

    def on_units(self, values: NDArray[Any]) -> FloatArray:
        """The mean over the features of each unit. (n_features,) → (n_units,)"""
        units = self.units()
        found = np.asarray(values, dtype=np.float64)
        if units is None:
            return found
        return np.bincount(units, found, self.n_units) / np.bincount(units, minlength=self.n_units)

    @property
    def raw(self) -> Any:
        """What somebody's function is given of it."""
        raise DataError(f"inputs of the kind {self.kind} cannot be given to a function")

    @property
    def wire(self) -> str:
        """What somebody's server is sent of it."""
        raise DataError(f"inputs of the kind {self.kind} cannot be sent to a server")

    def readable(self) -> Self:
        """What a model is given of it, where nothing may be left to read."""
        return self

    def feature_names(self, positions: Sequence[int]) -> tuple[str, ...]:
        """What people call these features, if they have names."""
        return ()


_KINDS: dict[str, type[Input]] = {}


def register_input(cls: type[AnyInput]) -> type[AnyInput]:
    """Makes a kind of input known, so that runs that hold it can be read."""
    _KINDS[cls.kind] = cls
    return cls


def input_kinds() -> tuple[type[Input], ...]:
    """All kinds of input."""
    from . import images  # noqa: F401  known by being imported

    return tuple(_KINDS.values())


def input_kind(name: str) -> type[Input]:
    """The class of a kind of input."""
    input_kinds()
    if name not in _KINDS:
        raise DataError(f"expected inputs of a kind among {', '.join(_KINDS)}; got {name!r:.40}")
    return _KINDS[name]


AnyInput = TypeVar("AnyInput", bound=Input)
AnyScalar = TypeVar("AnyScalar", bound=np.generic)


@register_input
@dataclass(frozen=True)
class Text(Input):
    """A text and where its words stand in it."""

    kind: ClassVar[str] = "text"
    nouns: ClassVar[Nouns] = Nouns(
        "text", "texts", "word", "words", "word", "words", sample="'a text'"
    )

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of_words(cls, words: Sequence[str], separator: str = " ") -> Text:
        """The text that a list of words spells."""
        spans, start = [], 0
        for word in words:
            spans.append((start, start + len(word)))
            start += len(word) + len(separator)
        return cls(separator.join(words), tuple(spans))

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans)

    @property
    def n_features(self) -> int:
        return len(self.spans)

    @property
    def key(self) -> str:
        return f"{self.text!r}, {self.spans!r}"

    def __str__(self) -> str:
        return self.text

    @property
    def raw(self) -> str:
        return self.text

    @property
    def wire(self) -> str:
        return self.text

    @property
    def gaps(self) -> tuple[str, ...]:
        """What stands before each word and behind the last, for showing a text as it was written:
        not every language puts spaces between words."""
        ends = accumulate((end for _, end in self.spans), max, initial=0)
        starts = [*(start for start, _ in self.spans), len(self.text)]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    def keep(self, shown: BoolArray, how: Hiding) -> Text:
        """The text with only the shown words; hidden ones are deleted, padded or masked."""
        if len(shown) != len(self.spans):
            raise ValueError(f"expected one flag per word ({len(self.spans)}), got {len(shown)}")
        kept = np.asarray(shown).tolist()  # many times faster to look at than an array
        if all(kept):
            return self
        words, gaps, pad = self.words, self._known_gaps, how == Hiding.PAD
        hidden = PAD_WORD if pad else MASK_WORD
        places = compress(range(len(kept)), kept) if how == Hiding.DELETE else range(len(kept))
        parts: list[str] = []
        spans: list[Span] = []
        position = 0
        previous = -1
        for i in places:  # asked of every masking: the gaps are looked up, not made again
            word = words[i] if kept[i] else hidden
            if previous >= 0:
                gap = gaps.get((previous, i))
                if gap is None:
                    gap = self._gap(previous, i)
                    if len(gaps) < MOST_GAPS:
                        gaps[previous, i] = gap
                if pad and not (kept[previous] and kept[i]):
                    gap = gap or " "  # nothing in a word's place must not join its neighbours
                parts.append(gap)
                position += len(gap)
            parts.append(word)
            start, position = position, position + len(word)
            spans.append((start, position))
            previous = i
        return Text("".join(parts), tuple(spans))

    def groups(self, by: str) -> IntArray:
        """By `types`, words that are spelt alike go together."""
        if by != "types":
            return super().groups(by)
        places: dict[str, int] = {}
        return np.array([places.setdefault(w, len(places)) for w in self.words], dtype=np.int64)

    def readable(self) -> Text:
        """An unknown word where nothing is left (definitions 0.7)."""
        return self if self.text.strip() else UNKNOWN

    def feature_names(self, positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.words[i] for i in positions)

    def to_row(self) -> dict[str, Any]:
        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        # lone surrogates cannot be stored as UTF-8; one character stays one character
        text = self.text.encode("utf-8", "replace").decode()
        return {"text": text, "starts": starts, "ends": ends}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Text:
        return cls(row["text"], tuple(zip(row["starts"], row["ends"], strict=True)))

    @cached_property
    def _known_gaps(self) -> dict[tuple[int, int], str]:
        """What stands between two words, as far as it was asked for."""
        return {}

    def _gap(self, left: int, right: int) -> str:
        """What stands between two kept words: never let deletion glue two words into one."""
        between = self.text[self.spans[left][1] : self.spans[right][0]]
        if right == left + 1:
            return between
        spaced = any(c.isspace() for c in between)
        letters = self.words[left][-1:] + self.words[right][:1]
        glued = len(letters) == 2 and all(c.isalnum() and ord(c) < 0x2E80 for c in letters)
        return " " if spaced or glued else ""


UNKNOWN = Text.of_words([MASK_WORD])

ANY_KIND = ("*",)


class TakesInputs:
    """What explainers, metrics and changes say of the inputs that they are for."""

    takes: ClassVar[tuple[str, ...]] = (Text.kind,)
    """The kinds of input; `ANY_KIND` where features are all that counts."""

    suited: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """By kind of input, settings that suit it better than the usual ones."""

    _given: frozenset[str]
    """The settings that somebody named, which no kind of input changes."""

    def unfit(self, kind: str) -> str:
        """Why it is not for inputs of this kind; nothing if it is."""
        if self.takes != ANY_KIND and kind not in self.takes:
            return f"takes inputs of the kind {' or '.join(self.takes)}, not {kind}"
        ways, hiding = input_kind(kind).hidings, getattr(self, "hiding", None)
        if hiding is None or hiding in ways:
            return ""
        return f"hides by {hiding}, which {kind}s cannot be; choose hiding={' or '.join(ways)}"

    def __new__(cls, *values: Any, **settings: Any) -> Self:
        """Notes what is named: that it is the usual value does not say that nobody chose it."""
        made = super().__new__(cls)
        places = (f.name for f in fields(cls) if f.init) if is_dataclass(cls) else ()
        object.__setattr__(made, "_given", frozenset((*islice(places, len(values)), *settings)))
        return made

    def for_kind(self, kind: str) -> Self:
        """This with what suits inputs of a kind wherever nobody chose; None leaves it open. What
        somebody chose is told even where it is the usual value: its text is read for this kind."""
        suited = self.suited.get(kind, {})
        free = [n for n in suited if n not in self._given or getattr(self, n) is None]
        chosen = {name: suited[name] for name in free}
        ways, hiding = input_kind(kind).hidings, getattr(self, "hiding", None)
        if hiding is not None and hiding not in ways and "hiding" not in self._given:
            chosen["hiding"] = ways[0]
        if not (chosen or suited):
            return self
        try:
            made = replace(cast(Any, self), **chosen) if chosen else copy(self)
        except ValueError as error:
            also = ", ".join(f"{name}={value}" for name, value in chosen.items())
            raise PluginError(f"{kind}s are explained with {also}: {error}") from None
        object.__setattr__(made, "_told", frozenset(suited))
        return cast(Self, made)

    def altered(self, **settings: Any) -> Self:
        """A copy with other settings, for the kind of input that this is for."""
        made = replace(cast(Any, self), **settings)
        object.__setattr__(made, "_told", getattr(self, "_told", frozenset()))
        return cast(Self, made)


In = TypeVar("In", bound=Input, default=Text, covariant=True)
"""The kind of input that a record holds: texts, unless it says otherwise."""


@dataclass(frozen=True)
class Alignment:
    """How a model's pieces share their scores among words (definitions 3.13); totals are
    preserved."""

    piece: IntArray
    word: IntArray
    weight: FloatArray
    n_words: int

    @classmethod
    def by_offsets(cls, pieces: Sequence[Span], words: Sequence[Span]) -> Alignment:
        """A piece that overlaps several words splits its score equally among them."""
        starts = [start for start, _ in words]
        links: list[tuple[int, int, float]] = []
        for i, (start, end) in enumerate(pieces):
            if start >= end:
                continue  # a special token: it belongs to no word
            first = max(bisect_right(starts, start) - 1, 0)
            behind = bisect_left(starts, end)
            hit = [j for j in range(first, behind) if words[j][1] > start]
            links += [(i, j, 1.0 / len(hit)) for j in hit]
        piece, word, weight = np.array(links, dtype=np.float64).reshape(-1, 3).T
        return cls(piece.astype(np.int64), word.astype(np.int64), weight, len(words))

    @classmethod
    def identity(cls, n_words: int) -> Alignment:
        """One piece per word, in order."""
        each = np.arange(n_words, dtype=np.int64)
        return cls(each, each, np.ones(n_words), n_words)

    def to_features(self, scores: FloatArray) -> FloatArray:
        """Scores of words, or of pixels, from those of pieces."""
        shares = np.asarray(scores, dtype=np.float64)[self.piece] * self.weight
        return np.bincount(self.word, shares, self.n_words).astype(np.float64, copy=False)
