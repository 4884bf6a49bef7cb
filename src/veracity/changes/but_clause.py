"""A clause at the end that sounds like a turn and turns nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.inputs import BoolArray, Text
from ..data.editing import Edit, inserted
from ..data.words import is_chinese, read_text
from ._attack import Attack

CLAUSES = (
    "but that is only my opinion",
    "but others may see it otherwise",
    "but see for yourself",
    "but i have said so before",
    "but enough of that",
)
CLAUSES_HAN = ("不过这只是我的看法", "不过别人也许看法不同", "但这话我以前也说过", "不过就说到这里")


@dataclass(frozen=True)
class ButClause(Attack):
    """Appends a but-clause without an opinion, before the sign that ends the text."""

    clause: str = ""
    """Instead of one drawn from ours."""

    adv_type: ClassVar[str] = "idr"

    def rewritten(self, text: Text, marked: BoolArray, rng: np.random.Generator) -> Edit | None:
        chinese = is_chinese(text.text)
        ours = CLAUSES_HAN if chinese else CLAUSES
        clause = self.clause or ours[rng.integers(len(ours))]
        end = text.n_features
        while end and not any(c.isalnum() for c in text.words[end - 1]):
            end -= 1
        if not end:
            return None
        added = read_text(f"，{clause}" if chinese else f", {clause}")
        return inserted(text, end, added, spaced=False)
