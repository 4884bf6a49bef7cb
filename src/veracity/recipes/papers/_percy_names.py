"""The forty classifiers of PERCY by their names, such as CDFB (definitions 1.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, cast

BASES = {"C": "CNN", "L": "LSTM"}
VECTORS = {"W": "word2vec", "G": "GloVe", "E": "ELMo", "B": "BERT", "sB": "SentiBERT"}

Base = Literal["C", "L"]
Vectors = Literal["W", "G", "E", "B", "sB"]


@dataclass(frozen=True)
class ClassifierName:
    """A base model, whether it is distilled and its vectors tuned, and which vectors it reads."""

    base: Base
    distilled: bool
    tuned: bool
    vectors: Vectors

    @classmethod
    def parse(cls, name: str) -> ClassifierName:
        found = re.fullmatch(r"([CL])(D?)(F?)(W|G|E|B|sB)", name)
        if found is None:
            raise ValueError(
                f"expected a name such as CW or LDFsB (C or L; D if distilled; F if tuned; W, G, "
                f"E, B or sB), got {name!r}"
            )
        base, d, f, vectors = found.groups()
        return cls(cast(Base, base), bool(d), bool(f), cast(Vectors, vectors))

    def __str__(self) -> str:
        return f"{self.base}{'D' * self.distilled}{'F' * self.tuned}{self.vectors}"

    def having(self, trait: str, value: Any) -> ClassifierName:
        """The classifier that differs in nothing else."""
        return replace(self, **{trait: value})

    @property
    def measured(self) -> bool:
        """Whether the printed scores by SHAP and integrated gradients are measurements."""
        return self.vectors in ("W", "G")

    @property
    def for_rules(self) -> bool:
        """Whether it was proposed to carry rules into a model (LRD)."""
        contextual = self.tuned and self.vectors in ("E", "B")
        return self.distilled or contextual or self.vectors == "sB"


GRID = tuple(
    ClassifierName(cast(Base, base), distilled, tuned, cast(Vectors, vectors))
    for base, distilled, tuned, vectors in product(BASES, (False, True), (False, True), VECTORS)
)
"""In the order of the paper's table."""
