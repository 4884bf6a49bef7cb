"""What the experiments with pseudo ground truth show, as `idc.toml` declares it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...experiments.experiment import StepResult
from ...results.claims import Claim, Comparison
from ...results.declarations import Declarations, beside
from ...results.findings import Cell, Figure, Points, Table, Value
from ...results.statistics import LEVEL, wilson
from ._idc_judging import (
    ATTENTION,
    BEST,
    FIGURES,
    FIRST_FOUR,
    FORMS,
    MAIN,
    PAPER,
    READINGS,
    SALIENCY,
    Interval,
)

NAMES = {"wga": "WGA", "milp": "MILP", "hybrid": "Hybrid"}
TRUTHS = {**NAMES, "any": "WGA, leading one label"}
METHODS = {
    "gradient": "saliency",
    "grad_cam": "Grad-CAM",
    "integrated_gradients": "IG",
    "deep_lift": "DeepLIFT",
    "lrp": "LRP",
    "attention": "HAN attention",
}
SIDES = {"reviews": "", "people": "for people, ", "stars": "for people by stars, "}
LEARNT = {"people": "learnt from labels", "stars": "learnt from stars"}
MODELS = {"cnn": "CNN", "han": "HAN"}

EQUAL = 0.02
"""Kappas that differ by no more are equal: as far as the paper's four best lie apart."""

FAR_SHOWN = 6
"""So many figures that do not fit are named in a row."""

NEAR = 0.05
"""A figure that differs from the paper's by no more fits it."""

TELLING = 0.05
"""A margin of error wider than this holds anything."""
ABOUT_HALF = (0.35, 0.65)
"""What counts as about half; the paper's own shares go from 0.42 to 0.56."""

Row = tuple[str, dict[str, Value]]


def _training(number: int) -> str:
    return f", training {number + 1}" if number else ""


def _mean(intervals: Sequence[Interval], published: float | None = None) -> Cell:
    """Over trainings, whose interval is that of their mean: texts of one model are not independent.
    A single one has an interval over texts."""
    if len(intervals) == 1:
        return Cell.at(intervals[0], published=published)
    return Cell.of([value for value, _, _ in intervals], published=published, within=(-1.0, 1.0))


