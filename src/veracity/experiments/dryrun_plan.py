"""What a dry run does: how much, with which model, on which cues."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..auditing.selection import usable_explainers
from ..auditing.training_sets import DataConfig
from ..changes.reassign import Reassign
from ..core.errors import ModelError, PluginError
from ..core.examples import Dataset
from ..core.files import check_own
from ..core.images import Image
from ..core.plugins import format_spec, nearest, parse_spec, split_specs
from ..data.vectors import GLOVE
from ..explainers import explainers as known_explainers
from ..metrics import metrics as known_metrics
from ..models.loading import RECORD, read_record
from ..results.run import slug
from .cues import KINDS, KINDS_OF, PICTURE_KINDS, Cue, cues_of, usual_keep
from .dryrun_record import DRY_RUN, Trial

if TYPE_CHECKING:
    from ..models.architecture import Architecture, Training


# ---- how much is done -----------------------------------------------------------------------

ON_ENCODERS = {"integrated_gradients": "integrated_gradients(gap=0.05)"}
"""What is quicker still, where every pass through a model takes long."""


@dataclass(frozen=True)
class Scale:
    """How much is tried: a dry run costs cues × strengths × seeds trainings and audits."""

    cues: tuple[str, ...]
    strengths: tuple[float, ...]
    seeds: int
    sentences: int
    limit: int | None
    quick: bool = False
    """Whether methods go by the settings that cost a fraction."""
    own: Mapping[str, str] = field(default_factory=dict)
    """Methods that go by other settings here."""

    @property
    def methods(self) -> list[str]:
        # a search for what erasure rewards is no method to be tested
        names = [n for n in known_explainers.names() if not known_explainers.get(n).ceiling]
        if not self.quick:
            return names
        quick = {n: format_spec(n, dict(known_explainers.get(n).quick)) for n in names}
        return [self.own.get(name, spec) for name, spec in quick.items()]


SCALES: Mapping[str, Scale] = {
    "smoke": Scale(tuple(KINDS), (1.0, 0.9), 2, 40, 3000, quick=True),
    "laptop": Scale(tuple(KINDS), (1.0, 0.9, 0.8), 3, 100, None, quick=True),
    "full": Scale(tuple(KINDS), (1.0, 0.95, 0.9, 0.8, 0.7), 5, 300, None),
}
"""For models over word embeddings, which train in seconds."""

_LEARNABLE = ("word", "phrase", "tag", "articles", "ending")

ENCODER_SCALES: Mapping[str, Scale] = {
    "smoke": Scale(("word", "tag", "ending"), (1.0, 0.9), 1, 20, 1500, True, ON_ENCODERS),
    "laptop": Scale(_LEARNABLE, (1.0,), 2, 40, 3000, True, ON_ENCODERS),
    "full": SCALES["full"],
}
"""For pretrained encoders, which take minutes."""

PICTURE_SCALES: Mapping[str, Scale] = {
    "smoke": Scale(tuple(PICTURE_KINDS), (1.0,), 2, 40, 1000, True, ON_ENCODERS),
    "laptop": Scale(tuple(PICTURE_KINDS), (1.0,), 2, 60, 2000, True, ON_ENCODERS),
    "full": Scale(tuple(PICTURE_KINDS), (1.0, 0.95, 0.9, 0.8, 0.7), 5, 200, None),
}
"""For networks that read pictures: small ones of 32 pixels in minutes, ResNet-34 at 64 in hours."""


LEARNT = 0.995
"""Networks for pictures are trained until so much of the validation part is right: as good as is
required of them there, they would fall short on other pictures half of the time."""


def scales_of(design: ModelDesign, kind: str) -> Mapping[str, Scale]:
    """What suits a model and the inputs that it is trained on."""
    if kind == Image.kind:
        return PICTURE_SCALES
    return ENCODER_SCALES if design.is_encoder else SCALES


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


@dataclass(frozen=True, kw_only=True)
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
    clean: bool = True
    """Whether methods are also tried on models that never saw a cue."""

    @property
    def architecture(self) -> Architecture:
        return self.design.architecture

    @cached_property
    def fingerprint(self) -> str:
        return self.data.fingerprint()

    @cached_property
    def trials(self) -> list[Trial]:
        """Seed by seed, so that a dry run that is stopped has tried every cue."""
        return [
            Trial(
                name=slug(f"{cue.name}-{strength:g}-seed{seed}"),
                cue=cue.name,
                strength=strength,
                seed=seed,
                changes=f"{Reassign(r=self.keep).spec}, {cue.at(strength).spec}",
                status="no place",
                why=f"no {self.data.nouns.one} offers a place for this cue",
            )
            for seed in range(self.seeds)
            for cue in self.cues
            for strength in cue.strengths
        ]

    @cached_property
    def clean_models(self) -> dict[str, tuple[Architecture, int]]:
        """By name the models that never see a cue: one for each seed, and for what tells capitals
        apart another."""
        return {
            self.clean_model(t): (self.architecture_for(self.cue(t)), t.seed)
            for t in self.trials
            if self.clean
        }

    def clean_model(self, trial: Trial) -> str:
        """The model that is shown a trial's cue and never learnt it."""
        other = self.architecture_for(self.cue(trial)) != self.architecture
        return f"clean{'-cased' if other else ''}-seed{trial.seed}"

    def cue(self, trial: Trial) -> Cue:
        """What a trial plants."""
        return next(cue for cue in self.cues if cue.name == trial.cue)

    def architecture_for(self, cue: Cue) -> Architecture:
        """The model as it was asked for; capitals are tried with one that tells them apart."""
        made: Any = self.architecture
        cased = cue.needs_case and self.design.folds_case
        return cast("Architecture", replace(made, cased=True) if cased else made)

    def config(self) -> dict[str, Any]:
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
                "kind": self.data.kind,
                "reading": self.reading.recorded(),
            },
            "cues": {
                cue.name: {
                    "title": cue.title,
                    "change": cue.planting.spec,
                    "marks": list(cue.planting.marks),
                    "strengths": list(cue.strengths),
                    "decoys": cue.planting.misleads,
                    "architecture": self.architecture_for(cue).spec,
                }
                for cue in self.cues
            },
            "seeds": self.seeds,
            "methods": list(self.methods),
            "skipped": [{"explainer": e, "why": why} for e, why in self.skipped],
            "trials": [trial.name for trial in self.trials],
            "top": cast(Any, known_metrics.make("exposure").for_kind(self.data.kind)).top,
            "clean": self.clean,
        }


