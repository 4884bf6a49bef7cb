"""What the planted-image experiments show, as `planted_images.toml` declares it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.splits import Splits
from ...experiments.experiment import StepResult
from ...results.claims import Claim, Comparison, corrected
from ...results.declarations import Declarations
from ...results.findings import (
    Cell,
    Figure,
    Findings,
    Points,
    ShownPanel,
    ShownPictures,
    Table,
    Value,
)
from ...results.statistics import wilson
from ..recipe import Recipe, Setup
from ._planted_images_draws import CORRELATIONS, Pair
from ._planted_images_points import (
    AttrPoint,
    PlantedImagesPoints,
    above_chance,
    beyond_chance,
    bootstrapped,
    mean_of,
    trend,
)
from ._planted_images_runs import EXPERIMENTS, NAMES, PictureRun, parameters

NEAR = 0.9
"""An Attr% from here on is near 1."""

CONSISTENT = 0.5
"""Spearman's correlation from here on, on average over lines, is a consistent trend."""

ALL = 0.9
"""A share from here on is all but a few."""

APART = 0.1
"""Two kinds of pairs whose Attr% differs by less are not told apart."""

AROUND = 0.1
"""A share that is nearer to the paper's is about the paper's."""

SHOWN_LINES = 8
"""So many lines a figure takes."""

BEST = "shap"
CLEAREST = "watermark"
"""The manipulation with which the paper saw most."""

CLASSES = {True: "marked", False: "unmarked"}


