"""What rules find in data: how often, with which labels, and in which texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ..core.examples import Dataset, Example
from ..core.inputs import Text
from ..engine.seeds import generator
from ..rules import ClausePair, FoundClauses, Mode, Rule, detect
from .pages import rendered, write_page

Item = TypeVar("Item")

SHOWN = 12
"""Texts that are shown of each rule, and of each reason to pass one over."""

RINGS = ((20, 38), (40, 58), (60, 78))
"""From and to which radius a ring goes: all, by label, with or without a structure."""


@dataclass(frozen=True)
class FoundRules:
    """Data, and the structures that rules find in them."""

    data: Dataset
    rules: tuple[Rule, ...]
    mode: Mode

    @cached_property
    def detections(self) -> list[FoundClauses]:
        return [detect(e.input, self.rules, self.mode) for e in self.data]

    def __iter__(self) -> Iterator[tuple[Example, FoundClauses]]:
        return zip(self.data, self.detections, strict=True)

    @property
    def n_texts(self) -> int:
        """Texts with a structure."""
        return sum(bool(d.structures) for d in self.detections)

    @cached_property
    def by_rule(self) -> dict[str, dict[str, int]]:
        """How many structures each rule finds in texts of each label."""
        found = {r.name: dict.fromkeys(self.data.labels, 0) for r in self.rules}
        for example, detection in self:
            for s in detection.structures:
                found[s.rule][self.data.labels[example.label]] += 1
        return found

    @property
    def with_structure(self) -> dict[str, int]:
        """How many texts of each label have a structure."""
        counts = Counter(e.label for e, d in self if d.structures)
        return {name: counts[i] for i, name in enumerate(self.data.labels)}

    @property
    def passed_over(self) -> dict[str, int]:
        """How many texts with a keyword have no structure, by reason."""
        return dict(Counter(d.reason for d in self.detections if d.reason).most_common())

    def to_dict(self) -> dict[str, object]:
        return {
            "data": self.data.name,
            "mode": self.mode,
            "texts": len(self.data),
            "with_structure": self.n_texts,
            "by_rule": self.by_rule,
            "by_label": self.with_structure,
            "passed_over": self.passed_over,
        }

    # ---- what a page shows ------------------------------------------------------------------

    def shown(self, seed: int = 0) -> list[tuple[str, list[tuple[Example, list[Clause]]]]]:
        """Texts of each rule, drawn by the seed, as coloured stretches."""
        found = []
        for rule in self.rules:
            own = [(e, d) for e, d in self if any(s.rule == rule.name for s in d.structures)]
            rows = [
                (e, clauses(e.input, next(s for s in d.structures if s.rule == rule.name)))
                for e, d in _some(own, rule.name, seed)
            ]
            if rows:
                found.append((rule.name, rows))
        return found

    def shown_passed_over(self, seed: int = 0) -> list[tuple[str, list[Example]]]:
        return [
            (reason, _some([e for e, d in self if d.reason == reason], reason, seed))
            for reason in self.passed_over
        ]

    def rings(self) -> list[Arc]:
        """All texts, those of each label, and of these those with a structure (definitions 9.1)."""
        total, start = len(self.data), 0.0
        found = [Arc("all", total, "5", arc(0.0, 1.0, *RINGS[0]))]
        for i, (name, n) in enumerate(self.data.balance.items()):
            share, own = n / total, self.with_structure[name]
            found.append(Arc(name, n, f"{i % 8}", arc(start, start + share, *RINGS[1])))
            middle = start + own / total
            found.append(Arc(f"{name}, structure", own, f"{i % 8}", arc(start, middle, *RINGS[2])))
            found.append(Arc(f"{name}, none", n - own, "7", arc(middle, start + share, *RINGS[2])))
            start += share
        return [a for a in found if a.n]


@dataclass(frozen=True)
class Arc:
    """A part of a ring."""

    name: str
    n: int
    series: str
    path: str


@dataclass(frozen=True)
class Clause:
    """A stretch of a text, and which clause it belongs to, if any."""

    text: str
    side: str


def _some(items: Sequence[Item], name: str, seed: int) -> list[Item]:
    rng = generator(seed, "shown", name)
    chosen = sorted(rng.permutation(len(items))[:SHOWN])
    return [items[i] for i in chosen]


def clauses(text: Text, structure: ClausePair) -> list[Clause]:
    """The words of a text with what stands between them, in stretches of one clause each."""
    found: list[Clause] = []
    for i, word in enumerate(text.words):
        side = "dominant" if structure.dominant[i] else "other" if structure.other[i] else ""
        gap = text.gaps[i]
        if found and found[-1].side == side:
            found[-1] = Clause(found[-1].text + gap + word, side)
        else:
            found += [Clause(gap, "")] * bool(gap) + [Clause(word, side)]
    return found


def arc(start: float, end: float, inner: float, outer: float) -> str:
    """A part of a ring around (80, 80), from and to so much of a turn, as a path of SVG."""
    if end - start > 0.9999:  # a whole ring is drawn in two halves
        return arc(0.0, 0.5, inner, outer) + arc(0.5, 0.9999, inner, outer)

    def at(turn: float, radius: float) -> str:
        angle = 2 * math.pi * turn - math.pi / 2
        return f"{80 + radius * math.cos(angle):.2f} {80 + radius * math.sin(angle):.2f}"

    large = int(end - start > 0.5)
    return (
        f"M{at(start, outer)}A{outer} {outer} 0 {large} 1 {at(end, outer)}"
        f"L{at(end, inner)}A{inner} {inner} 0 {large} 0 {at(start, inner)}Z"
    )


def write_found_rules(found: FoundRules, path: Path) -> Path:
    """The page; only a page of ours is written over."""
    page = rendered(
        "found_rules.html",
        styles=("report.css", "charts.css", "rules.css"),
        found=found,
        most=SHOWN,
    )
    return write_page(page, path)
