"""Which method leads where, how sure that is, and what could not be told apart."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from ..core.errors import RunError
from ..core.files import read_json, write_json
from ..core.inputs import FloatArray, IntArray, Nouns, Text, input_kind
from ..core.metrics import CHANGED, Quantity
from ..core.schema import from_json
from .columns import HIDDEN_HOW, Column
from .power import detectable_mean, differs_enough
from .run import STANDINGS, Run
from .statistics import LEVEL as LEVEL
from .statistics import (
    group_sums,
    holm,
    letter_groups,
    mean_intervals,
    paired_tests,
    percent,
    texts_needed,
)


@dataclass(frozen=True, kw_only=True)
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
    could_beat_chance: bool = True
    """Whether so many texts could have shown it at all, all comparisons with chance counted."""
    n_unlike_chance: int = 0
    """On how many texts, families counted once, it scores otherwise than chance does."""
    gain: float | None = None
    """How much of the way from chance to `Standing.ceiling` (definitions 5.14), on the texts
    searched."""
    on_searched: float = math.nan
    """The mean on those texts alone."""


@dataclass(frozen=True, kw_only=True)
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
    comparisons: int = 0
    """How many comparisons of methods with each other the correction counts."""
    chance_comparisons: int = 0
    """How many with chance; a family of their own."""
    detectable: float | None = None
    """The difference from the best that another method would have shown in at least four of five
    audits; None where the texts are too few for any that is possible, or too few differ to say."""
    differing: int | None = None
    """On how many texts the best and another method score differently, where these are too few to
    say what is detectable; else None."""
    ceiling: float | None = None
    """The mean of the best that any method or search found, text by text."""
    searched: int = 0
    """On how many texts."""
    where: str = ""
    """How words are hidden, where the metric hides any."""
    quality: str = "faithfulness"
    kind: str = Text.kind
    """What the inputs are."""
    share: bool = False
    """Whether its mean is a share of texts."""
    blunt: str = ""
    """Where random words do nearly what the best found do: what both do; else empty."""

    @property
    def nouns(self) -> Nouns:
        return input_kind(self.kind).nouns

    @property
    def chance(self) -> Entry | None:
        """The baseline that methods were tested against, and which is not tested itself: of
        several the first that the run names, whichever scores best."""
        return next((e for e in self.entries if e.is_chance and e.p_chance is None), None)

    @property
    def best(self) -> Entry | None:
        return next((e for e in self.entries if e.is_best), None)


def standings(run: Run) -> list[Standing]:
    """Every compared quantity of a run. Comparisons are corrected by model, those that a verdict
    rests on apart from the others, and those with chance apart from those between methods. What is
    kept with the run is taken as it is until its scores change."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = read_json(run.folder / STANDINGS)
        if content["parts"] == run.scores_fingerprint():
            return list(from_json(tuple[Standing, ...], content["standings"]))
    run.score_parts()  # without any there is nothing to compare
    found: list[Standing] = []
    for model in run.models:
        found += _compare(_columns(run, model), run.config.baselines)
    found = [replace(s, kind=run.config.dataset.kind) for s in found]
    return _with_blunt(found, run)


def keep_standings(run: Run, found: Sequence[Standing]) -> None:
    """Beside the scores, for whoever reads the run next."""
    rows = [asdict(s) for s in found]
    write_json(run.folder / STANDINGS, {"parts": run.scores_fingerprint(), "standings": rows})


LEAST_EFFECT = 0.05
"""Where even the best words found move a quantity by less, nothing is said of bluntness."""

NO_EFFECT = 0.01
"""What moves answers less, or changes fewer, does nothing."""

BLUNT = 0.8
"""A test is blunt where random words reach so much of what the best words found reach."""


