"""Which method to use for which purpose, in plain words, or why none can be recommended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.inputs import Nouns
from .health import Health
from .run import Cost
from .standings import Entry, Standing, part_of_way
from .statistics import LEVEL, at_least, percent, texts_needed

FEW = 5
"""Below so many texts an interval would only pretend."""

NEARLY = 0.95
"""A method that gains so much of what the best gains over chance does nearly as well."""

NO_CHANCE = "Nothing was compared with chance: add random_scores"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which method to use on one model for one purpose, over all tests of that purpose."""

    model: str
    purpose: str
    metrics: tuple[str, ...]
    name: str
    reason: str
    """Why, in sentences."""
    use: str | None = None
    at_cost: str = ""
    """The method to use with what it asks."""
    tied: tuple[str, ...] = ()
    """Methods that no test of this purpose tells apart from the best."""
    disagree: bool = False
    """Whether no method is best or tied in all tests of this purpose."""
    leads: bool = False
    """Whether it is ahead of every other method in all tests that tell."""
    close: str = ""
    """Who gains almost as much all the same, and how much of it."""
    quality: str = "faithfulness"
    more_texts: bool = False
    """Whether more texts could tell what these do not."""

    @property
    def sentence(self) -> str:
        """For what, which method, and why."""
        return f"To {self.purpose}, {f'use {self.at_cost}: ' if self.use else ''}{self.reason}"


Costs = Mapping[tuple[str, str], Cost]


def verdicts(
    found: Sequence[Standing],
    state: Health | None = None,
    costs: Costs | None = None,
    *,
    preferred: str = "",
) -> list[Verdict]:
    """One verdict per model and purpose, over the headline quantities of its tests; of methods that
    tie in all of them the preferred one is named."""
    groups: dict[tuple[str, str], list[Standing]] = {}
    for s in found:
        if s.headline:
            groups.setdefault((s.model, s.purpose), []).append(s)
    return [_verdict(tests, state, costs or {}, preferred) for tests in groups.values()]


def _verdict(
    tests: Sequence[Standing], state: Health | None, costs: Costs, preferred: str
) -> Verdict:
    first, nouns = tests[0], tests[0].nouns
    scored = _distinct([s for s in tests if s.best is not None])

    def none(why: str, *, more_texts: bool = False) -> Verdict:
        metrics = tuple(s.metric for s in tests)
        return Verdict(
            model=first.model,
            purpose=first.purpose,
            metrics=metrics,
            name=first.name,
            reason=why,
            more_texts=more_texts,
        )

    if not scored:
        return none("nothing can be said: no method could be scored.")
    if state is not None and state.fault:
        return none(f"no method is recommended: {state.diagnosis}.")
    telling = [s for s in scored if not_like_chance(s)]
    if not telling:
        why, more_texts = _chance_sentence(scored)
        return none(why, more_texts=more_texts)
    blunt = next((s for s in telling if s.blunt), None)
    if blunt is not None and all(s.blunt for s in telling):
        return none(
            f"no method is recommended: which {nouns.units} are hidden hardly matters to this "
            f"model: {blunt.blunt}. So it seems to go by how many {nouns.units} there are, or by "
            f"what is no {nouns.unit}. Do not show {nouns.units}; look at the model."
        )
    leaders = [_leaders(s) for s in telling]
    common = set.intersection(*leaders)
    everywhere = set.intersection(*(not_like_chance(s) for s in telling))
    # best or tied in all tests; else what beats chance in all; else what leads in some
    candidates = common or everywhere or set.union(*leaders)
    use = min(
        {preferred} & common or candidates,
        key=lambda m: (-_nearness(telling, m), questions_per_text(m, first.model, costs), m),
    )
    tied = tuple(m for m in _in_order(telling, common) if m != use)
    disagree = not common and len(telling) > 1
    figures = "; ".join(_figure(s, use) for s in scored) + "."
    rivals = set().union(*(_near(s) for s in telling)) - {use}
    leads = not rivals and all(sum(not e.is_chance for e in s.entries) > 1 for s in telling)
    verdict = Verdict(
        model=first.model,
        purpose=first.purpose,
        metrics=tuple(s.metric for s in tests),
        name=first.name,
        reason=figures,
        use=use,
        at_cost=with_questions(use, first.model, costs, nouns),
        tied=tied,
        disagree=disagree,
        leads=leads,
        close=_close(telling, use) if leads else "",
        quality=first.quality,
    )
    return replace(verdict, reason=figures + _how_sure(scored, verdict, rivals))


