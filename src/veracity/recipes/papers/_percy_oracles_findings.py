"""What the oracles show of scores of rule consistency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...core.inputs import FloatArray
from ...experiments.experiment import StepResult
from ...results.claims import Claim, Comparison, corrected
from ...results.declarations import Declarations
from ...results.findings import Cell, Figure, Points, Table, Value
from ...results.statistics import LEVEL, mean_intervals, share_interval, sign_flip_test

TEXTS = {"made": "made sentences", "written": "written sentences"}
PROFILES = {
    "recommended": "split, sum, student",
    "paper": "literal, sum, student",
    "mean": "split, mean, student",
}
"""Columns of what is consistent, whose tests look at all words."""
TAKEN = "taking clauses away"
MOVEMENT = "taking clauses away: share of the movement"
CAUSAL = (TAKEN, MOVEMENT)
CHANCE = "random_scores"
SHOWN = "lime"
SUREST = 12
NEAR = 0.9


@dataclass(frozen=True)
class Standing:
    """How a score puts the oracles in order, over one kind of sentences."""

    values: FloatArray  # (oracles, sentences)
    looks: tuple[Comparison, ...]
    """Each oracle less the one before it."""

    @classmethod
    def of(cls, values: FloatArray, shares: Sequence[float]) -> Standing:
        looks = [
            Comparison(
                name=f"{b:.0%} less {a:.0%}",
                value=float(difference.mean()),
                p=sign_flip_test(difference),
                units="sentences",
                n=len(difference),
                test="paired sign flips",
            )
            for (a, b), difference in zip(pairwise(shares), np.diff(values, axis=0), strict=True)
        ]
        return cls(values, tuple(corrected(looks)))

    @property
    def upward(self) -> int:
        """Steps that are surely upward."""
        return sum(look.value > 0 and look.p < LEVEL for look in self.looks)

    @property
    def apart(self) -> tuple[float, float, float]:
        """The perfect oracle less the one that ignores clauses."""
        difference = self.values[-1] - self.values[0]
        ((low, high),) = mean_intervals(difference[:, None])
        return float(difference.mean()), float(low), float(high)


@dataclass(frozen=True)
class OraclesReader:
    """All oracles, read as tables, claims and figures."""

    declared: Declarations
    results: Mapping[tuple[str, float], StepResult]
    texts: tuple[str, ...]

    @property
    def shares(self) -> list[float]:
        return sorted({share for _, share in self.results})

    @cached_property
    def standings(self) -> dict[str, dict[str, Standing]]:
        """By kind of sentences and by score."""
        return {texts: dict(self._standings(texts)) for texts in self.texts}

    def _standings(self, texts: str) -> Iterator[tuple[str, Standing]]:
        own = [self.results[texts, share] for share in self.shares]
        taken = [np.array(r["right"]) * np.array(r["decides"]) for r in own]
        yield TAKEN, Standing.of(np.array(taken, dtype=np.float64), self.shares)
        moved = np.array([r["share"] for r in own], dtype=np.float64)
        yield MOVEMENT, Standing.of(moved, self.shares)
        for explainer, by in own[0]["scores"].items():
            for how in by:
                values = [r["scores"][explainer][how] for r in own]
                found = Standing.of(np.array(values, dtype=np.float64), self.shares)
                yield f"{explainer}, {how}", found

    @cached_property
    def ranking(self) -> list[str]:
        """Scores by how surely they order the oracles on all sentences, then by how far apart."""

        def merit(name: str) -> tuple[int, float]:
            of = [self.standings[t][name] for t in self.texts]
            return min(s.upward for s in of), min(s.apart[0] for s in of)

        return sorted(self.standings[self.texts[0]], key=merit, reverse=True)

    @property
    def best_attributed(self) -> str:
        """The surest of those that need an explanation."""
        return next(n for n in self.ranking if n not in CAUSAL and not n.startswith(CHANCE))

    def lead(self, counts: Mapping[str, int]) -> str:
        best, steps = self.ranking[0], len(self.shares) - 1
        sure = {t: self.standings[t][best].upward for t in self.texts}
        told = self.declared.note(
            "best",
            best=best,
            steps=" and ".join(str(n) for n in sure.values()),
            of=steps,
            texts=" and ".join(f"{counts[t]:,} {TEXTS[t]}" for t in self.texts),
        )
        if best not in CAUSAL:
            return told
        return f"{told} Of scores by explanations: {self.best_attributed}."

    # ---- tables -----------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        for texts in self.texts:
            yield self._order(texts)
        yield self._factors()
        for texts in self.texts:
            yield self._bends(texts)

    def _order(self, texts: str) -> Table:
        standings = self.standings[texts]
        shown = [*CAUSAL, *self.ranking[:SUREST], *(f"{SHOWN}, {how}" for how in PROFILES.values())]
        shown += [f"{CHANCE}, {PROFILES['recommended']}"]
        rows: dict[str, dict[str, Value]] = {}
        for name in dict.fromkeys(n for n in shown if n in standings):
            found = standings[name]
            means = found.values.mean(axis=1)
            rows[name] = {
                **{
                    f"{share:.0%}": Cell(float(mean))
                    for share, mean in zip(self.shares, means, strict=True)
                },
                "surely upward": str(found.upward),
                "apart": Cell.at(found.apart),
            }
        steps = len(self.shares) - 1
        return self.declared.table("order", rows, texts=TEXTS[texts].capitalize(), steps=steps)

    def _factors(self) -> Table:
        """Means over all scores that have a choice in common."""
        groups: dict[str, list[Standing]] = {}
        for standings in self.standings.values():
            for name, found in standings.items():
                parts = name.split(", ")
                if parts[0] != CHANCE and name != MOVEMENT:
                    for part in parts:
                        groups.setdefault(part, []).append(found)
        rows: dict[str, dict[str, Value]] = {
            choice: {
                "steps": Cell(float(np.mean([s.upward for s in of]))),
                "apart": Cell(float(np.mean([s.apart[0] for s in of]))),
                "ceiling": Cell(float(np.mean([s.values[-1].mean() for s in of]))),
            }
            for choice, of in groups.items()
        }
        return self.declared.table("factors", rows, steps=len(self.shares) - 1)

    def _bends(self, texts: str) -> Table:
        traits = self.results[texts, self.shares[-1]]["traits"]
        of = {key: np.array([t[key] for t in traits]) for key in traits[0]}
        longer = of["dominant_words"] - of["other_words"]
        more = of["dominant_sentiment"] - of["other_sentiment"]
        total = of["dominant_sentiment"] + of["other_sentiment"]
        words = of["dominant_words"] + of["other_words"]
        middle = float(np.median(words))
        groups = {
            "all": np.ones(len(traits), dtype=bool),
            "deciding clause shorter": longer < 0,
            "clauses as long": longer == 0,
            "deciding clause longer": longer > 0,
            f"at most {middle:g} words": words <= middle,
            f"more than {middle:g} words": words > middle,
            "fewer words of sentiment in the deciding clause": more < 0,
            "as many": more == 0,
            "more of them": more > 0,
            "two words of sentiment in all": total <= 2,
            "more than two": total > 2,
            "clauses agree": of["contradict"] == 0,
            "clauses contradict each other": of["contradict"] == 1,
        }
        scores = {key: f"{SHOWN}, {how}" for key, how in PROFILES.items()} | {"decides": TAKEN}
        rows: dict[str, dict[str, Value]] = {}
        for title, chosen in groups.items():
            if chosen.any():
                rows[title] = {
                    key: self._share(self.standings[texts][name].values[-1][chosen])
                    for key, name in scores.items()
                } | {"n": f"{int(chosen.sum()):,}"}
        return self.declared.table(
            "bends", rows, texts=TEXTS[texts].capitalize(), explainer=SHOWN.upper()
        )

    @staticmethod
    def _share(values: FloatArray) -> Cell:
        return Cell.at((float(values.mean()), *share_interval(values)))

    # ---- claims, figures --------------------------------------------------------------------

    @property
    def _looked_at(self) -> dict[str, str]:
        known = self.standings[self.texts[0]]
        named = {
            f"{e}, {PROFILES['recommended']}" for e in ("lime", "shap", "integrated_gradients")
        }
        names = [TAKEN, self.best_attributed, *sorted(named)]
        return {n: n for n in dict.fromkeys(names) if n in known}

    def claims(self) -> Iterator[Claim]:
        for name in self._looked_at:
            of = {texts: self.standings[texts][name] for texts in self.texts}
            ceilings = [
                Comparison(
                    name=TEXTS[texts],
                    value=float(found.values[-1].mean()),
                    low=ends[0],
                    high=ends[1],
                    least=NEAR,
                    units="sentences",
                    signed=False,
                )
                for texts, found in of.items()
                for ends in [share_interval(found.values[-1])]
            ]
            yield self.declared.claim("ceiling", ceilings, where=name, near=NEAR)
            apart = [
                Comparison(
                    name=TEXTS[texts],
                    value=found.apart[0],
                    low=found.apart[1],
                    high=found.apart[2],
                    p=sign_flip_test(found.values[-1] - found.values[0]),
                    units="sentences",
                )
                for texts, found in of.items()
            ]
            yield self.declared.claim("apart", corrected(apart), where=name)
            looks = [look for found in of.values() for look in found.looks]
            yield self.declared.claim("ordered", looks, where=name)

    def figures(self) -> Iterator[Figure]:
        for texts in self.texts:
            standings = self.standings[texts]
            lines = {name: name for name in CAUSAL} | {
                f"surest: {self.best_attributed}": self.best_attributed
            }
            lines |= {key: f"{SHOWN}, {how}" for key, how in PROFILES.items()}
            lines["chance"] = f"{CHANCE}, {PROFILES['recommended']}"
            series = [
                self._line(title, standings[name].values)
                for title, name in lines.items()
                if name in standings
            ]
            yield self.declared.figure(
                "order", series, texts=TEXTS[texts].capitalize(), explainer=SHOWN.upper()
            )

    def _line(self, title: str, values: FloatArray) -> Points:
        ends = [share_interval(row) for row in values]
        return Points(
            title,
            tuple(self.shares),
            tuple(values.mean(axis=1).tolist()),
            line=True,
            low=tuple(low for low, _ in ends),
            high=tuple(high for _, high in ends),
        )