def plan_dryrun(
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
    if isinstance(data, Dataset):
        reading, read = DataConfig(data.name), data
    else:
        reading = data if isinstance(data, DataConfig) else DataConfig(str(data))
        read = reading.data()
    size = scales_of(design, read.kind)[scale]
    if read.kind == Image.kind and design.training == design.architecture.training:
        design = replace(design, training=replace(design.training, stop_at=LEARNT))
    reading = replace(reading, limit=limit or reading.limit or size.limit)
    keep = usual_keep(read) if keep is None else keep
    if not 0 <= keep <= 1:
        raise PluginError(f"expected --keep between 0 and 1, got {keep:g}")
    kinds = KINDS_OF[read.kind]
    able = [name for name in size.cues if cues or kinds[name].tells(len(read.labels))]
    chosen = cues_of(cues or able, strengths or size.strengths, read, keep)
    named = split_specs(methods)
    made = [
        known_explainers.make(spec).for_kind(read.kind)
        for spec in dict.fromkeys(named or size.methods)
    ]
    # what this kind of model supports is found out before it is trained
    blank = design.architecture.start(read.select(range(min(len(read), 50))), seed=0)
    kept, skipped = usable_explainers(made, {"": blank}, {"": read}, kind=read.kind, drop=not named)
    name = design.architecture.plugin_name()
    default = Path("runs") / slug(f"dryrun-{name}-{read.name}-{scale}")
    return DryRunPlan(
        folder=Path(out) if out else default,
        design=design,
        data=read,
        reading=reading,
        cues=tuple(chosen),
        seeds=seeds or size.seeds,
        keep=keep,
        methods=tuple(e.spec for e in kept),
        skipped=tuple((s.explainer, s.why) for s in skipped),
        sentences=sentences or size.sentences,
        scale=scale,
        clean=clean,
    )