def _distinct(tests: Sequence[Standing]) -> list[Standing]:
    """Ways of hiding that a model reads alike are one test, not two that agree."""
    alike: dict[object, list[Standing]] = {}
    for s in tests:
        figures = tuple((e.method, round(e.mean, 3), e.n) for e in sorted(s.entries, key=_method))
        alike.setdefault((s.name, figures if s.where else s.metric), []).append(s)
    return [same[0] if len(same) == 1 else _joined(same) for same in alike.values()]


def _method(entry: Entry) -> str:
    return entry.method


def _joined(same: Sequence[Standing]) -> Standing:
    """Tests with the same figures as one."""
    exact = len({tuple(e.mean for e in sorted(s.entries, key=_method)) for s in same}) == 1
    ways = " or ".join(s.where for s in same)
    return replace(same[0], where=f"{ways}, {'' if exact else 'nearly '}the same to this model")


def not_like_chance(s: Standing) -> set[str]:
    """Methods that are not known to be no better than chance."""
    return {
        e.method for e in s.entries if not e.is_chance and e.n and e.better_than_chance is not False
    }


def _near(s: Standing) -> set[str]:
    return {e.method for e in s.entries if not e.is_chance and (e.is_best or e.tied_with_best)}


def _leaders(s: Standing) -> set[str]:
    return _near(s) & not_like_chance(s)


def _in_order(tests: Sequence[Standing], methods: set[str]) -> list[str]:
    return sorted(methods, key=lambda m: (-_nearness(tests, m), m))


def _nearness(tests: Sequence[Standing], method: str) -> float:
    """How near a method comes to the best of each test, from chance or else from the worst, on
    average; to two digits, so that what hardly differs is a matter of cost."""
    shares = []
    for s in tests:
        means = {e.method: e.mean for e in s.entries if e.n}
        if method not in means or s.best is None:
            shares.append(0.0)
            continue
        sign = -1 if s.better == "lower" else 1
        least = s.chance.mean if s.chance else min(means.values(), key=lambda m: sign * m)
        share = part_of_way(means[method], least, s.best.mean)
        shares.append(1.0 if share is None else share)
    return round(sum(shares) / len(shares), 2)


def _chance_sentence(tests: Sequence[Standing]) -> tuple[str, bool]:
    """Why no method is told from chance, too few texts or no difference, and whether more texts
    could tell."""
    ranked = [(s, s.best) for s in tests if s.best is not None]
    few = [(s, best) for s, best in ranked if not best.could_beat_chance]
    # where nothing differs says more than where too little does
    first, best = min(few or ranked, key=lambda one: one[1].n_unlike_chance)
    nouns = first.nouns
    if few:
        k = first.chance_comparisons
        if best.n_unlike_chance == 0 and best.n >= texts_needed(k):
            where = f" {condition(first)}" if len(tests) > 1 else ""
            return (
                f"no method is recommended: every method scores as random scores do on all "
                f"{best.n} {nouns.many}{where}, so it makes no difference which {nouns.units} are "
                f"hidden. More {nouns.many} will not help; look at the model."
            ), False
        if best.n >= texts_needed(k):
            return (
                f"nothing can be said: {best.method}, the best, scores otherwise than random "
                f"scores on {best.n_unlike_chance} of {best.n} {nouns.many} only, and {k} "
                f"{'comparisons need' if k > 1 else 'comparison needs'} {texts_needed(k)} such "
                f"{nouns.many}. Give more {nouns.many}, and {nouns.more_units}{_ahead(first)}."
            ), True
        many = f"{best.n} {f'{nouns.many} are' if best.n != 1 else f'{nouns.one} is'}"
        scored = f" that could be scored (of {best.n + best.undefined})" if best.undefined else ""
        return (
            f"{many} too few{scored} for {k} comparison{'s' * (k > 1)} with random scores: no "
            f"result, however clear, could be told from luck. Give at least {texts_needed(k)} "
            + ("such " if scored else "")
            + f"{nouns.many}, better several times as many"
            + _ahead(first)
            + "."
        ), True
    against = f", random scores {first.chance.mean:.3f}" if first.chance else ""
    p = "" if best.p_chance is None else f" (p {best.p_chance:.2g}, all comparisons counted)"
    if best.p_chance is not None and best.p_chance < LEVEL:
        return (
            f"no method beats random scores: the best, {best.method}, reaches "
            f"{_interval(best, nouns)}{against}, which is surely worse{p}."
        ), False
    return (
        f"no method is shown to beat random scores: the best, {best.method}, reaches "
        f"{_interval(best, nouns)}{against}, which does not rule out luck{p}. More {nouns.many} "
        "may tell."
    ), True


