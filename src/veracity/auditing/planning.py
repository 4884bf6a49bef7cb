"""What an audit will ask, told before anything is asked; and as much of it as a budget holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.counts import counted
from ..core.errors import BudgetSpent
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.metrics import Metric
from ..engine.surrogates import USUAL_QUESTIONS
from ..results.statistics import texts_needed
from .jobs import SUBSET_SIZE, drawn_again, drawn_families, subset_of

ENOUGH_TEXTS = 50
"""Rather than fewer texts, methods that sample get fewer questions."""

LEAST_TEXTS = 10
"""So many texts at least are looked at for suspects."""

LEAST_SURFACE = 15
"""In fewer texts a property of the surface surely turns no more answers than ordinary words do, all
trials counted."""

FEWER = (500, 250, 128, 64)
"""The numbers of questions a text that are tried where the usual one leaves too few texts."""

THIN = 250
"""Before methods get fewer questions than this, tests are run under one way of hiding only."""


@dataclass(frozen=True)
class PlanItem:
    """One thing that asks, on so many texts; at most so often, None where nobody knows."""

    what: str
    kind: str
    texts: int
    questions: int | None
    shared: bool = False
    """Whether others ask some of the same, so that the total is less than the sum."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What is going to be asked of a model, at most."""

    data: Dataset[Any]
    explainers: tuple[Explainer, ...]
    metrics: tuple[Metric, ...]
    second_draw: bool
    items: tuple[PlanItem, ...]
    total: int
    """All together: less than the sum, since tests share what they ask."""
    of: int
    """So many texts there were."""
    budget: int | None = None
    questions: int | None = None
    """What methods that sample were given a text so that all fits."""
    dropped: tuple[str, ...] = ()
    """What would have been asked without a budget."""

    @property
    def sentence(self) -> str:
        """What was chosen, in words."""
        chosen = [_texts(self.data, self.of)]
        sampling = [e.plugin_name() for e in self.explainers if e.question_settings]
        if self.questions is not None and sampling:
            names = " and ".join(dict.fromkeys(sampling))
            chosen.append(f"{self.questions:,} samples a {self.data.nouns.one} for {names}")
        left_out = f"; left out: {', '.join(self.dropped)}" if self.dropped else ""
        return _holds(f"{', '.join(chosen)}{left_out}", self.total, self.budget)

    def lines(self) -> list[str]:
        """The items as a table, then what they come to."""
        width = max(len(item.what) for item in self.items)
        many = self.data.nouns.many
        rows = [
            f"  {item.kind:<12} {item.what:<{width}} {item.texts:>7,} {many} "
            + ("      not known" if item.questions is None else f"{item.questions:>15,}")
            for item in self.items
        ]
        # less than the sum of the lines, which a reader would take for a mistake
        return [
            "questions at most (what several tests ask is asked once):",
            *rows,
            f"together: {self.sentence}",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        return {
            "texts": len(self.data),
            "of": self.of,
            "budget": self.budget,
            "questions": self.questions,
            "second_draw": self.second_draw,
            "dropped": self.dropped,
            "total": self.total,
            "items": [vars(item) for item in self.items],
            "sentence": self.sentence,
        }


def _texts(chosen: Dataset[Any], of: int) -> str:
    part = "" if len(chosen) == of else f"{len(chosen):,} of "
    return f"{part}{chosen.nouns.counted(of)}"


def _holds(what: str, total: int, budget: int | None) -> str:
    """What is going to be asked about, and how often at most."""
    if budget is None:
        return f"{what} need at most {counted(total, 'question')}"
    most = counted(total, "question")
    return f"a budget of {counted(budget, 'question')} holds {what}: at most {most}"


def plan_questions(
    data: Dataset[Any],
    explainers: Sequence[Explainer],
    metrics: Sequence[Metric],
    *,
    ceilings: Sequence[Explainer] = (),
    second_draw: bool = True,
    seed: int = 0,
) -> AuditPlan:
    """What all of this asks of one model."""
    lengths = Counter(e.input.n_units for e in data)
    subset = subset_of(data, SUBSET_SIZE, seed=seed)
    some = Counter(e.input.n_units for e in data if e.id in subset)
    tests = [m for m in metrics if not m.of_model]
    items = [PlanItem(f"each {data.nouns.one} once", "answers", len(data), len(data))]
    items += [
        PlanItem(m.spec, "test", len(data), _sum(m, lengths))
        for m in metrics
        if m.of_model and m.n_questions(1) != 0
    ]
    items += [PlanItem(e.spec, "method", len(data), _sum(e, lengths)) for e in explainers]
    for m in tests:
        each = _sum(m, lengths)
        if each != 0:
            of_all = None if each is None else each * len(explainers)
            what = f"{m.spec} of each method"
            items.append(PlanItem(what, "test", len(data), of_all, shared=True))
    items += [PlanItem(e.spec, "ceiling", len(subset), _sum(e, some)) for e in ceilings]
    again = [e for e in explainers if second_draw and drawn_again(e)]
    usual = [m for m in tests if m.usual]
    for e in again:
        own = _sum(e, some)
        scored = None if own is None else own + _shared(usual, some)
        items.append(PlanItem(e.spec, "second draw", len(subset), scored))
    alone = sum(i.questions or 0 for i in items if not i.shared)
    total = alone + len(explainers) * _shared(tests, lengths) + len(ceilings) * _shared(tests, some)
    return AuditPlan(
        data=data,
        explainers=tuple(explainers),
        metrics=tuple(metrics),
        second_draw=bool(again),
        items=tuple(items),
        total=total,
        of=len(data),
    )


def plan_within_budget(
    budget: int,
    data: Dataset[Any],
    explainers: Sequence[Explainer],
    metrics: Sequence[Metric],
    *,
    adjustable: frozenset[str],
    optional: frozenset[str],
    second_draw: bool = True,
    seed: int = 0,
) -> AuditPlan:
    """The plan that a budget holds: enough texts rather than many samples, extras last.

    `adjustable` methods may be given fewer questions, `optional` metrics may go.
    """
    whole = plan_questions(data, explainers, metrics, second_draw=second_draw, seed=seed)
    if whole.total <= budget:
        return replace(whole, budget=budget)
    lean = [m for m in metrics if m.spec not in optional]
    choices: list[tuple[int | None, Sequence[Metric]]] = [(None, metrics)]
    movable = [e for e in explainers if e.spec in adjustable]
    if movable:
        choices += [(_alike(q, movable, data), metrics) for q in FEWER if q >= THIN]
        choices += [(_alike(q, movable, data), lean) for q in FEWER if q <= THIN]
    else:
        choices.append((None, lean))
    wanted = min(len(data), ENOUGH_TEXTS)
    for questions, tests in choices:
        methods = [
            e.with_questions(questions) if questions and e.spec in adjustable else e
            for e in explainers
        ]
        some = _as_many(budget, data, methods, tests, seed)
        if len(some) >= wanted:
            break
    plan = plan_questions(some, methods, tests, second_draw=False, seed=seed)
    least = min(len(data), _least_texts(methods, tests))
    if len(some) < least:
        many = data.nouns.many
        few = data.select([i for group in _in_proportion(data, seed) for i in group][:least])
        needed = plan_questions(few, methods, tests, second_draw=False, seed=seed).total
        each = f" with {questions} a {data.nouns.one} for methods that sample" if questions else ""
        fewer = ", give methods fewer --questions" if questions else ""
        raise BudgetSpent(
            f"a budget of {budget:,} questions holds {len(some)} {many}, too few to tell any "
            f"method from luck: {least} {many} need up to {needed:,}{each}, and all {len(data):,} "
            f"as asked {whole.total:,}. Raise --budget{fewer}, or name fewer --methods and "
            f"--metrics; {many} of fewer {data.nouns.units} need fewer, too"
        )
    gone = [m.spec for m in metrics if m not in tests]
    dropped = (*(["the second draw"] if whole.second_draw else []), *gone)
    given = questions or (USUAL_QUESTIONS if adjustable else None)
    return replace(plan, of=len(data), budget=budget, questions=given, dropped=dropped)


def _least_texts(explainers: Sequence[Explainer], metrics: Sequence[Metric]) -> int:
    """Of fewer texts no method could be told from random scores, all comparisons counted."""
    methods = sum(not e.baseline for e in explainers)
    tests = sum(
        bool(q.better) and q.headline
        for m in metrics
        if not m.of_model
        for q in m.effective_quantities.values()
    )
    return texts_needed(max(1, methods * tests))


def _alike(questions: int, explainers: Sequence[Explainer], data: Dataset[Any]) -> int:
    """So many questions, or what the texts cost on average the method that needs most: no method
    is given more than another."""
    lengths = Counter(e.input.n_units for e in data)
    sums = [_sum(e.with_questions(questions), lengths) or 0 for e in explainers]
    return max(questions, *(-(-total // len(data)) for total in sums))


def _as_many(
    budget: int,
    data: Dataset[Any],
    explainers: Sequence[Explainer],
    metrics: Sequence[Metric],
    seed: int,
) -> Dataset[Any]:
    """The first texts of a drawn order, as many as the budget holds."""
    cost: dict[int, int] = {}
    chosen: list[int] = []
    left = budget
    for group in _in_proportion(data, seed):
        needed = 0
        for i in group:
            n = data.examples[i].input.n_units
            if n not in cost:
                one = data.select([i])
                cost[n] = plan_questions(one, explainers, metrics, second_draw=False).total
            needed += cost[n]
        if needed > left:
            break
        left -= needed
        chosen += group
    return data.select(sorted(chosen))


def _in_proportion(data: Dataset[Any], seed: int) -> list[list[int]]:
    """Families in a drawn order of which every beginning has the labels in proportion."""
    by_label: dict[int, list[list[int]]] = {}
    for group in drawn_families(data, seed):
        by_label.setdefault(data.examples[group[0]].label, []).append(group)
    places = [
        ((rank + 0.5) / len(groups), label, group)
        for label, groups in by_label.items()
        for rank, group in enumerate(groups)
    ]
    return [group for _, _, group in sorted(places)]


def _sum(one: Explainer | Metric, lengths: Counter[int]) -> int | None:
    each = {n: one.n_questions(n) if n else 0 for n in lengths}
    if any(questions is None for questions in each.values()):
        return None
    return sum(count * (each[n] or 0) for n, count in lengths.items())


def _shared(metrics: Sequence[Metric], lengths: Counter[int]) -> int:
    """What these metrics ask about one method's explanations, each question once."""
    return sum(count * _of_ranking(metrics, n) for n, count in lengths.items() if n)


def _of_ranking(metrics: Sequence[Metric], n: int) -> int:
    cuts: set[tuple[Hashable, ...]] = set()
    others = 0
    for metric in metrics:
        named = metric.maskings(n)
        cuts |= named
        others += 0 if named else metric.n_questions(n) or 0
    ends = {("alone", n), ("without", 0), ("alone", 0), ("without", n)}
    # the whole text is asked before, and what nothing is left of is the same for every method
    return others + sum(cut[-2:] not in ends for cut in cuts)


@dataclass(frozen=True, kw_only=True)
class SuspectsPlan:
    """What a look for suspects asks, at most while no more than `top` leaders turn up."""

    data: Dataset
    of: int
    top: int
    tried: int
    """In so many texts each leader is put in, and out of so many it is taken."""
    surface_tried: int
    """In so many texts each property of the surface is tried; 0 where a budget holds too few."""
    total: int
    budget: int | None = None

    @property
    def sentence(self) -> str:
        tries = f"{self.top} leaders tried on up to {2 * self.tried} texts each"
        tries += (
            f", properties of the surface on up to {self.surface_tried} each way"
            if self.surface_tried
            else ", properties of the surface on none"
        )
        return _holds(f"{_texts(self.data, self.of)} and {tries}", self.total, self.budget)


def planned_suspects(
    data: Dataset,
    explainer: Explainer,
    *,
    top: int,
    tried: int,
    surface: int,
    budget: int | None,
    least: int,
    seed: int,
) -> SuspectsPlan:
    """As many texts as a budget holds when at most a quarter of it goes into trying leaders, and
    an eighth into trying the surface, which at most asks `surface` times as many questions as it
    takes texts."""

    def cost(texts: Dataset) -> int:
        # the same questions serve all labels
        return plan_questions(texts, [explainer], (), second_draw=False).total

    total = cost(data) + (2 * top + surface) * tried
    whole = SuspectsPlan(
        data=data, of=len(data), top=top, tried=tried, surface_tried=tried, total=total,
        budget=budget,
    )  # fmt: skip
    if budget is None or whole.total <= budget:
        return whole
    fewer = max(LEAST_TEXTS, min(tried, budget // 4 // (2 * top)))
    few_surface = min(tried, budget // 8 // max(1, surface))
    few_surface = few_surface if few_surface >= LEAST_SURFACE else 0
    tries = 2 * top * fewer + surface * few_surface
    some = _as_many(budget - tries, data, [explainer], (), seed)
    if len(some) < least:
        few = data.select([i for group in _in_proportion(data, seed) for i in group][:least])
        raise BudgetSpent(
            f"a budget of {budget:,} questions holds {len(some)} texts, too few to look for "
            f"anything; {least} texts need up to {cost(few) + tries:,}, all "
            f"{len(data):,} {whole.total:,}. Raise --budget, or lower --least or --top"
        )
    return replace(
        whole, data=some, tried=fewer, surface_tried=few_surface, total=cost(some) + tries
    )