@dataclass(frozen=True)
class IdcReader:
    """All results, read as the paper's tables, claims and figures."""

    declared: Declarations
    results: Mapping[tuple[str, str, int], StepResult]
    seed: int = 0

    @cached_property
    def trainings(self) -> list[StepResult]:
        """What each training says of methods and truths."""
        return [s for (_, what, _), s in self.results.items() if what == "methods"]

    @cached_property
    def people(self) -> dict[str, StepResult]:
        """What people say of truths, by where these were learnt."""
        return {side: s for (side, what, _), s in self.results.items() if what == "agreement"}

    @property
    def truths(self) -> list[str]:
        return [t for t in NAMES if t in self.trainings[0]["agreement"]]

    @cached_property
    def _learnt(self) -> dict[tuple[str, str, int], StepResult]:
        order = [*SIDES], [*TRUTHS]
        keys = [key for key in self.results if key[1] in TRUTHS]
        keys.sort(key=lambda key: (order[0].index(key[0]), order[1].index(key[1]), key[2]))
        return {key: self.results[key] for key in keys}

    # ---- tables -----------------------------------------------------------------------------

    def tables(self, binaries: Sequence[str]) -> Iterator[Table]:
        for truth in self.truths:
            yield self.method_table(truth)
        yield self.fit_table()
        yield self.declared.table("models", dict(self._models()))
        yield self.declared.table("truths", dict(map(self._truth, self._learnt)))
        yield self.declared.table("binaries", self._binaries(binaries))
        yield self.confidence_table()
        for side, found in self.people.items():
            yield self.people_table(side, found)
        yield self.declared.table(
            "words",
            {
                f"{SIDES[side]}{TRUTHS[truth]}: {label}": {"words": ", ".join(words)}
                for (side, truth, training), found in self._learnt.items()
                if not training
                for label, words in found["strongest"].items()
            },
        )

    def _models(self) -> Iterator[Row]:
        for (side, what, training), found in self.results.items():
            if what in MODELS:
                n, accuracy = found["texts"], found["accuracy"]
                yield (
                    f"{SIDES[side]}{MODELS[what]}{_training(training)}",
                    {
                        "accuracy": Cell.at((accuracy, *wilson(accuracy * n, n)), n=n),
                        "majority": Cell(found["majority"]),
                        "reads": f"first {found['reads']} words" if found["reads"] else "all words",
                        "epochs": str(found["epochs"]),
                        "seconds": f"{found['seconds']:.0f} s",
                        "seed": str(self.seed + training),
                    },
                )

    def _truth(self, key: tuple[str, str, int]) -> Row:
        (side, truth, training), found = key, self._learnt[key]
        printed = self.declared.published["documents"]
        covered = (found["covered"], found["covered_test"])
        return f"{SIDES[side]}{TRUTHS[truth]}{_training(training)}", {
            "words": " / ".join(f"{n:,}" for n in found["sizes"].values()),
            "texts": f"{found['documents']:,}"
            + (f" (paper {printed[truth]})" if side == "reviews" else ""),
            "dropped": f"{found['dropped']:,}",
            "gap": "–" if found["gap"] is None else f"{found['gap']:.1%}",
            "bare": "–" if found["violated"] is None else str(found["violated"]),
            "covered": " | ".join(
                " / ".join(f"{share:.1%}" for share in shares.values()) for shares in covered
            ),
            "seconds": f"{found['seconds']:.0f} s",
        }

    def _methods(self, truth: str) -> list[str]:
        """The paper's methods in its order, then the others."""
        known = self.trainings[0]["agreement"][truth][MAIN]
        return [*(m for m in METHODS if m in known), *(m for m in known if m not in METHODS)]

    def _over(self, truth: str, reading: str, method: str, figure: str) -> list[Interval]:
        """A figure of a method in each training that has it."""
        of = (t["agreement"][truth][reading] for t in self.trainings)
        return [f[method][figure] for f in of if method in f]

    def method_table(self, truth: str) -> Table:
        published = self.declared.published[truth]
        rows: dict[str, dict[str, Cell]] = {}
        for method in self._methods(truth):
            printed = dict(zip(FIGURES, published.get(method, ()), strict=False))
            rows[METHODS.get(method, method)] = {
                f"{'rec. ' * (reading == MAIN)}{figure}": _mean(
                    self._over(truth, reading, method, figure),
                    printed.get(figure) if reading == PAPER else None,
                )
                for reading in READINGS
                for figure in FIGURES
            }
        for column in ("kappa", "rec. kappa"):
            best = max(cells[column].value for cells in rows.values())
            for cells in rows.values():
                cells[column] = replace(cells[column], marked=cells[column].value == best)
        several = "several" if len(self.trainings) > 1 else "once"
        return self.declared.table(
            "methods",
            {name: {**cells} for name, cells in rows.items()},
            truth=NAMES[truth],
            **{k: v for k, v in self.trainings[0]["texts"].items() if k != "both"},
            over=self.declared.note(f"over_{several}", trainings=len(self.trainings)),
        )

    def fit_table(self) -> Table:
        """What fits the paper and what does not: the distance of each figure from the printed."""
        rows: dict[str, dict[str, Value]] = {}
        for truth in self.truths:
            for reading, title in READINGS.items():
                apart = [
                    (METHODS[m], figure, value, printed, abs(value - printed))
                    for m, figures in self.declared.published[truth].items()
                    for figure, printed in zip(FIGURES, figures, strict=True)
                    if (found := self._over(truth, reading, m, figure))
                    for value in [_mean(found).value]
                ]
                far = sorted((a for a in apart if not a[-1] <= NEAR), key=lambda a: -a[-1])
                more = len(far) - FAR_SHOWN
                listed = ", ".join(
                    f"{m} {name} {v:.2f} ({p:.2f})" for m, name, v, p, _ in far[:FAR_SHOWN]
                )
                rows[f"{NAMES[truth]}, {title}"] = {
                    "mean": Cell(sum(a[-1] for a in apart) / len(apart)) if apart else None,
                    "within": f"{len(apart) - len(far)} of {len(apart)}",
                    "far": (listed + f" and {more} more" * (more > 0)) or "all fit",
                }
        return self.declared.table("fit", rows, near=NEAR)

    def _binaries(self, binaries: Sequence[str]) -> dict[str, dict[str, Value]]:
        found = self.trainings[0]["agreement"]
        return {
            f"{NAMES[truth]}: {METHODS.get(m, m)}": {
                b: Cell.at(found[truth][b][m]["kappa"]) for b in binaries
            }
            for truth in found
            for m in self._methods(truth)
        }

    def confidence_table(self) -> Table:
        found, published = self.trainings[0]["confidence"], self.declared.published["confidence"]

        def left(of: Mapping[str, Interval], printed: float | None = None) -> dict[str, Value]:
            return {
                "printed": Cell.at(of["printed"], published=printed),
                **{form: Cell.at(of[form]) for form in FORMS[1:]},
            }

        whole = found["whole"]
        rows: dict[str, dict[str, Value]] = {
            "nothing removed": {
                "printed": Cell.at(whole, published=published["whole"]),
                "ratio": Cell(1.0),
                "bounded": Cell.at(whole),
                "removed": Cell(0.0),
            }
        }
        for truth, name in NAMES.items():
            if truth in found:
                of = found[truth]
                removed = {"removed": Cell.at(of["marked"]["removed"])}
                rows[f"without {name}'s words"] = {
                    **left(of["marked"], published.get(truth)), **removed,
                }  # fmt: skip
                rows[f"without as many at random ({name})"] = {
                    **left(of["random"]), **removed, "more": Cell.at(of["control"]["printed"]),
                }  # fmt: skip
        return self.declared.table("confidence", rows)

    def people_table(self, side: str, found: StepResult) -> Table:
        mutual = Cell.at(found["mutual"], published=self.declared.published["people"]["mutual"])
        return self.declared.table(
            "people",
            {**_by_person(found), "people with each other": {found["persons"][-1]: mutual}},
            learnt=LEARNT[side],
            **{k: found[k] for k in ("reviews", "marks")},
        )

    # ---- claims -----------------------------------------------------------------------------

    def claims(self) -> Iterator[Claim]:
        yield from self.method_claims()
        yield from self.confidence_claims()
        for side in self.people:
            yield from self.people_claims(side)

    def _differences(self, reading: str) -> list[StepResult]:
        """Those of every training: a claim has to hold in each, so that a lucky one decides
        nothing. What refutes it is counted as often as was trained."""
        return [
            {**d, "training": i, "p": min(1.0, d["p"] * len(self.trainings))}
            for i, found in enumerate(self.trainings)
            for d in found["differences"]
            if d["reading"] == reading
        ]

    def method_claims(self) -> Iterator[Claim]:
        for reading, where in READINGS.items():
            every = self._differences(reading)
            truths = [NAMES[t] for t in NAMES if any(d["truth"] == t for d in every)]
            under = "all three truths" if len(truths) == 3 else " and ".join(truths)
            over = [d for d in every if d["other"] == SALIENCY]
            attention = [d for d in every if (d["one"], d["other"]) == (SALIENCY, ATTENTION)]
            lrp = [_as_first(d, BEST) for d in every if BEST in (d["one"], d["other"])]
            four = [d for d in every if d["one"] in FIRST_FOUR and d["other"] in FIRST_FOUR]
            half = [found["half"][reading] for found in self.trainings if reading in found["half"]]
            looks = {
                "over_saliency": (map(_compared, over), _listed(d["one"] for d in over)),
                "over_attention": (map(_compared, attention), ""),
                "lrp": ((replace(_compared(d), least=-EQUAL) for d in lrp), ""),
                "margin": (
                    (self._within_margin(d, reading) for d in four),
                    _listed(d[k] for d in four for k in ("one", "other")),
                ),
                "half": (_halves(half), ""),
            }
            for name, (comparisons, methods) in looks.items():
                known = list(comparisons)
                if known:
                    yield self.declared.claim(
                        name,
                        known,
                        where=where,
                        under=under,
                        methods=methods,
                        equal=EQUAL,
                        telling=TELLING,
                        apart=sum(c.p < LEVEL for c in known),
                        looks=len(known),
                        half=ABOUT_HALF,
                    )

    def _within_margin(self, difference: StepResult, reading: str) -> Comparison:
        """The margin of error is that of one kappa: half of the wider of both intervals."""
        of = self.trainings[difference["training"]]["agreement"][difference["truth"]][reading]
        ends = [of[difference[k]]["kappa"] for k in ("one", "other")]
        margin = min(TELLING, max((high - low) / 2 for _, low, high in ends)) + EQUAL
        return replace(_compared(difference), least=-margin, most=margin)

    def confidence_claims(self) -> Iterator[Claim]:
        found = self.trainings[0]["confidence"]
        known = {truth: name for truth, name in NAMES.items() if truth in found}
        whole = found["whole"][0]
        falls = {t: whole - found[t]["marked"]["printed"][0] for t in known}
        yield self.declared.claim(
            "falls",
            [_look(name, found[t]["control"], "printed") for t, name in known.items()],
            whole=whole,
            falls=", ".join(f"{falls[t]:.3f} ({name})" for t, name in known.items()),
        )
        rivals = {t: name for t, name in known.items() if t != "wga"}
        if rivals:
            removed = {t: found[t]["marked"]["removed"][0] for t in known}
            yield self.declared.claim(
                "falls_most",
                [_look(name, found[t]["over_wga"], "printed") for t, name in rivals.items()],
                removed=", ".join(f"{removed[t]:.1%} ({name})" for t, name in known.items()),
                forms=", ".join(
                    f"{form} {found[t]['over_wga'][form][0]:+.3f} ({name})".replace("-", "−")
                    for form in FORMS[1:]
                    for t, name in rivals.items()
                ),
            )

    def people_claims(self, side: str) -> Iterator[Claim]:
        found, where = self.people[side], LEARNT[side]
        yield self.declared.claim(
            "people_best",
            [_look(NAMES[d["other"]], d, "interval") for d in found["differences"]],
            where=where,
        )
        p = found["above_mutual_p"]
        above = {k: v for k, v in found["above_mutual"]["wga"].items() if k in p}
        yield self.declared.claim(
            "people_some",
            [_look(f"with {k}", {"interval": v, "p": p[k]}, "interval") for k, v in above.items()],
            where=where,
            some=True,
            mutual=found["mutual"][0],
        )

    # ---- figures ----------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        series = [
            Points.of(
                f"{NAMES[truth]}, {title}",
                [
                    (self.declared.published[truth][m][0], _mean(kappas).value)
                    for m in METHODS
                    if (kappas := self._over(truth, reading, m, "kappa"))
                ],
            )
            for truth in self.truths
            for reading, title in READINGS.items()
        ]
        furthest = max(x for points in series for x in points.x)
        equal = Points.of("equal", [(0.0, 0.0), (furthest, furthest)], line=True, dashed=True)
        yield self.declared.figure("beside", [*series, equal])
        for side, found in self.people.items():
            persons = found["persons"]
            ends = (-0.5, len(persons) - 0.5)
            mutual = Points.level("people with each other", ends, found["mutual"][0])
            bars = beside(_by_person(found), persons, bars=True)
            yield self.declared.figure(
                "people", [*bars, mutual], names=persons, learnt=LEARNT[side]
            )


