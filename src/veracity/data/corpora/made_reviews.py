"""Reviews made from templates, whose deciding words are known because we put them there."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.examples import Dataset, Example
from ...core.inputs import BoolArray
from ..corpus import LABELS, Corpus
from ..words import read_text


def _listed(text: str) -> tuple[str, ...]:
    """Words and phrases, written down so that a page holds them all."""
    return tuple(part.strip() for part in text.split(","))


POSITIVE = _listed(
    "good, great, wonderful, brilliant, charming, delightful, excellent, superb, amazing, funny, "
    "enjoyable, touching, clever, fresh, lovely, elegant, warm, memorable, gripping, witty, "
    "inspired, thrilling, impressive, beautiful, outstanding"
)
NEGATIVE = _listed(
    "bad, awful, terrible, boring, dull, dreadful, poor, weak, clumsy, stale, annoying, tedious, "
    "horrible, ugly, silly, lifeless, predictable, bland, messy, painful, shallow, forgettable, "
    "disappointing, ridiculous, sloppy"
)
ARTICLES = ("a", "an", "the")
_OPINIONS = frozenset((*POSITIVE, *NEGATIVE))
DOMINANT = {"but": "after", "yet": "after", "though": "before", "while": "before"}
"""Which side of the keyword decides (definitions 4.1)."""

_NOUNS = _listed(
    "film, movie, plot, story, script, cast, ending, opening, actor, director, soundtrack, scene, "
    "dialogue, idea, hero, villain, camera, song, chapter, episode, interview, adventure, act, "
    "performance, comedy"
)
_KINDS = _listed(
    "second, early, original, old, american, unusual, long, short, new, animated, independent, "
    "expensive, ordinary, modern, familiar"
)
_INTENSIFIERS = _listed("very, really, quite, rather, truly, so, simply, utterly, extremely")
_FILLERS = _listed(
    "in the end, to me, this time, on the whole, as usual, from the start, last night, once again, "
    "at the cinema, for an hour, in every way, after a coffee, of course, on a train, to the family"
)
_OPENERS = _listed("honestly, well, to be fair, in short, for us, as an adult, at a festival")
_CLAUSES = (
    "{thing} is {very}{word}",
    "{thing} was {very}{word}{filler}",
    "i found {thing} {very}{word}",
    "we thought {thing} was {very}{word}{filler}",
    "{thing} felt {very}{word}{filler}",
    "it is a {word} {noun}{filler}",
    "this was a {word} {noun}",
    "{thing} has a {word} {noun}{filler}",
    "{thing} turned out {very}{word}",
    "my friends called {thing} {word}",
    "a {word} {noun} and a {word} {noun}{filler}",
    "{thing} gave us a {word} {noun}",
)


@dataclass(frozen=True)
class MadeReviews(Corpus):
    """Template reviews with known deciding words, articles and A-but-B clauses
    (definitions 9.6)."""

    n: int = 2000
    """How many reviews are made."""
    structure: float = 0.4
    """Share of reviews with an A-but-B sentence."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 <= self.structure <= 1:
            raise ValueError(
                f"expected n of 1 or more and structure between 0 and 1, "
                f"got n={self.n}, structure={self.structure}"
            )

    def load(self) -> Dataset:
        """Labels alternate, and each review has its own generator: more are the same and more."""
        made = (self._review(i) for i in range(self.n))
        return Dataset(self.spec, LABELS, tuple(made))

    def _review(self, i: int) -> Example:
        rng = np.random.default_rng([self.seed, i])
        label = i % 2
        if rng.random() >= self.structure:
            clauses = [_clause(rng, label) for _ in range(rng.integers(1, 3))]
            text = _pick(rng, (" and ", ", ", "; ")).join(clauses)
            return _example(f"made-{i}", _opened(rng, text), label, None)
        keyword = _pick(rng, tuple(DOMINANT))
        after = label if DOMINANT[keyword] == "after" else 1 - label
        text = f"{_opened(rng, _clause(rng, 1 - after))} {keyword} {_clause(rng, after)}"
        return _example(f"made-{i}", text, label, keyword)


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[rng.integers(len(options))]


def _opened(rng: np.random.Generator, text: str) -> str:
    return f"{_pick(rng, _OPENERS)}, {text}" if rng.random() < 0.3 else text


def _clause(rng: np.random.Generator, label: int) -> str:
    """One clause of one polarity."""
    parts = _pick(rng, _CLAUSES).replace("}", "{").split("{")
    return "".join(_slot(rng, p, label) if i % 2 else p for i, p in enumerate(parts))


def _slot(rng: np.random.Generator, name: str, label: int) -> str:
    if name == "word":
        return _pick(rng, POSITIVE if label else NEGATIVE)
    if name == "noun":
        return _pick(rng, _NOUNS)
    if name == "thing":
        kind = f"{_pick(rng, _KINDS)} " if rng.random() < 0.5 else ""
        return f"{_pick(rng, ('the', 'the', 'a'))} {kind}{_pick(rng, _NOUNS)}"
    if name == "very":
        return f"{_pick(rng, _INTENSIFIERS)} " if rng.random() < 0.5 else ""
    return f" {_pick(rng, _FILLERS)}" if rng.random() < 0.4 else ""


def _with_articles(text: str) -> str:
    """`a` before a vowel is `an`; no word of ours starts with a silent letter."""
    words = text.split(" ")
    following = [*words[1:], ""]
    return " ".join(
        "an" if word == "a" and after.startswith(tuple("aeiou")) else word
        for word, after in zip(words, following, strict=True)
    )


def _among(words: Sequence[str], some: Container[str]) -> BoolArray:
    return np.array([word in some for word in words], dtype=np.bool_)


def _example(name: str, text: str, label: int, keyword: str | None) -> Example:
    """The review with every truth that its making tells."""
    found = read_text(_with_articles(text) + ".", "en")
    words = found.words
    polarity = _among(words, _OPINIONS)
    truths: dict[str, tuple[BoolArray, ...]] = {
        "polarity": (polarity,),
        "articles": (_among(words, ARTICLES),),
    }
    facts: dict[str, str] = {}
    deciding = np.ones(len(words), dtype=np.bool_)
    if keyword is not None:
        place = words.index(keyword)
        side = np.arange(len(words)) - place
        deciding = side > 0 if DOMINANT[keyword] == "after" else side < 0
        truths["dominant"] = (deciding,)
        facts = {"rule": keyword, "keyword_position": str(place)}
    truths["rationale"] = (polarity & deciding,)
    return Example(name, found, label, truths, None, facts)
