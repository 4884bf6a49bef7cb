"""Texts with words put in or replaced, and where every word came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..core.examples import Example
from ..core.inputs import BoolArray, Hiding, IntArray, Span, Text
from .words import is_chinese

NEW = -1


@dataclass(frozen=True)
class Edit:
    """A new text and the place that each of its words had in the old one; NEW if it had none."""

    text: Text
    came_from: IntArray

    def carried(self, mask: BoolArray) -> BoolArray:
        """A mask of the old words over the new ones."""
        moved = np.append(mask, False)[self.came_from]  # NEW = -1 reads the appended value
        return np.asarray(moved, dtype=np.bool_)

    def applied(self, example: Example) -> Example:
        """The example with this text; what was known of its words is known of them still."""
        truths = {
            kind: tuple(self.carried(mask) for mask in masks)
            for kind, masks in example.truths.items()
        }
        return replace(example, input=self.text, truths=truths)


def respelt(text: Text, words: Mapping[int, str]) -> Edit:
    """The words at these places replaced; all between the words stays as it is."""
    parts: list[str] = []
    spans: list[Span] = []
    position = end = 0
    for i, (start, stop) in enumerate(text.spans):
        gap, word = text.text[end:start], words.get(i, text.words[i])
        parts += (gap, word)
        spans.append((position + len(gap), position + len(gap) + len(word)))
        position, end = spans[-1][1], stop
    whole = "".join([*parts, text.text[end:]])
    return Edit(Text(whole, tuple(spans)), np.arange(len(spans)))


def inserted(text: Text, before: int, added: Text, *, spaced: bool = True) -> Edit:
    """Words put in before the word at this place, or behind the last, with a space on each side
    where the language has spaces; not spaced, right behind the word before."""
    space = " " if spaced and not is_chinese(added.text) else ""
    n = text.n_features
    behind = before == n or not spaced
    cut = (text.spans[before - 1][1] if before else 0) if behind else text.spans[before][0]
    lead = space if before > 0 and not text.text[:cut][-1:].isspace() else ""
    trail = space if before < n else ""
    shifted = tuple((a + len(lead), b + len(lead)) for a, b in added.spans)
    put_in = Text(lead + added.text + trail, shifted)
    places = np.arange(n)
    new = np.full(added.n_features, NEW)
    came_from = np.concatenate([places[:before], new, places[before:]]).astype(np.int64)
    return Edit(_spliced(text, (before, before), (cut, cut), put_in), came_from)


def gaps(taken: BoolArray) -> IntArray:
    """The places where something may come between words, both ends among them: never between two
    words that are taken."""
    inside = np.concatenate([[False], taken[1:] & taken[:-1], [False]])[: len(taken) + 1]
    return np.flatnonzero(~inside)


def replaced(text: Text, place: int, by: Text) -> Edit:
    """Several words in the place of one, all known by what that one was known by."""
    counts = np.ones(text.n_features, dtype=np.int64)
    counts[place] = by.n_features
    came_from = np.repeat(np.arange(text.n_features), counts)
    return Edit(_spliced(text, (place, place + 1), text.spans[place], by), came_from)


def _spliced(text: Text, words: Span, characters: Span, by: Text) -> Text:
    """Another text in the place of these words, which stand on these characters."""
    start, stop = characters
    shift = len(by.text) - (stop - start)
    spans = (
        *text.spans[: words[0]],
        *((a + start, b + start) for a, b in by.spans),
        *((a + shift, b + shift) for a, b in text.spans[words[1] :]),
    )
    return Text(text.text[:start] + by.text + text.text[stop:], spans)


def without(text: Text, place: int) -> Edit:
    """The text without one word, and without the gap that it would leave."""
    shown = np.arange(text.n_features) != place
    return Edit(text.keep(shown, Hiding.DELETE), np.flatnonzero(shown))
