"""Which words a model knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..core.files import read_json
from ..core.inputs import MASK_WORD, PAD_WORD

PAD_ID = 0
UNKNOWN_ID = 1
_SPECIAL = 2


@dataclass(frozen=True)
class Vocabulary:
    """Known words in a fixed order, looked up in lower case unless it is cased."""

    words: tuple[str, ...]
    cased: bool = False

    @classmethod
    def learnt(
        cls, texts: Iterable[Sequence[str]], limit: int = 50_000, *, cased: bool = False
    ) -> Vocabulary:
        """The most frequent words; ties in alphabetical order."""
        counts = Counter(word if cased else word.lower() for words in texts for word in words)
        counts.pop(MASK_WORD, None)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(word for word, _ in ordered[:limit]), cased)

    @classmethod
    def read(cls, path: Path, *, cased: bool = False) -> Vocabulary:
        """The words of a JSON list; each must be a word of its own, or places would be wrong."""
        words = read_json(path)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"expected {path.name} to be a list of words")
        if len(set(words)) < len(words):
            raise ValueError(f"expected {path.name} to hold each word once")
        return cls(tuple(words), cased)

    def __len__(self) -> int:
        return len(self.words) + _SPECIAL

    @cached_property
    def _places(self) -> dict[str, int]:
        return {PAD_WORD: PAD_ID} | {word: i + _SPECIAL for i, word in enumerate(self.words)}

    def ids(self, words: Sequence[str]) -> list[int]:
        """A number per word; a text without words is read as one unknown word."""
        found = [
            self._places.get(word if self.cased else word.lower(), UNKNOWN_ID) for word in words
        ]
        return found or [UNKNOWN_ID]

    def spelling(self, word: str) -> str | None:
        """A word as it is known; None where it is not."""
        spelt = word if self.cased else word.lower()
        return spelt if self._places.get(spelt, PAD_ID) != PAD_ID else None

    def row(self, word: str) -> int:
        """The embedding row of a known word."""
        return self._places[word]
