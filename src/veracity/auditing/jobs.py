"""The work of an audit, cut into jobs that any process can do and no process need do twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..core.attributions import Attribution
from ..core.changes import DECOY, PLANTED
from ..core.classifiers import Classifier, Traits
from ..core.errors import BudgetSpent
from ..core.examples import Dataset, Example
from ..core.explainers import Explainer
from ..core.inputs import FloatArray
from ..core.metrics import Case, Metric
from ..core.plugins import blamed_on
from ..core.progress import Progress, Watcher
from ..engine.batches import mixed
from ..engine.cache import AnswerCache, caching
from ..engine.call_counter import count_calls
from ..engine.executors import Executor, Local
from ..engine.inference import probabilities
from ..engine.seeds import generator
from ..results.config import Partial, SkippedMethod
from ..results.parts import complete_part, discard_part, predictions_in, read_table, rounded
from ..results.run import Run
from .explaining import Target, attributions, chosen_targets
from .pace import Pace

SUBSET_SIZE = 40
"""Second draws and searches for a ceiling, too dear on all texts, are made on so many."""

FEW_PREDICTIONS = 200
"""So many texts are answered sooner than worker processes start."""

LONGEST_SEARCHED = 200
"""Texts of more words are left out of searches for a ceiling."""


def families(data: Dataset) -> dict[str, list[int]]:
    """Places of texts that belong together: an original and all its twins, by a name of theirs."""
    groups: dict[str, list[int]] = {}
    family = data.families
    for i, e in enumerate(data):
        groups.setdefault(family[e.id], []).append(i)
    return groups


def drawn_families(data: Dataset, seed: int) -> list[list[int]]:
    """The families in an order drawn by name, so that it depends on no other text: of fewer texts,
    the first are the same."""
    groups = families(data)
    return [groups[k] for k in sorted(groups, key=lambda k: generator(seed, "order", k).random())]


def subset_of(data: Dataset, most: int, *, seed: int) -> frozenset[str]:
    """The ids of so many texts, drawn by name, whole families: neither order nor company matters.
    What would be too dear on all texts is done on these."""
    chosen: list[int] = []
    for group in drawn_families(data, seed):
        if not chosen or len(chosen) + len(group) <= most:
            chosen += group
    return frozenset(data.examples[i].id for i in chosen)


def batches_of(data: Dataset, size: int) -> list[list[int]]:
    """Places of examples of like length; twins stay with their originals, however many there are,
    for metrics that compare them."""
    groups = families(data)
    longest = {k: max(data.examples[i].input.n_features for i in g) for k, g in groups.items()}
    batches: list[list[int]] = [[]]
    for key in sorted(groups, key=lambda k: (longest[k], groups[k])):
        if batches[-1] and len(batches[-1]) + len(groups[key]) > size:
            batches.append([])
        batches[-1] += groups[key]
    return batches


def with_originals(cases: Sequence[Case]) -> list[Case]:
    """The same cases, those of twins with that of their original, where it is among them."""
    by_id: dict[str | None, Case] = {case.example.id: case for case in cases}
    return [
        case
        if case.example.partner == case.example.id
        else replace(case, original=by_id.get(case.example.partner))
        for case in cases
    ]


@dataclass(frozen=True)
class _Job:
    """One batch of one model: its predictions, or one method's explanations and their scores."""

    model: str
    batch: int
    explainer: int | None = None
    second: bool = False
    """Whether with other random numbers, to see how far they matter."""