def _ahead(s: Standing) -> str:
    """What few texts hint at."""
    best, chance = s.best, s.chance
    if best is None or chance is None or f"{best.mean:.3f}" == f"{chance.mean:.3f}":
        return ""
    return f" (so far {best.method} is ahead, {best.mean:.3f} against {chance.mean:.3f})"


def with_questions(method: str, model: str, costs: Costs, nouns: Nouns) -> str:
    """A method with what it asks, which is what its score was bought for."""
    questions = questions_per_text(method, model, costs)
    return f"{method} at {questions:,.0f} questions a {nouns.one}" if questions >= 2 else method


def questions_per_text(method: str, model: str, costs: Costs) -> float:
    """What a method asks about a text."""
    cost = costs.get((model, method))
    return 0.0 if cost is None else cost.questions_per_text


def _figure(s: Standing, method: str) -> str:
    words = s.name.replace("_", " ")
    plugin = s.metric.split("(")[0]
    quantity = words if words.startswith(plugin) else f"{plugin} {words}"
    where = f" {condition(s)}" if s.where else "" if s.metric == plugin else f" ({s.metric})"
    entry = next((e for e in s.entries if e.method == method), None)
    if entry is None:
        return f"{quantity}{where} not scored"
    said = f"{quantity}{where} {_interval(entry, s.nouns)}"
    if s.chance is not None:
        said += f", random scores {s.chance.mean:.3f}"
    if entry.gain is not None:
        said += f", {percent(entry.gain)} of the way from random scores to the best found"
        said += f" on {s.searched} {s.nouns.many} searched"
    return said


def _interval(e: Entry, nouns: Nouns) -> str:
    if e.n < FEW:
        return f"{e.mean:.3f} ({e.n} of the {nouns.many}: too few to say how sure)"
    return f"{e.mean:.3f} (95 % interval {e.low:.3f} to {e.high:.3f}, {e.n} {nouns.many})"


def _how_sure(tests: Sequence[Standing], verdict: Verdict, near: set[str]) -> str:
    telling = [s for s in tests if not_like_chance(s)]
    use, tied, disagree = verdict.use or "", verdict.tied, verdict.disagree
    units = tests[0].nouns.units
    said = ""
    hidings = [s.where for s in telling if s.where and use in _leaders(s)]
    if disagree:
        said += f" The tests disagree: best or tied are {leaders_by_test(telling)}."
    elif len(hidings) > 1 and near - {*tied}:
        said += f" It is {_places(telling, use)}."
    elif len(hidings) > 1:
        said += f" It is best{' or tied' if near else ''} with {units} {listed(hidings)}."
    elif hidings and len(tests) == 1:
        said += f" {units.capitalize()} were hidden in one way only ({hidings[0]})."
    silent = [condition(s) for s in tests if not not_like_chance(s)]
    if silent:
        said += f" No method is shown to beat random scores {listed(silent)}."
    same = [m for m in tied if all(_mean(s, m) == _mean(s, use) for s in telling)]
    others = [m for m in tied if m not in same]
    partly = [] if len(hidings) > 1 else _in_order(telling, near - {*tied})
    if same:
        said += f" {listed(same)} score{'s' if len(same) == 1 else ''} the same."
    if others:
        said += f" Not told apart from it: {listed(others)}{_undetected(telling)}."
    if partly and not disagree:
        said += f" Best or tied in some of these tests: {listed(partly)}."
    if verdict.leads:
        where = f" {listed([condition(s) for s in telling])}" if silent else ""
        close = f", but not by much: {verdict.close}" if verdict.close else ""
        said += f" It leads every other method{where} (corrected p < {LEVEL}){close}."
    chancy = [{e.method for e in s.entries if e.better_than_chance is False} for s in telling]
    never = set.intersection(*chancy)
    for methods, where in ((never, ""), (set.union(*chancy) - never, " in every test")):
        if methods:
            late = listed(_in_order(telling, methods))
            said += f" Not shown{where} to beat random scores: {late}."
    if not any(e.is_chance for s in tests for e in s.entries):
        said += f" {NO_CHANCE}."
    return said


