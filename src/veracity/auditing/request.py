"""What an audit is asked for, made ready: everything known before the first question."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.changes import DECOY, PLANTED
from ..core.classifiers import Classifier, Traits, abilities, ability_name
from ..core.errors import DataError
from ..core.examples import UNLABELLED, Dataset
from ..core.explainers import Explainer
from ..core.foreign import is_own_file
from ..core.inputs import Input
from ..core.metrics import Metric
from ..core.plugins import Plugin, description, settings
from ..data.loading import Source, load_data
from ..engine.inference import probabilities
from ..results.config import (
    BudgetPlan,
    DatasetInfo,
    ExplainerInfo,
    MetricInfo,
    ModelInfo,
    RelianceInfo,
    RunConfig,
    SkippedMethod,
    TrainingSetInfo,
)
from ..results.guarantees import Reliance
from ..results.guarantees import reliance as reliance_on
from .explaining import Target, wanted_target, words_unread
from .labels import fit_labels
from .planning import AuditPlan, plan_questions, plan_within_budget
from .selection import (
    Methods,
    Metrics,
    adjustable_explainers,
    named_models,
    optional_metrics,
    select_explainers,
    select_metrics,
    select_searches,
    sets_to_learn,
    usable_explainers,
)
from .sizes import fit_sizes

KNOWN_ANSWERS = 16
"""So many answers are kept to notice that a model has changed under its name."""

MOST_BATCHES = 100
"""A method's explanations are written in at most so many batches."""

BUDGET_BATCHES = 25
"""Where a budget may end before the texts do, they are done in about so many batches, each through
all methods: those that are finished are the result."""


def prepare(
    model: Any,
    data: Source,
    methods: Methods,
    metrics: Metrics,
    *,
    train: Source | None,
    seed: int,
    profile: str,
    questions: int | None,
    extras: bool,
) -> PreparedAudit:
    """Loads, chooses and plans; asks nothing."""
    models = named_models(model)
    texts = fit_sizes(fit_labels(load_data(data), models), models)
    chosen = select_explainers(methods, kind=texts.kind, profile=profile, questions=questions)
    training = {
        name: fit_sizes(d, {name: models[name]}) if isinstance(d, Dataset) else d
        for name, d in sets_to_learn(chosen, models, train, seed=seed).items()
    }
    explainers, skipped = usable_explainers(
        chosen, models, training, kind=texts.kind, drop=methods == "all"
    )
    tests = select_metrics(metrics, texts, profile=profile)
    searches = select_searches(explainers, tests, models) if extras else []
    costly = [n for n, m in models.items() if Traits(m).costly]
    left_out = {(s.model, s.explainer) for s in skipped}
    asking = [
        e for e in explainers if any((n, e.spec) not in left_out for n in costly or list(models))
    ]
    budgets = [Traits(m).budget for m in models.values()]
    limits = [budget for budget in budgets if budget is not None]
    if limits:
        plan = plan_within_budget(
            min(limits),
            texts,
            asking,
            tests,
            adjustable=adjustable_explainers(
                methods, kind=texts.kind, profile=profile, questions=questions
            ),
            optional=optional_metrics(metrics, texts, profile=profile),
            second_draw=extras,
            seed=seed,
        )
    else:
        plan = plan_questions(
            texts, asking, tests, ceilings=searches, second_draw=extras, seed=seed
        )
    new = {old.spec: e for old, e in zip(asking, plan.explainers, strict=True)}
    return PreparedAudit(
        models=models,
        explainers=[new.get(e.spec, e) for e in explainers],
        skipped=tuple(
            dataclasses.replace(s, explainer=new[s.explainer].spec) if s.explainer in new else s
            for s in skipped
        ),
        training={n: d for n, d in training.items() if isinstance(d, Dataset)},
        searches=searches,
        plan=plan,
        whole=texts.fingerprint() if plan.budget is not None else "",
    )