@dataclass(frozen=True)
class _Done:
    job: _Job
    computed: int
    reused: int
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class AuditWork:
    """Everything a job needs; travels to a worker once."""

    run: Run
    models: Mapping[str, Classifier]
    data: Dataset
    explainers: Sequence[Explainer]
    metrics: Sequence[Metric]
    batches: Sequence[Sequence[int]]
    target: Target
    seed: int
    fitted: Mapping[tuple[str, str], Explainer] = field(default_factory=dict)
    """By model and method: methods that learnt something of that model."""
    unforced: frozenset[str] = frozenset()
    """Models that need not have used what was planted: nothing can be held against methods."""
    searches: Sequence[Explainer] = ()
    """Searches for what a test lets anybody reach; done on part of the texts."""
    second_draw: bool = True
    """Whether methods that draw explain these texts once more, with other random numbers."""
    subset_ids: frozenset[str] = frozenset()
    """The ids of these texts."""
    memory: AnswerCache = field(default_factory=AnswerCache)
    answered: dict[str, tuple[int, dict[str, FloatArray]]] = field(default_factory=dict)
    """By model, the batch that was last read of its answers: one goes through all methods."""

    def __call__(self, job: _Job) -> _Done:
        steps = self._predict if job.explainer is None else self._explain
        started = time.perf_counter()
        done = steps(job, self._examples(job))
        return replace(done, seconds=time.perf_counter() - started)

    @property
    def all_explainers(self) -> list[Explainer]:
        """What a job's number of an explainer counts: methods, then searches."""
        return [*self.explainers, *self.searches]

    def to_do(self, left_out: Collection[tuple[str, str]]) -> tuple[list[_Job], list[_Job]]:
        """First all predictions, which name the labels to explain, then all explanations, and
        last what they can do without."""
        places = mixed(len(self.batches))
        # a batch goes through all methods before the next: what metrics ask about it is remembered,
        # and from what is done can be told how long the rest will take
        explain = [
            _Job(model, b, i)
            for model in self.models
            for b in places
            for i, explainer in enumerate(self.explainers)
            if (model, explainer.spec) not in left_out
        ]
        # a search is never made where questions cost money
        search = [
            _Job(model, b, i)
            for model in self.models
            if not Traits(self.models[model]).costly
            for b in places
            for i in range(len(self.explainers), len(self.all_explainers))
        ]
        again = [
            replace(job, second=True)
            for job in explain
            if self.second_draw and drawn_again(self.named(job))
        ]
        predict = [_Job(model, b) for model in self.models for b in places]
        return predict, [*explain, *(job for job in (*search, *again) if self._examples(job))]

    def finished(self, done: Collection[_Job], explain: Sequence[_Job], why: str) -> Partial | None:
        """The batches that went through all methods; None if all did."""
        needed = [job for job in explain if not job.second and not self._searches(job)]
        open_ = {job.batch for job in needed if job not in done}
        if not open_:
            return None
        batches = tuple(b for b in range(len(self.batches)) if b not in open_)
        texts = sum(len(self.batches[b]) for b in batches)
        return Partial(texts, len(self.data), why, batches)

    def _searches(self, job: _Job) -> bool:
        return job.explainer is not None and job.explainer >= len(self.explainers)

    def _examples(self, job: _Job) -> list[Example]:
        every = [self.data.examples[i] for i in self.batches[job.batch]]
        if self._searches(job):
            # one step of a search asks about every word: longer texts would take hours
            every = [e for e in every if e.input.n_units <= LONGEST_SEARCHED]
        in_subset = job.second or self._searches(job)
        return [e for e in every if e.id in self.subset_ids] if in_subset else every

    def size(self, job: _Job) -> int:
        """How many texts a job is about."""
        return len(self._examples(job))

    def _run(self, job: _Job) -> Run:
        return self.run.second_draw if job.second else self.run

    def _predict(self, job: _Job, examples: list[Example]) -> _Done:
        path = self.run.prediction_part(job.model, job.batch)
        computed = 0
        if complete_part(path, [e.id for e in examples]) is None:
            discard_part(path)
            answers = probabilities(self.models[job.model], [e.input for e in examples])
            self.run.write_predictions(job.model, job.batch, examples, answers)
            computed = 1
        empty = [Attribution(e.input, e.label, np.zeros(e.input.n_features)) for e in examples]
        scored, reused = self._score(job, examples, empty)
        return _Done(job, computed + scored, reused + 1 - computed)

    def _explain(self, job: _Job, examples: list[Example]) -> _Done:
        spec = self.named(job).spec
        run = self._run(job)
        inputs = {e.id: e.input for e in examples}
        found = run.stored_attributions(job.model, spec, job.batch, inputs)
        computed = int(found is None)
        if found is None:
            discard_part(run.attribution_part(job.model, spec, job.batch))
            gold = [e.label for e in examples]
            targets = chosen_targets(self.target, self._answers(job, examples), gold)
            started = time.perf_counter()
            with count_calls() as calls:
                found = self._attributions(job, examples, targets)
            seconds, questions = time.perf_counter() - started, float(calls.questions)
            rows = list(zip(examples, found, strict=True))
            run.write_attributions(
                job.model, spec, job.batch, rows, seconds=seconds, questions=questions
            )
        scored, reused = self._score(job, examples, found)
        return _Done(job, computed + scored, reused + 1 - computed)

    def _attributions(
        self, job: _Job, examples: Sequence[Example], targets: Sequence[int]
    ) -> list[Attribution]:
        """As they are stored, so that what is read back scores the same."""
        model, named = self.models[job.model], self.named(job)
        explainer = self.fitted.get((job.model, named.spec), named)
        inputs, ids = [e.input for e in examples], [e.id for e in examples]
        found = attributions(explainer, model, inputs, targets, ids, self.seed, second=job.second)
        return [replace(one, scores=rounded(one.scores)) for one in found]

    def _score(
        self, job: _Job, examples: list[Example], found: Sequence[Attribution]
    ) -> tuple[int, int]:
        """Writes the scores that are missing; how many parts were computed and how many reused."""
        of_model = job.explainer is None
        explainer = "" if of_model else self.named(job).spec
        metrics = [
            m
            for m in self.metrics
            if m.of_model == of_model
            and (m.usual or not job.second)
            and (not self._searches(job) or m.is_searched)
            and not (job.model in self.unforced and m.truth_kind in (PLANTED, DECOY))
        ]
        run = self._run(job)
        parts = [run.score_part(job.model, explainer, m.spec, job.batch) for m in metrics]
        ids, names = [e.id for e in examples], {"model": job.model, "explainer": explainer}
        missing = [
            (m, part)
            for m, part in zip(metrics, parts, strict=True)
            if complete_part(part, ids, **names, metric=m.spec) is None
        ]
        for _, part in missing:
            discard_part(part)
        if missing:
            model = self.models[job.model]
            # where it matters to the last digits what is read together, a part must not depend on
            # what was done before it: nothing is remembered from part to part
            shared = None if Traits(model).batch_dependent else self.memory
            answers = self._answers(job, examples)
            cases = with_originals(
                [
                    Case(e, model, row, a, explain_again=partial(self._again, job, e, a.target))
                    for e, row, a in zip(examples, answers, found, strict=True)
                ]
            )
            for metric, _ in missing:
                # metrics ask much the same of different methods; methods themselves do not share,
                # or the one that comes first would seem the slowest
                with caching(shared), blamed_on(metric):
                    rows = [{k: float(v) for k, v in r.items()} for r in metric.score(cases)]
                    if len(rows) != len(cases):
                        raise ValueError(
                            f"expected {len(cases)} rows, one per case; got {len(rows)}"
                        )
                named = [(e.id, row) for e, row in zip(examples, rows, strict=True)]
                run.write_scores(job.model, explainer, metric.spec, job.batch, named)
        return len(missing), len(parts) - len(missing)

    def named(self, job: _Job) -> Explainer:
        assert job.explainer is not None
        return self.all_explainers[job.explainer]

    def _again(self, job: _Job, example: Example, target: int) -> Attribution:
        return self._attributions(job, [example], [target])[0]

    def _answers(self, job: _Job, examples: Sequence[Example]) -> FloatArray:
        batch, found = self.answered.get(job.model, (-1, {}))
        if batch != job.batch:
            found = predictions_in(read_table(self.run.prediction_part(job.model, job.batch)))
            self.answered[job.model] = (job.batch, found)
        return np.array([found[e.id] for e in examples])


