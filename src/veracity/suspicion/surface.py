"""What properties of a text's surface do to answers: put into texts and taken out of them, beside
as many ordinary words, and texts made longer and shorter that say the same."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ..auditing.planning import LEAST_SURFACE
from ..core.classifiers import Classifier
from ..core.errors import BudgetSpent
from ..core.examples import Dataset
from ..core.inputs import BoolArray, FloatArray, Hiding, IntArray, Text
from ..data.words import read_text
from ..engine.inference import probabilities
from ..engine.seeds import generator
from .candidates import WordTable, is_word
from .decisions import FLIPS, LENGTH, TURNED
from .record import SurfaceTrial
from .separability import SURFACE

LONGER = 1.5
"""Where long texts are not so many times as long as short ones, length is not tried."""

SHORT, LONG = 0.05, 0.95
"""Which of all lengths, in their order, is short and which long."""

MOST_TOUCHED = 0.25
"""What changes a larger share of a text's words leaves another text."""

NEUTRAL = 30
"""So many words, those that weigh least, make texts longer that say the same."""

LENGTH_BATCHES = 5
"""Repeated, filled up; cut, and its two controls."""

MOST_NUMBERS = 50
"""So many numbers are put in, as long as those of the texts."""

YEARS = ("1987", "1994", "2003", "2011", "1979")
OTHER_NUMBERS = ("4187", "8530", "3316", "6042", "7719")

Edit = Callable[[Text, np.random.Generator], str | None]
"""A text after a change; None where it cannot be made."""


@dataclass(frozen=True, kw_only=True)
class Property:
    """How a property of the surface is put into a text and taken out of it."""

    put: Edit
    take: Edit
    put_in: str
    """What is done to texts that lack it."""
    taken_out: str
    """And to those that have it."""
    brings: tuple[str, ...] = ()
    """What comes with it, and with its control, when it is put in."""
    width: int = 1
    """So many words are put in."""
    control: Edit | None = None
    """What comes nearest without being it; by default an ordinary word at the same place."""
    controlled: str = "with a word of other texts there"


def _added(*marks: str) -> Edit:
    """One of these between two words, or at the end."""

    def edit(text: Text, rng: np.random.Generator) -> str:
        ends = [end for _, end in text.spans] or [len(text.text)]
        at = int(rng.choice(ends))
        mark = str(rng.choice(marks))
        return f"{text.text[:at]} {mark}{text.text[at:]}"

    return edit


def _spaced(gap: str) -> Edit:
    """This in place of a space."""

    def edit(text: Text, rng: np.random.Generator) -> str | None:
        spaces = [m.start() for m in re.finditer(r"(?<=\S) (?=\S)", text.text)]
        if not spaces:
            return None
        at = int(rng.choice(spaces))
        return text.text[:at] + gap + text.text[at + 1 :]

    return edit


def _replaced(pattern: str, by: str) -> Edit:
    found = re.compile(pattern)
    return lambda text, rng: found.sub(by, text.text).strip()


def _taken(pattern: str) -> Edit:
    """All of these taken out, and no space doubled where they stood."""
    found = re.compile(rf"([^\S\r\n]?)(?:{pattern})([^\S\r\n]?)")
    return lambda text, rng: found.sub(lambda m: " " if m[1] or m[2] else "", text.text).strip()


def _first_letter(write: Callable[[str], str]) -> Edit:
    def edit(text: Text, rng: np.random.Generator) -> str | None:
        at = next((i for i, c in enumerate(text.text) if c.isalpha()), None)
        if at is None:
            return None
        return text.text[:at] + write(text.text[at]) + text.text[at + 1 :]

    return edit


_ASCII = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


def _in_ascii(text: Text, rng: np.random.Generator) -> str:
    plain = unicodedata.normalize("NFKD", text.text.translate(_ASCII))
    return plain.encode("ascii", "ignore").decode()


def _without_first(text: Text, rng: np.random.Generator) -> str | None:
    shown = np.arange(text.n_features) > 0
    return text.keep(shown, Hiding.DELETE).text if shown.any() else None


FIRST_WORD = "without their first words"