def _by_person(found: StepResult) -> dict[str, dict[str, Cell]]:
    """The kappa of every truth with every person."""
    return {
        TRUTHS[truth]: {person: Cell.at(kappas[person]) for person in found["persons"]}
        for truth, kappas in found["kappa"].items()
    }


def _look(name: str, found: StepResult, interval: str) -> Comparison:
    value, low, high = found[interval]
    return Comparison(name=name, value=value, low=low, high=high, p=found["p"])


def _compared(found: StepResult) -> Comparison:
    """A difference of two methods' kappas with a truth, as a claim sees it."""
    one, other = (METHODS.get(found[k], found[k]) for k in ("one", "other"))
    name = f"{NAMES[found['truth']]}{_training(found['training'])}: {one} − {other}"
    return replace(_look(name, found, "interval"), test="paired bootstrap")


def _as_first(found: StepResult, method: str) -> StepResult:
    """The same difference with this method as the first."""
    if found["one"] == method:
        return found
    value, low, high = found["interval"]
    swapped = {"one": found["other"], "other": found["one"]}
    return {**found, **swapped, "interval": [-value, -high, -low]}


def _halves(shares: Sequence[Interval]) -> list[Comparison]:
    least, most = ABOUT_HALF
    return [
        Comparison(
            name=f"training {i + 1}",
            value=value,
            low=low,
            high=high,
            least=least,
            most=most,
            signed=False,
        )
        for i, (value, low, high) in enumerate(shares)
    ]


def _listed(methods: Iterable[str]) -> str:
    """The methods that were compared, as the paper calls them."""
    seen = set(methods)
    names = [METHODS[m] for m in FIRST_FOUR if m in seen]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