def _with_blunt(found: list[Standing], run: Run) -> list[Standing]:
    """Marks the tests by a way of hiding under which it does not matter which words go: random ones
    make the answer fall, or change, as the best found do."""
    sizes = [one.n_units for one in run.inputs.values()]
    effects: dict[tuple[str, str], str] = {}
    for s in found:
        chance = s.chance
        if s.better != "higher" or s.ceiling is None or chance is None:
            continue
        first = run.config.metrics[s.metric].settings.get("first", math.inf)
        # of short texts a few random words are most of the words
        if not s.headline and (not s.share or np.median(sizes) < 2 * first):
            continue
        if s.ceiling > LEAST_EFFECT and chance.on_searched >= BLUNT * s.ceiling:
            figures = f"on {s.searched} {s.nouns.many} searched, " + (
                f"{s.name.replace('_', ' ')} {chance.on_searched:.3f} against {s.ceiling:.3f}"
                if s.headline
                else f"{first} random {s.nouns.units} {s.where} change "
                f"{percent(chance.on_searched)} of the answers, the best {first} "
                f"{percent(s.ceiling)}"
            )
            effects[s.model, s.where] = (
                f"random ones do nearly what the best that a search found do ({figures})"
            )
    for model in {s.model for s in found}:
        effects |= _by_number([s for s in found if s.model == model])
    return [replace(s, blunt=effects.get((s.model, s.where), "")) if s.where else s for s in found]


def _by_number(found: Sequence[Standing]) -> dict[tuple[str, str], str]:
    """Words that change nothing when others stand in their place, though the answer changes when
    they are left out: it is their number that counts."""
    deleted, masked = HIDDEN_HOW["delete"], HIDDEN_HOW["mask"]
    most: defaultdict[str, float] = defaultdict(float)
    for s in found:
        if s.better == "higher" and (s.headline or s.name == CHANGED):
            means = [abs(e.mean) for e in s.entries if e.n]
            most[s.where] = max(most[s.where], *means, abs(s.ceiling or 0.0))
    changed = [s for s in found if s.name == CHANGED and s.where == deleted]
    if masked not in most or most[masked] > NO_EFFECT or not changed:
        return {}
    s = changed[0]
    if (share := max((e.mean for e in s.entries if e.n), default=0.0)) <= LEAST_EFFECT:
        return {}
    return {
        (s.model, deleted): f"none of them matters where another {s.nouns.unit} takes its place "
        f"(with {s.nouns.units} {masked}, no method changes an answer, with {s.nouns.units} "
        f"{deleted} up to {percent(share)} change)"
    }


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
    families: Mapping[str, Sequence[str]] | None = None,
) -> list[Standing]:
    """The same for several tables by name, which are corrected together; rows of one family, given
    by table, are no independent draws."""
    columns = [
        Column(
            model="",
            metric="",
            name=name,
            quantity=Quantity("", better),
            purpose="",
            methods=list(methods),
            examples=rows,
            values=v,
            families=list((families or {}).get(name, rows)),
        )
        for name, v in tables.items()
        for rows in [[str(i) for i in range(len(v))]]
    ]
    return _compare(columns, chance)


def across(runs: Mapping[str, Run]) -> list[Standing]:
    """Methods of several runs on the same examples, quantity by quantity, as one table."""
    data = {run.config.dataset.fingerprint for run in runs.values()}
    if len(data) > 1:
        raise RunError(
            "expected runs on the same examples, which can be compared in pairs; these were made "
            "on different data. Audit one data set in all of them"
        )
    columns: defaultdict[tuple[str, str], list[tuple[str, Column]]] = defaultdict(list)
    for label, run in runs.items():
        for model in run.models:
            for column in _columns(run, model):
                columns[column.metric, column.name].append((f"{label}/{model}", column))
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
                best_found=None,
            )
        )
    chance = [
        f"{label}/{model}/{e}"
        for label, run in runs.items()
        for model in run.models
        for e in run.config.baselines
    ]
    return _compare(joined, chance)


def _columns(run: Run, model: str) -> list[Column]:
    """Every quantity of the tests of explanations that was scored on a model."""
    return [
        column
        for metric, about in run.config.metrics.items()
        if not about.of_model
        for columns in [run.columns(metric, model)]
        for name in about.quantities
        if (column := columns.get(name)) is not None
    ]