@dataclass(frozen=True, kw_only=True)
class PlantedImagesReader(PlantedImagesPoints):
    """All results, read as the paper's tables, claims and figures."""

    declared: Declarations
    pairs: tuple[Pair, ...]

    # ---- all --------------------------------------------------------------------------------

    def findings(self, recipe: Recipe, setup: Setup, parts: Splits) -> Findings:
        trained = self.networks()
        passed = sum(bool(s["passed"]) for s in trained.values())
        counts = "/".join(f"{len(p):,}" for p in (parts.train, parts.validation, parts.test))
        lead = (
            f"{len(trained)} networks ({setup.sizes['model']}) on {counts} pictures of "
            f"{parts.train.name} at {setup.sizes['side']} pixels, scale {setup.scale}; "
        )
        lead += (
            f"{passed} of them reach more than 95 % on test pictures, and are scored."
            if passed
            else "none reaches more than 95 % on test pictures, so that no map is scored. A larger "
            "scale trains longer, on more pictures."
        )
        return Findings(
            recipe=recipe.plugin_name(),
            title=recipe.title,
            lead=lead,
            config={
                "scale": setup.scale,
                "pictures": parts.train.name,
                "seed": setup.seed,
                **{k: v for k, v in setup.sizes.items() if k != "pairs"},
                "pairs": ", ".join("/".join(pair) for pair in self.pairs),
            },
            tables=tuple(self.tables()),
            claims=tuple(self.claims()),
            figures=tuple(self.figures()),
            notes=tuple(self.declared.note(name) for name in self.declared.content["notes"]),
            pictures=tuple(self.pictures()),
        )

    # ---- tables -----------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        if self.of("region"):
            yield self.declared.table("attr", self._attr())
            beyond = self._by_method(beyond_chance)
            yield self.declared.table("beyond", beyond)
            yield self.declared.table("diagonal", self._by_method(above_chance))
        for experiment in ("accuracy", "visibility", "correlation"):
            if self.of(experiment):
                yield self.declared.table(
                    "trend", self._trends(experiment), **self._of_experiment(experiment)
                )
        if self.of("correlation"):
            yield self.declared.table("inside", self._inside())
        undefined = self._undefined()
        if undefined:
            yield self.declared.table("undefined", undefined)
        species = self.results.get(PictureRun("species"))
        if species is not None:
            yield self.declared.table(
                "confusion", _confusion(species), accuracy=species["accuracy"]
            )
        yield self.declared.table("runs", dict(_run_row(*one) for one in self.networks().items()))

    def _of_experiment(self, name: str) -> dict[str, str]:
        """What the declarations say of an experiment."""
        found: dict[str, str] = self.declared.content["experiments"][name]
        return {"experiment": EXPERIMENTS[name], **found}

    def _attr(self) -> dict[str, dict[str, Value]]:
        """Means over runs by method and class, and the share of the region."""
        published = self.declared.published["region"]
        rows: dict[str, dict[str, Value]] = {}
        for method in self.methods:
            for marked, title in CLASSES.items():
                own = self.of("region", method=method, marked=marked)
                rows[f"{method}, {title} pictures"] = {
                    **{
                        NAMES[m]: _share([p.attr for p in own if p.manipulation == m])
                        for m in self.manipulations
                    },
                    "all": _share([p.attr for p in own]),
                }
            if method == BEST:
                own = self.of("region", method=method)
                both = {"all": _share([p.attr for p in own], published=published["attr"])}
                rows[f"{method}, all pictures"] = {**both}
        own = self.of("region", method=self.methods[0])
        rows["%ER, what a random map gets"] = {
            **{
                NAMES[m]: _share([p.region for p in own if p.manipulation == m])
                for m in self.manipulations
            },
            "all": _share([p.region for p in own], published=published["region"]),
        }
        return rows

    def _by_method(
        self, of: Callable[[list[AttrPoint]], Comparison]
    ) -> dict[str, dict[str, Value]]:
        """A cell for the region's points of each method and manipulation."""
        return {
            method: {
                **{
                    NAMES[m]: _cell(of(self.of("region", method=method, manipulation=m)))
                    for m in self.manipulations
                },
                "all": _cell(of(self.of("region", method=method))),
            }
            for method in self.methods
        }

    def _trends(self, experiment: str) -> dict[str, dict[str, Value]]:
        return {
            method: {
                NAMES[m]: _cell(trend(self.lines(experiment, method, m)))
                for m in self.manipulations
            }
            for method in self.methods
        }

    def _inside(self) -> dict[str, dict[str, Value]]:
        """Of each method and class, how many points lie where definitions 5.5 has them."""
        return {
            f"{method}, {title} pictures": {
                NAMES[m]: _cell(self._within(method, m, marked)) for m in self.manipulations
            }
            for method in self.methods
            for marked, title in CLASSES.items()
        }

    def _within(self, method: str, manipulation: str, marked: bool, **claimed: Any) -> Comparison:
        own = self.of("correlation", method=method, manipulation=manipulation, marked=marked)
        name = f"{CLASSES[marked]} pictures within"
        return mean_of(name, own, lambda p: float(p.inside), signed=False, **claimed)

    def _undefined(self) -> dict[str, dict[str, Value]]:
        """Of each method and manipulation, how many maps were all zero, of how many."""
        rows: dict[str, dict[str, Value]] = {}
        for method in self.methods:
            for m in self.manipulations:
                own = [p for p in self.points if p.method == method and p.manipulation == m]
                zero = sum(p.undefined for p in own)
                if zero:
                    rows.setdefault(method, {})[NAMES[m]] = f"{zero} of {sum(p.n for p in own)}"
        return rows

    # ---- claims -----------------------------------------------------------------------------

    def claims(self) -> Iterator[Claim]:
        species = self.results.get(PictureRun("species"))
        if species is not None:
            yield self.declared.claim("confused", [_confused(species, self.pairs)])
        if self.networks("region"):
            yield from self._region_claims()
        for experiment in ("accuracy", "visibility"):
            if self.of(experiment):
                yield from self._trend_claims(experiment)
        if self.networks("correlation"):
            yield from self._correlation_claims()

    def _passing(self, experiment: str, **claimed: Any) -> Comparison:
        """How many networks are accurate enough."""
        passed = [bool(step["passed"]) for step in self.networks(experiment).values()]
        low, high = wilson(sum(passed), len(passed))
        return Comparison(
            name="runs above 95 %",
            value=float(np.mean(passed)),
            low=low,
            high=high,
            units="trainings",
            n=len(passed),
            percent=True,
            signed=False,
            **claimed,
        )

    def _region_claims(self) -> Iterator[Claim]:
        paper = self.declared.published["region"]
        about = {"least": paper["passed"] - AROUND, "most": paper["passed"] + AROUND}
        yield self.declared.claim("passing", [self._passing("region", **about)])
        if not self.of("region"):
            return
        near = [
            mean_of(
                method, self.of("region", method=method), least=-np.inf, most=NEAR, signed=False
            )
            for method in self.judged
        ]
        yield self.declared.claim("not_near_one", near, near=NEAR)
        if BEST in self.judged and len(self.judged) > 1:
            others = [m for m in self.judged if m != BEST]
            better = [self._paired(f"{BEST} less {m}", BEST, m) for m in others]
            yield self.declared.claim("shap_best", corrected(c for c in better if c is not None))
        depends = [c for m in self.judged if (c := self._dependence(m)) is not None]
        if depends:
            yield self.declared.claim("depends", corrected(depends), some=True)
        presence = [c for m in self.judged if (c := self._presence(m)) is not None]
        if presence:
            yield self.declared.claim("presence", corrected(presence))

    def _paired(self, name: str, one: str, other: str) -> Comparison | None:
        """Two methods on the same networks and classes; the classes of one run go together."""
        found = [
            {(p.run, p.marked): p.attr for p in self.of("region", method=m)} for m in (one, other)
        ]
        both = [key for key in found[0] if key in found[1]]
        if not both:
            return None
        differences = np.array([found[0][key] - found[1][key] for key in both])
        runs = [run for run, _ in both]
        return Comparison.of_differences(name, differences, runs, percent=True)

    def _dependence(self, method: str) -> Comparison | None:
        """How far the manipulations are apart in what lies beyond chance, run by run."""
        from scipy.stats import kruskal

        by_kind = []
        for m in self.manipulations:
            runs: dict[str, list[float]] = defaultdict(list)
            for p in self.of("region", method=method, manipulation=m):
                runs[p.run].append(p.attr - p.region)
            by_kind.append([float(np.mean(values)) for values in runs.values()])
        known = [values for values in by_kind if len(values) > 1]
        if len(known) < 2:
            return None
        means = [float(np.mean(values)) for values in known]
        return Comparison(
            name=method,
            value=max(means) - min(means),
            p=float(kruskal(*known).pvalue),
            units="trainings",
            n=sum(map(len, known)),
            test="Kruskal-Wallis",
            percent=True,
        )

    def _presence(self, method: str) -> Comparison | None:
        """The marked pictures of a watermark's network less the others."""
        by_class = [
            {
                p.run: p.attr
                for p in self.of("region", method=method, manipulation=CLEAREST, marked=k)
            }
            for k in (True, False)
        ]
        both = [run for run in by_class[0] if run in by_class[1]]
        if not both:
            return None
        differences = np.array([by_class[0][run] - by_class[1][run] for run in both])
        return Comparison.of_differences(method, differences, percent=True)

    def _elsewhere(self, experiment: str, **claimed: Any) -> list[Comparison]:
        """The trends of all methods and manipulations but the one that the paper saw most with."""
        found = [
            trend(self.lines(experiment, method, m), name=f"{method} on {NAMES[m]}", **claimed)
            for method in self.judged
            for m in self.manipulations
            if (method, m) != (BEST, CLEAREST)
        ]
        return [c for c in found if c.n]

    def _trend_claims(self, experiment: str) -> Iterator[Claim]:
        facts: dict[str, Any] = {
            **self._of_experiment(experiment),
            "consistent": CONSISTENT,
        }
        clear = trend(self.lines(experiment, BEST, CLEAREST), least=CONSISTENT)
        if clear.n:
            yield self.declared.claim("rises", [clear], **facts)
        others = self._elsewhere(experiment, least=-np.inf, most=CONSISTENT)
        if others:
            yield self.declared.claim("nowhere_else", others, **facts)

    def _correlation_claims(self) -> Iterator[Claim]:
        yield self.declared.claim("all_pass", [self._passing("correlation", least=ALL)], least=ALL)
        if not self.of("correlation"):
            return
        falls = trend(self.lines("correlation", BEST, CLEAREST), least=-np.inf, most=-CONSISTENT)
        if falls.n:
            yield self.declared.claim("falls", [falls], consistent=CONSISTENT)
        inside = [
            self._within("gradient", CLEAREST, True, least=0.5),
            self._within("gradient", CLEAREST, False, least=-np.inf, most=0.5),
        ]
        if all(c.n for c in inside):
            yield self.declared.claim("gradient_inside", inside)
        flat = self._elsewhere("correlation", least=-CONSISTENT, most=CONSISTENT)
        if flat:
            yield self.declared.claim("nothing_clear", flat, consistent=CONSISTENT)
        kinds = [c for m in self.judged if (c := self._alike_or_not(m)) is not None]
        if kinds:
            yield self.declared.claim("alike_or_not", kinds, apart=APART)

    def _alike_or_not(self, method: str) -> Comparison | None:
        """Pairs that look alike less unlike ones, the same manipulation, class and r."""
        found: dict[tuple[Any, ...], dict[bool, list[float]]] = defaultdict(
            lambda: {True: [], False: []}
        )
        for p in self.of("correlation", method=method):
            found[p.manipulation, p.marked, p.r][p.confusable].append(p.attr)
        rows = [
            (key[0], np.mean(own[True]) - np.mean(own[False]))
            for key, own in found.items()
            if own[True] and own[False]
        ]
        if not rows:
            return None
        units, values = zip(*rows, strict=True)
        return bootstrapped(method, values, units, least=-APART, most=APART)

    # ---- figures ----------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        for experiment in EXPERIMENTS:
            for method in self.judged:
                for m in self.manipulations:
                    own = self.of(experiment, method=method, manipulation=m)
                    if own:
                        series = (
                            _scatter(own)
                            if experiment == "region"
                            else self._drawn_lines(experiment, method, m)
                        )
                        yield self.declared.figure(
                            experiment, series, method=method, manipulation=NAMES[m]
                        )

    def _drawn_lines(self, experiment: str, method: str, manipulation: str) -> Iterator[Points]:
        lines = self.lines(experiment, method, manipulation)
        for line in lines[:SHOWN_LINES]:
            which = line.unit.rsplit("-", 1)[-1].rsplit(" ", 1)[-1]
            kind = "" if line.confusable else ", unlike pair"
            yield Points.of(
                f"{which}{kind}, {CLASSES[line.marked]}",
                [(float(x), y) for x, y in line.points],
                line=True,
                dashed=not line.confusable,
            )
        if experiment == "correlation":
            due = [(r, 1.5 - r) for r in (CORRELATIONS[0], CORRELATIONS[-1])]
            yield Points.of("1.5 − r", due, line=True, dashed=True)

    def pictures(self) -> Iterator[ShownPictures]:
        marks = self.results.get(PictureRun("marks"))
        shown = {"marks": marks["panels"]} if marks is not None else {}
        shown |= {
            f"maps {run}": step["maps"] for run, step in self.results.items() if "maps" in step
        }
        for name, panels in list(shown.items())[:2]:  # one picture under each mark, one explained
            kind, _, of = name.partition(" ")
            words = self.declared.content["pictures"][kind]
            yield ShownPictures(
                words["title"].format(of=of),
                words["about"],
                tuple(ShownPanel(title, png) for title, png in panels),
            )


