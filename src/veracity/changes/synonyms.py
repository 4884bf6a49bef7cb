"""Words for words of like meaning and like frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core.inputs import Text
from ..data.lexicon import own_lexicon, synonym_sets
from ._attack import WordAttack, agrees, like


@dataclass(frozen=True)
class Synonyms(WordAttack):
    """Swaps words for common synonyms: our own small table, or the nearest GloVe vectors.

    Vectors know more words and make more errors: what stands in like company is near, also what
    says the opposite. Emotional words that we know are therefore swapped by the table only.
    """

    share: float = 0.3
    source: Literal["table", "glove"] = "table"
    """Where synonyms come from: our table, or near GloVe vectors."""
    closeness: float = 0.8
    """For glove: the least cosine of the two vectors."""
    rarity: float = 3.0
    """For glove: how many times rarer or commoner the other word may be, by rank."""

    adv_type: ClassVar[str] = "idr"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.closeness < 1 or self.rarity < 1:
            raise ValueError(
                "expected closeness between 0 and 1 and rarity of 1 or more, got "
                f"{self.closeness} and {self.rarity}"
            )

    def options(self, text: Text) -> Mapping[int, Sequence[str]]:
        found = {}
        for place, word in enumerate(text.words):
            others = self._others(word.casefold())
            found[place] = [like(o, word) for o in others if agrees(o, text, place)]
        return found

    def _others(self, word: str) -> list[str]:
        known = synonym_sets().get(word)
        if known is not None:
            return [other for other in known.common if other != word]
        if self.source == "table" or not word.isalpha() or len(word) < 4:
            return []
        from ..data.vectors import glove_neighbours

        space = glove_neighbours()
        ranks = space.rank
        return [
            other
            for other in space.near(word, closer_than=self.closeness)
            if other.isalpha()
            and other not in own_lexicon()
            and 1 / self.rarity <= (ranks[other] + 1) / (ranks[word] + 1) <= self.rarity
            and not _same_stem(word, other)
        ]


def _same_stem(a: str, b: str) -> bool:
    """Whether two words are forms of one, which would break the grammar around it."""
    shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    return shared >= min(len(a), len(b), 4)
