"""Words that tell the documents of one label from those of the others (definitions 6.6)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core.classifiers import Classifier
from ..core.examples import Dataset
from ..core.plugins import Profiles
from ._programme import Programme, Scores


@dataclass(frozen=True)
class IntegerProgram(Programme):
    """Sets of words by an integer programme over texts and labels; looks at no model."""

    profiles: ClassVar[Profiles] = {"paper": {"size_term": False, "rule": "max"}}

    rule: Literal["sum", "max"] = "sum"
    """Which words are looked at: those whose TF-IDF is highest in sum, or in one document."""

    def vocabulary(self, model: Classifier | None, train: Dataset) -> tuple[Sequence[str], Scores]:
        values = tf_idf([Counter(self.read(e.input.words)) for e in train], self.rule)
        return sorted(values, key=lambda word: (-values[word], word))[: self.words], {}


def tf_idf(documents: Sequence[Counter[str]], rule: Literal["sum", "max"]) -> dict[str, float]:
    """Each word's count times ln(documents / documents with it), over all documents."""
    holding = Counter(word for document in documents for word in document)
    total: Counter[str] = Counter()
    for document in documents:
        if rule == "sum":
            total.update(document)
        else:
            for word, count in document.items():
                total[word] = max(total[word], count)
    # the rarity of a word is the same in all documents
    return {word: n * math.log(len(documents) / holding[word]) for word, n in total.items()}
