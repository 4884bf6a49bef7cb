"""Which words noise can touch, and what it makes of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from ..core.inputs import Text

SHORTEST = 4
"""Letters; a slip in a shorter word often makes another word of it."""


def misspelt(
    text: Text, slips: Callable[[str], Sequence[str]], confused: Mapping[str, str]
) -> dict[int, Sequence[str]]:
    """By place, every misspelling of a word: by letters, or by characters that are confused."""
    found: dict[int, Sequence[str]] = {}
    for place, word in enumerate(text.words):
        if word.isascii() and word.isalpha() and len(word) >= SHORTEST:
            found[place] = slips(word)
        elif any(c in confused for c in word):
            found[place] = [
                word[:i] + other + word[i + 1 :]
                for i, c in enumerate(word)
                for other in confused.get(c, "")
            ]
    return found


@functools.cache
def confusions(groups: tuple[str, ...]) -> Mapping[str, str]:
    """By character, the others of its groups."""
    found: dict[str, str] = {}
    for group in groups:
        for c in group:
            found[c] = found.get(c, "") + group.replace(c, "")
    return found
