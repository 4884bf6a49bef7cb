"""Which method leads where, how sure that is, and what could not be told apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.errors import RunError
from ..core.inputs import FloatArray
from .run import Run
from .statistics import group_sums, holm, letter_groups, mean_intervals, sign_flip_tests

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.05


@dataclass(frozen=True)
class Entry:
    """One method's mean on one quantity, and how it stands to the best and to chance."""

    method: str
    mean: float
    low: float
    high: float
    n: int
    undefined: int
    group: str
    p_best: float
    p_chance: float | None
    is_chance: bool
    is_best: bool
    tied_with_best: bool
    better_than_chance: bool | None


@dataclass(frozen=True)
class Standing:
    """All methods on one quantity of one metric for one model, best first."""

    model: str
    metric: str
    name: str
    better: Literal["higher", "lower", ""]
    about: str
    purpose: str
    headline: bool
    entries: tuple[Entry, ...]

    @property
    def best(self) -> Entry | None:
        return next((e for e in self.entries if e.is_best), None)


@dataclass(frozen=True)
class Column:
    """One quantity of one model: a row per example, a column per method."""

    model: str
    metric: str
    name: str
    info: dict[str, Any]
    purpose: str
    methods: list[str]
    examples: list[str]
    values: FloatArray  # (examples, methods)
    families: list[str]
    """Examples of one family, such as a text and its twins, are no independent draws."""


def standings(run: Run) -> list[Standing]:
    """Every compared quantity of a run; one Holm family per model."""
    table = run.scores()
    found: list[Standing] = []
    for model in run.models:
        columns = columns_of(run, table, model)
        chance = [e for e in run.explainers if run.asked["explainers"][e].get("baseline")]
        found += _compare(columns, chance)
    return found


def compare(
    values: FloatArray, methods: Sequence[str], *, better: Literal["higher", "lower"] = "higher"
) -> Standing:
    """Methods on the same examples, outside of any run. (examples, methods)"""
    return compare_all({"": values}, methods, better=better)[0]


def compare_all(
    tables: Mapping[str, FloatArray],
    methods: Sequence[str],
    *,
    better: Literal["higher", "lower"] = "higher",
    chance: Sequence[str] = (),
) -> list[Standing]:
    """The same for several tables by name, which are corrected together."""
    info = {"better": better, "about": ""}
    columns = [
        Column("", "", name, info, "", list(methods), names, v, names)
        for name, v in tables.items()
        for names in [[str(i) for i in range(len(v))]]
    ]
    return _compare(columns, chance)


def across(runs: Mapping[str, Run]) -> list[Standing]:
    """Methods of several runs on the same examples, quantity by quantity, as one table."""
    data = {run.asked["dataset"]["fingerprint"] for run in runs.values()}
    if len(data) > 1:
        raise RunError(
            "expected runs on the same examples, which can be compared in pairs; these were made "
            "on different data. Audit one data set in all of them"
        )
    columns: dict[tuple[str, str], list[tuple[str, Column]]] = {}
    for label, run in runs.items():
        table = run.scores()
        for model in run.models:
            for column in columns_of(run, table, model):
                place = columns.setdefault((column.metric, column.name), [])
                place.append((f"{label}/{model}", column))
    joined = []
    for parts in columns.values():
        common = sorted(set.intersection(*(set(column.examples) for _, column in parts)))
        if not common:
            raise RunError("the runs have no example in common: nothing can be compared in pairs")
        methods = [f"{label}/{m}" for label, column in parts for m in column.methods]
        values = []
        for _, column in parts:
            place_of = {e: i for i, e in enumerate(column.examples)}
            values.append(column.values[[place_of[e] for e in common]])
        first = parts[0][1]
        family = dict(zip(first.examples, first.families, strict=True))
        joined.append(
            replace(
                first,
                model="",
                methods=methods,
                values=np.hstack(values),
                examples=common,
                families=[family[e] for e in common],
            )
        )
    chance = [
        f"{label}/{model}/{e}"
        for label, run in runs.items()
        for model in run.models
        for e in run.explainers
        if run.asked["explainers"][e].get("baseline")
    ]
    return _compare(joined, chance)


