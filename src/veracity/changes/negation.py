"""The opposite, by one `not`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.examples import Dataset, Example
from ..core.inputs import BoolArray, Text
from ..data.editing import Edit, inserted
from ..data.lexicon import listed
from ..data.words import is_chinese, read_text
from ._attack import Attack
from ._opinions import STOPS, is_plain, opinions

VERBS = frozenset(
    listed("is are was were am be can could will would should it's that's he's she's this's")
)
SUBJECTS = frozenset(listed("it that this he she there"))
DEGREES = frozenset(listed("很 非常 特别 太 真 挺 十分 比较 都 最 真的"))


@dataclass(frozen=True)
class Negation(Attack):
    """Denies a text's one opinion, so that the label flips; texts that say more stay alone, and so
    do those whose opinion is not that of their label.

    A text qualifies if it has emotional words that we know, denies and contrasts nothing, and one
    verb that can be denied (English) stands before all of them with no punctuation between; a
    Chinese one if it is one clause with one emotional word.
    """

    adv_type: ClassVar[str] = "negative"
    flips: ClassVar[bool] = True

    def eligible(self, data: Dataset) -> Callable[[Example], bool]:
        """Texts whose opinion is that of their label: what else was denied would not turn it."""
        said: dict[int, list[int]] = {label: [] for label in range(len(data.labels))}
        for e in data:
            if found := sum(opinions(e.input).values()):
                said[e.label].append(found)
        # which label praises is learnt: names do not tell, and numbers may mean anything
        means = {label: float(np.mean(found)) for label, found in said.items() if found}
        middle = float(np.mean(list(means.values()))) if len(means) > 1 else 0.0
        praise = {label: mean > middle for label, mean in means.items()}

        def eligible(example: Example) -> bool:
            found = sum(opinions(example.input).values())
            return found != 0 and (found > 0) == praise[example.label]

        return eligible

    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        found = opinions(text)
        if not found or len(set(found.values())) > 1 or not is_plain(text):
            return None
        first, last = min(found), max(found)
        if is_chinese(text.text):
            if len(found) > 1 or any(word in STOPS for word in text.words[:-1]):
                return None
            place = first
            while place and text.words[place - 1] in DEGREES:
                place -= 1
            return inserted(text, place, read_text("并不", "en"))
        verbs = [i for i in range(text.n_features) if _is_verb(text, i)]
        if len(verbs) != 1 or verbs[0] > first:
            return None
        if any(word in STOPS for word in text.words[verbs[0] : last]):
            return None
        return inserted(text, verbs[0] + 1, read_text("not"))


def _is_verb(text: Text, place: int) -> bool:
    word = text.words[place].casefold().replace("’", "'")
    before = text.words[place - 1].casefold() if place else ""
    return word in VERBS or (word == "'s" and before in SUBJECTS)
