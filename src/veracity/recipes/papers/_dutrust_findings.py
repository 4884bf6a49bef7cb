"""What the experiments on trustworthiness show, as `dutrust.toml` declares it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.inputs import BoolArray, FloatArray
from ...core.plugins import parse_spec
from ...experiments.experiment import StepResult
from ...metrics.erasure import Erasure
from ...results.claims import Claim, Comparison, corrected
from ...results.declarations import Declarations, beside
from ...results.findings import Cell, Figure, Table, Value
from ...results.statistics import (
    grouped_interval,
    percentiles,
    resampled_sums,
    share_interval,
    wilson,
)

MODEL_NAMES = {"lstm": "LSTM", "encoder": "encoder", "knowing": "encoder, sentiment first"}
PAPERS = {"lstm": "LSTM", "encoder": "ERNIE-base", "large": "ERNIE-large", "knowing": "SKEP"}
BY_SIZE = "new_p_by_size"
"""New_P of words ranked by the absolute value of their scores, as in profile `paper`."""
SHARES = {BY_SIZE, *(name for name, quantity in Erasure.quantities.items() if quantity.share)}
DRAWS = 2000
HELPED = ("lf", "negative")
"""Types of twins on which pretraining helps most, as the paper says."""
GAINS = {"pattern-made": 1, "originals": -1, "hand-made": -1}
"""On which texts training on pattern-made twins helps, and on which it hurts."""

Steps = Mapping[tuple[str, str], StepResult]
"""By course or trial, and model."""


# ---- cells ----------------------------------------------------------------------------------


def values(step: StepResult, method: str, quantity: str) -> FloatArray:
    """A figure per example, NaN where there is none. (examples,)"""
    row = step["methods"].get(method, {}).get(quantity)
    found = [np.nan] * len(step["examples"]) if row is None else row
    return np.array([np.nan if v is None else v for v in found], dtype=np.float64)


def sides(step: StepResult) -> dict[str, BoolArray]:
    """Which examples are originals, twins, and all of them."""
    twin = np.array(step["twins"], dtype=np.bool_)
    return {"originals": ~twin, "twins": twin, "all": np.ones(len(twin), dtype=np.bool_)}


def mean_cell(
    step: StepResult, method: str, quantity: str, side: str = "all", published: float | None = None
) -> Cell | None:
    """A mean over texts with its interval, pairs drawn whole; None where nothing is defined."""
    row = values(step, method, quantity)
    some = sides(step)[side] & ~np.isnan(row)
    if not some.any():
        return None
    groups = [name for name, taken in zip(step["partners"], some, strict=True) if taken]
    interval = share_interval if quantity in SHARES else grouped_interval
    ends = interval(row[some], groups)
    return Cell.at((float(row[some].mean()), *ends), n=int(some.sum()), published=published)


def micro_cell(step: StepResult, method: str, published: float | None = None) -> Cell | None:
    """F1 of counts pooled over texts, with its interval."""
    counts = np.stack([values(step, method, q) for q in ("hits", "chosen", "known")], axis=1)
    some = ~np.isnan(counts).any(axis=1)
    if not some.any():
        return None
    groups = np.unique(np.array(step["partners"])[some], return_inverse=True)[1]
    pooled = np.zeros((int(groups.max()) + 1, 3))
    np.add.at(pooled, groups, counts[some])
    ((low, high),) = percentiles(_f1(resampled_sums(pooled, draws=DRAWS))[:, None])
    value = float(_f1(pooled.sum(axis=0, keepdims=True))[0])
    return Cell.at((value, float(low), float(high)), n=int(some.sum()), published=published)


def _f1(sums: FloatArray) -> FloatArray:
    hits, chosen, known = sums.T
    with np.errstate(invalid="ignore"):
        found: FloatArray = 2 * hits / (chosen + known)
    return found


def _rate(share: Mapping[str, Any], published: float | None = None) -> Cell | None:
    if not share["total"]:
        return None
    interval = (share["correct"] / share["total"], share["low"], share["high"])
    return Cell.at(interval, n=share["total"], published=published)


def _percent(number: float | None) -> float | None:
    return None if number is None else number / 100


def _own_names(step: StepResult) -> dict[str, str]:
    """The methods of a step by their plain names."""
    return {parse_spec(m)[0]: m for m in step["methods"]}


@dataclass(frozen=True)
class DutrustReader:
    """All results, read as the paper's tables, claims and figures."""

    declared: Declarations
    results: Mapping[tuple[str, str, str], StepResult]
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of each trial its course, and its file where there is one."""
    trials: Sequence[str] = ()

    @cached_property
    def trained(self) -> Steps:
        """By course and model."""
        return {(c, m): s for (what, c, m), s in self.results.items() if what == "train"}

    @cached_property
    def tried(self) -> Steps:
        """By trial and model, in the order of the paper whatever was done first."""
        trials = self.trials or dict.fromkeys(t for _, t, _ in self.results)
        return {
            (t, m): self.results["try", t, m]
            for t in trials
            for m in MODEL_NAMES
            if ("try", t, m) in self.results
        }

    @property
    def augmented(self) -> StepResult | None:
        return next((s for (what, _, _), s in self.results.items() if what == "augment"), None)

    @property
    def _by_trial(self) -> dict[str, dict[str, StepResult]]:
        found: dict[str, dict[str, StepResult]] = {}
        for (trial, model), step in self.tried.items():
            found.setdefault(trial, {})[model] = step
        return found

    def _own(self, trial: str, model: str) -> StepResult | None:
        """How a model did on its own test set."""
        return self.trained.get((self.about.get(trial, {}).get("course", ""), model))

    # ---- tables -----------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        yield self.declared.table("robustness", dict(self._robustness()))
        yield from self._type_tables()
        yield from self.method_tables()
        if self.augmented:
            yield self.declared.table(
                "augmentation",
                dict(self._gains(self.augmented)),
                **{k: self.augmented[k] for k in ("architecture", "train_texts", "added_texts")},
            )

    def _robustness(self) -> Iterator[tuple[str, dict[str, Value]]]:
        for (trial, model), step in self.tried.items():
            test = self._own(trial, model)
            assert test is not None
            n, accuracy = test["texts"], test["accuracy"]
            cells: dict[str, Value] = {
                "own": Cell.at((accuracy, *wilson(test["right"], n)), n=n),
                "p": "",
            }
            found = step.get("robustness")
            if found:
                cells |= {side: _rate(found[side]) for side in ("originals", "twins", "all")}
                lost, gained = found["lost"], found["gained"]
                cells["pairs"] = f"{lost} lost, {gained} gained of {step['pairs']}"
                cells["p"] = f"{found['p']:.2g}"
            elif "accuracy" in step:
                n, accuracy = step["texts"], step["accuracy"]
                cells["all"] = Cell.at((accuracy, *wilson(accuracy * n, n)), n=n)
                cells["pairs"] = "no twins"
            else:
                cells["pairs"] = "no labels"
            yield f"{trial}, {MODEL_NAMES[model]}", cells
        for model, figures in self.declared.published["accuracy"].items():
            names = ("own", "originals", "twins", "all")
            printed = {k: Cell(f / 100) for k, f in zip(names, figures, strict=True)}
            yield f"paper, {PAPERS[model]}", {**printed, "pairs": "1,502 pairs", "p": ""}

    def _type_tables(self) -> Iterator[Table]:
        for part, name in (("by_attack", "types"), ("by_sentiment", "sentiments")):
            published = self.declared.published[name]
            rows: dict[str, dict[str, Value]] = {}
            for (trial, model), step in self.tried.items():
                cells: dict[str, Value] = {
                    share["name"]: _rate(
                        share, _percent(published.get(model, {}).get(share["name"]))
                    )
                    for share in step.get("robustness", {}).get(part, ())
                    if share["name"] != "untyped" and share["total"]
                }
                if cells:
                    rows[f"{trial}, {MODEL_NAMES[model]}"] = cells
            if rows:
                for model, figures in published.items():
                    rows[f"paper, {PAPERS[model]}"] = {k: Cell(f / 100) for k, f in figures.items()}
                columns = dict.fromkeys(k for cells in reversed(rows.values()) for k in cells)
                yield self.declared.table(name, rows, columns=columns)

    def method_tables(self) -> Iterator[Table]:
        for trial, steps in self._by_trial.items():
            rows: dict[str, dict[str, Value]] = {}
            for model, step in steps.items():
                for method in step["methods"]:
                    printed = self.declared.published.get(model, {}).get(parse_spec(method)[0])
                    cells = _method_cells(step, method, printed)
                    rows[f"{MODEL_NAMES[model]}, {method}"] = cells
            if all(cells["map"] is None for cells in rows.values()):
                for cells in rows.values():  # nothing is a twin there
                    cells |= dict.fromkeys(("originals", "twins"))
            yield self.declared.table("explanations", rows, trial=trial)

    def _gains(self, found: StepResult) -> Iterator[tuple[str, dict[str, Value]]]:
        published = self.declared.published["augmentation"]
        kinds = ("originals", "pattern-made", "hand-made")
        for gain in found["gains"]:
            place = kinds.index(gain["name"])
            printed = {kind: published[kind][place] / 100 for kind in ("plain", "augmented")}
            cells: dict[str, Value] = {
                kind: Cell.at(
                    [gain[kind][k] for k in ("accuracy", "low", "high")],
                    n=gain["texts"],
                    published=figure,
                )
                for kind, figure in printed.items()
            }
            change = [gain[k] for k in ("difference", "low", "high")]
            gained = printed["augmented"] - printed["plain"]
            cells["difference"] = Cell.at(change, published=gained)
            yield gain["name"], {**cells, "p": f"{gain['p']:.2g}"}

    # ---- figures ----------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        """The methods beside each other, a plot for each trial and quantity that it has."""
        for trial, steps in self._by_trial.items():
            methods = list(dict.fromkeys(m for s in steps.values() for m in s["methods"]))
            for quantity in self.declared.content["figures"]:
                series = {
                    MODEL_NAMES[model]: {
                        m: cell
                        for m in methods
                        if m in step["methods"]
                        and (cell := mean_cell(step, m, quantity)) is not None
                    }
                    for model, step in steps.items()
                }
                points = [p for p in beside(series, methods, gap=0.22) if p.x]
                if points:
                    names = [parse_spec(m)[0] for m in methods]
                    yield self.declared.figure(quantity, points, names=names, trial=trial)

    # ---- claims -----------------------------------------------------------------------------

    def claims(self) -> Iterator[Claim]:
        for trial, steps in self._by_trial.items():
            typed = {m: s for m, s in steps.items() if "robustness" in s}
            if typed:
                yield from self._robustness_claims(trial, typed)
                yield from self._own_claims(trial, typed)
                yield from self._type_claims(trial, typed)
            yield from self._model_claims(trial, steps)
            yield from self._method_claims(trial, steps)
        if self.augmented:
            yield from self._augmentation_claims(self.augmented)

    def _robustness_claims(self, trial: str, steps: Mapping[str, StepResult]) -> Iterator[Claim]:
        # over pairs, as they are tested: texts without a twin would tell of other texts
        falls = {
            m: (r["lost"] - r["gained"]) / sum(r[k] for k in ("both", "lost", "gained", "neither"))
            for m, s in steps.items()
            for r in [s["robustness"]]
        }
        looks = [
            Comparison(
                name=MODEL_NAMES[m], value=fall, p=steps[m]["robustness"]["p"], units="pairs",
                percent=True,
            )
            for m, fall in falls.items()
        ]  # fmt: skip
        yield self.declared.claim("twins", corrected(looks), where=trial)
        if {"lstm", "encoder"} <= set(steps):
            lstm, encoder = (steps[m]["right"] for m in ("lstm", "encoder"))
            pairs = steps["lstm"]["robustness_pairs"]
            apart = [(lstm[o] - lstm[t]) - (encoder[o] - encoder[t]) for o, t in pairs]
            look = Comparison.of_differences(
                "LSTM less encoder",
                np.array(apart, dtype=np.float64),
                [o for o, _ in pairs],
                percent=True,
            )
            yield self.declared.claim(
                "lstm_falls", [look], where=trial, lstm=falls["lstm"], encoder=falls["encoder"]
            )

    def _own_claims(self, trial: str, steps: Mapping[str, StepResult]) -> Iterator[Claim]:
        """The paper's models lose 25 to 28 points on the way from their test set to its originals;
        originals that patterns change are of the own test set."""
        from scipy.stats import fisher_exact

        looks = []
        for model, step in steps.items():
            test, share = self._own(trial, model), step["robustness"]["originals"]
            if test is not None and "file" in self.about[trial]:
                counts = ((test["right"], test["texts"]), (share["correct"], share["total"]))
                table = [[n, total - n] for n, total in counts]
                own, originals = (n / total if total else np.nan for n, total in counts)
                p = float(fisher_exact(table).pvalue)
                looks.append(
                    Comparison(
                        name=MODEL_NAMES[model], value=own - originals, p=p, test="Fisher",
                        percent=True,
                    )
                )  # fmt: skip
        if looks:
            yield self.declared.claim("own_test", corrected(looks), where=trial)

    def _type_claims(self, trial: str, steps: Mapping[str, StepResult]) -> Iterator[Claim]:
        if not {"lstm", "encoder"} <= set(steps):
            return
        types = steps["lstm"].get("adv_types", {})
        families = {twin: original for original, twin in steps["lstm"]["robustness_pairs"]}
        gains: dict[str, tuple[list[int], list[int]]] = {}
        for twin, kind in types.items():
            if twin in families:
                gain = steps["encoder"]["right"][twin] - steps["lstm"]["right"][twin]
                gains.setdefault(families[twin], ([], []))[kind in HELPED].append(gain)
        both = np.array([(np.mean(m), np.mean(o)) for o, m in gains.values() if m and o])
        if len(both):
            look = Comparison.of_differences("more by", both[:, 0] - both[:, 1], percent=True)
            most, other = both.mean(axis=0)
            yield self.declared.claim(
                "pretraining",
                [look],
                where=trial,
                types=" and ".join(HELPED),
                most=most,
                other=other,
                n=len(both),
            )

    def _model_claims(self, trial: str, steps: Mapping[str, StepResult]) -> Iterator[Claim]:
        for claimed in self.declared.content["better"]:
            better, worse = claimed["models"]
            if not {better, worse} <= set(steps):
                continue
            names = _own_names(steps[better])
            rows = {
                k: values(steps[better], names[k], claimed["quantity"])
                - values(steps[worse], names[k], claimed["quantity"])
                for k in claimed["methods"]
                if k in names
            }
            rows = {k: row for k, row in rows.items() if not np.isnan(row).all()}
            if rows:
                yield self.declared.claim(
                    "models",
                    _tested(rows, steps[better]),
                    where=trial,
                    **{k: claimed[k] for k in ("by", "quality")},
                    better=MODEL_NAMES[better],
                    worse=MODEL_NAMES[worse],
                    methods=", ".join(claimed["methods"]),
                )

    def _method_claims(self, trial: str, steps: Mapping[str, StepResult]) -> Iterator[Claim]:
        for claimed in self.declared.content["order"]:
            for model, step in sorted(steps.items(), key=lambda one: one[0] == "lstm"):
                kind = "lstm" if model == "lstm" else "encoders"
                order: Sequence[str] = claimed.get(kind, ())
                names = _own_names(step)
                rows = {k: values(step, names[k], claimed["quantity"]) for k in order if k in names}
                if len(rows) < 3 or any(np.isnan(row).all() for row in rows.values()):
                    continue
                apart = {f"{a} less {b}": rows[a] - rows[b] for a, b in pairwise(order)}
                yield self.declared.claim(
                    "order",
                    _tested(apart, step),
                    where=f"{trial}, {MODEL_NAMES[model]}",
                    by=claimed["by"],
                    order=" > ".join(order),
                    models="the LSTM" if kind == "lstm" else "encoders",
                )

    def _augmentation_claims(self, found: StepResult) -> Iterator[Claim]:
        gains = {g["name"]: g for g in found["gains"]}
        looks = corrected(
            Comparison(
                name=name,
                value=gains[name]["difference"],
                p=gains[name]["p"],
                least=0.0 if sign > 0 else -np.inf,
                most=np.inf if sign > 0 else 0.0,
                percent=True,
            )
            for name, sign in GAINS.items()
            if name in gains
        )
        for look in looks:
            ends = {k: gains[look.name][k] for k in ("low", "high")}
            yield self.declared.claim(look.name, [look], looks=len(looks), **ends)


def _method_cells(
    step: StepResult, method: str, printed: Sequence[float] | None
) -> dict[str, Value]:
    def paper(place: int) -> float | None:
        return _percent(None if printed is None else printed[place])

    return {
        "map": mean_cell(step, method, "map", published=paper(0)),
        "originals": mean_cell(step, method, BY_SIZE, "originals", paper(1)),
        "twins": mean_cell(step, method, BY_SIZE, "twins", paper(2)),
        "by_size": mean_cell(step, method, BY_SIZE, published=paper(3)),
        "by_sign": mean_cell(step, method, "new_p", published=paper(3)),
        "macro": mean_cell(step, method, "f1", published=paper(6)),
        "micro": micro_cell(step, method, published=paper(9)),
        "compactness": mean_cell(step, method, "aopc_compactness"),
        "sufficiency": mean_cell(step, method, "aopc_sufficiency"),
    }


def _tested(rows: Mapping[str, FloatArray], step: StepResult) -> list[Comparison]:
    """Differences that should all be positive; texts of one pair count as one."""
    return corrected(
        Comparison.of_differences(name, row, step["partners"]) for name, row in rows.items()
    )
