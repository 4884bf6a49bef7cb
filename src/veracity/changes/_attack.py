"""Adversarial twins by patterns (definitions 7.3): copies of texts, each beside its original."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..core.changes import PATTERN, Change
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, Text
from ..data.editing import Edit, respelt
from ..data.fields import FACTS
from ..data.words import is_chinese
from ..engine.seeds import generator

TRIES = 10
"""Draws for a copy that is unlike the others."""


@dataclass(frozen=True)
class Attack(Change):
    """Each example stays and gains twins; each pattern says how a text is rewritten."""

    copies: int = 1
    """Twins per original, if the pattern can write so many different ones."""
    examples: float = 1.0
    """Of how many originals twins are made."""
    only: tuple[str, ...] = ()
    """Sentiment types whose texts are rewritten; none named, all."""

    adv_type: ClassVar[str]
    """Of the five types of definitions 7.1 the one whose promise the pattern keeps."""
    flips: ClassVar[bool] = False
    """Whether the twin says the opposite, so that its label changes."""
    largest: ClassVar[Mapping[str, int]] = {"copies": 1000}

    def __post_init__(self) -> None:
        if self.copies < 1 or not 0 <= self.examples <= 1:
            raise ValueError(
                f"expected copies of 1 or more and examples between 0 and 1, got {self.copies} and "
                f"{self.examples}"
            )
        odd = [kind for kind in self.only if kind not in FACTS["sentiment_type"]]
        if odd:
            known = ", ".join(FACTS["sentiment_type"])
            raise ValueError(f"expected only to name sentiment types ({known}), got {odd[0]!r}")

    @abstractmethod
    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        """The text after the pattern, or nothing if it offers no place; marked words are those
        that a rationale needs."""

    def eligible(self, data: Dataset) -> Callable[[Example], bool]:
        """Whether the pattern may be trusted with an original of these data."""
        return lambda _: True

    def changed(self, data: Dataset, *, seed: int) -> Dataset:
        if self.flips and len(data.labels) != 2:
            raise DataError(
                f"{self.spec} turns a label into its opposite: expected two labels, got "
                f"{', '.join(data.labels)}"
            )
        ids = {e.id for e in data}
        eligible = self.eligible(data)
        made: list[Example] = []
        for e in data:
            twin = e.partner is not None or e.facts.get("sample_type") == "adv"
            if twin:
                made.append(e)
                continue
            made.append(replace(e, facts={"sample_type": "ori", **e.facts}))
            wanted = not self.only or e.facts.get("sentiment_type") in self.only
            if wanted and is_understood(e.input.text) and eligible(e):
                made += self._twins(e, ids, seed)
        return replace(data, examples=tuple(made))

    def _twins(self, example: Example, ids: set[str], seed: int) -> Iterator[Example]:
        seen = {example.input.text}
        free = np.zeros(example.input.n_features, dtype=np.bool_)
        marked = np.logical_or.reduce([free, *example.truths.get("rationale", ())])
        for copy in range(self.copies):
            rng = generator(seed, self.spec, example.id, str(copy))
            if rng.random() >= self.examples:
                continue
            for _ in range(TRIES):
                edit = self.rewritten(example.input, marked, rng)
                if edit is None or edit.text.text not in seen:
                    break
            else:
                continue
            if edit is not None:
                seen.add(edit.text.text)
                yield self._twin(edit.applied(example), _free_name(example.id, self, ids))

    def _twin(self, copy: Example, name: str) -> Example:
        truths = dict(copy.truths)
        # what people marked speaks for the label the text had; a set that lost all words is none
        sets = tuple(m for m in truths.pop("rationale", ()) if m.any() and not self.flips)
        facts = {k: v for k, v in copy.facts.items() if k != "scores"}
        return replace(
            copy,
            id=name,
            label=1 - copy.label if self.flips else copy.label,
            truths={**truths, "rationale": sets} if sets else truths,
            partner=copy.id,
            facts={**facts, "sample_type": "adv", "adv_type": self.adv_type, PATTERN: self.spec},
        )


@dataclass(frozen=True)
class WordAttack(Attack):
    """Patterns that spell some words differently and leave all others where they are."""

    share: float = 0.1
    """Of how many words that can be changed; at least one is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise ValueError(f"expected a share above 0 and at most 1, got {self.share}")

    @abstractmethod
    def options(self, text: Text) -> Mapping[int, Sequence[str]]:
        """By place, what the words that can be changed may become."""

    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        options = {place: found for place, found in self.options(text).items() if found}
        if not options:
            return None
        places = sorted(options)
        count = max(1, round(self.share * len(places)))
        chosen = [places[i] for i in sorted(rng.permutation(len(places))[:count])]
        return respelt(text, {i: options[i][int(rng.integers(len(options[i])))] for i in chosen})


def is_understood(text: str) -> bool:
    """Whether a text is Chinese, or written in Latin letters as English is: what we would add to
    others is no language of theirs."""
    letters = [c for c in text if c.isalpha()]
    return is_chinese(text) or 2 * sum(c.isascii() for c in letters) > len(letters)


def _free_name(original: str, attack: Attack, ids: set[str]) -> str:
    """A name that tells the original and the pattern, numbered where it is taken."""
    base = name = f"{original}~{attack.plugin_name()}"
    number = 2
    while name in ids:
        name, number = f"{base}-{number}", number + 1
    ids.add(name)
    return name


def like(word: str, model: str) -> str:
    """A word written with the capitals of another."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word.capitalize() if model[:1].isupper() else word


def agrees(word: str, text: Text, place: int) -> bool:
    """Whether a word may follow the `a` or `an` that stands before its place."""
    before = text.words[place - 1].lower() if place else ""
    vowel = word[:1].lower() in tuple("aeiou")
    return not (before == "a" and vowel) and not (before == "an" and not vowel)