def _places(tests: Sequence[Standing], use: str) -> str:
    """Where a method is ahead of all others, and where of whom it is not told apart."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for s in tests:
        beside = _in_order(tests, (_near(s) - {use}) if use in _leaders(s) else set())
        if s.where and use in _leaders(s):
            groups.setdefault(tuple(beside), []).append(s.where)
    units = tests[0].nouns.units
    said = []
    for others, ways in sorted(groups.items(), key=lambda item: len(item[0])):
        where = f"with {units} {listed(ways)}"
        said.append(f"not told apart from {listed(others)} {where}" if others else f"best {where}")
    return listed(said)


def ahead_at_home(tests: Sequence[Standing], use: str, homes: set[str]) -> list[str]:
    """Whom a method is ahead of only under its own way of hiding; `homes` are the tests that hide
    as it does."""
    away = [s for s in tests if s.metric not in homes and not_like_chance(s)]
    at_home = [s for s in tests if s.metric in homes and not_like_chance(s)]
    if not away or not at_home or not all(use in _leaders(s) for s in (*away, *at_home)):
        return []
    beside = set.intersection(*(_near(s) - {use} for s in away))
    behind = set.intersection(*(not_like_chance(s) - _near(s) for s in at_home))
    return sorted(beside & behind)


def _undetected(tests: Sequence[Standing]) -> str:
    """What else could have been told apart: nothing, of too few texts, and nobody knows, where
    methods score the same on nearly all."""
    blind = [s for s in tests if s.detectable is None and s.differing is None and s.comparisons]
    few = [s for s in blind if s.best is None or s.best.n < texts_needed(s.comparisons)]
    if few:
        k = max(s.comparisons for s in few)
        many = few[0].nouns.many
        return f" (to tell methods apart in {k} comparisons takes {texts_needed(k)} {many})"
    apart = [s.detectable for s in tests if s.detectable]
    said = [f"differences below {max(apart):.2g} may be missed"] if apart else []
    if blind:
        where = f"{listed([condition(s) for s in blind])} " if apart else ""
        said.append(f"{where}any difference may be missed")
    sparse = {condition(s): s.differing for s in tests if s.differing is not None}
    if sparse:
        where = f"{listed(list(sparse))} " if apart else ""
        nouns = tests[0].nouns
        texts = nouns.one if min(sparse.values()) == 1 else nouns.many
        said.append(
            f"{where}they differ on {min(sparse.values())} {texts} only, too few to say what "
            "differences may be missed"
        )
    return f" ({'; '.join(said)})" if said else ""


def _close(tests: Sequence[Standing], use: str) -> str:
    """A lead that is sure may be small: whoever gains almost as much in every test."""
    others = {e.method for s in tests for e in s.entries if not e.is_chance} - {use}
    near = {m: share for m in others if (share := least_share_of_lead(tests, m, use)) >= NEARLY}
    if not near:
        return ""
    best = max(near, key=lambda m: (near[m], m))
    return f"{best} gains {at_least(near[best])} of what it gains over chance"


def leaders_by_test(tests: Sequence[Standing]) -> str:
    """Who leads where."""
    return "; ".join(
        f"{listed(_in_order([s], _leaders(s)))} {condition(s)}" for s in tests if _leaders(s)
    )


def _mean(s: Standing, method: str) -> float | None:
    return next((e.mean for e in s.entries if e.method == method), None)


def condition(s: Standing) -> str:
    return f"with {s.nouns.units} {s.where}" if s.where else f"by {s.metric}"


def least_share_of_lead(tests: Sequence[Standing], other: str, method: str) -> float:
    """What one method gains over chance as a share of what another does, in its worst test; nothing
    where it was not scored or chance is not known."""
    least = math.inf
    for s in tests:
        means = {e.method: e.mean for e in s.entries if e.n}
        if s.chance is None or other not in means or method not in means:
            return 0.0
        least = min(least, part_of_way(means[other], s.chance.mean, means[method]) or 0.0)
    return least


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