@dataclass(frozen=True)
class _Tested:
    """The corrected p-values of one column's pairs, and how many comparisons were counted."""

    p: FloatArray  # (methods, methods)
    comparisons: int
    chance_comparisons: int


def _compare(columns: Sequence[Column], chance: Sequence[str]) -> list[Standing]:
    """Tests all pairs in all directed columns, corrects each group of them, sorts the methods."""
    directed = [c for c in columns if c.quantity.better]
    pairs = [
        (c, i, j) for c in directed for i, j in itertools.combinations(range(len(c.methods)), 2)
    ]
    # with chance or between methods, behind a verdict or not
    holm_groups = [
        (not {c.methods[i], c.methods[j]}.isdisjoint(chance), c.quantity.headline)
        for c, i, j in pairs
    ]
    # with fewer draws than this the smallest possible p-value could never pass the correction
    draws = max(10_000, math.ceil(2 * len(pairs) / LEVEL))
    differences = [
        group_sums((c.values[:, i] - c.values[:, j])[:, None], c.families)[:, 0]
        for c, i, j in pairs
    ]
    # where two ways of hiding give the same scores, that is one comparison and not two
    same: dict[tuple[object, bytes], int] = {}
    first = [
        same.setdefault((group, np.round(d, 9).tobytes()), k)
        for k, (group, d) in enumerate(zip(holm_groups, differences, strict=True))
    ]
    raw = np.ones(len(differences))
    for n in {len(d) for d in differences}:
        # all columns of one length share their random signs, which cost more than the sums
        places = [k for k, d in enumerate(differences) if len(d) == n]
        table = np.stack([differences[k] for k in places], axis=1)
        raw[places] = paired_tests(table, draws=draws)
    corrected = np.ones(len(raw))
    for group in set(holm_groups):
        own = [k for k in same.values() if holm_groups[k] == group]
        corrected[own] = holm(raw[own])
    corrected = corrected[first]
    sizes = Counter(holm_groups[k] for k in same.values())
    tested = {}
    for c in directed:
        p = np.ones((len(c.methods), len(c.methods)))
        for (column, i, j), value in zip(pairs, corrected.tolist(), strict=True):
            if column is c:
                p[i, j] = p[j, i] = value
        headline = c.quantity.headline
        tested[id(c)] = _Tested(p, sizes[False, headline], sizes[True, headline])
    return [_standing(c, tested.get(id(c)), chance) for c in columns]


def _mean_difference(one: FloatArray, other: FloatArray) -> float:
    differences = one - other
    defined = ~np.isnan(differences)
    return float(differences[defined].mean()) if defined.any() else 0.0


