"""Words that a text says as much without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import Edit, inserted, respelt, without
from ..data.lexicon import listed, synonym_sets
from ..data.words import is_chinese, read_text
from ._attack import Attack, agrees, like

OPENERS = ("well,", "honestly,", "you know,", "actually,", "in fact,", "umm,", "as i said,")
OPENERS_HAN = ("其实，", "说实话，", "嗯，", "话说，", "怎么说呢，", "总的来说，")
DELETABLE = frozenset(
    listed(
        "really very just quite actually simply rather truly indeed basically literally certainly "
        "also extremely utterly 吧 啊 呢 呀 嘛 真的 其实 非常 确实 也 就"
    )
)
WAYS = ("insert", "delete", "replace")


@dataclass(frozen=True)
class Dispensable(Attack):
    """Inserts an opener, deletes a filler word, or replaces a word that carries no opinion."""

    how: Literal["any", "insert", "delete", "replace"] = "any"
    """Which of the three is done; any takes the first that the text allows, in a random order."""

    adv_type: ClassVar[str] = "idr"

    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        ways = [WAYS[i] for i in rng.permutation(len(WAYS))] if self.how == "any" else [self.how]
        made = (getattr(self, f"_{way}")(text, marked, rng) for way in ways)
        return next((edit for edit in made if edit is not None), None)

    def _insert(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        openers = OPENERS_HAN if is_chinese(text.text) else OPENERS
        return inserted(text, 0, read_text(openers[rng.integers(len(openers))]))

    def _delete(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        places = [
            i
            for i, word in enumerate(text.words)
            if word.casefold() in DELETABLE
            and not marked[i]
            and (i + 1 == text.n_features or agrees(text.words[i + 1], text, i))
        ]
        if not places or text.n_features < 2:
            return None
        return without(text, places[rng.integers(len(places))])

    def _replace(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        options = []
        for place, word in enumerate(text.words):
            known = synonym_sets().get(word.casefold())
            if known is not None and known.polarity == 0 and not marked[place]:
                options += [
                    (place, like(other, word))
                    for other in known.common
                    if other != word.casefold() and agrees(other, text, place)
                ]
        return respelt(text, dict([options[rng.integers(len(options))]])) if options else None
