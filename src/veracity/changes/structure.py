"""Clauses of which one ought to decide, marked where rules find them (definitions 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.changes import Change
from ..core.examples import Dataset, Example
from ..rules import USUAL, Mode, Rule, detect, rules_named

DOMINANT = "dominant"
OTHER = "other"
"""The kinds of truth masks of the two clauses; the first of the one goes with the first of the
other."""

RULE = "rule"
"""The fact that names the rules of a text's structures."""


@dataclass(frozen=True)
class Structure(Change):
    """Marks the clause that ought to decide, and the other one, in texts such as A but B."""

    rules: tuple[str, ...] = USUAL
    """Names of rules (veracity list rules), or TOML files of them."""
    mode: Mode = "strict"
    """Only texts with exactly one keyword, the first structure of each, or all of them."""
    alone: bool = False
    """Whether texts without a structure are left out."""

    def __post_init__(self) -> None:
        rules_named(self.rules)

    def changed(self, data: Dataset, *, seed: int) -> Dataset:
        rules = rules_named(self.rules)
        found = tuple(self._marked(e, rules) for e in data)
        kept = tuple(e for e in found if RULE in e.facts) if self.alone else found
        return replace(data, examples=kept)

    def _marked(self, example: Example, rules: tuple[Rule, ...]) -> Example:
        structures = detect(example.input, rules, self.mode).structures
        if not structures:
            return example
        return replace(
            example,
            truths={
                **example.truths,
                DOMINANT: tuple(s.dominant for s in structures),
                OTHER: tuple(s.other for s in structures),
            },
            facts={**example.facts, RULE: ",".join(s.rule for s in structures)},
        )
