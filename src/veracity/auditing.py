"""The main job: data, models, explainers and metrics become a run."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import operator
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .core.attributions import Attribution
from .core.classifiers import Classifier, abilities, ability_name
from .core.errors import DataError, ModelError, PluginError
from .core.examples import Dataset, Example
from .core.explainers import Explainer
from .core.files import sole_writer
from .core.inputs import FloatArray, Text
from .core.metrics import Case, Metric, Row
from .core.plugins import first_line, nearest, settings, split_specs
from .data import load_data, read_text
from .engine.asking import probabilities
from .engine.executors import Executor, Local
from .engine.seeds import generator
from .engine.tally import counting
from .explainers import explainers as known_explainers
from .metrics import metrics as known_metrics
from .models import load_model, model_name
from .results.run import Run, is_whole, read_table, slug
from .results.standings import Standing, standings
from .results.verdicts import Verdict, verdicts

Target = str | int
"""`predicted`, `gold`, or the number of a label (SPEC 0.3)."""

KNOWN_ANSWERS = 16
"""So many answers are kept to notice that a model has changed under its name."""

MOST_PARTS = 100
"""A method's explanations are written in at most so many parts."""


# ---- explaining -----------------------------------------------------------------------------


def explain(
    model: Any,
    texts: str | Text | Sequence[str | Text],
    method: str | Explainer = "lime",
    *,
    target: Target = "predicted",
    seed: int = 0,
    language: str = "auto",
) -> list[Attribution]:
    """One method's explanations of texts; the same text always gets the same explanation."""
    loaded = load_model(model)
    explainer = known_explainers.make(method)
    check_ability(explainer, loaded)
    given = [texts] if isinstance(texts, str | Text) else list(texts)
    inputs = [t if isinstance(t, Text) else read_text(t, language) for t in given]
    if not inputs:
        return []
    if target == "gold":
        raise DataError("target=gold needs labelled data: use `veracity audit` or a label's number")
    answers = probabilities(loaded, inputs)
    targets = _targets(target, answers, [0] * len(inputs), len(loaded.labels))
    return attributions(explainer, loaded, inputs, targets, [t.text for t in inputs], seed)


def attributions(
    explainer: Explainer,
    model: Classifier,
    inputs: Sequence[Text],
    targets: Sequence[int],
    names: Sequence[str],
    seed: int,
) -> list[Attribution]:
    """A batch of checked explanations, each drawn from a generator of its own name."""
    spec = explainer.spec
    some = [i for i, text in enumerate(inputs) if text.n_features]
    found = explainer.explain(
        model,
        [inputs[i] for i in some],
        [targets[i] for i in some],
        [generator(seed, spec, names[i]) for i in some],
    )
    by_place = dict(zip(some, found, strict=True))
    result = []
    for i, (text, target) in enumerate(zip(inputs, targets, strict=True)):
        one = by_place.get(i) or Attribution(text, target, np.zeros(0))
        if not np.isfinite(one.scores).all():
            raise ModelError(f"{spec} gave a score that is not a number for {text.text[:80]!r}")
        result.append(dataclasses.replace(one, method=spec))
    return result


def check_ability(explainer: Explainer, model: Classifier) -> None:
    """A method the model can support, or a sentence that says which ones it can."""
    if isinstance(model, explainer.needs):
        return
    able = [n for n in known_explainers.names() if isinstance(model, known_explainers.get(n).needs)]
    raise ModelError(
        f"{explainer.spec} needs a model with {ability_name(explainer.needs)}; this one has only "
        f"{', '.join(abilities(model))}. These would work: {', '.join(able)}"
    )


def _targets(target: Target, answers: FloatArray, gold: Sequence[int], n_labels: int) -> list[int]:
    if target == "predicted":
        return [int(i) for i in answers.argmax(axis=1)]
    if target == "gold":
        return list(gold)
    if not isinstance(target, str) and 0 <= operator.index(target) < n_labels:
        return [operator.index(target)] * len(answers)
    raise DataError(
        f"expected the target to be predicted, gold or a label number below {n_labels}, "
        f"got {target!r}"
    )


