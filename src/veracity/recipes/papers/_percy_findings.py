"""What the classifiers of PERCY show, as `percy.toml` declares it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from ...changes.structure import RULE
from ...core.examples import Dataset
from ...core.inputs import FloatArray
from ...experiments.experiment import StepResult
from ...explainers import explainers
from ...metrics.rule_consistency import OUTCOMES
from ...results.claims import Claim
from ...results.declarations import Declarations, beside
from ...results.findings import Cell, Figure, Points, ShownText, Table, Value, Word
from ...results.rules import CATEGORIES
from ...results.statistics import defined_mean
from ._percy_claims import claims_of
from ._percy_cost import cost_table
from ._percy_grid import CorpusGrid, Reading, Rows, kendall, pearson
from ._percy_judging import STUDENT, TEACHER
from ._percy_names import ClassifierName
from ._percy_printed import PrintedTable

CORPORA = {"sst2": "SST-2", "sentiment140": "Sentiment140"}
EXPLAINERS = {"lime": "L", "shap": "S", "integrated_gradients": "I"}
"""The paper's letters."""


def short(explainer: str) -> str:
    """L-PERCY for what the paper calls so."""
    return f"{EXPLAINERS.get(explainer, explainer)}-PERCY"


@dataclass(frozen=True, kw_only=True)
class PercyReader:
    """All results, read as the paper's tables, claims and figures."""

    declared: Declarations
    results: Mapping[Any, StepResult]
    names: tuple[ClassifierName, ...]
    texts: Mapping[str, Dataset]
    sizes: Mapping[str, Any]

    @cached_property
    def grids(self) -> dict[str, CorpusGrid]:
        """By corpus what was measured of every classifier."""
        found = {}
        for corpus in self.texts:
            own = [k for k in self.results if (k.what, k.corpus) == ("judge", corpus)]
            folds = list(dict.fromkeys((k.outer, k.inner) for k in own))
            by_name = {
                str(name): [
                    self.results[next(k for k in own if (k.classifier, k.outer, k.inner) == key)]
                    for key in [(str(name), *fold) for fold in folds]
                ]
                for name in self.names
            }
            labels = tuple(f"{outer}.{inner}" for outer, inner in folds)
            found[corpus] = CorpusGrid(self.names, by_name, labels, self.sizes["draws"])
        return found

    @cached_property
    def printed(self) -> dict[str, PrintedTable]:
        rows = self.declared.published["rows"]
        return {corpus: PrintedTable.of(rows, place) for place, corpus in enumerate(CORPORA)}

    def lead(self, scale: str) -> str:
        judged = ", ".join(
            f"{len(set(g.answered.ids)):,} sentences of {CORPORA[c]}" for c, g in self.grids.items()
        )
        return (
            f"{len(self.names)} of the paper's 40 classifiers, judged on {judged} with a clause "
            f"that ought to decide; scale {scale}."
        )

    # ---- tables -----------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        yield self._data()
        for corpus, grid in self.grids.items():
            yield self._performance(corpus, grid)
            yield self._outcomes(corpus, grid)
            if grid.pairs("distilled", True, False):
                yield self._distillation(corpus, grid)
            yield self._pearson(corpus, grid)
            yield self._causal(corpus, grid)
            yield self._lipschitz(corpus, grid)
            yield self._clauses(corpus, grid)
        yield self._time()
        yield cost_table(self.declared, self.results, self.names, self.sizes)

    def _data(self) -> Table:
        rows: dict[str, dict[str, Value]] = {}
        for corpus, data in self.texts.items():
            kinds = Counter(e.facts.get(RULE, "") for e in data)
            n = sum(kinds.values()) - kinds.pop("", 0)
            structured = [
                np.mean([RULE in e.facts for e in data if e.label == label]) for label in (0, 1)
            ]
            grid = self.grids[corpus]
            rows[CORPORA[corpus]] = {
                "texts": f"{len(data):,}",
                "positive": f"{np.mean([e.label for e in data]):.1%}",
                "structures": f"{n:,} ({n / len(data):.1%})",
                "structured_negative": f"{structured[0]:.1%}",
                "structured_positive": f"{structured[1]:.1%}",
                "rules": ", ".join(f"{rule} {count:,}" for rule, count in kinds.most_common(6)),
                "folds": str(len(grid.folds)),
                "explained": f"{len(set(grid.explained.ids)):,}",
            }
        return self.declared.table("data", rows)

    def _performance(self, corpus: str, grid: CorpusGrid) -> Table:
        printed = self.printed[corpus]
        return self.declared.table(
            "performance",
            {str(name): {**grid.cells(name, printed.row(name))} for name in self.names},
            corpus=CORPORA[corpus],
            judged=len(set(grid.answered.ids)),
            explained=len(set(grid.explained.ids)),
        )

    def _outcomes(self, corpus: str, grid: CorpusGrid) -> Table:
        rows: dict[str, dict[str, Value]] = {}
        for who in (STUDENT, TEACHER):
            for explainer in grid.explainers:
                names = [name for name in self.names if grid.has(name, explainer, who)]
                if not names:
                    continue
                title = f"{explainer}{', teachers' * (who == TEACHER)}"
                rows[title] = {
                    what: Cell.at(
                        grid.explained.mean(
                            np.mean([grid.outcome(n, explainer, what, who) for n in names], axis=0)
                        )
                    )
                    for what in (*OUTCOMES, *self.sizes["profiles"][1:])
                }
                rows[title]["n"] = f"{len(grid.explained.ids) * len(names):,}"
        return self.declared.table("outcomes", rows, corpus=CORPORA[corpus])

    def _distillation(self, corpus: str, grid: CorpusGrid) -> Table:
        pairs = grid.pairs("distilled", True, False)
        told = self.printed[corpus].differences("distilled", True, False)
        looks: dict[str, tuple[Rows, Reading, float | None]] = {
            "accuracy": (grid.answered, grid.right, told["accuracy"]),
            **{short(e): (grid.explained, grid.score(e), told[e]) for e in grid.explainers},
            "taken away": (grid.explained, grid.caused, None),
        }
        unasked = {
            short(e)
            for e in grid.explainers
            if not all(grid.has(name, e, TEACHER) for name, _ in pairs)
        }
        rows: dict[str, dict[str, Value]] = {}
        for title, (of, read, published) in looks.items():
            student = of.mean(grid.differences(pairs, read))
            rows[title] = {STUDENT: Cell.at(student, published=published)}
            if title not in unasked:
                teacher = of.mean(grid.differences(pairs, read, TEACHER))
                rows[title][TEACHER] = Cell.at(teacher)
        return self.declared.table("distillation", rows, corpus=CORPORA[corpus], pairs=len(pairs))

    def _pearson(self, corpus: str, grid: CorpusGrid) -> Table:
        rows = {
            short(one): {short(other): Cell(grid.phi(one, other)) for other in grid.explainers}
            for one in grid.explainers
        }
        return self.declared.table("pearson", rows, corpus=CORPORA[corpus])

    def _causal(self, corpus: str, grid: CorpusGrid) -> Table:
        right = np.stack([grid.right_explained(name) for name in self.names])
        caused = right * np.stack([grid.caused(name) for name in self.names])
        rows: dict[str, dict[str, Value]] = {}
        for explainer in grid.explainers:
            found = grid.matrix(explainer)
            same = np.mean(found == caused, axis=0)
            rows[short(explainer)] = {
                "same": Cell.at(grid.explained.mean(same)),
                "phi": Cell(pearson(found.ravel(), caused.ravel())),
                "tau": Cell(kendall(found.mean(axis=1), caused.mean(axis=1))),
            }
        return self.declared.table("causal", rows, corpus=CORPORA[corpus])

    def _estimates(self, grid: CorpusGrid, explainer: str) -> FloatArray:
        every = [
            value
            for results in grid.results.values()
            for result in results
            for value in result["lipschitz"][explainer]
        ]
        known = np.array(every, dtype=np.float64)
        return known[~np.isnan(known)]

    def _lipschitz(self, corpus: str, grid: CorpusGrid) -> Table:
        rows: dict[str, dict[str, Value]] = {}
        for explainer in grid.explainers:
            found = self._estimates(grid, explainer)
            ends = np.quantile(found, [0, 0.25, 0.5, 0.75, 1]) if len(found) else np.full(5, np.nan)
            keys = ("low", "first", "median", "third", "high")
            rows[explainer] = {
                **{key: Cell(float(value)) for key, value in zip(keys, ends, strict=True)},
                "n": f"{len(found):,}",
            }
        sentences = self.sizes["lipschitz"]["sentences"]
        return self.declared.table("lipschitz", rows, corpus=CORPORA[corpus], sentences=sentences)

    def _clauses(self, corpus: str, grid: CorpusGrid) -> Table:
        every = [r for results in grid.results.values() for r in results]
        words = np.concatenate([np.array(r["clauses"]).reshape(-1, 4) for r in every])
        rows: dict[str, dict[str, Value]] = {}
        for category in CATEGORIES:
            chosen = np.concatenate(
                [np.array(r["categories"][category], dtype=bool) for r in every]
            )
            own = words[chosen]
            both = own[(own[:, 2] != 0) & (own[:, 3] != 0)]
            rows[category.replace("_", " ")] = {
                "n": f"{len(own):,}",
                "dominant": Cell(defined_mean(own[:, 0])),
                "other": Cell(defined_mean(own[:, 1])),
                "agree": Cell(defined_mean(np.sign(both[:, 2]) == np.sign(both[:, 3]))),
            }
        return self.declared.table("clauses", rows, corpus=CORPORA[corpus])

    def _time(self) -> Table:
        rows: dict[str, dict[str, Value]] = {}
        for name in self.names:
            own = {k: r for k, r in self.results.items() if k.classifier == str(name)}
            trained = [r for k, r in own.items() if k.what == "train"]
            judged = [r["costs"] for k, r in own.items() if k.what == "judge"]
            per_text = [1000 * r["seconds"] / (r["texts"] * r["epochs"]) for r in trained]
            rows[str(name)] = {
                "training": f"{np.mean([r['seconds'] for r in trained]):.1f}",
                "per_text": f"{np.mean(per_text):.2f}",
            }
            for explainer, spec in self.sizes["explainers"].items():
                known = [costs[f"{STUDENT} {explainers.make(spec).spec}"] for costs in judged]
                rows[str(name)][explainer] = f"{np.mean([s / n for n, s, _ in known]):.3f}"
        return self.declared.table("time", rows)

    # ---- claims, figures, texts -------------------------------------------------------------

    def claims(self) -> Iterator[Claim]:
        for corpus, grid in self.grids.items():
            yield from claims_of(
                self.declared,
                grid,
                self.printed[corpus],
                where=CORPORA[corpus],
                estimates={e: self._estimates(grid, e) for e in grid.explainers},
            )

    def figures(self) -> Iterator[Figure]:
        for corpus, grid in self.grids.items():
            for explainer in grid.explainers:
                yield from self._ranks(corpus, grid, "", explainer)
            for one, other in combinations(grid.explainers, 2):
                yield from self._ranks(corpus, grid, one, other)
        yield self._lipschitz_figure()

    def _ranks(self, corpus: str, grid: CorpusGrid, one: str, other: str) -> Iterator[Figure]:
        tau = grid.tau(one, other)
        if tau is None:
            return
        x, y = (stats.rankdata(-grid.matrix(e).mean(axis=1)) for e in (one, other))
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        series = [
            Points.of(
                title, [p for p, n in zip(points, self.names, strict=True) if n.for_rules == lrd]
            )
            for title, lrd in (("proposed to carry rules", True), ("others", False))
        ]
        ends = (float(x.min()), float(x.max()))
        if ends[0] < ends[1]:
            slope, start = np.polyfit(x, y, 1)
            line = [(end, float(start + slope * end)) for end in ends]
            series.append(Points.of("regression", line, line=True))
        if one:
            series.append(Points.of("equal ranks", [(e, e) for e in ends], line=True, dashed=True))
        value, low, high = tau
        published = f"{self.printed[corpus].tau(one or 'accuracy', other):.3f}"
        yield self.declared.figure(
            "explainers" if one else "ranks",
            [s for s in series if s.x],
            corpus=CORPORA[corpus],
            explainer=short(other),
            one=short(one),
            other=short(other),
            published=published,
            tau=value,
            low=low,
            high=high,
        )

    def _lipschitz_figure(self) -> Figure:
        names = list(self.sizes["explainers"])
        series = {}
        for corpus, grid in self.grids.items():
            series[CORPORA[corpus]] = {
                explainer: Cell.at(np.quantile(found, [0.5, 0.25, 0.75]).tolist())
                for explainer in names
                if len(found := self._estimates(grid, explainer))
            }
        return self.declared.figure("lipschitz", beside(series, names), names=names)

    def shown(self) -> Iterator[ShownText]:
        """Sentences of the classifier with the highest score by LIME, as the paper has it."""
        for corpus, grid in self.grids.items():
            first = grid.explainers[0]
            best = max(self.names, key=lambda n: float(grid.outcome(n, first).mean()))
            seen: set[tuple[str, int]] = set()
            for one in (one for r in grid.results[str(best)] for one in r["shown"]):
                kind = (one["category"], one["label"])
                if kind not in seen:
                    seen.add(kind)
                    label = self.texts[corpus].labels[one["label"]]
                    yield ShownText(
                        f"{CORPORA[corpus]}, {best}, {kind[0].replace('_', ' ')} "
                        f"({CATEGORIES[kind[0]]}), label {label}",
                        tuple(Word(*word) for word in one["words"]),
                    )