PROPERTIES: dict[str, Property] = {
    "digit": Property(
        put=_added("7"),
        take=_taken(r"\d+"),
        put_in="a number was put into {n} texts",
        taken_out="all digits were taken out of {n} texts",
    ),
    "year": Property(
        put=_added(*YEARS),
        brings=("digit",),
        take=_replaced(r"\b(?:19|20)(?=\d\d\b)", "83"),
        put_in="a year was put into {n} texts",
        taken_out="years were made other numbers in {n} texts",
        control=_added(*OTHER_NUMBERS),
        controlled="with another number",
    ),
    "double space": Property(
        put=_spaced("  "),
        take=_replaced(r"(?<=\S)[^\S\r\n]{2,}(?=\S)", " "),
        put_in="a space was doubled in {n} texts",
        taken_out="double spaces were made single in {n} texts",
    ),
    "line break": Property(
        put=_spaced("\n"),
        take=_replaced(r"\s*[\r\n]\s*", " "),
        put_in="a line was broken in {n} texts",
        taken_out="line breaks were made spaces in {n} texts",
    ),
    "blank line": Property(
        put=_spaced("\n\n"),
        brings=("line break",),
        take=_replaced(r"\n\s*\n", "\n"),
        put_in="a blank line was put into {n} texts",
        taken_out="blank lines were taken out of {n} texts",
        control=_spaced("\n"),
        controlled="with a line broken there",
    ),
    "capital at the start": Property(
        put=_first_letter(str.upper),
        take=_first_letter(str.lower),
        put_in="the first letter of {n} texts was made a capital",
        taken_out="the first letter of {n} texts was made small",
        control=_without_first,
        controlled=FIRST_WORD,
    ),
    "letter beyond ASCII": Property(
        put=_added("é", "ü", "ø", "ñ", "ç"),
        take=_in_ascii,
        put_in="a letter beyond ASCII was put into {n} texts",
        taken_out="letters beyond ASCII were written in it in {n} texts",
    ),
    "address": Property(
        put=_added("http://www.qzv.com", "www.krtz.org/vb", "https://pfk.net"),
        take=_taken(r"\S*(?:https?://|www\.)\S*"),
        put_in="an address was put into {n} texts",
        taken_out="addresses were taken out of {n} texts",
        width=4,
        controlled="with as many words of other texts there",
    ),
    "markup": Property(
        put=_added("<p>", "<br>", "<b>", "<i>"),
        take=_taken(r"<[^<>]+>"),
        put_in="markup was put into {n} texts",
        taken_out="markup was taken out of {n} texts",
    ),
}
"""How each property of `SURFACE` is tried."""