@dataclass(frozen=True, kw_only=True)
class PreparedAudit:
    """All that an audit needs to know before it asks."""

    models: dict[str, Classifier]
    explainers: list[Explainer]
    skipped: tuple[SkippedMethod, ...]
    training: dict[str, Dataset]
    searches: list[Explainer]
    plan: AuditPlan
    whole: str
    """The fingerprint of all texts that were given, where a budget chooses of them."""

    @property
    def data(self) -> Dataset:
        return self.plan.data

    @property
    def metrics(self) -> list[Metric]:
        return list(self.plan.metrics)

    def target(self, target: Target) -> Target:
        """What is explained, once names are numbers."""
        wanted = wanted_target(target, [label for label in self.data.labels if label != UNLABELLED])
        if wanted == "gold" and not self.data.labelled:
            raise DataError(
                f"{self.data.name} has no labels to explain. Leave --target out: then what the "
                "model answers is explained"
            )
        return wanted

    @property
    def batch_size(self) -> int:
        """So many texts go through all methods together, where nobody says."""
        if self.plan.budget is not None:
            return max(2, -(-len(self.data) // BUDGET_BATCHES))
        return max(50, -(-len(self.data) // MOST_BATCHES))

    def config(
        self,
        *,
        seed: int,
        batch_size: int,
        target: Target,
        reliance: Mapping[str, Reliance],
        sources: Mapping[str, str],
        command: str,
    ) -> RunConfig:
        """The record that identifies the run."""
        data = self.data
        planned = {k: v for k, v in self.plan.to_dict().items() if k != "items"}
        return RunConfig(
            dataset=DatasetInfo(
                name=data.name,
                fingerprint=data.fingerprint(),
                size=len(data),
                labels=data.labels,
                truth_kinds=tuple(data.truth_kinds),
                kind=data.kind,
            ),
            models={name: _model_info(m, data) for name, m in self.models.items()},
            explainers={e.spec: _explainer_info(e) for e in self.explainers},
            metrics={m.spec: _metric_info(m, data.kind) for m in self.metrics},
            skipped=self.skipped,
            ceilings=tuple(e.spec for e in self.searches),
            sources=dict(sources),
            command=command,
            reliance={
                name: RelianceInfo(
                    forced=r.forced,
                    sentence=r.told_of(data.nouns),
                    **dataclasses.asdict(r),
                )
                for name, r in reliance.items()
            },
            train={
                name: TrainingSetInfo(d.name, len(d), d.fingerprint())
                for name, d in self.training.items()
            },
            seed=seed,
            batch_size=batch_size,
            target=target,
            plan=None if self.plan.budget is None else BudgetPlan(whole=self.whole, **planned),
        )


def known_answers(model: Classifier, texts: Sequence[Input]) -> list[list[float]]:
    """Answers to a few of the texts: what a model that changed under its name is noticed by."""
    few = texts[:: max(1, len(texts) // KNOWN_ANSWERS)][:KNOWN_ANSWERS]
    found: list[list[float]] = probabilities(model, few).round(6).tolist()
    return found


def reliance_of(model: Classifier, data: Dataset) -> Reliance | None:
    """Whether a model must have used what was planted in the data, if anything was; told by the
    texts that are not marked as training texts."""
    if not {PLANTED, DECOY} & set(data.truth_kinds):
        return None
    fresh = data.select(i for i, e in enumerate(data) if e.facts.get("split") != "train")
    tested = fresh if len(fresh) else data
    answers = probabilities(model, [e.input for e in tested]).argmax(axis=1)
    right = [bool(y == e.label) for y, e in zip(answers, tested, strict=True)]
    found = reliance_on(tested, right)
    return found and dataclasses.replace(found, learnt=not len(fresh))


def _model_info(model: Classifier, data: Dataset) -> ModelInfo:
    said = Traits(model)
    texts = [e.input for e in data]
    unread = [n for n in words_unread(model, texts) if n]
    return ModelInfo(
        identity=said.identity(),
        labels=tuple(model.labels),
        abilities=tuple(abilities(model)),
        about=said.about,
        answers=tuple(map(tuple, known_answers(model, texts))),
        unread={"texts": len(unread), "words": sum(unread)},
    )


def _explainer_info(explainer: Explainer) -> ExplainerInfo:
    return ExplainerInfo(
        settings=_plain_settings(explainer),
        baseline=explainer.baseline,
        ceiling=explainer.ceiling,
        signed=explainer.signed,
        about=description(type(explainer)),
        needs=ability_name(explainer.needs),
        code=_code(type(explainer)),
    )


def _metric_info(metric: Metric, kind: str) -> MetricInfo:
    return MetricInfo(
        settings=_plain_settings(metric),
        purpose=metric.purpose_of(kind),
        of_model=metric.of_model,
        quantities={n: q.of_kind(kind) for n, q in metric.effective_quantities.items()},
        quality=metric.quality,
        about=description(type(metric)),
        code=_code(type(metric)),
    )


def _plain_settings(plugin: Plugin) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in settings(plugin).items()}


def _code(cls: type) -> str | None:
    """A hash of the file that somebody's own plug-in stands in: edited, it is another method. Those
    of this package go by its version."""
    try:
        if is_own_file(inspect.getsourcefile(cls) or ""):
            return None
        return hashlib.sha256(inspect.getsource(inspect.getmodule(cls) or cls).encode()).hexdigest()
    except (OSError, TypeError):  # typed into a session: there is no file
        return ""
