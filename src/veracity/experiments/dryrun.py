"""A dry run: plant cues, train on them, and see which methods would have shown them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..auditing.audit import audit
from ..auditing.request import reliance_of
from ..auditing.training_sets import DataConfig
from ..core.changes import PLANTED, is_marked
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.files import sole_writer
from ..core.progress import Watcher
from ..core.schema import from_json
from ..data.splits import Splits, sampled, split
from ..engine.executors import Executor, Local, report_progress
from ..metrics import metrics as known_metrics
from ..results.guarantees import Reliance
from .dryrun_findings import METRICS, DryRunFindings, findings
from .dryrun_plan import DryRunPlan, plan_dryrun
from .dryrun_record import DRY_RUN, CleanTrial, DryRun, Trial, clean_name, judged
from .dryrun_sentences import sentences as sentences_of
from .experiment import Experiment, Step, keep_step, kept_step, run_steps
from .training import TrainedModel, trained_once

if TYPE_CHECKING:
    from ..models.architecture import Architecture, Training


@dataclass(frozen=True)
class DryRunResult:
    """A finished dry run and what it says."""

    record: DryRun
    made: int
    reused: int

    @property
    def folder(self) -> Path:
        return self.record.folder

    @cached_property
    def findings(self) -> DryRunFindings:
        return findings(self.record)

    def __str__(self) -> str:
        return sentences_of(self.record, self.findings)


def dryrun(
    model: str | Path | Architecture,
    data: str | Path | Dataset | DataConfig,
    *,
    scale: str = "smoke",
    cues: str | Sequence[str] = (),
    strengths: Sequence[float] = (),
    keep: float | None = None,
    methods: str | Sequence[str] = (),
    seeds: int | None = None,
    sentences: int | None = None,
    limit: int | None = None,
    training: Training | None = None,
    clean: bool = True,
    out: str | Path | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    watch: Watcher = lambda _: None,
) -> DryRunResult:
    """Plants cues of several kinds and strengths, trains a model on each, and finds out which
    methods would have shown them; given again, it goes on where it stopped.

    `keep` is the share of labels that are kept before a cue is planted: by default half of those
    of texts, and of pictures so few that they tell nothing.
    `clean` has methods tried on models that never saw a cue, too: what they show is a false alarm.
    """
    plan = plan_dryrun(
        model,
        data,
        scale=scale,
        cues=cues,
        strengths=strengths,
        keep=keep,
        methods=methods,
        seeds=seeds,
        sentences=sentences,
        limit=limit,
        training=training,
        clean=clean,
        out=out,
    )
    return run_dryrun(plan, executor or Local(workers), watch=watch)


def run_dryrun(
    plan: DryRunPlan, executor: Executor, *, watch: Watcher = lambda _: None
) -> DryRunResult:
    """Makes the trials that are missing, each written down as soon as it is done."""
    experiment = DryRunExperiment(plan.folder, plan)
    with sole_writer(plan.folder, DRY_RUN):
        record = DryRun.start(plan.folder, plan.config())
        for step in experiment.trials():
            _keep_older(experiment, step, record.done)
        reused = sum(step.name in record.done for step in experiment.trials())
        results = run_steps(experiment, executor, watch=watch)
        made = [results[step.key] for step in experiment.trials()]
        record = record.with_trials(made, (results[s.key] for s in experiment.clean_trials()))
    return DryRunResult(record, len(made) - reused, reused)


def _keep_older(experiment: Experiment, step: Step, done: Mapping[str, Trial]) -> None:
    """Writes down as a step what earlier versions kept in one file with all trials."""
    folder = experiment.place(step.name)
    if step.name in done and kept_step(folder) is None:
        keep_step(folder, step.settings, done[step.name].to_dict())


@dataclass(frozen=True)
class DryRunExperiment(Experiment):
    """A step for each trial: a model that is trained on a cue, and an audit if it learnt it. Models
    that never see a cue are trained beside them, and shown each that was learnt."""

    plan: DryRunPlan

    def steps(self) -> list[Step]:
        return [*self.clean_models(), *self.trials(), *self.clean_trials()]

    def trials(self) -> list[Step]:
        return [
            Step(
                key=t.name,
                name=t.name,
                settings=self._settings(t),
                title=f"{self.plan.cue(t).title} ({100 * t.strength:g} %), seed {t.seed}",
            )
            for t in self.plan.trials
        ]

    def clean_models(self) -> list[Step]:
        same = self.plan.config()["same"]
        return [
            Step(
                key=name,
                name=name,
                settings={**same, "architecture": architecture.spec, "seed": seed},
                title=f"a model without a cue, seed {seed}",
            )
            for name, (architecture, seed) in self.plan.clean_models.items()
        ]

    def clean_trials(self) -> list[Step]:
        return [
            Step(
                key=clean_name(t.name),
                name=clean_name(t.name),
                settings=self._settings(t),
                needs=(t.name, self.plan.clean_model(t)),
                title=f"{self.plan.cue(t).title} to a model without it, seed {t.seed}",
            )
            for t in self.plan.trials
            if self.plan.clean
        ]

    def _settings(self, trial: Trial) -> dict[str, Any]:
        shared = {**self.plan.config()["same"], "methods": list(self.plan.methods)}
        return {**shared, "changes": trial.changes, "seed": trial.seed}

    def work(self, step: Step, executor: Executor | None) -> Mapping[str, Any]:
        if step.key in self.plan.clean_models:
            return self._trained_clean(step.name)[0].summary
        (trial,) = (t for t in self.plan.trials if step.key in (t.name, clean_name(t.name)))
        made = self._made(trial) if step.key == trial.name else self._shown_clean(trial)
        return made.to_dict()

    def _made(self, trial: Trial) -> Trial:
        plan, seed = self.plan, trial.seed
        reading = replace(plan.reading, changes=trial.changes)
        parts = split(reading.prepared(plan.data, seed=seed), seed=seed)
        marked = sum(map(is_marked, parts.test))
        trial = replace(
            trial, trained_on=len(parts.train), tested_on=len(parts.test), carriers=marked
        )
        if not marked:
            return trial
        architecture = plan.architecture_for(plan.cue(trial))
        started = time.perf_counter()
        trained = self._trained(architecture, parts, trial.name, reading, seed)
        known = reliance_of(trained.model, parts.test)
        if known is None:
            raise DataError(f"{trial.changes} planted nothing that could be measured")
        status, why = judged(known, plan.data.nouns)
        history = trained.record.get("history", [])
        trial = replace(
            trial,
            status=status,
            why=why,
            accuracy=known.accuracy,
            bound=known.bound,
            ceiling=known.ceiling,
            required=known.required,
            luck=known.luck,
            epochs=len(history),
            training_seconds=sum(e["seconds"] for e in history) or time.perf_counter() - started,
            model=f"models/{trial.name}",
        )
        if status != "scored":
            return trial
        started = time.perf_counter()
        shown = self._explained(parts.test, seed)
        place = f"audits/{trial.name}"
        self._audited(architecture, trained, shown, parts.train, place, seed, known)
        return replace(
            trial, texts=len(shown), audit=place, audit_seconds=time.perf_counter() - started
        )

    def _trained_clean(self, name: str) -> tuple[TrainedModel, Splits]:
        """A model of the data as they are, and what it was trained and tested on."""
        plan = self.plan
        architecture, seed = plan.clean_models[name]
        parts = split(plan.reading.prepared(plan.data, seed=seed), seed=seed)
        return self._trained(architecture, parts, name, plan.reading, seed), parts

    def _shown_clean(self, trial: Trial) -> CleanTrial:
        """What methods show of a cue to which a model was never trained."""
        plan, seed = self.plan, trial.seed
        kept = kept_step(self.place(trial.name))
        assert kept is not None, "it is needed, so it is there"
        found = CleanTrial(name=trial.name)
        if from_json(Trial, kept["found"]).status != "scored":
            return found
        started = time.perf_counter()
        name = plan.clean_model(trial)
        trained, parts = self._trained_clean(name)
        before = {e.id: e for e in parts.test}
        planted = replace(plan.reading, changes=trial.changes).prepared(plan.data, seed=seed)
        new = planted.select(i for i, e in enumerate(planted) if e.id in before)
        # the labels are those that were there; that there is a mark says nothing of this model
        shown = self._explained(new, seed)
        shown = replace(
            shown, examples=tuple(replace(e, label=before[e.id].label, facts={}) for e in shown)
        )
        if not len(shown):
            return found
        place = f"audits/{clean_name(trial.name)}"
        architecture, _ = plan.clean_models[name]
        self._audited(architecture, trained, shown, parts.train, place, seed, None)
        return replace(
            found,
            texts=len(shown),
            accuracy=trained.summary["accuracy"],
            model=f"models/{name}",
            audit=place,
            audit_seconds=time.perf_counter() - started,
        )

    def _trained(
        self, architecture: Architecture, parts: Splits, name: str, reading: DataConfig, seed: int
    ) -> TrainedModel:
        return trained_once(
            architecture,
            parts,
            self.plan.folder / "models" / name,
            data={
                "name": self.plan.data.name,
                "fingerprint": self.plan.fingerprint,
                "reading": reading.recorded(),
            },
            training=replace(self.plan.design.training, seed=seed),
            watch=report_progress,
        )

    def _explained(self, tested: Dataset, seed: int) -> Dataset:
        """Of what a model is tested on, that in which one knows where to look. That there is no
        mark is evidence as well where there are two labels; of more, it leaves open which."""
        two = len(tested.labels) == 2

        def is_known(example: Example) -> bool:
            return PLANTED in example.truths and (two or is_marked(example))

        known = tested.select(i for i, e in enumerate(tested) if is_known(e))
        return sampled(known, self.plan.sentences, seed=seed)

    def _audited(
        self,
        architecture: Architecture,
        trained: TrainedModel,
        shown: Dataset,
        train: Dataset,
        place: str,
        seed: int,
        known: Reliance | None,
    ) -> None:
        name = architecture.plugin_name()
        audit(
            {name: trained.model},
            shown,
            self.plan.methods,
            [m for m in METRICS if known_metrics.make(m).truth_kind in (None, *shown.truth_kinds)],
            out=self.plan.folder / place,
            seed=seed,
            train=train,
            reliance={} if known is None else {name: known},
            extras=False,
            watch=report_progress,
        )
