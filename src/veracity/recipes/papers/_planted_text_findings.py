"""What the planted-text experiments show, as `planted_text.toml` declares it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...core.changes import DECOY, PLANTED
from ...data.vectors import GLOVE
from ...experiments.experiment import StepResult
from ...results.claims import Claim, Comparison
from ...results.declarations import Declarations
from ...results.findings import Cell, Figure, Findings, Points, ShownText, Table, Value, Word
from ...results.statistics import percentiles, wilson
from ..recipe import Recipe, Setup
from ._planted_text_models import DATASET_NAMES, KINDS, PlantedModel, length

VECTORS = {"corpus": "vectors learnt from the reviews", "glove": "GloVe vectors"}
"""The first are like the paper's, which were learnt from reviews of beer too (definitions D.1)."""

NEAR = 0.05
"""So near to the optimum is as good as there (definitions 9.5)."""

ASTRAY = 0.03
"""A model whose selection rate on test texts is further from its target was not trained to it."""

ENOUGH = 3
"""Fewer runs say nothing about what recurs."""

LIKE_THE_PAPER = 2.0
"""A mean within so many of the paper's standard deviations of the paper's is like it."""

SHOWN_RUNS = 8
"""So many lines a figure takes."""


Runs = Mapping[float, StepResult]
"""The results of like models, by run or by target rate."""


def _mass(step: StepResult, kind: str, quantity: str = "mass", method: str = "attention") -> float:
    summaries = step["methods"].get(method, {}) if "methods" in step else step["attention"]
    value = summaries.get(f"attribution_mass(truth={kind})", {}).get(quantity)
    return float("nan") if value is None else float(value)


def _masses(runs: Runs, kind: str, quantity: str = "mass") -> list[float]:
    """Of each run, what falls on words of a kind; on neither planted words nor decoys, the rest."""
    if kind in (PLANTED, DECOY):
        return [_mass(s, kind, quantity) for s in runs.values()]
    planted, decoys = (np.array(_masses(runs, k, quantity)) for k in (PLANTED, DECOY))
    return list(1 - planted - np.nan_to_num(decoys))


def _share(values: Sequence[float], **published: Any) -> Cell:
    return Cell.of(values, within=(0.0, 1.0), **published)


def _mean(values: Sequence[float]) -> float:
    return Cell.of(values).value


def _norm(runs: Runs) -> float:
    return float(np.mean([s["norm_read"] for s in runs.values()]))


def _scored(runs: Runs) -> str:
    return f"{sum(bool(s['forced']) for s in runs.values())} of {len(runs)}"


def _counts(rate: float, step: StepResult) -> bool:
    """A model that must use articles, and reads as many words as it was to read."""
    reached = step["selection"].get("pooled_rate")
    return bool(step["forced"]) and reached is not None and abs(reached - rate) <= ASTRAY


def _gap(step: StepResult, level: str = "dataset") -> float:
    """How far precision and recall are from the best, the larger of the two; NaN if unknown."""
    found = step["selection"]
    gaps = [
        abs(float(one) - float(best))
        for q in ("precision", "recall")
        if (one := found.get(f"pooled_{q}")) is not None
        and (best := found.get(f"best_{q}_{level}")) is not None
    ]
    return max(gaps) if len(gaps) == 2 else float("nan")


