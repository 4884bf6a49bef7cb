"""The same, by denying the opposite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import Edit, replaced
from ..data.lexicon import listed
from ..data.words import is_chinese, read_text
from ._attack import Attack, like
from ._opinions import NEGATORS, STOPS


def _pairs(text: str) -> dict[str, str]:
    """`good/bad great/bad` by the first of each two."""
    return dict(pair.split("/") for pair in listed(text))


OPPOSITES = _pairs(
    "good/bad great/bad fine/bad bad/good poor/good awful/pleasant terrible/good "
    "boring/exciting dull/lively tedious/gripping exciting/boring gripping/boring "
    "interesting/boring funny/dull witty/dull charming/unpleasant lovely/unpleasant "
    "pleasant/unpleasant enjoyable/tedious clever/stupid smart/stupid silly/clever "
    "stupid/clever beautiful/ugly ugly/beautiful fresh/stale original/predictable "
    "predictable/surprising memorable/forgettable forgettable/memorable weak/strong "
    "strong/weak messy/tidy shallow/deep"
)
PHRASES_HAN = _pairs(
    "好/不差 不错/并不差 差/不好 糟糕/一点也不好 喜欢/没法不喜欢 满意/没有不满意 推荐/不得不推荐 "
    "失望/不能不失望 便宜/不贵 贵/不便宜 干净/不脏 脏/不干净 快/不慢 慢/不快"
)


@dataclass(frozen=True)
class DoubleNegation(Attack):
    """Says one emotional word by denying its opposite: `good` becomes `not bad`."""

    adv_type: ClassVar[str] = "negative"

    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        options = [
            (place, said)
            for place, word in enumerate(text.words)
            if (said := _said(word)) and not _denied(text, place) and _fits(text, place)
        ]
        if not options:
            return None
        place, said = options[rng.integers(len(options))]
        # the rule for English keeps a Chinese phrase whole, and needs no segmenter
        return replaced(text, place, read_text(like(said, text.words[place]), "en"))


def _said(word: str) -> str:
    plain = word.casefold()
    return f"not {OPPOSITES[plain]}" if plain in OPPOSITES else PHRASES_HAN.get(plain, "")


def _denied(text: Text, place: int) -> bool:
    before = {word.casefold() for word in text.words[max(place - 3, 0) : place]}
    return bool(before & NEGATORS)


def _fits(text: Text, place: int) -> bool:
    """`an original film` has no place for `not`, and `very not bad` is no English; a single
    character is an opinion for sure only where its clause ends."""
    before = text.words[place - 1].casefold() if place else ""
    if is_chinese(text.words[place]) and len(text.words[place]) == 1:
        ends = place + 1 == text.n_features or text.words[place + 1] in STOPS
        return ends and before not in ("很", "太")
    return before not in ("an", "very", "really", "so", "too", "quite", "extremely", "很", "太")