@dataclass(frozen=True, kw_only=True)
class SurfaceTrials:
    """All trials of one model, in so many texts each."""

    model: Classifier
    data: Dataset
    answered: IntArray  # (texts,)
    neutral: tuple[str, ...]
    """Words that weigh nothing in the model."""
    seed: int
    n_texts: int

    def found(self) -> tuple[SurfaceTrial, ...]:
        """One for each property and way that enough texts are there for."""
        made: list[SurfaceTrial] = []
        with suppress(BudgetSpent):  # the rest has been answered
            made += (trial for trial in self._all() if trial.texts)
        return tuple(made)

    def _all(self) -> Iterator[SurfaceTrial]:
        if self.n_texts < LEAST_SURFACE:
            return
        tests = 2 * len(self.data.labels) * n_trials(self.data)
        for name, put_in, places in _possible(self.data):
            yield self._property(name, put_in, places, tests)
        lengths = _lengths(self.data)
        if (ends := _ends(lengths)) is not None:
            yield self._lengthened(lengths, ends[1], tests)
            yield self._cut(lengths, ends[0], tests)

    def _property(self, name: str, put_in: bool, places: IntArray, tests: int) -> SurfaceTrial:
        how, holds = PROPERTIES[name], SURFACE[name]
        rng = generator(self.seed, "surface", name, str(put_in))
        words = self._ordinary(holds, how.width, rng) if put_in and how.control is None else []
        put = _added(*self._numbers(rng)) if name == "digit" else how.put
        chosen: list[int] = []
        edited: list[str] = []
        controls: list[str] = []
        for i in rng.permutation(places).tolist():
            if len(chosen) == self.n_texts:
                break
            text = self._text(i)
            state = rng.bit_generator.state
            after = (put if put_in else how.take)(text, rng)
            if not after or not _alone(name, text.text, after, put_in):
                continue
            rng.bit_generator.state = state  # the same place again
            if put_in:
                plain = how.control or _added(words[len(chosen)])
                beside = plain(text, rng)
            elif how.controlled == FIRST_WORD:
                beside = _without_first(text, rng)
            else:
                beside = _without_words(text, after, holds, rng)
            if beside:
                chosen.append(i)
                edited.append(after)
                controls.append(beside)
        beside_said = how.controlled
        if not put_in and beside_said != FIRST_WORD:
            beside_said = "without as many other words"
        return self._judged(
            name, how.put_in if put_in else how.taken_out, beside_said, chosen,
            [edited], [controls], least=FLIPS, tests=tests,
        )  # fmt: skip

    def _lengthened(self, lengths: IntArray, to: int, tests: int) -> SurfaceTrial:
        """Short texts that say the same at greater length."""
        rng = generator(self.seed, "surface", LENGTH, "longer")
        short = np.flatnonzero((lengths > 0) & (lengths <= np.median(lengths)))
        short = short[LONGER * lengths[short] <= to]
        chosen = rng.permutation(short)[: self.n_texts].tolist()
        texts = [self._text(i) for i in chosen]
        repeated = [_repeated(t.text, math.ceil(to / t.n_features)) for t in texts]
        filled = [self._filled(t.text, to - t.n_features, rng) for t in texts]
        done = (
            f"{{n}} short texts were made {to} words long in two ways, repeated and filled up "
            "with words that weigh nothing"
        )
        return self._judged(
            LENGTH, done, "", chosen, [repeated, filled], [], least=TURNED, tests=tests
        )

    def _cut(self, lengths: IntArray, to: int, tests: int) -> SurfaceTrial:
        """Long texts that are cut, beside texts that say no more and are as long as before."""
        rng = generator(self.seed, "surface", LENGTH, "shorter")
        long = np.flatnonzero((lengths >= np.median(lengths)) & (lengths >= LONGER * to))
        chosen = rng.permutation(long)[: self.n_texts].tolist()
        texts = [self._text(i) for i in chosen]
        cut = [t.text[: t.spans[to - 1][1]] for t in texts]
        repeated = [
            _repeated(c, math.ceil(t.n_features / to)) for c, t in zip(cut, texts, strict=True)
        ]
        filled = [self._filled(c, t.n_features - to, rng) for c, t in zip(cut, texts, strict=True)]
        beside = (
            "when what was left was repeated, or filled up with words that weigh nothing, until it "
            "was as long as before"
        )
        return self._judged(
            LENGTH, f"{{n}} long texts were cut to {to} words", beside, chosen,
            [cut], [repeated, filled], least=TURNED, tests=tests,
        )  # fmt: skip

    def _judged(
        self,
        name: str,
        done: str,
        beside: str,
        chosen: Sequence[int],
        edits: Sequence[Sequence[str]],
        controls: Sequence[Sequence[str]],
        *,
        least: float,
        tests: int,
    ) -> SurfaceTrial:
        """The label that most answers turned to, or from, in all edits and in no control."""
        from scipy.stats import binom

        n, labels = len(chosen), self.data.labels
        if n < LEAST_SURFACE:
            return SurfaceTrial(name=name, done=done.format(n=n), texts=0)
        before = self.answered[list(chosen)]

        def turned(texts: Sequence[Sequence[str]]) -> tuple[BoolArray, ...]:
            """By edit, text and label whether its answer turned to it, or from it."""
            answers = np.stack([self._answers(own) for own in texts])  # (edits, texts)
            was = before[:, None] == np.arange(len(labels))
            now = answers[:, :, None] == np.arange(len(labels))
            return ~was & now, was & ~now

        moved = np.stack([own.all(axis=0) for own in turned(edits)])  # (2, texts, labels)
        counts = moved.sum(axis=1)
        way, label = divmod(int(counts.argmax()), len(labels))
        if not controls or counts.max() < least * n:
            excused = np.zeros_like(moved)
        else:
            excused = np.stack([own.any(axis=0) for own in turned(controls)])
        # what turns away from one label turns to many: the way that goes farther beyond
        beyond = (moved & ~excused).sum(axis=1) - (excused & ~moved).sum(axis=1)
        if excused.any():
            way, label = divmod(int(beyond.argmax()), len(labels))
        more = int((moved & ~excused)[way, :, label].sum())
        less = int((excused & ~moved)[way, :, label].sum())
        p = float(binom.sf(more - 1, more + less, 0.5)) if more else 1.0
        return SurfaceTrial(
            name=name,
            done=done.format(n=n),
            beside=beside if counts.max() >= least * n else "",
            texts=n,
            label=labels[label],
            towards=way == 0,
            turned=int(moved[way, :, label].sum()),
            turned_beside=int(excused[way, :, label].sum()),
            p_value=min(1.0, p * tests),
        )

    def _answers(self, texts: Sequence[str]) -> IntArray:
        found: IntArray = probabilities(self.model, [read_text(t) for t in texts]).argmax(axis=1)
        return found

    def _text(self, i: int) -> Text:
        found = self.data.examples[i].input
        assert isinstance(found, Text)
        return found

    def _numbers(self, rng: np.random.Generator) -> list[str]:
        """Numbers as long as those of the texts, of other digits: what a number says is taken
        from it, and a year may be asked for by itself."""
        some = rng.permutation(len(self.data))[: 10 * self.n_texts].tolist()
        lengths = [len(run) for i in some for run in re.findall(r"\d+", self._text(i).text)]
        drawn = rng.choice(lengths or [1, 2], MOST_NUMBERS).tolist()
        numbers = ("".join(map(str, rng.integers(3, 10, n).tolist())) for n in drawn)
        return list(numbers)

    def _ordinary(
        self, holds: Callable[[str], bool], width: int, rng: np.random.Generator
    ) -> list[str]:
        """Words as texts have them, without the property, drawn as often as they occur."""
        some = rng.permutation(len(self.data))[: 2 * self.n_texts].tolist()
        words = [w for i in some for w in self._text(i).words if w.isalpha() and not holds(w)]
        drawn = rng.choice(words or ["the"], (self.n_texts, width)).tolist()
        return [" ".join(row) for row in drawn]

    def _filled(self, text: str, more: int, rng: np.random.Generator) -> str:
        return " ".join([text, *rng.choice(self.neutral or ("the",), max(0, more)).tolist()])


