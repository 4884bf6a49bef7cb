"""The main job: data, models, explainers and metrics become a run."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..core.changes import DECOY, PLANTED
from ..core.classifiers import Classifier, abilities, ability_name
from ..core.errors import DataError, PluginError
from ..core.examples import UNLABELLED, Dataset
from ..core.explainers import Explainer
from ..core.files import check_own, sole_writer
from ..core.inputs import Text
from ..core.metrics import HidingMetric, Metric, Row
from ..core.plugins import blamed_on, first_line, nearest, parse_spec, settings, split_specs
from ..core.progress import Watcher
from ..data.loading import Source, load_data
from ..engine.executors import Executor, Local
from ..engine.inference import probabilities
from ..explainers import explainers as known_explainers
from ..explainers.search import Search
from ..metrics import metrics as known_metrics
from ..metrics.accuracy import Accuracy
from ..metrics.blank import Blank
from ..models.loading import load_model, model_name
from ..results.conclusions import Conclusions, conclude
from ..results.guarantees import Reliance
from ..results.guarantees import reliance as reliance_on
from ..results.run import AUDIT, Run, is_complete, slug
from ..results.standings import Standing
from ..results.verdicts import Verdict
from .explaining import Target, check_ability, wanted_target, words_unread
from .jobs import PART, AuditWork, batches_of, part_of, run_jobs
from .labels import fit_labels
from .planning import AuditPlan, plan_questions, plan_within_budget
from .training_sets import TrainingSet, check_training_set, training_sets
from .training_sets import fitted as fitted_on

KNOWN_ANSWERS = 16
"""So many answers are kept to notice that a model has changed under its name."""

MOST_PARTS = 100
"""A method's explanations are written in at most so many parts."""

BUDGET_PARTS = 25
"""Where a budget may end before the texts do, they are done in about so many parts, each through
all methods: those that are finished are the result."""


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
        return conclude(self.run)

    @property
    def standings(self) -> list[Standing]:
        return list(self.conclusions.standings)

    @property
    def verdicts(self) -> list[Verdict]:
        return [v for c in self.conclusions.models for v in c.verdicts]

    def __str__(self) -> str:
        said = [f"{name}: {r['sentence']}" for name, r in self.reliance.items()]
        for one in self.conclusions.models:
            said.append(f"{one.model}: {one.health.summary}")
            said += [f"{one.model}: {v.sentence}" for v in one.verdicts]
            told = one.recommendation
            said += [f"{one.model}: {x}" for x in (told.sentence, told.effect, *told.reasons) if x]
            said += [f"{one.model}: but {caution}" for caution in told.cautions]
        return "\n".join(said)

    @property
    def reliance(self) -> Mapping[str, Mapping[str, Any]]:
        """Where something was planted: whether each model must have used it, and why."""
        found: Mapping[str, Mapping[str, Any]] = self.run.asked.get("reliance", {})
        return found

    def _repr_html_(self) -> str:
        said = "".join(
            f"<li><b>{escape(c.model)}</b>: {escape(sentence)}</li>"
            for c in self.conclusions.models
            for sentence in (c.health.summary, c.recommendation.sentence, c.recommendation.effect)
            if sentence
        )
        rows = "".join(
            f"<tr><td>{escape(s.model)}</td><td>{escape(s.metric)}: {escape(s.name)}</td>"
            f"<td>{escape(e.method)}</td><td>{e.mean:.3f}</td>"
            f"<td>{e.low:.3f} to {e.high:.3f}</td><td>{escape(e.group)}</td></tr>"
            for s in self.standings
            if s.headline
            for e in s.entries
        )
        head = "".join(
            f"<th>{h}</th>" for h in ("model", "quantity", "method", "mean", "95 %", "group")
        )
        return f"<ul>{said}</ul><table><tr>{head}</tr>{rows}</table>"


