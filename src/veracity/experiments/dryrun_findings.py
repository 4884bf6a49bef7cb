"""A dry run read back: which methods showed which cues, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.changes import DECOY, MANIPULATION, PLANTED, UNTOUCHED
from ..core.inputs import FloatArray
from ..results.columns import Column
from ..results.run import Cost, Run
from ..results.standings import Standing, compare_all
from ..results.statistics import cluster_intervals, defined_mean, texts_needed, wilson
from .dryrun_record import DryRun, Key, Trial

HALF = 0.5
"""A reader who looks at one text should see the cue more often than not."""

ONE_SIDED = 0.5
"""Marks that are shown so differently were not learnt alike."""

Sees = Literal["exposes", "unclear", "hides"]


@dataclass(frozen=True, kw_only=True)
class Detection:
    """How often one method shows one cue among its top words."""

    method: str
    share: float
    low: float
    high: float
    sees: Sees
    n: int
    first: float
    rank: float
    standing: str
    """best, tied with the best, or nothing."""
    clean: float = math.nan
    """How often it shows the cue of a model that never saw it: false alarms."""
    clean_low: float = math.nan
    clean_high: float = math.nan
    gain_low: float = math.nan
    """The lower end of how much more often it shows it where it was learnt."""
    beats_chance: bool = False
    """Whether it would expose the cue, were it not for false alarms."""

    @property
    def false_alarm(self) -> bool:
        """Whether it may show the cue as often where nothing was learnt of it."""
        return self.gain_low <= 0


@dataclass(frozen=True, kw_only=True)
class CueResult:
    """One cue at one strength, and what every method showed of it."""

    cue: str
    strength: float
    trials: tuple[Trial, ...]
    chance: float
    chance_low: float
    chance_high: float
    sights: Mapping[str, Detection]
    by_mark: Mapping[int, float]
    """In how many texts with each label's mark, and without any (-1), the methods show it, averaged
    over methods."""

    @property
    def key(self) -> Key:
        return self.cue, self.strength

    @property
    def one_sided(self) -> bool:
        """Whether the model seems to know one mark and to go by its absence for the other."""
        return bool(self.by_mark) and np.ptp(list(self.by_mark.values())) >= ONE_SIDED


@dataclass(frozen=True)
class MassShare:
    """A mean beside what a random map would get, and the interval of their difference."""

    mean: float
    expected: float
    low: float
    high: float

    @property
    def above(self) -> bool:
        return self.low > 0


@dataclass(frozen=True, kw_only=True)
class MethodProfile:
    """One method over all cues."""

    method: str
    baseline: bool
    worst: float
    mean: float
    exposes: tuple[Key, ...]
    unclear: tuple[Key, ...]
    hides: tuple[Key, ...]
    first: float
    rank: float
    planted: MassShare
    decoys: MassShare | None
    precision: float
    recall: float
    misleading: float
    tied_with_best: bool
    is_best: bool
    seconds: float
    questions: float
    clean: float = math.nan
    """In how many texts it shows what the model never saw, averaged over cues."""
    clean_first: float = math.nan
    clean_planted: MassShare | None = None


@dataclass(frozen=True, kw_only=True)
class DryRunFindings:
    """Everything that a dry run says, methods by their worst case."""

    cells: tuple[CueResult, ...]
    left_out: tuple[tuple[Key, tuple[Trial, ...]], ...]
    profiles: tuple[MethodProfile, ...]
    seeds: int
    comparisons: int
    trainings: int = 0
    """How many models are compared over all cues."""
    needed: int = 0
    """So many models at least before any difference between methods could be told."""

    @property
    def no_clean(self) -> bool:
        """Whether nothing is known of false alarms."""
        return all(s.clean != s.clean for c in self.cells for s in c.sights.values())

    @property
    def methods(self) -> list[MethodProfile]:
        """Those that look at the model."""
        return [p for p in self.profiles if not p.baseline]


def findings(dry: DryRun) -> DryRunFindings:
    """All cells, methods and comparisons, from the audits alone."""
    scored = [t for t in dry.trials if t.status == "scored"]
    runs = {t.name: dry.run(t) for t in scored}
    keys = list(dict.fromkeys(t.key for t in dry.trials))
    left_out = tuple(_by_key([t for t in dry.trials if t.status != "scored"], keys).items())
    methods = list(dict.fromkeys(m for run in runs.values() for m in run.explainers))
    if not methods:
        return DryRunFindings(cells=(), left_out=left_out, profiles=(), seeds=0, comparisons=0)
    tables = {t.name: _read(runs[t.name], methods) for t in scored}
    shown = {t.name: dry.clean[t.name] for t in scored if t.name in dry.clean}
    clean = {n: _read(dry.run(c), methods) for n, c in shown.items() if c.audit}
    by_key = _by_key(scored, keys)
    baselines = [m for m in methods if any(m in run.config.baselines for run in runs.values())]
    standings = _standings(tables, by_key, methods, baselines)
    cells = tuple(
        _cell(trials, tables, clean, methods, baselines, standings[_name(key)])
        for key, trials in by_key.items()
    )
    costs = [cost for run in runs.values() for cost in run.costs()]
    profiles = [
        _profile(
            m,
            place,
            baseline=m in baselines,
            cells=cells,
            scored=tables,
            clean=clean,
            overall=standings[""],
            costs=costs,
        )
        for place, m in enumerate(methods)
    ]
    profiles.sort(key=lambda p: (p.baseline, -p.worst, -p.mean))
    return DryRunFindings(
        cells=cells,
        left_out=left_out,
        profiles=tuple(profiles),
        seeds=len({t.seed for t in scored}),
        comparisons=math.comb(len(methods), 2) * len(standings),
        trainings=len(scored),
        needed=texts_needed(standings[""].comparisons),
    )


def _by_key(trials: Sequence[Trial], keys: Sequence[Key]) -> dict[Key, tuple[Trial, ...]]:
    """The trials of each cue at each strength of which there are any."""
    found = {key: tuple(t for t in trials if t.key == key) for key in keys}
    return {key: some for key, some in found.items() if some}


_QUANTITIES = {
    "seen": ("exposure", "seen"),
    "first": ("exposure", "first"),
    "rank": ("exposure", "rank"),
    "chance": ("exposure", "chance"),
    "planted": (f"attribution_mass(truth={PLANTED})", "mass"),
    "planted_share": (f"attribution_mass(truth={PLANTED})", "share"),
    "decoys": (f"attribution_mass(truth={DECOY})", "mass"),
    "decoys_share": (f"attribution_mass(truth={DECOY})", "share"),
    "precision": ("selection", "precision"),
    "recall": ("selection", "recall"),
    "misleading": ("selection", "misleading"),
}
METRICS = tuple(dict.fromkeys(metric for metric, _ in _QUANTITIES.values()))
"""What every audit of a dry run measures; decoys only where there are some."""

_Table = Mapping[str, FloatArray]  # each (texts, methods); NaN where nothing was scored


def _read(run: Run, methods: Sequence[str]) -> _Table:
    (model,) = run.models
    columns = {metric: run.columns(as_measured(run, metric), model) for metric in METRICS}
    examples = columns["exposure"]["seen"].examples
    table = {
        name: _spread(columns[metric].get(quantity), methods, len(examples))
        for name, (metric, quantity) in _QUANTITIES.items()
    }
    marks = {e.id: e.facts.get(MANIPULATION, UNTOUCHED) for e in run.examples()}
    # of data that were planted before, the last is what this trial did
    last = {i: mark.rsplit(",", 1)[-1] for i, mark in marks.items()}
    given = [-1.0 if last[i] == UNTOUCHED else float(last[i]) for i in examples]
    return {**table, "mark": np.array(given)[:, None]}


def as_measured(run: Run, metric: str) -> str:
    """A metric with the settings that suited the run's inputs."""
    return next((m for m in run.config.metrics if m.startswith(f"{metric}(")), metric)


