"""Emotional words for rare words of like meaning: what people know and models saw seldom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..core.inputs import Text
from ..data.lexicon import synonym_sets
from ._attack import WordAttack, agrees, like


@dataclass(frozen=True)
class LowFrequency(WordAttack):
    """Swaps emotional words for rare synonyms out of our own small table."""

    share: float = 1.0

    adv_type: ClassVar[str] = "lf"

    def options(self, text: Text) -> Mapping[int, Sequence[str]]:
        found = {}
        for place, word in enumerate(text.words):
            known = synonym_sets().get(word.casefold())
            rare = known.rare if known is not None and word.casefold() in known.common else ()
            found[place] = [like(other, word) for other in rare if agrees(other, text, place)]
        return found