def audit(
    model: Any,
    data: Source,
    methods: str | Sequence[str | Explainer] = "all",
    metrics: str | Sequence[str | Metric] = "all",
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
    ready = _prepared(
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
    models, fitted = ready.models, ready.plan.data
    chosen_explainers, skipped, lessons = ready.explainers, ready.skipped, ready.lessons
    chosen_metrics, ceilings = list(ready.plan.metrics), ready.ceilings
    target = wanted_target(target, [label for label in fitted.labels if label != UNLABELLED])
    tell_plan(ready.plan)
    if target == "gold" and not fitted.labelled:
        raise DataError(
            f"{fitted.name} has no labels to explain. Leave --target out: then what the model "
            "answers is explained"
        )
    trusted = {
        name: (reliance or {}).get(name) or reliance_of(m, fitted) for name, m in models.items()
    }
    least = max(50, -(-len(fitted) // MOST_PARTS))
    if ready.plan.budget is not None:
        least = max(2, -(-len(fitted) // BUDGET_PARTS))
    size = batch_size or least
    asked = {
        "dataset": {
            "name": fitted.name,
            "fingerprint": fitted.fingerprint(),
            "size": len(fitted),
            "labels": list(fitted.labels),
            "truth_kinds": list(fitted.truth_kinds),
        },
        "models": {name: _described(m, fitted) for name, m in models.items()},
        "explainers": {
            e.spec: {
                "settings": _plain(settings(e)),
                "baseline": e.baseline,
                "ceiling": e.ceiling,
                "about": first_line(type(e)),
                "needs": ability_name(e.needs),
                "code": _code(type(e)),
            }
            for e in chosen_explainers
        },
        "metrics": {
            m.spec: {
                "settings": _plain(settings(m)),
                "purpose": m.purpose,
                "quality": m.quality,
                "about": first_line(type(m)),
                "of_model": m.of_model,
                "code": _code(type(m)),
                "quantities": {k: dataclasses.asdict(q) for k, q in m.judged.items()},
            }
            for m in chosen_metrics
        },
        "skipped": skipped,
        "ceilings": [e.spec for e in ceilings],
        "sources": dict(sources or {}),
        "command": command,
        "reliance": {
            name: {"forced": r.forced, "sentence": r.sentence, **dataclasses.asdict(r)}
            for name, r in trusted.items()
            if r is not None
        },
        "train": {
            name: {"name": d.name, "size": len(d), "fingerprint": d.fingerprint()}
            for name, d in lessons.items()
        },
        "seed": seed,
        "batch_size": size,
        "target": target,
        "plan": ready.chosen,
    }
    place = folder or default_folder(fitted, models)
    with sole_writer(place, AUDIT):
        run = Run.start(place, asked, fitted, redo=_to_be_redone(redo, chosen_explainers))
        batches = batches_of(fitted, size)
        learnt = {
            (name, e.spec): fitted_on(e, models[name], lesson)
            for name, lesson in lessons.items()
            for e in chosen_explainers
            if _to_be_taught(e, train) and isinstance(models[name], e.needs)
            # what is written already need not be learnt again
            if e.draws
            or not all(
                is_complete(
                    run.attribution_part(name, e.spec, b), [fitted.examples[i].id for i in at]
                )
                for b, at in enumerate(batches)
            )
        }
        work = AuditWork(
            run,
            models,
            fitted,
            chosen_explainers,
            chosen_metrics,
            batches,
            target,
            seed,
            learnt,
            unforced=frozenset(n for n, r in trusted.items() if r is not None and not r.forced),
            second_draw=ready.plan.second_draw,
            ceilings=ceilings,
            part=part_of(fitted, PART, seed=seed),
        )
        done = run_jobs(work, executor or Local(workers), skipped, watch)
        run = run.marked(done.partial)
        run.write_summaries(_summaries(run, chosen_metrics))
    return Audit(run, done.computed, done.reused)


def plan(
    model: Any,
    data: Source,
    methods: str | Sequence[str | Explainer] = "all",
    metrics: str | Sequence[str | Metric] = "all",
    *,
    train: Source | None = None,
    seed: int = 0,
    profile: str = "recommended",
    questions: int | None = None,
    extras: bool = True,
) -> AuditPlan:
    """What `audit` would ask of a model, without asking; with a budget, what it would choose."""
    return _prepared(
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


@dataclass(frozen=True)
class _Prepared:
    """All that an audit needs to know before it asks."""

    models: dict[str, Classifier]
    explainers: list[Explainer]
    skipped: list[dict[str, str]]
    lessons: dict[str, Dataset]
    ceilings: list[Explainer]
    plan: AuditPlan
    whole: str
    """The fingerprint of all texts that were given."""

    @property
    def chosen(self) -> dict[str, Any] | None:
        """What a budget made of the audit, for the record."""
        if self.plan.budget is None:
            return None
        told = self.plan.to_dict()
        del told["items"]
        return {**told, "whole": self.whole}


def _prepared(
    model: Any,
    data: Source,
    methods: str | Sequence[str | Explainer],
    metrics: str | Sequence[str | Metric],
    *,
    train: Source | None,
    seed: int,
    profile: str,
    questions: int | None,
    extras: bool,
) -> _Prepared:
    models = _models(model)
    fitted = fit_labels(load_data(data), models)
    explainers, skipped, lessons = _explainers(
        methods, models, fitted.kind, train, seed, profile, questions
    )
    tests = _with_checks(_metrics(metrics, fitted, profile), fitted)
    ceilings = _ceilings(explainers, tests, models) if extras else []
    dear = [n for n, m in models.items() if getattr(m, "costly", False)]
    left_out = {(s["model"], s["explainer"]) for s in skipped}
    asking = [
        e for e in explainers if any((n, e.spec) not in left_out for n in dear or list(models))
    ]
    budgets = [getattr(m, "budget", None) for m in models.values()]
    limits = [budget for budget in budgets if budget is not None]
    if not limits:
        found = plan_questions(
            fitted, asking, tests, ceilings=ceilings, second_draw=extras, seed=seed
        )
        return _Prepared(models, explainers, skipped, lessons, ceilings, found, "")
    found = plan_within_budget(
        min(limits),
        fitted,
        asking,
        tests,
        free=_free(methods, profile, questions),
        spare=_spare(metrics, fitted, profile),
        second_draw=extras,
        seed=seed,
    )
    new = {old.spec: e for old, e in zip(asking, found.explainers, strict=True)}
    for one in skipped:
        one["explainer"] = (
            new[one["explainer"]].spec if one["explainer"] in new else one["explainer"]
        )
    kept = [new.get(e.spec, e) for e in explainers]
    return _Prepared(models, kept, skipped, lessons, ceilings, found, fitted.fingerprint())


def _free(
    methods: str | Sequence[str | Explainer], profile: str, questions: int | None
) -> frozenset[str]:
    """The methods whose number of questions nobody chose."""
    if questions is not None:
        return frozenset()
    asked = known_explainers.names() if methods == "all" else _each(methods)
    given = {_explainer(spec, profile, None).spec: _explainer(spec, profile, 4) for spec in asked}
    return frozenset(usual for usual, other in given.items() if other.spec != usual)


def _spare(metrics: str | Sequence[str | Metric], data: Dataset, profile: str) -> frozenset[str]:
    """The second ways of hiding, where nobody chose one."""
    if metrics != "all":
        return frozenset()
    every = [known_metrics.make(name, profile) for name in known_metrics.names()]
    hiding = [m.variants(data.truth_kinds)[1:] for m in every if isinstance(m, HidingMetric)]
    return frozenset(m.spec for others in hiding for m in others)


def default_folder(data: Dataset, models: Iterable[str]) -> Path:
    """Where a run goes when nobody says: a name that tells what it is."""
    return Path("runs") / slug(f"{data.name}-{'-'.join(models)}")


def _models(model: Any) -> dict[str, Classifier]:
    if isinstance(model, Mapping):
        return {str(name): load_model(m) for name, m in model.items()}
    if isinstance(model, str | Path):
        return {model_name(model): load_model(model)}
    loaded = load_model(model)
    return {getattr(model, "name", None) or type(model).__name__: loaded}


def known_answers(model: Classifier, texts: Sequence[Text]) -> list[list[float]]:
    """Answers to a few of the texts: what a model that changed under its name is noticed by."""
    few = texts[:: max(1, len(texts) // KNOWN_ANSWERS)][:KNOWN_ANSWERS]
    found: list[list[float]] = probabilities(model, few).round(6).tolist()
    return found


def _described(model: Classifier, data: Dataset) -> dict[str, Any]:
    """What a resumed run must find again, down to the answers to a few of the texts."""
    identity = getattr(model, "identity", None)
    unread = [n for n in words_unread(model, [e.input for e in data]) if n]
    return {
        "unread": {"texts": len(unread), "words": sum(unread)},
        "answers": known_answers(model, [e.input for e in data]),
        "identity": identity() if identity else f"{type(model).__module__}.{type(model).__name__}",
        "labels": list(model.labels),
        "abilities": list(abilities(model)),
        "about": str(getattr(model, "about", type(model).__name__)),
    }


def reliance_of(model: Classifier, data: Dataset) -> Reliance | None:
    """Whether a model must have used what was planted in the data, if anything was; told by the
    texts that are not marked as training texts."""
    if not {PLANTED, DECOY} & set(data.truth_kinds):
        return None
    fresh = data.select(i for i, e in enumerate(data) if e.facts.get("split") != "train")
    told = fresh if len(fresh) else data
    answers = probabilities(model, [e.input for e in told]).argmax(axis=1)
    found = reliance_on(told, [bool(y == e.label) for y, e in zip(answers, told, strict=True)])
    return found and dataclasses.replace(found, learnt=not len(fresh))


def _code(cls: type) -> str:
    """A hash of the file that a plug-in stands in: edited, it is another method."""
    try:
        return hashlib.sha256(inspect.getsource(inspect.getmodule(cls) or cls).encode()).hexdigest()
    except (OSError, TypeError):  # typed into a session: there is no file
        return ""


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _explainers(
    methods: str | Sequence[str | Explainer],
    models: Mapping[str, Classifier],
    kind: str,
    train: Source | None,
    seed: int,
    profile: str,
    questions: int | None,
) -> tuple[list[Explainer], list[dict[str, str]], dict[str, Dataset]]:
    """The methods that at least one model supports, for which models each is left out, and what
    there is to learn of the others."""
    everything = methods == "all"
    asked = known_explainers.names() if everything else _each(methods)
    made = [_explainer(spec, profile, questions) for spec in asked]
    chosen = list({e.spec: e for e in made if not (everything and e.ceiling)}.values())
    if not chosen:
        raise PluginError("expected at least one method, got none")
    for named in chosen:
        if named.ceiling:
            raise PluginError(
                f"{named.spec} is no method to be tested: it looks for what erasure rewards, and "
                "is run beside methods to show what is possible. Leave it out"
            )
    learners = [e for e in chosen if _to_be_taught(e, train)]
    able = {n: m for n, m in models.items() if any(isinstance(m, e.needs) for e in learners)}
    lessons = training_sets(able, train, seed=seed)
    kept, skipped = [], []
    for explainer in chosen:
        why = {n: _lacking(explainer, m, kind, lessons.get(n)) for n, m in models.items()}
        left_out = {n: reason for n, reason in why.items() if reason}
        if len(left_out) < len(models):
            kept.append(explainer)
        elif not everything:
            first = next(iter(models))
            check_ability(explainer, models[first], kind)
            check_training_set(explainer, lessons[first])
        skipped += [
            {"model": n, "explainer": explainer.spec, "why": reason}
            for n, reason in left_out.items()
        ]
    return kept, skipped, {n: d for n, d in lessons.items() if isinstance(d, Dataset)}


def _explainer(spec: str | Explainer, profile: str, questions: int | None) -> Explainer:
    """A method at the number of questions that all get, unless it names one itself."""
    made = known_explainers.make(spec, profile)
    if questions is None or not isinstance(spec, str) or {*made.asks_by} & {*parse_spec(spec)[1]}:
        return made
    try:
        return made.with_questions(questions)
    except ValueError as error:
        raise PluginError(f"{questions} questions for {spec}: {error}") from None


def _to_be_redone(redo: str | Sequence[str], explainers: Sequence[Explainer]) -> set[str]:
    """The methods of this audit that go by these names, with settings or without."""
    known = {e.spec: e.plugin_name() for e in explainers}
    found = {name: {s for s, plain in known.items() if name in (s, plain)} for name in _each(redo)}
    for name, specs in found.items():
        if not specs:
            raise PluginError(f"no method {name!r} in this audit to redo: {nearest(name, known)}")
    return set().union(*found.values())


def _to_be_taught(explainer: Explainer, train: Source | None) -> bool:
    """What learnt before is taken as it is, unless there is something to learn anew."""
    return explainer.learns and (train is not None or not explainer.ready)


def _lacking(explainer: Explainer, model: Classifier, kind: str, lesson: TrainingSet | None) -> str:
    """Why a method cannot explain a model; nothing if it can."""
    if unfit := explainer.unfit(kind):
        return unfit
    missing = explainer.missing(model)
    if missing is not None:
        return f"needs a model with {missing}"
    if explainer.ready or isinstance(lesson, Dataset):
        return ""
    return f"learns from training data, but {lesson}"


def _metrics(metrics: str | Sequence[str | Metric], data: Dataset, profile: str) -> list[Metric]:
    """The metrics asked for, or all that the data's truths allow."""
    everything = metrics == "all"
    asked = known_metrics.names() if everything else _each(metrics)
    made = [known_metrics.make(spec, profile) for spec in asked]
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
    return kept


def _with_checks(chosen: list[Metric], data: Dataset) -> list[Metric]:
    """With the tests of the model itself, without which no method is recommended."""
    checks = [Blank(), *([Accuracy()] if data.labelled else [])]
    known = {m.spec for m in chosen}
    return [*chosen, *(m for m in checks if m.spec not in known)]


def _ceilings(
    explainers: Sequence[Explainer], metrics: Sequence[Metric], models: Mapping[str, Classifier]
) -> list[Explainer]:
    """A search for each way of hiding by which methods are compared with chance."""
    if not any(e.baseline for e in explainers) or all(
        getattr(m, "costly", False) for m in models.values()
    ):
        return []
    ways = dict.fromkeys(
        m.hiding
        for m in metrics
        if isinstance(m, HidingMetric) and any(q.searched for q in m.judged.values())
    )
    known = {e.spec for e in explainers}
    return [e for e in (Search(hiding=how) for how in ways) if e.spec not in known]


def _each(specs: str | Sequence[Any]) -> list[Any]:
    if isinstance(specs, str):
        return split_specs(specs)
    return [s for spec in specs for s in (split_specs(spec) if isinstance(spec, str) else [spec])]


def _summaries(run: Run, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Each metric's own summary of each model and method."""
    rows: dict[tuple[str, str, str], dict[str, dict[str, float]]] = {}
    table = run.scores().select(["model", "explainer", "metric", "example", "name", "value"])
    for column in table.to_batches():
        lists = [column.column(i).to_pylist() for i in range(6)]
        for model, explainer, metric, example, name, number in zip(*lists, strict=True):
            rows.setdefault((model, explainer, metric), {}).setdefault(example, {})[name] = number
    by_spec = {m.spec: m for m in metrics}
    found: dict[str, Any] = {}
    for (model, explainer, metric), examples in rows.items():
        with blamed_on(by_spec[metric]):
            summary: Row = by_spec[metric].summary(list(examples.values()))
        place = found.setdefault(model, {}).setdefault(explainer, {})
        place[metric] = {k: None if np.isnan(v) else float(v) for k, v in summary.items()}
    return found