@dataclass(frozen=True)
class PlantedTextReader:
    """All results, read as the paper's tables, claims and figures."""

    declared: Declarations
    results: Mapping[PlantedModel, StepResult]

    def _of(self, **wanted: Any) -> Runs:
        """The runs or rates of the models that are such."""
        return {
            model.value: step
            for model, step in self.results.items()
            if wanted.items() <= model._asdict().items()
        }

    def _by_dataset(self, **wanted: Any) -> dict[str, Runs]:
        runs = {name: self._of(dataset=name, **wanted) for name in DATASET_NAMES}
        return {name: found for name, found in runs.items() if found}

    @cached_property
    def attention(self) -> dict[str, dict[str, Runs]]:
        """By the name of the vectors and by dataset."""
        by_vectors = {
            title: self._by_dataset(kind="attention", vectors=vectors, norm=None)
            for vectors, title in VECTORS.items()
        }
        return {title: runs for title, runs in by_vectors.items() if runs}

    @cached_property
    def rationales(self) -> dict[tuple[str, str], Runs]:
        """By dataset and kind of model, then by target rate."""
        return {
            (name, kind): runs
            for name in DATASET_NAMES
            for kind in KINDS
            if (runs := self._of(dataset=name, kind=kind))
        }

    @cached_property
    def norms(self) -> dict[tuple[str, float | None], Runs]:
        """Attention on Article by vectors and the norm that they were given, shortest first."""
        runs: dict[tuple[str, float | None], dict[float, StepResult]] = {}
        for model, step in self.results.items():
            if (model.dataset, model.kind) == ("article", "attention"):
                runs.setdefault((model.vectors, model.norm), {})[model.value] = step
        return dict(sorted(runs.items(), key=lambda one: (one[0][0], _norm(one[1]))))

    @property
    def _trained(self) -> Mapping[PlantedModel, StepResult]:
        return {m: s for m, s in self.results.items() if m.kind != "methods"} or self.results

    def findings(self, recipe: Recipe, setup: Setup, source: str) -> Findings:
        sizes = setup.sizes
        accuracies = [s["accuracy"] for s in self.results.values()]
        lead = (
            f"{len(self._trained)} models on {sum(sizes['sizes']):,} reviews of "
            f"{Path(source).name}, scale {setup.scale}; test accuracy {min(accuracies):.3f} to "
            f"{max(accuracies):.3f}.{self.like_the_paper}"
        )
        notes = ["labels", "articles", "forced", "vectors"]
        notes += [] if find_spec(GLOVE) else ["no_glove"]
        notes += ["reinforced"] if sizes["reinforced"] else []
        return Findings(
            recipe=recipe.plugin_name(),
            title=recipe.title,
            lead=lead,
            config={
                "scale": setup.scale,
                "reviews": source,
                "seed": setup.seed,
                **{k: v for k, v in sizes.items() if k != "rates"},
                "selection rates": sizes["rates"],
            },
            tables=tuple(self.tables()),
            claims=(*self.attention_claims(), *self.rationale_claims()),
            figures=tuple(self.figures()),
            texts=tuple(self.texts()),
            notes=tuple(self.declared.note(name, package=GLOVE) for name in notes),
        )

    # ---- tables -----------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        for vectors, by_dataset in self.attention.items():
            every = [s for runs in by_dataset.values() for s in runs.values()]
            lost = sum(not s["forced"] for s in every)
            more = f" Runs that do not reach the accuracy are not scored: {lost}." if lost else ""
            yield self.declared.table(
                "attention",
                {
                    row: cells
                    for name in by_dataset
                    for row, cells in self._shares(name, by_dataset)
                },
                vectors=vectors,
                runs=max(map(len, by_dataset.values())),
                norm=np.mean([s["norm_read"] for s in every]),
                lost=more,
            )
        if self.norms:
            yield self.declared.table("norms", dict(map(self._of_norm, self.norms)))
        methods = self._by_dataset(kind="methods")
        if methods:
            yield self.declared.table("methods", self._of_methods(methods))
        if self.rationales:
            yield self.declared.table("rationales", dict(self._of_rationales()))
        yield self.declared.table(
            "models",
            {
                str(model): {
                    **{q: Cell(s[q]) for q in ("accuracy", "bound", "ceiling", "luck")},
                    "norm": Cell(s["norm_read"]),
                    "forced": "yes" if s["forced"] else "no: not scored",
                    "epochs": str(s["epochs"]),
                    "seconds": f"{s['seconds']:.0f} s",
                }
                for model, s in self._trained.items()
            },
        )

    def _shares(
        self, name: str, by_dataset: Mapping[str, Runs]
    ) -> Iterator[tuple[str, dict[str, Value]]]:
        runs, published = by_dataset[name], self.declared.published[name]
        kinds = {PLANTED: "correlating articles", DECOY: "other articles", "other": "other words"}
        if name == "article":
            kinds = {PLANTED: "articles", "other": "other words"}
        for kind, words in kinds.items():
            yield (
                f"{DATASET_NAMES[name]}: {words}",
                {
                    "mass": _share(_masses(runs, kind), published=published[kind]),
                    **{
                        q: _share(_masses(runs, kind, q)) for q in ("mass_of_0", "mass_of_1")
                    },
                    "share": Cell(
                        _mean(_masses(runs, kind, "pooled_share")),
                        published=published.get(f"{kind}_share"),
                    ),
                    "scored": _scored(runs),
                },
            )  # fmt: skip

    def _of_norm(self, key: tuple[str, float | None]) -> tuple[str, dict[str, Value]]:
        runs = self.norms[key]
        return f"{key[0]}, {length(key[1])}", {
            "norm": f"{np.mean([s['norm'] for s in runs.values()]):.2f}",
            "read": f"{_norm(runs):.2f}",
            "mass": _share(
                _masses(runs, PLANTED), published=self.declared.published["article"][PLANTED]
            ),
            "scored": _scored(runs),
            "epochs": f"{np.mean([s['epochs'] for s in runs.values()]):.1f}",
        }

    def _of_methods(self, by_dataset: Mapping[str, Runs]) -> dict[str, dict[str, Value]]:
        names = dict.fromkeys(
            m for runs in by_dataset.values() for s in runs.values() for m in s["methods"]
        )
        kinds = {PLANTED: " planted", DECOY: " decoys"}
        columns = {
            DATASET_NAMES[d] + kinds[kind] * (d != "article"): (d, kind)
            for d in by_dataset
            for kind in kinds
            if d != "article" or kind == PLANTED
        }

        def cells(method: str, quantity: str = "mass") -> dict[str, Cell]:
            return {
                title: _share([_mass(s, kind, quantity, method) for s in by_dataset[d].values()])
                for title, (d, kind) in columns.items()
            }

        rows = {method: cells(method) for method in names}
        first = next(iter(columns))
        best = sorted(rows, key=lambda m: -np.nan_to_num(rows[m][first].value))
        share = cells(next(iter(names)), "share") if names else {}
        return {**{m: {**rows[m]} for m in best}, "share of words": {**share}}

    def _of_rationales(self) -> Iterator[tuple[str, dict[str, Value]]]:
        quantities = list(self.declared.content["tables"]["rationales"]["columns"])[1:-1]
        for (name, kind), runs in self.rationales.items():
            for rate, step in runs.items():
                found = step["selection"]
                yield (
                    f"{DATASET_NAMES[name]}, {KINDS[kind]}, {rate:g}",
                    {
                        "accuracy": Cell(step["accuracy"], marked=not step["forced"]),
                        **{q: Cell(found.get(q, np.nan)) for q in quantities},
                        "epochs": str(step["epochs"]),
                    },
                )

    # ---- claims -----------------------------------------------------------------------------

    def attention_claims(self) -> Iterator[Claim]:
        """What the paper says of attention, for each kind of word vectors."""
        for where, by_dataset in self.attention.items():
            article = by_dataset.get("article", {})
            masses = [m for m in _masses(article, PLANTED) if not np.isnan(m)]
            if len(masses) >= ENOUGH:
                share = _mean(_masses(article, PLANTED, "pooled_share"))
                barely = Comparison.of_mean(
                    "Attr%",
                    masses,
                    units="trainings",
                    least=-np.inf,
                    most=2 * share,
                    signed=False,
                )
                yield self.declared.claim("barely", [barely], where=where, share=share)
            cn = [m for m in _masses(by_dataset.get("cn", {}), PLANTED) if not np.isnan(m)]
            if len(cn) >= ENOUGH:
                cell = Cell.of(cn)
                yield self.declared.claim(
                    "spread",
                    [_spread_over_mean(cn)],
                    where=where,
                    mean=cell.value,
                    sd=cell.spread,
                    runs=len(cn),
                )
            over = {
                name: np.array(_masses(by_dataset.get(name, {}), DECOY))
                - _masses(by_dataset.get(name, {}), DECOY, "pooled_share")
                for name in ("cn", "nc")
            }
            if min((~np.isnan(v)).sum() for v in over.values()) >= ENOUGH:
                yield self.declared.claim("decoys", _decoys(over), where=where)

    def rationale_claims(self) -> Iterator[Claim]:
        for kind, title in KINDS.items():
            runs = self.rationales.get(("article", kind), {})
            if runs:
                excepted = kind == "rationale_cr"
                kept = {r: s for r, s in sorted(runs.items()) if _counts(r, s)}
                needed = [r for r in kept if not excepted or r != min(runs)]
                near = Comparison.of_mean(
                    "distance from the best over the whole set",
                    [_gap(kept[r]) for r in needed],
                    units="rates",
                    least=-np.inf,
                    most=NEAR,
                    signed=False,
                )
                name = "near_best_but_lowest" if excepted else "near_best"
                yield self.declared.claim(
                    name, [near], kind=title, near=NEAR, kept=len(kept), rates=len(runs)
                )
        counted = {
            (name, kind, rate): step
            for (name, kind), runs in self.rationales.items()
            for rate, step in runs.items()
            if _counts(rate, step)
        }
        levels = np.array([[_gap(s, "dataset"), _gap(s, "text")] for s in counted.values()])
        levels = levels.reshape(-1, 2)[~np.isnan(levels.reshape(-1, 2)).any(axis=1)]
        if len(levels) >= ENOUGH:
            further = Comparison.of_differences("nearer by", levels[:, 1] - levels[:, 0])
            means = levels.mean(axis=0)
            yield self.declared.claim(
                "whole_set", [further], n=len(levels), whole=means[0], review=means[1]
            )
        marked = [s["selection"]["pooled_marked"] for k, s in counted.items() if k[0] != "article"]
        if len(marked) >= ENOUGH:
            articles = Comparison.of_mean(
                "articles", marked, units="models", least=0.9, signed=False
            )
            yield self.declared.claim("only_articles", [articles], n=len(marked))
        more = [
            step["selection"]["pooled_misleading"] - other["selection"]["pooled_misleading"]
            for (name, kind, rate), step in counted.items()
            if name != "article" and kind == "rationale_rl"
            for other in [counted.get((name, "rationale_cr", rate))]
            if other is not None
        ]
        if more:
            decoys = Comparison.of_mean("decoys", more, units="datasets and rates")
            yield self.declared.claim("reinforcement", [decoys], n=len(more))

    @property
    def like_the_paper(self) -> str:
        """With which vectors the paper's figure comes out, and whether their scale decides it."""
        paper, spread = self.declared.published["article"][PLANTED]
        alike: list[str] = []
        unlike: list[str] = []
        scale_decides = False
        for vectors in dict.fromkeys(v for v, _ in self.norms):
            means = {
                _norm(runs): _mean(_masses(runs, PLANTED))
                for (kind, _), runs in self.norms.items()
                if kind == vectors and any(s["forced"] for s in runs.values())
            }
            like = {n for n, v in means.items() if abs(v - paper) <= LIKE_THE_PAPER * spread}
            for names, norms in ((alike, like), (unlike, means.keys() - like)):
                if norms:
                    shown = ", ".join(f"{n:.2g} ({means[n]:.1%})" for n in sorted(norms))
                    names.append(f"{vectors} vectors of norm {shown}")
            # the same vectors, and nothing but their length differs
            above = {n for n in means.keys() - like if means[n] > paper}
            scale_decides |= bool(like and above) and max(like) < min(above)
        parts = [
            f"{verb} with {' and with '.join(which)}"
            for verb, which in (
                ("reproduces", alike),
                ("does not" if alike else "does not reproduce", unlike),
            )
            if which
        ]
        if not parts:
            return ""
        sentence = self.declared.note(
            "like_the_paper",
            paper=paper,
            margin=LIKE_THE_PAPER * spread,
            found=", and ".join(parts),
        )
        return " ".join(
            ["", sentence, *([self.declared.note("scale_decides")] if scale_decides else [])]
        )

    # ---- figures ----------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        if len(self.norms) > 1:
            yield self.declared.figure("norms", self._norm_points())
        for name, title in DATASET_NAMES.items():
            kinds = {kind: runs for (n, kind), runs in self.rationales.items() if n == name}
            if kinds:
                for quantity in ("precision", "recall") if name == "article" else ("precision",):
                    points = _selection_points(kinds, quantity)
                    yield self.declared.figure(
                        "selection", points, dataset=title, quantity=quantity
                    )
        for vectors, by_dataset in self.attention.items():
            for name, runs in by_dataset.items():
                lines = [
                    Points.of(f"run {int(i)}", s["along"], line=True)
                    for i, s in runs.items()
                    if len(s["along"]) > 1
                ]
                if lines:
                    yield self.declared.figure(
                        "along", lines[:SHOWN_RUNS], dataset=DATASET_NAMES[name], vectors=vectors
                    )

    def _norm_points(self) -> Iterator[Points]:
        for vectors in dict.fromkeys(v for v, _ in self.norms):
            own = [runs for (v, _), runs in self.norms.items() if v == vectors]
            every = [s for runs in own for s in runs.values()]
            yield Points.of(
                f"{vectors}, each run", [(s["norm_read"], _mass(s, PLANTED)) for s in every]
            )
            means = [(_norm(runs), _mean(_masses(runs, PLANTED))) for runs in own]
            yield Points.of(f"{vectors}, mean", means, line=True)
        lengths = [_norm(runs) for runs in self.norms.values()]
        ends = (min(lengths), max(lengths))
        paper = self.declared.published["article"][PLANTED][0]
        shares = [v for runs in self.norms.values() for v in _masses(runs, PLANTED, "pooled_share")]
        yield Points.level(f"paper, {paper:.1%}", ends, paper)
        yield Points.level("share of words", ends, _mean(shares))

    def texts(self) -> Iterator[ShownText]:
        for vectors, by_dataset in self.attention.items():
            for name, runs in by_dataset.items():
                title = f"{DATASET_NAMES[name]}, {vectors}, first run: attention"
                yield _shown(title, next(iter(runs.values())))
        for (name, kind), runs in self.rationales.items():
            rate, step = next(iter(runs.items()))
            yield _shown(f"{DATASET_NAMES[name]}, {KINDS[kind]} at {rate:g}: words read", step)


