"""Where a text says what it thinks, and whether it takes it back."""

from __future__ import annotations

from ..core.inputs import Text
from ..data.lexicon import listed, own_lexicon

NEGATORS = frozenset(
    listed(
        "not no never nothing nobody nor neither none hardly barely without cannot n't isn't "
        "wasn't aren't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't ain't "
        "lack lacks 不 没 没有 无 非 别 不是 并不 未 从不 毫无"
    )
)
CONTRASTS = frozenset(
    listed("but yet though although while however despite except 但 但是 不过 可是 虽然 尽管 然而")
)
_DENYING = frozenset("不没无别未")
STOPS = frozenset(listed(". , ; : ! ? ... … — - ( ) 。 ， ； ： ！ ？ 、"))


def opinions(text: Text) -> dict[int, int]:
    """By place, the emotional words that we know, and whether they praise or blame."""
    known = own_lexicon()
    found = {i: known.get(word.casefold(), 0) for i, word in enumerate(text.words)}
    return {place: polarity for place, polarity in found.items() if polarity}


def is_plain(text: Text) -> bool:
    """Whether nothing in a text denies or contrasts, so that a pattern knows what it turns."""
    words = {word.casefold().replace("’", "'") for word in text.words}
    # in Chinese what denies is often part of a word
    denied = words & NEGATORS or set(text.text) & _DENYING
    return not denied and not words & CONTRASTS
