"""Rules taught to a model: a teacher that obeys them more than the model does, and whom the model
imitates more and more (Hu et al. 2016; definitions 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.inputs import FloatArray, Hiding, Text
from ..engine.inference import probabilities
from ..rules import Rule, detect, rules_named

REGULARISATION = 6.0
"""C: how much a rule that is broken costs the teacher; every rule is held for certain."""

FADING = 0.95
MOST_EXPONENT = 60.0


def teacher(p: FloatArray, clause: FloatArray, *, strength: float = 1) -> FloatArray:
    """The distribution nearest to p that obeys the rule: q(y) ∝ p(y) exp(−C (1 − r(y))) with
    r(y) = (1 + p(y | dominant clause)) / 2. p, clause (texts, labels)"""
    broken = 1 - (1 + clause) / 2
    exponent = np.clip(-REGULARISATION * strength * broken, -MOST_EXPONENT, MOST_EXPONENT)
    q: FloatArray = p * np.exp(exponent - exponent.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    return q


def imitation(time: float, most: float = 1.0) -> float:
    """How much of the loss is the teacher's after so many epochs, in fractions."""
    return float(min(most, 1 - FADING**time))


@dataclass(frozen=True)
class Teaching:
    """Which clauses ought to decide, and what a teacher makes of a model's answers."""

    rules: tuple[str, ...]
    strength: int = 1

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return rules_named(self.rules)

    def clauses(self, texts: Sequence[Text]) -> dict[int, Text]:
        """The dominant clause of each text that has one structure, by the text's place."""
        found = {}
        for place, text in enumerate(texts):
            structures = detect(text, self._rules, "strict").structures
            if structures:
                found[place] = text.keep(structures[0].dominant, Hiding.DELETE)
        return found

    def answers(self, model: Any, texts: Sequence[Text], p: FloatArray) -> FloatArray:
        """The teacher's: the model's own where no rule applies. (texts, labels)"""
        clauses = self.clauses(texts)
        q = np.array(p, dtype=np.float64)
        if clauses:
            places = list(clauses)
            alone = probabilities(model, list(clauses.values()))
            q[places] = teacher(q[places], alone, strength=self.strength)
        return q

    def loss(self, model: Any, texts: Sequence[Text], logits: Tensor, time: float) -> Tensor:
        """What is to be added to (1 − π) times the cross-entropy with the labels: π times that with
        the teacher, who is no part of what is learnt."""
        p = torch.softmax(logits.detach().double(), dim=1).cpu().numpy()
        q = torch.from_numpy(self.answers(model, texts, p)).to(logits)
        return imitation(time) * nn.functional.cross_entropy(logits, q)


@dataclass(frozen=True)
class Teacher:
    """A classifier that answers as the teacher of a trained model does."""

    model: Any
    teaching: Teaching

    @property
    def labels(self) -> tuple[str, ...]:
        labels: tuple[str, ...] = self.model.labels
        return labels

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:
        return self.teaching.answers(self.model, inputs, probabilities(self.model, inputs))