def _shown(title: str, step: StepResult) -> ShownText:
    return ShownText(title, tuple(Word(*word) for word in step["text"]))


def _spread_over_mean(values: Sequence[float]) -> Comparison:
    """The standard deviation less the mean, with its bootstrap interval over runs."""
    drawn = np.random.default_rng(0).choice(np.array(values), (2000, len(values)))
    ((low, high),) = percentiles((drawn.std(axis=1, ddof=1) - drawn.mean(axis=1))[:, None])
    value = float(np.std(values, ddof=1) - np.mean(values))
    return Comparison(
        name="standard deviation less mean",
        value=value,
        low=float(low),
        high=float(high),
        units="trainings",
        n=len(values),
        test="bootstrap",
        percent=True,
    )


def _decoys(over: Mapping[str, Any]) -> Iterator[Comparison]:
    """In most runs above their share on each dataset, and by more on NC."""
    for name, values in over.items():
        known = values[~np.isnan(values)]
        hits = int((known > 0).sum())
        low, high = wilson(hits, len(known))
        yield Comparison(
            name=f"{DATASET_NAMES[name]}: runs above their share",
            value=hits / len(known),
            low=low,
            high=high,
            least=0.5,
            units="trainings",
            n=len(known),
            percent=True,
        )
    n = min(map(len, over.values()))
    yield Comparison.of_mean("NC less CN", over["nc"][:n] - over["cn"][:n], units="trainings")


def _selection_points(kinds: Mapping[str, Runs], quantity: str) -> Iterator[Points]:
    """Precision or recall of the words that were read, and the best that is possible."""
    for kind, runs in kinds.items():
        found = [s["selection"] for s in runs.values()]
        yield Points.of(
            KINDS[kind], [(s["pooled_rate"], s[f"pooled_{quantity}"] or np.nan) for s in found]
        )
    every = sorted(
        (s["selection"] for runs in kinds.values() for s in runs.values()),
        key=lambda s: float(s["pooled_rate"]),
    )
    for level, title in (
        ("dataset", "best, budget over the set"),
        ("text", "best, budget per review"),
    ):
        best = [(s["pooled_rate"], s.get(f"best_{quantity}_{level}", np.nan)) for s in every]
        yield Points.of(title, best, line=True, dashed=level == "text")