# ---- auditing -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Progress:
    """How far an audit has come."""

    done: int
    total: int
    doing: str


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
    def standings(self) -> list[Standing]:
        return standings(self.run)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return verdicts(self.standings)

    def __str__(self) -> str:
        return "\n".join(f"{v.model}: {v.sentence}" for v in self.verdicts)

    def _repr_html_(self) -> str:
        said = "".join(
            f"<li><b>{escape(v.model)}</b>: {escape(v.sentence)}</li>" for v in self.verdicts
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
    data: str | Path | Dataset,
    methods: str | Sequence[str | Explainer] = "all",
    metrics: str | Sequence[str | Metric] = "all",
    *,
    out: str | Path | None = None,
    target: Target = "predicted",
    seed: int = 0,
    batch_size: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Audit:
    """Runs methods on a model (or several by name) and tests them; given again, it resumes."""
    folder = Path(out) if out else None
    models = _models(model)
    fitted = fit_labels(load_data(data), models)
    chosen_explainers, skipped = _explainers(methods, models)
    chosen_metrics = _metrics(metrics, fitted)
    size = batch_size or max(50, -(-len(fitted) // MOST_PARTS))
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
                "about": first_line(type(m)),
                "of_model": m.of_model,
                "code": _code(type(m)),
                "quantities": {k: dataclasses.asdict(q) for k, q in m.quantities.items()},
            }
            for m in chosen_metrics
        },
        "skipped": skipped,
        "seed": seed,
        "batch_size": size,
        "target": target,
    }
    place = folder or default_folder(fitted, models)
    Run.check_place(place)
    with sole_writer(place):
        run = Run.start(place, asked, fitted)
        work = _Work(
            run,
            models,
            fitted,
            chosen_explainers,
            chosen_metrics,
            _batches(fitted, size),
            target,
            seed,
        )
        computed, reused = _carry_out(work, executor or Local(workers), skipped, watch)
        run.write_summaries(_summaries(run, chosen_metrics))
    return Audit(run, computed, reused)


def default_folder(data: Dataset, models: Iterable[str]) -> Path:
    """Where a run goes when nobody says: a name that tells what it is."""
    return Path("runs") / slug(f"{data.name}-{'-'.join(models)}")


def fit_labels(data: Dataset, models: Mapping[str, Classifier]) -> Dataset:
    """The data with its labels in the models' order and under the more telling names."""
    if not len(data):
        raise DataError(f"expected at least one example in {data.name}, got none")
    orders = {tuple(x.casefold() for x in m.labels): name for name, m in models.items()}
    if len({frozenset(order) for order in orders}) < len(orders):
        raise ModelError(
            f"the models {' and '.join(orders.values())} give the same labels in different "
            "orders, so one column would mean two things. Audit them in separate runs"
        )
    for name, model in models.items():
        data = _fit_labels(data, name, model.labels)
    return data


def _fit_labels(data: Dataset, name: str, labels: Sequence[str]) -> Dataset:
    if data.labels == tuple(labels):
        return data
    folded = {label.casefold(): i for i, label in enumerate(labels)}
    used = {e.label for e in data}
    numbers = [_number(label) for label in data.labels]
    if all(data.labels[i].casefold() in folded for i in used):
        places = {i: folded[data.labels[i].casefold()] for i in used}
        names = tuple(labels)
    elif all(numbers[i] is not None and numbers[i] < len(labels) for i in used):  # type: ignore[operator]
        places = {i: numbers[i] or 0 for i in used}
        names = tuple(labels)
    elif len(labels) == len(data.labels) and all(_number(x) is not None for x in labels):
        warnings.warn(
            f"the model {name} does not name its labels: its outputs are taken to be "
            f"{', '.join(data.labels)}, in this order. If that is wrong, say --labels",
            stacklevel=4,
        )
        return data
    else:
        raise DataError(
            f"expected the labels of {data.name} to be among those of the model {name} "
            f"({', '.join(labels)}); saw {', '.join(data.labels)}. Rename them in the data, or "
            "give the model's with --labels in the order of its output"
        )
    examples = tuple(dataclasses.replace(e, label=places[e.label]) for e in data)
    return dataclasses.replace(data, labels=names, examples=examples)