def _spread(column: Column | None, methods: Sequence[str], n: int) -> FloatArray:
    """A column with a place for every method of the dry run."""
    values = np.full((n, len(methods)), np.nan)
    if column is not None:
        values[:, [methods.index(m) for m in column.methods]] = column.values
    return values


def _name(key: Key) -> str:
    return f"{key[0]} {key[1]:g}"


def _standings(
    tables: Mapping[str, _Table],
    by_key: Mapping[Key, Sequence[Trial]],
    methods: Sequence[str],
    baselines: Sequence[str],
) -> dict[str, Standing]:
    """All pairs of methods on each cue and, under no name, on all together, corrected together.
    Texts are the draws of one model; of several models, which may differ far more, these are."""
    names = {"": list(tables), **{_name(k): [t.name for t in v] for k, v in by_key.items()}}
    seen = {k: np.concatenate([tables[t]["seen"] for t in trials]) for k, trials in names.items()}
    models = {
        k: [t for t in trials for _ in range(len(tables[t]["seen"]))]
        for k, trials in names.items()
        if len(trials) > 1
    }
    found = compare_all(seen, methods, chance=baselines, families=models)
    return {s.name: s for s in found}


def _cell(
    trials: Sequence[Trial],
    all_tables: Mapping[str, _Table],
    all_clean: Mapping[str, _Table],
    methods: Sequence[str],
    baselines: Sequence[str],
    standing: Standing,
) -> CueResult:
    tables = [all_tables[t.name] for t in trials]
    together = np.concatenate([t["seen"] for t in tables])
    chances = [t["chance"][:, :1] for t in tables]
    ((chance_low, chance_high),) = np.clip(cluster_intervals(chances), 0.0, 1.0).tolist()
    bounds = _share_intervals([t["seen"] for t in tables])
    alarms = [all_clean[t.name]["seen"] for t in trials if t.name in all_clean]
    false = np.concatenate(alarms) if alarms else np.full((1, len(methods)), np.nan)
    false_bounds = _share_intervals(alarms) if alarms else np.full((len(methods), 2), np.nan)
    entries = {e.method: e for e in standing.entries}
    sights = {}
    for i, method in enumerate(methods):
        values = together[:, i]
        if np.isnan(values).all():
            continue
        low, high = map(float, bounds[i])
        share, clean = float(np.nanmean(values)), defined_mean(false[:, i])
        clean_low, clean_high = map(float, false_bounds[i])
        gain_low = difference_lower_bound(share, low, clean, clean_high)
        verdict = sees(low, high, chance_low, chance_high)
        entry = entries[method]
        sights[method] = Detection(
            method=method,
            share=share,
            low=low,
            high=high,
            sees="unclear" if verdict == "exposes" and gain_low <= 0 else verdict,
            n=int((~np.isnan(values)).sum()),
            first=_mean(tables, "first", i),
            rank=_mean(tables, "rank", i),
            standing="best" if entry.is_best else "tied" if entry.tied_with_best else "",
            clean=clean,
            clean_low=clean_low,
            clean_high=clean_high,
            gain_low=gain_low,
            beats_chance=verdict == "exposes",
        )
    looking = [i for i, method in enumerate(methods) if method not in baselines]
    marks = np.concatenate([t["mark"][:, 0] for t in tables])
    by_mark = {
        int(mark): defined_mean(together[marks == mark][:, looking].ravel("F"))
        for mark in np.unique(marks[~np.isnan(marks)])
        if looking
    }
    return CueResult(
        cue=trials[0].cue,
        strength=trials[0].strength,
        trials=tuple(trials),
        chance=float(np.nanmean(np.concatenate(chances))),
        chance_low=chance_low,
        chance_high=chance_high,
        sights=sights,
        by_mark=by_mark,
    )


