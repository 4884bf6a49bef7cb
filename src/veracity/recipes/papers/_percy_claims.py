"""What the paper claims of its classifiers, and what was compared to see whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ...core.inputs import FloatArray
from ...results.claims import Claim, Comparison, corrected
from ...results.declarations import Declarations
from ...results.statistics import percentiles
from ._percy_grid import CorpusGrid, Pair
from ._percy_judging import STUDENT, TEACHER
from ._percy_printed import PrintedTable

HIGHEST = 0.25
AGREE = 0.5
BARELY = 0.2
"""Rank correlations within this of zero are hardly any."""
NOTHING = 0.02
"""Differences within this are almost nothing."""
MOST_STABLE = "shap"


def claims_of(
    declared: Declarations,
    grid: CorpusGrid,
    printed: PrintedTable,
    *,
    where: str,
    estimates: Mapping[str, FloatArray],
) -> Iterator[Claim]:
    """Every claim that the classifiers and explainers at hand allow to look at."""
    looks = _Looks(declared, grid, printed, where)
    yield from looks.below()
    yield from looks.ranks()
    yield from looks.stable(estimates)
    yield from looks.distillation()
    yield from looks.bases()
    yield from looks.proposed()
    yield from looks.vectors()


@dataclass(frozen=True)
class _Looks:
    declared: Declarations
    grid: CorpusGrid
    printed: PrintedTable
    where: str

    def below(self) -> Iterator[Claim]:
        grid = self.grid
        for explainer in grid.explainers:
            found = {n: grid.explained.share(grid.outcome(n, explainer)) for n in grid.names}
            best = max(found, key=lambda n: found[n][0])
            yield self.declared.claim(
                "below",
                [
                    Comparison(
                        name=str(name),
                        value=value,
                        low=low,
                        high=high,
                        least=-np.inf,
                        most=HIGHEST,
                        units="sentences",
                        signed=False,
                    )
                    for name, (value, low, high) in found.items()
                ],
                where=f"{self.where}, {explainer}",
                explainer=explainer,
                best=best,
                value=found[best][0],
            )

    def ranks(self) -> Iterator[Claim]:
        grid, printed, n = self.grid, self.printed, len(self.grid.names)
        pairs = list(combinations(grid.explainers, 2))
        agree = [self._tau(a, b, least=AGREE) for a, b in pairs]
        if all(agree):
            yield self.declared.claim(
                "agree",
                [look for look in agree if look],
                where=self.where,
                classifiers=n,
                published=", ".join(f"{printed.tau(*pair):.3f}" for pair in pairs),
                static=", ".join(f"{printed.tau(*pair, measured=True):.3f}" for pair in pairs),
            )
        accuracy = [self._tau("", e, least=-BARELY, most=BARELY) for e in grid.explainers]
        if all(accuracy):
            yield self.declared.claim(
                "unrelated",
                [look for look in accuracy if look],
                where=self.where,
                classifiers=n,
                bound=BARELY,
                published=", ".join(f"{printed.tau('accuracy', e):.3f}" for e in grid.explainers),
            )

    def _tau(self, one: str, other: str, **claimed: float) -> Comparison | None:
        found = self.grid.tau(one, other)
        if found is None:
            return None
        value, low, high = found
        return Comparison(
            name=f"{one or 'accuracy'} and {other}",
            value=value,
            low=low,
            high=high,
            units="sentences",
            **claimed,  # type: ignore[arg-type]
        )

    def stable(self, estimates: Mapping[str, FloatArray]) -> Iterator[Claim]:
        """Medians of estimates, drawn anew one by one: those of one sentence are of different
        classifiers."""
        known = {e: values for e, values in estimates.items() if len(values) > 1}
        if MOST_STABLE not in known or len(known) < 2:
            return
        rng = np.random.default_rng(0)
        drawn = {
            e: np.median(rng.choice(v, (self.grid.draws, len(v))), axis=1) for e, v in known.items()
        }
        looks = []
        for other in [e for e in known if e != MOST_STABLE]:
            ((low, high),) = percentiles((drawn[other] - drawn[MOST_STABLE])[:, None])
            value = float(np.median(known[other]) - np.median(known[MOST_STABLE]))
            looks.append(
                Comparison(
                    name=f"{other} less {MOST_STABLE}",
                    value=value,
                    low=float(low),
                    high=float(high),
                    units="estimates",
                )
            )
        yield self.declared.claim("stable", looks, where=self.where)

    def distillation(self) -> Iterator[Claim]:
        grid, pairs = self.grid, self.grid.pairs("distilled", True, False)
        if not pairs:
            return
        published = self.printed.differences("distilled", True, False)
        almost = {"least": -NOTHING, "most": NOTHING}
        looks = [
            grid.answered.compared("accuracy", grid.differences(pairs, grid.right), **almost),
            *self._scores(pairs, STUDENT, **almost),
        ]
        yield self.declared.claim(
            "nothing",
            corrected(looks),
            where=self.where,
            pairs=len(pairs),
            bound=NOTHING,
            published=", ".join(
                f"{published[k]:+.4f} ({k})" for k in ("accuracy", *grid.explainers)
            ),
        )
        for who in (STUDENT, TEACHER):
            caused = grid.differences(pairs, grid.caused, who)
            looks = [*self._scores(pairs, who), grid.explained.compared("taken away", caused)]
            yield self.declared.claim(
                "follow", corrected(looks), where=f"{self.where}, {who}", pairs=len(pairs)
            )

    def _scores(self, pairs: list[Pair], who: str, **claimed: float) -> Iterator[Comparison]:
        """Differences of scores by each explainer that the first of each pair was asked by."""
        grid = self.grid
        for e in grid.explainers:
            if all(grid.has(name, e, who) for name, _ in pairs):
                found = grid.differences(pairs, grid.score(e), who)
                yield grid.explained.compared(e, found, **claimed)

    def bases(self) -> Iterator[Claim]:
        pairs = self.grid.pairs("base", "C", "L")
        if pairs:
            published = self.printed.differences("base", "C", "L")["lime"]
            yield self.declared.claim(
                "sequence",
                corrected(self._scores(pairs, STUDENT)),
                where=self.where,
                pairs=len(pairs),
                published=f"{published:+.4f}",
            )

    def proposed(self) -> Iterator[Claim]:
        grid = self.grid
        sides = [[n for n in grid.names if n.for_rules == wanted] for wanted in (True, False)]
        if not all(sides):
            return
        looks = []
        for e in grid.explainers:
            one, other = (np.mean([grid.outcome(n, e) for n in side], axis=0) for side in sides)
            looks.append(grid.explained.compared(e, one - other, least=-np.inf, most=NOTHING))
        means = [self.printed.mean("lime", proposed=wanted) for wanted in (True, False)]
        yield self.declared.claim(
            "proposed",
            corrected(looks),
            where=self.where,
            proposed=len(sides[0]),
            others=len(sides[1]),
            bound=NOTHING,
            published=f"{means[0]:.4f} and {means[1]:.4f}",
        )

    def vectors(self) -> Iterator[Claim]:
        """Of vectors that were run, against each of the others."""
        grid = self.grid
        letters = list(dict.fromkeys(name.vectors for name in grid.names))
        for claim, mine, sign in (("accurate", "B", 1), ("contextual", "E", 1), ("low", "sB", -1)):
            looks = []
            for other in [v for v in letters if v != mine and mine in letters]:
                pairs = grid.pairs("vectors", mine, other)
                if not pairs:
                    continue
                if claim == "accurate":
                    found = [grid.answered.compared("", grid.differences(pairs, grid.right))]
                else:
                    found = list(self._scores(pairs, STUDENT))
                looks += [
                    replace(
                        look,
                        name=f"{mine} less {other}{', ' * bool(look.name)}{look.name}",
                        least=0.0 if sign > 0 else -np.inf,
                        most=np.inf if sign > 0 else 0.0,
                    )
                    for look in (found[:1] if claim == "low" else found)
                ]
            if looks:
                yield self.declared.claim(claim, corrected(looks), where=self.where)