def _number(label: str) -> int | None:
    """The index that a nameless label such as `1`, `1.0` or `LABEL_1` stands for."""
    digits = label.upper().removeprefix("LABEL_").removesuffix(".0")
    return int(digits) if digits.isdecimal() else None


def _models(model: Any) -> dict[str, Classifier]:
    if isinstance(model, Mapping):
        return {str(name): load_model(m) for name, m in model.items()}
    if isinstance(model, str | Path):
        return {model_name(model): load_model(model)}
    loaded = load_model(model)
    return {getattr(model, "name", None) or type(model).__name__: loaded}


def _described(model: Classifier, data: Dataset) -> dict[str, Any]:
    """What a resumed run must find again, down to the answers to a few of the texts."""
    identity = getattr(model, "identity", None)
    few = [e.input for e in data.examples[:: max(1, len(data) // KNOWN_ANSWERS)]][:KNOWN_ANSWERS]
    return {
        "answers": probabilities(model, few).round(6).tolist(),
        "identity": identity() if identity else f"{type(model).__module__}.{type(model).__name__}",
        "labels": list(model.labels),
        "abilities": list(abilities(model)),
        "about": str(getattr(model, "about", type(model).__name__)),
    }


def _code(cls: type) -> str:
    """A hash of the file that a plug-in stands in: edited, it is another method."""
    try:
        return hashlib.sha256(inspect.getsource(inspect.getmodule(cls) or cls).encode()).hexdigest()
    except (OSError, TypeError):  # typed into a session: there is no file
        return ""


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _explainers(
    methods: str | Sequence[str | Explainer], models: Mapping[str, Classifier]
) -> tuple[list[Explainer], list[dict[str, str]]]:
    """The methods that at least one model supports, and for which models each is left out."""
    everything = methods == "all"
    asked = known_explainers.names() if everything else _each(methods)
    chosen = list({e.spec: e for e in map(known_explainers.make, asked)}.values())
    if not chosen:
        raise PluginError("expected at least one method, got none")
    kept, skipped = [], []
    for explainer in chosen:
        lacking = [n for n, m in models.items() if not isinstance(m, explainer.needs)]
        if len(lacking) < len(models):
            kept.append(explainer)
        elif not everything:
            check_ability(explainer, next(iter(models.values())))
        why = f"needs a model with {ability_name(explainer.needs)}"
        skipped += [{"model": n, "explainer": explainer.spec, "why": why} for n in lacking]
    return kept, skipped


def _metrics(metrics: str | Sequence[str | Metric], data: Dataset) -> list[Metric]:
    """The metrics asked for, or all that the data's truths allow."""
    everything = metrics == "all"
    asked = known_metrics.names() if everything else _each(metrics)
    chosen = list({m.spec: m for m in map(known_metrics.make, asked)}.values())
    kept = [m for m in chosen if m.truth_kind in (None, *data.truth_kinds)]
    if len(kept) < len(chosen) and not everything:
        missing = next(m for m in chosen if m not in kept)
        raise DataError(
            f"{missing.spec} needs examples with truth masks of the kind {missing.truth_kind!r}; "
            f"{data.name} has {', '.join(data.truth_kinds) or 'none'}. Choose with "
            f"{missing.plugin_name()}(truth=…), or leave this metric out"
        )
    if not any(not m.of_model for m in kept):
        raise PluginError("expected at least one metric that tests explanations, got none")
    return kept


def _each(specs: str | Sequence[Any]) -> list[Any]:
    if isinstance(specs, str):
        return split_specs(specs)
    return [s for spec in specs for s in (split_specs(spec) if isinstance(spec, str) else [spec])]


def _batches(data: Dataset, size: int) -> list[list[int]]:
    """Places of examples of like length; twins stay together, for metrics that compare them."""
    groups: dict[str, list[int]] = {}
    for i, e in enumerate(data):
        groups.setdefault(e.partner or e.id, []).append(i)
    longest = {k: max(data.examples[i].input.n_features for i in g) for k, g in groups.items()}
    batches: list[list[int]] = [[]]
    for key in sorted(groups, key=lambda k: (longest[k], groups[k])):
        if batches[-1] and len(batches[-1]) + len(groups[key]) > size:
            batches.append([])
        batches[-1] += groups[key]
    return batches


# ---- jobs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """One batch of one model: its predictions, or one method's explanations and their scores."""

    model: str
    batch: int
    explainer: int | None = None


@dataclass(frozen=True)
class _Done:
    job: _Job
    computed: int
    reused: int


@dataclass(frozen=True)
class _Work:
    """Everything a job needs; travels to a worker once."""

    run: Run
    models: Mapping[str, Classifier]
    data: Dataset
    explainers: Sequence[Explainer]
    metrics: Sequence[Metric]
    batches: Sequence[Sequence[int]]
    target: Target
    seed: int

    def __call__(self, job: _Job) -> _Done:
        examples = [self.data.examples[i] for i in self.batches[job.batch]]
        steps = self._predict if job.explainer is None else self._explain
        return steps(job, examples)

    def _predict(self, job: _Job, examples: list[Example]) -> _Done:
        path = self.run.prediction_part(job.model, job.batch)
        computed = 0
        if not is_whole(path):
            answers = probabilities(self.models[job.model], [e.input for e in examples])
            self.run.write_predictions(path, examples, answers)
            computed = 1
        empty = [Attribution(e.input, e.label, np.zeros(e.input.n_features)) for e in examples]
        scored, reused = self._score(job, "", examples, empty, of_model=True)
        return _Done(job, computed + scored, reused + 1 - computed)

    def _explain(self, job: _Job, examples: list[Example]) -> _Done:
        assert job.explainer is not None
        explainer = self.explainers[job.explainer]
        path = self.run.attribution_part(job.model, explainer.spec, job.batch)
        inputs = [e.input for e in examples]
        computed = 0
        if is_whole(path):
            found = self._stored(path, examples)
        else:
            answers = self._answers(job, examples)
            gold = [e.label for e in examples]
            targets = _targets(self.target, answers, gold, answers.shape[1])
            started = time.perf_counter()
            with counting() as tally:
                found = attributions(
                    explainer,
                    self.models[job.model],
                    inputs,
                    targets,
                    [e.id for e in examples],
                    self.seed,
                )
            cost = (time.perf_counter() - started, float(tally.questions))
            pairs = list(zip(examples, found, strict=True))
            self.run.write_attributions(path, job.model, explainer.spec, pairs, cost)
            computed = 1
        scored, reused = self._score(job, explainer.spec, examples, found, of_model=False)
        return _Done(job, computed + scored, reused + 1 - computed)

    def _score(
        self,
        job: _Job,
        explainer: str,
        examples: list[Example],
        found: Sequence[Attribution],
        *,
        of_model: bool,
    ) -> tuple[int, int]:
        """Writes the scores that are missing; how many parts were computed and how many reused."""
        metrics = [m for m in self.metrics if m.of_model == of_model]
        parts = [self.run.score_part(job.model, explainer, m.spec, job.batch) for m in metrics]
        missing = [(m, part) for m, part in zip(metrics, parts, strict=True) if not is_whole(part)]
        if missing:
            model = self.models[job.model]
            answers = self._answers(job, examples)
            cases = [
                Case(e, model, row, a) for e, row, a in zip(examples, answers, found, strict=True)
            ]
            for metric, part in missing:
                rows = metric.score(cases)
                named = [(e.id, row) for e, row in zip(examples, rows, strict=True)]
                self.run.write_scores(part, job.model, explainer, metric.spec, named)
        return len(missing), len(parts) - len(missing)

    def _answers(self, job: _Job, examples: Sequence[Example]) -> FloatArray:
        rows = read_table(self.run.prediction_part(job.model, job.batch)).to_pydict()
        by_id = dict(zip(rows["example"], rows["probabilities"], strict=True))
        return np.array([by_id[e.id] for e in examples])

    def _stored(self, path: Path, examples: Sequence[Example]) -> list[Attribution]:
        rows = {r["example"]: r for r in read_table(path).to_pylist()}
        return [
            Attribution(e.input, rows[e.id]["target"], np.array(rows[e.id]["scores"], dtype=float))
            for e in examples
        ]


def _carry_out(
    work: _Work,
    executor: Executor,
    skipped: Sequence[Mapping[str, str]],
    watch: Callable[[Progress], None],
) -> tuple[int, int]:
    """First all predictions, which name the labels to explain, then all explanations."""
    left_out = {(s["model"], s["explainer"]) for s in skipped}
    places = range(len(work.batches))
    predict = [_Job(model, b) for model in work.models for b in places]
    explain_jobs = [
        _Job(model, b, i)
        for model in work.models
        for i, explainer in enumerate(work.explainers)
        if (model, explainer.spec) not in left_out
        for b in places
    ]
    total = len(predict) + len(explain_jobs)
    done = computed = reused = 0
    for jobs in (predict, explain_jobs):
        for result in executor.map(work, jobs):
            done += 1
            computed += result.computed
            reused += result.reused
            job = result.job
            what = "predictions" if job.explainer is None else work.explainers[job.explainer].spec
            watch(Progress(done, total, f"{job.model}: {what}"))
    return computed, reused


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
        summary: Row = by_spec[metric].summary(list(examples.values()))
        place = found.setdefault(model, {}).setdefault(explainer, {})
        place[metric] = {k: None if np.isnan(v) else float(v) for k, v in summary.items()}
    return found


# ---- a bar to pass --------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """`[method:]metric.quantity=value`: what an audit must reach for a build to pass."""

    method: str | None
    metric: str
    quantity: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Bar:
        left, equals, number = text.rpartition("=")
        place, dot, quantity = left.rpartition(".")
        method, colon, metric = place.rpartition(":")
        try:
            if not (equals and dot and quantity and metric):
                raise ValueError
            return cls(method if colon else None, metric, quantity, float(number))
        except ValueError:
            raise PluginError(
                f"cannot read the bar {text!r}: expected metric.quantity=value such as "
                "erasure.compactness=0.2, or method:metric.quantity=value"
            ) from None


def check_bars(bars: Sequence[Bar], metrics: Sequence[str]) -> None:
    """Bars that name a quantity of a metric, before hours are spent; an empty list means all."""
    asked = [known_metrics.make(m) for m in (metrics or known_metrics.names())]
    names = {f"{n}.{q}" for m in asked for n in (m.spec, m.plugin_name()) for q in m.quantities}
    for bar in bars:
        name = f"{bar.metric}.{bar.quantity}"
        if name not in names:
            raise PluginError(f"no quantity {name} is computed: {nearest(name, names)}")


def missed(audit: Audit, bars: Sequence[Bar]) -> list[str]:
    """A sentence for each bar that the best method, or the named one, does not reach."""
    found = []
    for bar in bars:
        compared = [
            s
            for s in audit.standings
            if s.name == bar.quantity and bar.metric in (s.metric, s.metric.split("(")[0])
        ]
        if not compared:
            names = sorted({f"{s.metric}.{s.name}" for s in audit.standings})
            raise PluginError(
                f"no quantity {bar.metric}.{bar.quantity} in this audit; it has: {', '.join(names)}"
            )
        for s in compared:
            named = [e for e in s.entries if e.method == bar.method]
            if bar.method and not named:
                raise PluginError(f"no method {bar.method!r} was run on {s.model}")
            entry = named[0] if named else s.best
            mean = float("nan") if entry is None else entry.mean
            reached = mean <= bar.value if s.better == "lower" else mean >= bar.value
            if entry is None or not reached:
                wanted = "at most" if s.better == "lower" else "at least"
                who = "no method" if entry is None else entry.method
                found.append(
                    f"{s.model}: expected {s.metric}.{s.name} of {wanted} {bar.value:g}, "
                    f"{who} reaches {mean:.4f}"
                )
    return found