def _share_intervals(clusters: Sequence[FloatArray]) -> FloatArray:
    """Of the shares in the columns. [(texts, k), …] → (k, 2)"""
    bounds = np.clip(cluster_intervals(clusters), 0.0, 1.0)
    # where all drawn texts agree a bootstrap has no width, however few they are
    columns = np.concatenate(clusters).T
    shares = np.array([wilson(np.nansum(c), int((~np.isnan(c)).sum())) for c in columns])
    bounds[:, 0] = np.fmin(bounds[:, 0], shares[:, 0])
    bounds[:, 1] = np.fmax(bounds[:, 1], shares[:, 1])
    return bounds


def difference_lower_bound(share: float, low: float, clean: float, clean_high: float) -> float:
    """The lower end of a difference of two shares from their own intervals, which are those of
    other models on other texts (Newcombe 1998, his method 10)."""
    return share - clean - math.hypot(share - low, clean_high - clean)


def sees(low: float, high: float, chance_low: float, chance_high: float) -> Sees:
    """Whether an interval lies above one half and what chance shows, below, or neither."""
    if low > max(HALF, chance_high):
        return "exposes"
    return "hides" if high < max(HALF, chance_low) else "unclear"


def _profile(
    method: str,
    place: int,
    *,
    baseline: bool,
    cells: Sequence[CueResult],
    scored: Mapping[str, _Table],
    clean: Mapping[str, _Table],
    overall: Standing,
    costs: Sequence[Cost],
) -> MethodProfile:
    shown = [(cell.key, cell.sights[method]) for cell in cells if method in cell.sights]
    shares = [sight.share for _, sight in shown] or [math.nan]
    entry = next(e for e in overall.entries if e.method == method)
    tables, without = list(scored.values()), list(clean.values())
    mine = [c for c in costs if c.method == method and c.examples]
    explained = sum(c.examples for c in mine) or math.nan

    def where(verdict: Sees) -> tuple[Key, ...]:
        return tuple(key for key, sight in shown if sight.sees == verdict)

    def mean(name: str) -> float:
        return _mean(tables, name, place)

    return MethodProfile(
        method=method,
        baseline=baseline,
        worst=min(shares),
        mean=float(np.mean(shares)),
        exposes=where("exposes"),
        unclear=where("unclear"),
        hides=where("hides"),
        first=mean("first"),
        rank=mean("rank"),
        planted=_against_share(tables, "planted", place),
        decoys=_against_share(tables, "decoys", place) if not math.isnan(mean("decoys")) else None,
        precision=mean("precision"),
        recall=mean("recall"),
        misleading=mean("misleading"),
        tied_with_best=entry.tied_with_best,
        is_best=entry.is_best,
        seconds=sum(c.seconds for c in mine) / explained,
        questions=sum(c.questions for c in mine) / explained,
        clean=defined_mean([sight.clean for _, sight in shown]),
        clean_first=_mean(without, "first", place) if without else math.nan,
        clean_planted=_against_share(without, "planted", place) if without else None,
    )


def _mean(tables: Sequence[_Table], name: str, place: int) -> float:
    """One method's mean over the texts of all trials."""
    return defined_mean(np.concatenate([t[name][:, place] for t in tables]))


def _against_share(tables: Sequence[_Table], kind: str, place: int) -> MassShare:
    """Attr% beside the words' own share, on the texts where both are defined."""
    pairs = [np.column_stack([t[kind][:, place], t[f"{kind}_share"][:, place]]) for t in tables]
    pairs = [p[~np.isnan(p).any(axis=1)] for p in pairs]
    bounds = cluster_intervals([p[:, :1] - p[:, 1:] for p in pairs])
    together = np.concatenate(pairs)
    if not len(together):
        return MassShare(math.nan, math.nan, math.nan, math.nan)
    return MassShare(*together.mean(axis=0).tolist(), *bounds[0].tolist())
