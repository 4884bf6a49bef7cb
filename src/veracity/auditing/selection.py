"""Which models, methods and tests an audit runs, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.classifiers import Classifier, Traits
from ..core.errors import DataError, PluginError
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.metrics import HidingMetric, Metric
from ..core.plugins import nearest, parse_spec, split_specs
from ..data.loading import Source
from ..explainers import explainers as known_explainers
from ..explainers.search import Search
from ..metrics import metrics as known_metrics
from ..metrics.accuracy import Accuracy
from ..metrics.blank import Blank
from ..models.loading import load_model, model_name
from ..results.config import SkippedMethod
from .explaining import check_ability
from .training_sets import TrainingSet, check_training_set, training_sets

Methods = str | Sequence[str | Explainer]
Metrics = str | Sequence[str | Metric]


def named_models(model: Any) -> dict[str, Classifier]:
    """One model or several by name."""
    if isinstance(model, Mapping):
        return {str(name): load_model(m) for name, m in model.items()}
    if isinstance(model, str | Path):
        return {model_name(model): load_model(model)}
    loaded = load_model(model)
    return {Traits(model).name: loaded}


# ---- methods ----------------------------------------------------------------------------------


def select_explainers(
    methods: Methods, *, kind: str, profile: str, questions: int | None
) -> list[Explainer]:
    """The methods that are named, or all that are tested."""
    everything = methods == "all"
    named = known_explainers.names() if everything else each_spec(methods)
    made = [_explainer(spec, kind, profile, questions) for spec in named]
    chosen = list({e.spec: e for e in made if not (everything and e.ceiling)}.values())
    if not chosen:
        raise PluginError("expected at least one method, got none")
    for one in chosen:
        if one.ceiling:
            raise PluginError(
                f"{one.spec} is no method to be tested: it looks for what erasure rewards, and "
                "is run beside methods to show what is possible. Leave it out"
            )
    return chosen


def usable_explainers(
    chosen: Sequence[Explainer],
    models: Mapping[str, Classifier],
    training: Mapping[str, TrainingSet],
    *,
    kind: str,
    drop: bool,
) -> tuple[list[Explainer], list[SkippedMethod]]:
    """The methods that inputs of this kind and at least one model support, and for which models
    each is left out; one that none supports is an error unless it may be dropped."""
    kept: list[Explainer] = []
    skipped: list[SkippedMethod] = []
    for explainer in chosen:
        why = {n: _lacking(explainer, m, kind, training.get(n)) for n, m in models.items()}
        left_out = {n: reason for n, reason in why.items() if reason}
        if len(left_out) < len(models):
            kept.append(explainer)
        elif not drop:
            first = next(iter(models))
            check_ability(explainer, models[first], kind)
            check_training_set(explainer, training[first])
        skipped += [SkippedMethod(n, explainer.spec, reason) for n, reason in left_out.items()]
    return kept, skipped


def sets_to_learn(
    chosen: Sequence[Explainer],
    models: Mapping[str, Classifier],
    train: Source | None,
    *,
    seed: int,
) -> dict[str, TrainingSet]:
    """By model what methods that learn of it learn from."""
    learners = [e for e in chosen if must_learn(e, train)]
    able = {n: m for n, m in models.items() if any(isinstance(m, e.needs) for e in learners)}
    return training_sets(able, train, seed=seed)


def must_learn(explainer: Explainer, train: Source | None) -> bool:
    """What learnt before is taken as it is, unless there is something to learn anew."""
    return explainer.learns and (train is not None or not explainer.ready)


def adjustable_explainers(
    methods: Methods, *, kind: str, profile: str, questions: int | None
) -> frozenset[str]:
    """The methods whose number of questions nobody chose."""
    if questions is not None:
        return frozenset()
    named = known_explainers.names() if methods == "all" else each_spec(methods)
    given = {
        _explainer(spec, kind, profile, None).spec: _explainer(spec, kind, profile, 4)
        for spec in named
    }
    return frozenset(usual for usual, other in given.items() if other.spec != usual)


def explainers_to_redo(redo: str | Sequence[str], explainers: Sequence[Explainer]) -> set[str]:
    """The methods of this audit that go by these names, with settings or without."""
    known = {e.spec: e.plugin_name() for e in explainers}
    found = {
        name: {s for s, plain in known.items() if name in (s, plain)} for name in each_spec(redo)
    }
    for name, specs in found.items():
        if not specs:
            raise PluginError(f"no method {name!r} in this audit to redo: {nearest(name, known)}")
    return set().union(*found.values())


def select_searches(
    explainers: Sequence[Explainer], metrics: Sequence[Metric], models: Mapping[str, Classifier]
) -> list[Explainer]:
    """A search for each way of hiding by which methods are compared with chance."""
    all_costly = all(Traits(m).costly for m in models.values())
    if all_costly or not any(e.baseline for e in explainers):
        return []
    ways = dict.fromkeys(m.hiding for m in metrics if isinstance(m, HidingMetric) and m.is_searched)
    known = {e.spec for e in explainers}
    return [e for e in (Search(hiding=how) for how in ways) if e.spec not in known]


def _explainer(spec: str | Explainer, kind: str, profile: str, questions: int | None) -> Explainer:
    """A method as it suits inputs of this kind, at the number of questions that all get, unless it
    names one itself."""
    made = known_explainers.make(spec, profile).for_kind(kind)
    if (
        questions is None
        or not isinstance(spec, str)
        or {*made.question_settings} & {*parse_spec(spec)[1]}
    ):
        return made
    try:
        return made.with_questions(questions)
    except ValueError as error:
        raise PluginError(f"{questions} questions for {spec}: {error}") from None


def _lacking(
    explainer: Explainer, model: Classifier, kind: str, training: TrainingSet | None
) -> str:
    """Why a method cannot explain a model; nothing if it can."""
    if unfit := explainer.unfit(kind):
        return unfit
    missing = explainer.missing(model)
    if missing is not None:
        return f"needs a model with {missing}"
    if explainer.ready or isinstance(training, Dataset):
        return ""
    return f"learns from training data, but {training}"


# ---- tests ------------------------------------------------------------------------------------


def select_metrics(metrics: Metrics, data: Dataset, *, profile: str) -> list[Metric]:
    """The tests that are named, or all that the data's truths allow; and those of the model itself,
    without which no method is recommended."""
    everything = metrics == "all"
    named = known_metrics.names() if everything else each_spec(metrics)
    made = [known_metrics.make(spec, profile).for_kind(data.kind) for spec in named]
    if everything:
        made = [kind for m in made if m.usual for kind in m.variants(data.truth_kinds)]
    chosen = list({m.spec: m for m in made}.values())
    if everything and data.pairs:
        twins = {"kept" if o.label == t.label else "changed" for o, t in data.pairs}
        chosen = [m for m in chosen if isinstance(m.of_pairs, bool) or m.of_pairs in twins]
    kept = [m for m in chosen if not m.missing(data)]
    if len(kept) < len(chosen) and not everything:
        lacking = next(m for m in chosen if m not in kept)
        raise DataError(f"{lacking.missing(data)}, or leave this metric out")
    if not any(not m.of_model for m in kept):
        raise PluginError("expected at least one metric that tests explanations, got none")
    known = {m.spec for m in kept}
    checks = [Blank(), *([Accuracy()] if data.labelled else [])]
    return [*kept, *(m for m in checks if m.spec not in known)]


def optional_metrics(metrics: Metrics, data: Dataset, *, profile: str) -> frozenset[str]:
    """The second ways of hiding, where nobody chose one."""
    if metrics != "all":
        return frozenset()
    every = [known_metrics.make(n, profile).for_kind(data.kind) for n in known_metrics.names()]
    hiding = [m.variants(data.truth_kinds)[1:] for m in every if isinstance(m, HidingMetric)]
    return frozenset(m.spec for others in hiding for m in others)


def each_spec(specs: str | Sequence[Any]) -> list[Any]:
    if isinstance(specs, str):
        return split_specs(specs)
    return [s for spec in specs for s in (split_specs(spec) if isinstance(spec, str) else [spec])]