def drawn_again(explainer: Explainer) -> bool:
    """Whether a second draw tells something of a method; of random scores it does not."""
    return explainer.draws and not explainer.baseline


@dataclass(frozen=True)
class Outcome:
    """How many parts were computed, how many were there already, and what a spent budget left."""

    computed: int
    reused: int
    partial: Partial | None = None


def run_jobs(
    work: AuditWork, executor: Executor, skipped: Sequence[SkippedMethod], watch: Watcher
) -> Outcome:
    """All jobs in their order. Where a budget ends them, the texts that went through all methods
    are what there is."""
    predict, explain = work.to_do({(s.model, s.explainer) for s in skipped})
    total = len(predict) + len(explain)
    done: list[_Done] = []
    pace = Pace(Counter())
    for job in (*predict, *explain):
        pace.ahead[job.model, job.explainer] += work.size(job)
    few = isinstance(executor, Local) and sum(map(work.size, predict)) <= FEW_PREDICTIONS
    try:
        for jobs, where in ((predict, Local() if few else executor), (explain, executor)):
            for result in where.map(work, jobs):
                done.append(result)
                job = result.job
                what = "predictions" if job.explainer is None else work.named(job).spec
                again = ", a second draw" if job.second else ""
                doing = f"{job.model}: {what}{again}"
                kind, texts = (job.model, job.explainer), work.size(job)
                pace.done(kind, texts, result.seconds, computed=result.computed > 0)
                seconds, more = pace.left()
                watch(Progress(len(done), total, doing, seconds_left=seconds, more_to_come=more))
        partial = None
    except BudgetSpent as spent:
        partial = work.finished({result.job for result in done}, explain, str(spent))
        if partial is not None and not partial.texts:
            raise
    return Outcome(sum(d.computed for d in done), sum(d.reused for d in done), partial)