def neutral_words(words: WordTable, scores: FloatArray, *, least: int) -> tuple[str, ...]:
    """The words that weigh least wherever they stand. scores: (labels, words)"""
    sizes = words.means(np.abs(scores).max(axis=0))
    known = [
        i
        for i in np.flatnonzero(words.texts() >= least).tolist()
        if is_word(words.forms[i]) and words.forms[i].isalpha()
    ]
    return tuple(words.forms[i] for i in sorted(known, key=lambda i: float(sizes[i]))[:NEUTRAL])


def n_trials(data: Dataset) -> int:
    """How many trials these texts are enough for."""
    return len(list(_possible(data))) + 2 * (_ends(_lengths(data)) is not None)


def n_batches(data: Dataset) -> int:
    """How often as many texts are asked about as one trial takes, at most."""
    return 2 * len(list(_possible(data))) + LENGTH_BATCHES * (_ends(_lengths(data)) is not None)


def _possible(data: Dataset) -> Iterator[tuple[str, bool, IntArray]]:
    """Every property with each way that enough texts are there for, and these texts."""
    texts = [str(e.input) for e in data]
    for name in PROPERTIES:
        has = np.array([SURFACE[name](text) for text in texts], dtype=np.bool_)
        for put_in, places in ((True, np.flatnonzero(~has)), (False, np.flatnonzero(has))):
            if len(places) >= LEAST_SURFACE:
                yield name, put_in, places


def _lengths(data: Dataset) -> IntArray:
    return np.array([e.input.n_features for e in data], dtype=np.int64)


def _ends(lengths: IntArray) -> tuple[int, int] | None:
    """How many words short and long texts have; None where these are hardly apart."""
    if not len(lengths):
        return None
    short, long = (int(x) for x in np.quantile(lengths, (SHORT, LONG)))
    return (max(1, short), long) if long >= LONGER * max(1, short) else None


def _alone(name: str, before: str, after: str, put_in: bool) -> bool:
    """Whether a text was given the property, or lost it, and no other one with it."""
    if SURFACE[name](after) != put_in:
        return False
    how = PROPERTIES[name]
    others = set(SURFACE) - {name, *(how.brings if put_in else ())}
    return all(SURFACE[other](before) == SURFACE[other](after) for other in others)


def _repeated(text: str, times: int) -> str:
    return " ".join([text] * times)


def _without_words(
    text: Text, after: str, holds: Callable[[str], bool], rng: np.random.Generator
) -> str | None:
    """The text with its property, and without as many other words as were changed; None where
    that is too much of it."""
    lost = Counter(text.words) - Counter(read_text(after).words)
    others = [i for i, word in enumerate(text.words) if not holds(word) and is_word(word)]
    n = max(1, lost.total())
    if n > MOST_TOUCHED * text.n_features or n >= len(others):
        return None
    shown = np.ones(text.n_features, dtype=np.bool_)
    shown[rng.choice(others, n, replace=False)] = False
    return text.keep(shown, Hiding.DELETE).text
