"""The main job: data, models, explainers and metrics become a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.files import check_own, sole_writer
from ..core.metrics import Metric
from ..core.plugins import blamed_on
from ..core.progress import Watcher
from ..data.loading import Source
from ..engine.executors import Executor, Local
from ..results.conclusions import Conclusions, conclude
from ..results.config import RelianceInfo
from ..results.guarantees import Reliance
from ..results.parts import complete_part
from ..results.run import AUDIT, Run, slug
from ..results.standings import Standing, keep_standings
from ..results.verdicts import Verdict
from .explaining import Target
from .jobs import SUBSET_SIZE, AuditWork, batches_of, run_jobs, subset_of
from .planning import AuditPlan
from .request import PreparedAudit, prepare, reliance_of
from .selection import Methods, Metrics, explainers_to_redo, must_learn
from .training_sets import fitted as fitted_on


@dataclass(frozen=True)
class Audit:
    """A finished run and what it says."""

    run: Run
    computed: int
    reused: int

    @property
    def folder(self) -> Path:
        return self.run.folder

    @cached_property
    def conclusions(self) -> Conclusions:
        found = conclude(self.run)
        keep_standings(self.run, found.standings)
        return found

    @property
    def standings(self) -> list[Standing]:
        return list(self.conclusions.standings)

    @property
    def verdicts(self) -> list[Verdict]:
        return [v for c in self.conclusions.models for v in c.verdicts]

    def __str__(self) -> str:
        said = [f"{name}: {r.sentence}" for name, r in self.reliance.items()]
        for one in self.conclusions.models:
            said.append(f"{one.model}: {one.health.summary}")
            said += [f"{one.model}: {v.sentence}" for v in one.verdicts]
            advice = one.recommendation
            lines = (advice.sentence, advice.effect, *advice.reasons)
            said += [f"{one.model}: {line}" for line in lines if line]
            said += [f"{one.model}: but {caution}" for caution in advice.cautions]
        return "\n".join(said)

    @property
    def reliance(self) -> Mapping[str, RelianceInfo]:
        """Where something was planted: whether each model must have used it, and why."""
        return self.run.config.reliance

    def _repr_html_(self) -> str:
        from .. import audit_html  # by the front door: how it looks is for reports to say

        return audit_html(self)


def audit(
    model: Any,
    data: Source,
    methods: Methods = "all",
    metrics: Metrics = "all",
    *,
    out: str | Path | None = None,
    target: Target = "predicted",
    seed: int = 0,
    batch_size: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    train: Source | None = None,
    reliance: Mapping[str, Reliance] | None = None,
    profile: str = "recommended",
    questions: int | None = None,
    extras: bool = True,
    redo: str | Sequence[str] = (),
    sources: Mapping[str, str] | None = None,
    command: str = "",
    watch: Watcher = lambda _: None,
    tell_plan: Callable[[AuditPlan], None] = lambda _: None,
) -> Audit:
    """Runs methods on a model (or several by name) and tests them; given again, it resumes.

    `profile` sets what methods and metrics do where they are not told: as recommended here, as the
    papers print it (`paper`), or as their code does it (`released`).
    `train` is what methods that learn learn from; by default what each model was trained on.
    `questions` is what methods that sample ask about a text, unless they name a number themselves.
    `reliance` tells of each model whether it must have used what was planted, where that was
    measured on more texts than these.
    `extras` are done on part of the texts: methods that draw explain them once more, which shows
    how much of their scores is noise; and where methods are compared with chance, a search finds
    what erasure lets anybody reach, unless questions cost money.
    `redo` names methods whose parts of an earlier call are thrown away and computed anew.
    `sources` says by model where it came from and `command` what was typed, without secrets, so
    that the report can say how to go on.
    `tell_plan` hears what is going to be asked before it is. A model with a budget is asked about
    as many texts as that holds; should it be spent before, the texts done so far are the result.
    """
    folder = Path(out) if out else None
    if folder:
        check_own(folder, AUDIT)
    ready = prepare(
        model,
        data,
        methods,
        metrics,
        train=train,
        seed=seed,
        profile=profile,
        questions=questions,
        extras=extras,
    )
    target = ready.target(target)
    tell_plan(ready.plan)
    known = {
        name: (reliance or {}).get(name) or reliance_of(m, ready.data)
        for name, m in ready.models.items()
    }
    relied = {name: r for name, r in known.items() if r is not None}
    size = batch_size or ready.batch_size
    config = ready.config(
        seed=seed,
        batch_size=size,
        target=target,
        reliance=relied,
        sources=sources or {},
        command=command,
    )
    place = folder or default_folder(ready.data, ready.models)
    with sole_writer(place, AUDIT):
        run = Run.start(place, config, ready.data, redo=explainers_to_redo(redo, ready.explainers))
        batches = batches_of(ready.data, size)
        work = AuditWork(
            run=run,
            models=ready.models,
            data=ready.data,
            explainers=ready.explainers,
            metrics=ready.metrics,
            batches=batches,
            target=target,
            seed=seed,
            fitted=_fitted(run, ready, batches, train),
            unforced=frozenset(name for name, r in relied.items() if not r.forced),
            second_draw=ready.plan.second_draw,
            searches=ready.searches,
            subset_ids=subset_of(ready.data, SUBSET_SIZE, seed=seed),
        )
        done = run_jobs(work, executor or Local(workers), ready.skipped, watch)
        run = run.with_partial(done.partial)
        run.write_summaries(_summaries(run, ready.metrics))
    return Audit(run, done.computed, done.reused)


def plan(
    model: Any,
    data: Source,
    methods: Methods = "all",
    metrics: Metrics = "all",
    *,
    train: Source | None = None,
    seed: int = 0,
    profile: str = "recommended",
    questions: int | None = None,
    extras: bool = True,
) -> AuditPlan:
    """What `audit` would ask of a model, without asking; with a budget, what it would choose."""
    return prepare(
        model,
        data,
        methods,
        metrics,
        train=train,
        seed=seed,
        profile=profile,
        questions=questions,
        extras=extras,
    ).plan


def default_folder(data: Dataset, models: Iterable[str]) -> Path:
    """Where a run goes when nobody says: a name that tells what it is."""
    return Path("runs") / slug(f"{data.name}-{'-'.join(models)}")


def _fitted(
    run: Run, ready: PreparedAudit, batches: Sequence[Sequence[int]], train: Source | None
) -> dict[tuple[str, str], Explainer]:
    """By model and method: those that learn, having learnt; they need not where all that they
    explained, and all scores, for which some metrics have them explain again, are written."""

    ids = [[ready.data.examples[i].id for i in places] for places in batches]
    tests = [m.spec for m in ready.metrics if not m.of_model]

    def is_written(model: str, explainer: Explainer) -> bool:
        return all(
            complete_part(part, own) is not None
            for b, own in enumerate(ids)
            for part in (
                run.attribution_part(model, explainer.spec, b),
                *(run.score_part(model, explainer.spec, test, b) for test in tests),
            )
        )

    return {
        (name, e.spec): fitted_on(e, ready.models[name], data)
        for name, data in ready.training.items()
        for e in ready.explainers
        if must_learn(e, train) and isinstance(ready.models[name], e.needs)
        if e.draws or not is_written(name, e)
    }


def _summaries(run: Run, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Each metric's own summary of each model and method."""
    found: dict[str, Any] = {}
    for model in run.models:
        for explainer in (*run.explainers, ""):
            for metric in metrics:
                rows = list(run.rows(model, explainer, metric.spec).values())
                if rows:
                    with blamed_on(metric):
                        summary = metric.summary(rows)
                    place = found.setdefault(model, {}).setdefault(explainer, {})
                    place[metric.spec] = dict(summary)
    return found