# ---- figures of a few points ------------------------------------------------------------------


def _share(values: Sequence[float], **published: Any) -> Cell:
    return Cell.of(values, within=(0.0, 1.0), **published)


def _cell(found: Comparison) -> Cell:
    if math.isnan(found.low):  # too few runs for an interval
        return Cell(found.value, n=found.n)
    return Cell.at([found.value, found.low, found.high], n=found.n)


def _scatter(points: Sequence[AttrPoint]) -> Iterator[Points]:
    for marked, title in CLASSES.items():
        own = [(p.region, p.attr) for p in points if p.marked == marked]
        yield Points.of(f"{title} pictures", own)
    yield Points.level("ideal", (0.0, 1.0), 1.0)
    yield Points.of("random map", [(0.0, 0.0), (1.0, 1.0)], line=True, dashed=True)


def _confusion(step: StepResult) -> dict[str, dict[str, Value]]:
    """Of each label's pictures, the share that is taken for each label."""
    labels = step["labels"]
    return {
        name: {other: Cell(n / max(sum(row), 1)) for other, n in zip(labels, row, strict=True)}
        for name, row in zip(labels, step["confusion"], strict=True)
    }


def _confused(step: StepResult, pairs: Sequence[Pair]) -> Comparison:
    """How much more often a picture is taken for the label like its own than for another."""
    labels: list[str] = step["labels"]
    like = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    values: list[float] = []
    for name, row in zip(labels, step["confusion"], strict=True):
        if name in like:
            for other, n in zip(labels, row, strict=True):
                more = 0.0 if other == name else -1 / (len(labels) - 2)
                values += [1.0 if other == like[name] else more] * n
    return Comparison.of_mean("taken for the like label less for another", values, units="pictures")


def _run_row(run: PictureRun, step: StepResult) -> tuple[str, dict[str, Value]]:
    draw = run.planted
    return str(run), {
        "mark": parameters(draw.mark, digits=4),
        "r": f"{draw.r:g}",
        "seed": str(step["seed"]),
        **{q: Cell(step[q]) for q in ("accuracy", "bound", "ceiling", "luck")},
        "passed": "yes" if step["passed"] else "no: not scored",
        "epochs": str(step["epochs"]),
        "seconds": f"{step['seconds']:.0f} s",
    }
