"""Does an explanation move to the words by which a twin's label was changed? (definitions 5.8)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..core.attributions import Attribution, Order, rounded_steps, tied_groups
from ..core.inputs import BoolArray, FloatArray
from ..core.metrics import Case, Metric, Quantity, Row, Twins
from .attribution_mass import attribution_share


@dataclass(frozen=True)
class Movement(Metric):
    """How much of the explanation of a twin with another label lies on the words that were changed.

    The twin's words that are not its original's, in order, were changed. Where the model's answer
    changed with the label, only they can have changed it: an explanation that tells the truth of
    the twin names them. Of m such words the share is found that stands among the m first; words
    that tie are each as likely to be first, and none is found that has no score. A random order
    finds m of n, their share of all words. Pairs whose answer stayed, and twins of which nothing
    or everything is new, ask nothing.
    """

    purpose: ClassVar[str] = "point at the words that changed the answer"
    of_pairs: ClassVar[Twins] = "changed"
    of_labels: ClassVar[bool] = True
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "found": Quantity(
            "share of the words that turned a twin's answer that are among as many top words",
            "higher",
            True,
            bounds=(0, 1),
        ),
        "mass": Quantity("share of absolute scores on these words", "higher", bounds=(0, 1)),
        "share": Quantity("share of a twin's words that were changed: what a random map gets"),
    }

    by: Order = "abs"

    def n_questions(self, n_units: int) -> int | None:
        return 0

    def score(self, cases: Sequence[Case]) -> list[Row]:
        nothing = dict.fromkeys(self.quantities, float("nan"))
        return [
            self.compared(
                case.original.attribution, case.attribution, case.original.answer != case.answer
            )
            if case.original is not None and case.original.example.label != case.example.label
            else nothing
            for case in cases
        ]

    def compared(self, original: Attribution, twin: Attribution, turned: bool) -> Row:
        """One pair with two labels; `turned` says whether the model's answer changed, too."""
        new = changed_words(original.input.words, twin.input.words)
        partly = bool(new.any() and not new.all())
        asked = partly and turned
        return {
            "found": found_share(twin.scores, new, self.by) if asked else float("nan"),
            "mass": attribution_share(twin.scores, new) if asked else float("nan"),
            "share": float(new.mean()) if partly else float("nan"),
        }


def found_share(scores: FloatArray, wanted: BoolArray, by: Order = "abs") -> float:
    """The share of m wanted features that is expected among the first m, ties in any order."""
    left = m = int(wanted.sum())
    hits, strengths = 0.0, rounded_steps(scores, by)
    for group in tied_groups(scores, by):
        taken = min(left, len(group))
        if strengths[group[0]]:
            hits += taken * float(wanted[group].mean())
        left -= taken
    return hits / m


@lru_cache(maxsize=4096)
def _changed(original: tuple[str, ...], twin: tuple[str, ...]) -> tuple[int, ...]:
    blocks = SequenceMatcher(None, original, twin, autojunk=False).get_matching_blocks()
    kept = {i for block in blocks for i in range(block.b, block.b + block.size)}
    return tuple(i for i in range(len(twin)) if i not in kept)


def changed_words(original: Sequence[str], twin: Sequence[str]) -> BoolArray:
    """Which words of a twin are new beside its original, both read in order. → (words,)"""
    new = np.zeros(len(twin), dtype=np.bool_)
    new[list(_changed(tuple(original), tuple(twin)))] = True  # the same pair for every method
    return new