def columns_of(run: Run, table: pa.Table, model: str) -> list[Column]:
    """Every quantity that was scored on a model."""
    import pyarrow.compute as pc

    of_model = table.filter(pc.equal(table["model"], model))
    ids = {e: i for i, e in enumerate(sorted(set(of_model["example"].to_pylist())))}
    family = run.families()
    families = [family.get(e, e) for e in ids]
    columns = []
    for metric, about in run.asked["metrics"].items():
        if about["of_model"]:
            continue
        of_metric = of_model.filter(pc.equal(of_model["metric"], metric))
        for name, info in about["quantities"].items():
            rows = of_metric.filter(pc.equal(of_metric["name"], name)).to_pydict()
            methods = [e for e in run.explainers if e in set(rows["explainer"])]
            if not methods:
                continue
            place = {m: i for i, m in enumerate(methods)}
            values = np.full((len(ids), len(methods)), np.nan)
            for explainer, example, value in zip(
                rows["explainer"], rows["example"], rows["value"], strict=True
            ):
                if explainer in place:
                    values[ids[example], place[explainer]] = value
            purpose = about["purpose"]
            columns.append(
                Column(model, metric, name, info, purpose, methods, list(ids), values, families)
            )
    return columns


def _compare(columns: Sequence[Column], chance: Sequence[str]) -> list[Standing]:
    """Tests all pairs in all directed columns, corrects them together, and sorts the methods."""
    directed = [c for c in columns if c.info["better"]]
    pairs = {id(c): list(itertools.combinations(range(len(c.methods)), 2)) for c in directed}
    family = sum(len(p) for p in pairs.values())
    # with fewer draws than this the smallest possible p-value could never pass the correction
    draws = max(10_000, math.ceil(2 * family / LEVEL))
    differences = [
        column
        for c in directed
        if pairs[id(c)]
        for column in group_sums(
            np.stack([c.values[:, i] - c.values[:, j] for i, j in pairs[id(c)]], axis=1),
            c.families,
        ).T
    ]
    raw = np.ones(len(differences))
    for n in {len(d) for d in differences}:
        # all columns of one length share their random signs, which cost more than the sums
        places = [k for k, d in enumerate(differences) if len(d) == n]
        table = np.stack([differences[k] for k in places], axis=1)
        raw[places] = sign_flip_tests(table, draws=draws)
    corrected = iter(holm(raw).tolist())
    p_tables = {}
    for c in directed:
        p = np.ones((len(c.methods), len(c.methods)))
        for i, j in pairs[id(c)]:
            p[i, j] = p[j, i] = next(corrected)
        p_tables[id(c)] = p
    return [_standing(c, p_tables.get(id(c)), chance) for c in columns]


def _mean_difference(one: FloatArray, other: FloatArray) -> float:
    differences = one - other
    defined = ~np.isnan(differences)
    return float(differences[defined].mean()) if defined.any() else 0.0


def _standing(column: Column, p: FloatArray | None, chance: Sequence[str]) -> Standing:
    values, methods = column.values, column.methods
    defined = (~np.isnan(values)).sum(axis=0)
    sums = np.nansum(values, axis=0)
    means = np.where(defined > 0, sums / np.maximum(defined, 1), np.nan)
    bounds = mean_intervals(values, column.families, share=column.info.get("share", False))
    better = column.info["better"]
    direction = -1.0 if better == "lower" else 1.0
    ranked = np.where(np.isnan(means), -np.inf, direction * means)
    order = np.argsort(-ranked, kind="stable")
    contenders = [int(i) for i in order if methods[i] not in chance and defined[i]]
    best = contenders[0] if p is not None and contenders else None
    base = next((methods.index(m) for m in chance if m in methods), None)
    letters = (
        letter_groups((p < LEVEL)[np.ix_(order, order)]) if p is not None else [""] * len(order)
    )
    entries = []
    for place, i in enumerate(order):
        # means are over each method's own texts, tests over those they share: where the two point
        # different ways, nothing is told
        ahead = best is None or _mean_difference(values[:, best], values[:, i]) * direction > 0
        p_best = 1.0 if p is None or best is None else float(p[i, best])
        p_chance = None if p is None or base is None or i == base else float(p[i, base])
        above = base is not None and _mean_difference(values[:, i], values[:, base]) * direction > 0
        entries.append(
            Entry(
                method=methods[i],
                mean=float(means[i]),
                low=float(bounds[i, 0]),
                high=float(bounds[i, 1]),
                n=int(defined[i]),
                undefined=int(len(values) - defined[i]),
                group=letters[place],
                p_best=p_best,
                p_chance=p_chance,
                is_best=int(i) == best,
                is_chance=methods[i] in chance,
                tied_with_best=bool(
                    best is not None
                    and int(i) != best
                    and defined[i]
                    and (p_best >= LEVEL or not ahead)
                ),
                better_than_chance=None
                if p_chance is None or base is None or not defined[i]
                else bool(p_chance < LEVEL and ranked[i] > ranked[base] and above),
            )
        )
    return Standing(
        column.model,
        column.metric,
        column.name,
        better,
        column.info["about"],
        column.purpose,
        bool(column.info.get("headline")),
        tuple(entries),
    )