def _standing(column: Column, tested: _Tested | None, chance: Sequence[str]) -> Standing:
    values, methods = column.values, column.methods
    p = None if tested is None else tested.p
    defined = (~np.isnan(values)).sum(axis=0)
    sums = np.nansum(values, axis=0)
    means = np.where(defined > 0, sums / np.maximum(defined, 1), np.nan)
    bounds = mean_intervals(values, column.families, share=column.quantity.share)
    if column.quantity.bounds:
        bounds = np.clip(bounds, *column.quantity.bounds)
    better = column.quantity.better
    direction = -1.0 if better == "lower" else 1.0
    ranked = np.where(np.isnan(means), -np.inf, direction * means)
    order = np.argsort(-ranked, kind="stable")
    contenders = [int(i) for i in order if methods[i] not in chance and defined[i]]
    best = contenders[0] if p is not None and contenders else None
    base = next((methods.index(m) for m in chance if m in methods), None)
    letters = (
        letter_groups((p < LEVEL)[np.ix_(order, order)]) if p is not None else [""] * len(order)
    )
    searched = _searched(column)
    on_searched = values[searched].mean(axis=0) if len(searched) else np.full(len(methods), np.nan)
    best_found = None if column.best_found is None else float(np.mean(column.best_found[searched]))
    entries = []
    for place, i in enumerate(order):
        # means are over each method's own texts, tests over those they share: where the two point
        # different ways, nothing is told
        ahead = best is None or _mean_difference(values[:, best], values[:, i]) * direction > 0
        p_best = 1.0 if p is None or best is None else float(p[i, best])
        p_chance = None if p is None or base is None or i == base else float(p[i, base])
        n_unlike_chance = 0 if base is None else _families_apart(column, int(i), base)
        above = base is not None and _mean_difference(values[:, i], values[:, base]) * direction > 0
        could_tie = best is not None and int(i) != best and defined[i]
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
                tied_with_best=bool(could_tie and (p_best >= LEVEL or not ahead)),
                better_than_chance=None
                if p_chance is None or base is None or not defined[i]
                else bool(p_chance < LEVEL and ranked[i] > ranked[base] and above),
                could_beat_chance=tested is None
                or base is None
                or n_unlike_chance >= texts_needed(tested.chance_comparisons),
                n_unlike_chance=n_unlike_chance,
                gain=None
                if base is None or best_found is None
                else part_of_way(float(on_searched[i]), float(on_searched[base]), best_found),
                on_searched=float(on_searched[i]),
            )
        )
    tied = [methods.index(e.method) for e in entries if e.tied_with_best and not e.is_chance]
    detectable, differing = None, None
    if tested is not None and best is not None:
        detectable, differing = _detectable(column, best, tied or contenders[1:2], tested)
    return Standing(
        model=column.model,
        metric=column.metric,
        name=column.name,
        better=better,
        about=column.quantity.about,
        purpose=column.purpose,
        headline=column.quantity.headline,
        entries=tuple(entries),
        comparisons=0 if tested is None else tested.comparisons,
        chance_comparisons=0 if tested is None else tested.chance_comparisons,
        detectable=detectable,
        differing=differing,
        ceiling=best_found if len(searched) else None,
        searched=len(searched),
        where=column.hidden_how,
        quality=column.quality,
        share=column.quantity.share,
    )


def _families_apart(column: Column, one: int, other: int) -> int:
    """How many independent draws tell two methods apart, one way or the other: where both score
    the same, nothing could have been seen."""
    difference = column.values[:, one] - column.values[:, other]
    return int(np.count_nonzero(group_sums(difference[:, None], column.families)))


def _searched(column: Column) -> IntArray:
    """The texts on which every method and a search are defined."""
    if column.best_found is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isnan(column.best_found) & ~np.isnan(column.values).any(axis=1))


def part_of_way(mean: float, start: float, end: float) -> float | None:
    """How much of the way from one mean to another a third one goes; None where there is no way."""
    return (mean - start) / (end - start) if abs(end - start) > 1e-9 else None


def _detectable(
    column: Column, best: int, others: Sequence[int], tested: _Tested
) -> tuple[float | None, int | None]:
    """How far behind the best any of the others would have to be to be told apart from it in four
    of five such audits; and, where too few texts differ to say so, on how many they do. The first
    is None then, and where the texts are too few for any difference that is possible. Methods with
    equal scores on all texts count as 0."""
    each: list[float | None] = []
    sparse: list[int] = []
    direction = -1.0 if column.quantity.better == "lower" else 1.0
    for other in others:
        differences = direction * (column.values[:, best] - column.values[:, other])
        known = ~np.isnan(differences)
        families = [name for name, k in zip(column.families, known.tolist(), strict=True) if k]
        sums = group_sums(differences[known][:, None], families)[:, 0]
        found = detectable_mean(sums, tested.comparisons, level=LEVEL) if sums.any() else 0.0
        if found and not differs_enough(sums):
            sparse.append(int(np.count_nonzero(sums)))
        # of single texts the mean of their families' sums
        each.append(found and found * len(sums) / len(families))
    if sparse or not each or None in each:
        return None, min(sparse) if sparse and None not in each else None
    most = max(d for d in each if d is not None)
    return (None, None) if most > _room(column, best) else (most, None)


def _room(column: Column, best: int) -> float:
    """How far behind the best any method could be at all."""
    least, most = (0.0, 1.0) if column.quantity.share else column.quantity.bounds or (None, None)
    worst = most if column.quantity.better == "lower" else least
    return math.inf if worst is None else abs(float(np.nanmean(column.values[:, best])) - worst)
