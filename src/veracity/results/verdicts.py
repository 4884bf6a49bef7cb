"""A run's answer in plain words: which method to use for what, or why none can be recommended."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .health import Health, health
from .run import Cost, Run
from .standings import LEVEL, Entry, Standing, standings
from .statistics import texts_needed

FEW = 5
"""Below so many texts an interval would only pretend."""

CHANGED = "changed"
"""The quantity of erasure that says how often answers change."""

NEARLY = 0.95
"""A method that gains so much of what the best gains over chance does nearly as well."""

MUCH_CHEAPER = 4
"""It is told where the best asks so many times as much."""

NO_CHANCE = "Nothing was compared with chance: add random_scores"

FIRST = 5
"""So many words are hidden for it unless its settings say otherwise."""


@dataclass(frozen=True)
class Verdict:
    """Which method to use on one model for one purpose, over all tests of that purpose."""

    model: str
    purpose: str
    metrics: tuple[str, ...]
    name: str
    sentence: str
    use: str | None
    tied: tuple[str, ...] = ()
    """Methods that no test of this purpose tells apart from the best."""
    disagree: bool = False
    """Whether no method is best or tied in all tests of this purpose."""
    quality: str = "faithfulness"


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """What to do now, for one model."""

    model: str
    method: str | None
    sentence: str
    effect: str = ""
    """What hiding the method's words does to the answers, in words anybody understands."""
    reasons: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    explain: str = ""
    """The command that explains a text with the method."""
    repeat: str = ""
    """The command that makes this audit again."""


@dataclass(frozen=True)
class Conclusion:
    """All that a run says of one model."""

    model: str
    health: Health
    verdicts: tuple[Verdict, ...]
    recommendation: Recommendation


@dataclass(frozen=True)
class Conclusions:
    """All that a run says, computed once."""

    standings: tuple[Standing, ...]
    models: tuple[Conclusion, ...]

    def of(self, model: str) -> Conclusion:
        return next(c for c in self.models if c.model == model)


def conclude(run: Run) -> Conclusions:
    """Standings, verdicts and a recommendation for every model of a run."""
    tested = any(not about["of_model"] for about in run.asked["metrics"].values())
    found = standings(run) if tested else []
    costs = {(c.model, c.explainer): c for c in run.costs() if c.examples}
    conclusions = []
    for model in run.models:
        state = health(run, model)
        own = [s for s in found if s.model == model]
        said = verdicts(own, state, costs)
        conclusions.append(
            Conclusion(model, state, tuple(said), _recommended(run, own, said, state, costs))
        )
    return Conclusions(tuple(found), tuple(conclusions))


Costs = Mapping[tuple[str, str], Cost]


def verdicts(
    found: Sequence[Standing], state: Health | None = None, costs: Costs | None = None
) -> list[Verdict]:
    """One verdict per model and purpose, over the headline quantities of its tests."""
    groups: dict[tuple[str, str], list[Standing]] = {}
    for s in found:
        if s.headline:
            groups.setdefault((s.model, s.purpose), []).append(s)
    return [_verdict(tests, state, costs or {}) for tests in groups.values()]


def _verdict(tests: Sequence[Standing], state: Health | None, costs: Costs) -> Verdict:
    first = tests[0]
    scored = [s for s in tests if s.best is not None]

    def none(why: str) -> Verdict:
        metrics = tuple(s.metric for s in tests)
        sentence = f"To {first.purpose}, {why}"
        return Verdict(first.model, first.purpose, metrics, first.name, sentence, None)

    if not scored:
        return none("nothing can be said: no method could be scored.")
    if state is not None and state.fault:
        return none(f"no method is recommended: {state.wrong}.")
    telling = [s for s in scored if _able(s)]
    if not telling:
        return none(_chance_sentence(scored))
    blunt = next((s for s in telling if s.blunt), None)
    if blunt is not None and all(s.blunt for s in telling):
        return none(
            "no method is recommended: which words are hidden hardly matters to this model. "
            f"Random ones do what the best that a search found do ({blunt.blunt}), so it seems to "
            "go by how many words there are, or by what is no word. Do not show words; look at "
            "the model."
        )
    leaders = [_leaders(s) for s in telling]
    common = set.intersection(*leaders)
    everywhere = set.intersection(*(_able(s) for s in telling))
    # best or tied in all tests; else what beats chance in all; else what leads in some
    candidates = common or everywhere or set.union(*leaders)
    use = min(
        candidates,
        key=lambda m: (-_mean_gain(telling, m), _questions(m, first.model, costs), m),
    )
    tied = tuple(m for m in _in_order(telling, common) if m != use)
    disagree = not common and len(telling) > 1
    sentence = f"To {first.purpose}, use {_with_questions(use, first.model, costs)}: "
    sentence += "; ".join(_figure(s, use) for s in scored) + "."
    sentence += _how_sure(scored, use, tied, disagree)
    return Verdict(
        first.model,
        first.purpose,
        tuple(s.metric for s in tests),
        first.name,
        sentence,
        use,
        tied,
        disagree,
        first.quality,
    )


def _able(s: Standing) -> set[str]:
    """Methods that are not known to be no better than chance."""
    return {
        e.method for e in s.entries if not e.is_chance and e.n and e.better_than_chance is not False
    }


def _near(s: Standing) -> set[str]:
    return {e.method for e in s.entries if not e.is_chance and (e.is_best or e.tied_with_best)}


def _leaders(s: Standing) -> set[str]:
    return _near(s) & _able(s)


def _in_order(tests: Sequence[Standing], methods: set[str]) -> list[str]:
    return sorted(methods, key=lambda m: (-_mean_gain(tests, m), m))


def _mean_gain(tests: Sequence[Standing], method: str) -> float:
    """How near a method comes to the best of each test, from chance or else from the worst, on
    average; to two digits, so that what hardly differs is a matter of cost."""
    gains = []
    for s in tests:
        means = {e.method: e.mean for e in s.entries if e.n}
        if method not in means or s.best is None:
            gains.append(0.0)
            continue
        sign = -1 if s.better == "lower" else 1
        least = s.chance.mean if s.chance else min(means.values(), key=lambda m: sign * m)
        room = s.best.mean - least
        gains.append((means[method] - least) / room if abs(room) > 1e-9 else 1.0)
    return round(sum(gains) / len(gains), 2)


def _chance_sentence(tests: Sequence[Standing]) -> str:
    """Why no method is told from chance: too few texts, or no difference."""
    best = next(s.best for s in tests if s.best is not None)
    few = [s for s in tests if s.best is not None and not s.best.could_beat_chance]
    if few:
        k = max(s.chance_comparisons for s in few)
        if best.off_chance == 0 and best.n >= texts_needed(k):
            return (
                "no method is recommended: every method scores as random scores do on all "
                f"{best.n} texts, so it makes no difference which words are hidden. More texts "
                "will not help; look at the model."
            )
        if best.n >= texts_needed(k):
            return (
                f"nothing can be said: {best.method}, the best, scores otherwise than random "
                f"scores on {best.off_chance} of {best.n} texts only, and {k} comparisons need "
                f"{texts_needed(k)} such texts. Give more texts, and longer ones{_ahead(few[0])}."
            )
        many = f"{best.n} text{'s are' if best.n != 1 else ' is'}"
        scored = f" that could be scored (of {best.n + best.undefined})" if best.undefined else ""
        return (
            f"{many} too few{scored} for {k} comparisons with random scores: no result, however "
            f"clear, could be told from luck. Give at least {texts_needed(k)} "
            + ("such texts" if scored else "texts")
            + _ahead(few[0])
            + "."
        )
    return (
        f"no method beats random scores: the best, {best.method}, reaches {_interval(best)}, which "
        "chance could also give."
    )


def _ahead(s: Standing) -> str:
    """What few texts hint at."""
    best, chance = s.best, s.chance
    if best is None or chance is None:
        return ""
    return f" (so far {best.method} is ahead, {best.mean:.3f} against {chance.mean:.3f})"


def _with_questions(method: str, model: str, costs: Costs) -> str:
    """A method with what it asks, which is what its score was bought for."""
    asked = _questions(method, model, costs)
    return f"{method} at {asked:,.0f} questions a text" if asked >= 2 else method


def _questions(method: str, model: str, costs: Costs) -> float:
    """What a method asks about a text."""
    cost = costs.get((model, method))
    return 0.0 if cost is None else cost.questions / cost.examples


def _figure(s: Standing, method: str) -> str:
    words = s.name.replace("_", " ")
    plugin = s.metric.split("(")[0]
    quantity = words if words.startswith(plugin) else f"{plugin} {words}"
    where = f" with words {s.where}" if s.where else "" if s.metric == plugin else f" ({s.metric})"
    entry = next((e for e in s.entries if e.method == method), None)
    if entry is None:
        return f"{quantity}{where} not scored"
    said = f"{quantity}{where} {_interval(entry)}"
    if s.chance is not None:
        said += f", random scores {s.chance.mean:.3f}"
    if entry.share is not None:
        said += f", {_percent(entry.share)} of what a search found possible"
    return said


def _interval(e: Entry) -> str:
    if e.n < FEW:
        return f"{e.mean:.3f} ({e.n} of the texts: too few to say how sure)"
    return f"{e.mean:.3f} (95 % interval {e.low:.3f} to {e.high:.3f}, {e.n} texts)"


def _how_sure(tests: Sequence[Standing], use: str, tied: Sequence[str], disagree: bool) -> str:
    telling = [s for s in tests if _able(s)]
    near = set().union(*(_near(s) for s in telling)) - {use}
    said = ""
    hidings = [s.where for s in telling if s.where and use in _leaders(s)]
    if disagree:
        said += f" The tests disagree: best or tied are {_leads(telling)}."
    elif len(hidings) > 1:
        said += f" It is best{' or tied' if near else ''} with words {listed(hidings)}."
    elif hidings and len(tests) == 1:
        said += f" Words were hidden in one way only ({hidings[0]})."
    silent = [_under(s) for s in tests if not _able(s)]
    if silent:
        said += f" No method is shown to beat random scores {listed(silent)}."
    same = [m for m in tied if all(_mean(s, m) == _mean(s, use) for s in telling)]
    others = [m for m in tied if m not in same]
    partly = _in_order(telling, near - {*tied})
    if same:
        said += f" {listed(same)} score{'s' if len(same) == 1 else ''} the same."
    if others:
        said += f" Not told apart from it: {listed(others)}{_seen(telling)}."
    if partly and not disagree:
        said += f" Best or tied in some of these tests: {listed(partly)}."
    if not near and all(sum(not e.is_chance for e in s.entries) > 1 for s in telling):
        where = f" {listed([_under(s) for s in telling])}" if silent else ""
        said += (
            f" It leads every other method{where} (corrected p < {LEVEL}){_close(telling, use)}."
        )
    chancy = [{e.method for e in s.entries if e.better_than_chance is False} for s in telling]
    never = set.intersection(*chancy)
    for methods, where in ((never, ""), (set.union(*chancy) - never, " in every test")):
        if methods:
            late = listed(_in_order(telling, methods))
            said += f" Not shown{where} to beat random scores: {late}."
    if not any(e.is_chance for s in tests for e in s.entries):
        said += f" {NO_CHANCE}."
    return said


def _seen(tests: Sequence[Standing]) -> str:
    """What else could have been told apart: nothing, of too few texts."""
    few = [s for s in tests if s.detectable is None and s.comparisons]
    if few:
        k = max(s.comparisons for s in few)
        return f" (to tell methods apart in {k} comparisons takes {texts_needed(k)} texts)"
    apart = [s.detectable for s in tests if s.detectable]
    return f" (differences below {max(apart):.2g} may be missed)" if apart else ""


def _close(tests: Sequence[Standing], use: str) -> str:
    """A lead that is sure may be small: whoever gains almost as much in every test."""
    others = {e.method for s in tests for e in s.entries if not e.is_chance} - {use}
    near = {m: gain for m in others if (gain := _least_gain(tests, m, use)) >= NEARLY}
    if not near:
        return ""
    best = max(near, key=lambda m: (near[m], m))
    return f", but not by much: {best} gains {_percent(near[best])} of what it gains over chance"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _leads(tests: Sequence[Standing]) -> str:
    """Who leads where."""
    return "; ".join(
        f"{listed(_in_order([s], _leaders(s)))} {_under(s)}" for s in tests if _leaders(s)
    )


def _mean(s: Standing, method: str) -> float | None:
    return next((e.mean for e in s.entries if e.method == method), None)


def _under(s: Standing) -> str:
    return f"with words {s.where}" if s.where else f"by {s.metric}"


def _recommended(
    run: Run, found: Sequence[Standing], said: Sequence[Verdict], state: Health, costs: Costs
) -> Recommendation:
    repeat = _repeat_command(run)
    if state.fault:
        sentence = f"No method is recommended for {state.model}: {state.fault}."
        again = _repeat_command(run, anew=True, labels=state.order)
        return Recommendation(model=state.model, method=None, sentence=sentence, repeat=again)
    cautions = list(state.cautions)
    if run.partial is not None:
        cautions.append(
            f"the budget held {run.partial['texts']:,} of {run.partial['of']:,} texts only: a "
            "larger --budget goes on from here"
        )
    target = _target(run)
    if target:
        cautions.append(f"this is told of explanations for {target}, whatever the model answers")
    advised = [v for v in said if v.use]
    if not advised:
        repeat = _repeat_command(run, anew=True)
        why = said[0].sentence if said else "No test that ranks methods was run."
        return Recommendation(
            model=state.model,
            method=None,
            sentence=f"No method is recommended for {state.model}. {why}",
            cautions=tuple(cautions),
            repeat=repeat,
        )
    method = _best_overall(state.model, advised, costs)
    fits = [v for v in advised if method in (v.use, *v.tied)]
    others = [v for v in advised if v not in fits]
    sentence = (
        f"Use {_with_questions(method, state.model, costs)} to {listed([v.purpose for v in fits])}."
    )
    sentence += "".join(f" To {v.purpose}, {v.use} does better{_but(v)}." for v in others)
    equals = set.intersection(*({v.use or "", *v.tied} for v in fits)) - {method}
    if equals:
        sentence += f" Not told apart from it here: {listed(sorted(equals))}."
    for v in advised:
        tests = [s for s in found if s.headline and s.purpose == v.purpose and _able(s)]
        if v.disagree:
            cautions.append(f"tests disagree on what is best to {v.purpose}: {_leads(tests)}")
        elif not any(s.chance for s in tests):
            cautions.append(NO_CHANCE[0].lower() + NO_CHANCE[1:])
        silent = [_under(s) for s in found if s.headline and s.purpose == v.purpose and s.best]
        silent = [name for name in silent if name not in [_under(s) for s in tests]]
        if silent:
            cautions.append(
                f"no method is shown to {v.purpose} better than random scores {listed(silent)}"
            )
    cautions = list(dict.fromkeys(cautions))
    cautions += [v.sentence.removesuffix(".") for v in said if not v.use]
    cost = costs.get((state.model, method))
    reasons = [] if cost is None else [_cost_sentence(method, cost)]
    reasons += _cheaper(found, method, state.model, costs)
    return Recommendation(
        model=state.model,
        method=method,
        sentence=sentence,
        effect=_effect(run, found, method),
        reasons=tuple(reasons),
        cautions=tuple(cautions),
        explain=_explain_command(run, state.model, method),
        repeat=repeat,
    )


def _best_overall(model: str, advised: Sequence[Verdict], costs: Costs) -> str:
    """The method that is best or tied for most purposes, those first that tell whether it is true
    of the model; then the one most often best; then the one that asks less."""
    methods = {m for v in advised if v.use for m in (v.use, *v.tied)}

    def rank(method: str) -> tuple[int, int, int, float, str]:
        fits = [v for v in advised if method in (v.use, *v.tied)]
        return (
            -sum(v.quality == "faithfulness" for v in fits),
            -len(fits),
            -sum(method == v.use for v in advised),
            _questions(method, model, costs),
            method,
        )

    return min(methods, key=rank)


def _but(verdict: Verdict) -> str:
    """What doing better does not mean."""
    if verdict.quality != "plausibility":
        return ""
    return " (that it names the words people would does not mean that the model used them)"


def _effect(run: Run, found: Sequence[Standing], method: str) -> str:
    """How often hiding a few words changes the answer, beside random words and the best found, for
    each way of hiding by which it differs."""
    if _target(run):  # hiding words for another label is not meant to change the answer
        return ""
    told: list[str] = []
    shown: set[str] = set()
    first, many = FIRST, ""
    for s in found:
        entry = next((e for e in s.entries if e.method == method and e.n), None)
        if s.name != CHANGED or entry is None or _percent(entry.mean) in shown:
            continue
        shown.add(_percent(entry.mean))
        first = int(run.asked["metrics"][s.metric]["settings"].get("first", FIRST))
        many = f"{entry.n} text{'s' if entry.n > 1 else ''}"
        beside = [f"words {s.where}"]
        if s.chance is not None:
            beside.append(f"{first} at random {_percent(s.chance.mean)}")
        if s.ceiling is not None:
            beside.append(
                f"on {s.searched} texts searched: the best {first} found {_percent(s.ceiling)}, "
                f"{method}'s {_percent(entry.on_searched)}"
            )
        told.append(f"{_percent(entry.mean)} of the answers ({'; '.join(beside)})")
    if not told:
        return ""
    words = f"{first} words" if first > 1 else "word"
    return f"Of {many}, hiding the {words} that {method} marks changes {listed(told)}."


def _cost_sentence(method: str, cost: Cost) -> str:
    seconds, questions = cost.seconds / cost.examples, cost.questions / cost.examples
    took = f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
    asked = f" and {questions:,.0f} questions to the model" if questions >= 1 else ""
    return f"{method} costs {took}{asked} a text."


def _cheaper(found: Sequence[Standing], method: str, model: str, costs: Costs) -> list[str]:
    """The cheapest method that gains almost as much over chance in every headline test of
    faithfulness, if it asks far less."""
    tests = [s for s in found if s.headline and s.quality == "faithfulness" and s.chance]
    dear = costs.get((model, method))
    if dear is None or not tests or dear.questions < 10 * dear.examples:
        return []
    nearly: list[tuple[float, str, float]] = []
    for other in {e.method for s in tests for e in s.entries} - {method}:
        cost = costs.get((model, other))
        if cost is None:
            continue
        least = _least_gain(tests, other, method)
        asked = cost.questions / cost.examples
        if least >= NEARLY and asked * MUCH_CHEAPER <= dear.questions / dear.examples:
            nearly.append((asked, other, least))
    return [
        f"{other} does nearly as well at {asked:,.0f} questions a text: in every test of "
        f"faithfulness it gains at least {_percent(least)} of what {method} gains over chance."
        for asked, other, least in sorted(nearly)[:1]
    ]


def _least_gain(tests: Sequence[Standing], other: str, method: str) -> float:
    """What one method gains over chance as a share of what another does, in its worst test; nothing
    where it was not scored or chance is not known."""
    least = math.inf
    for s in tests:
        means = {e.method: e.mean for e in s.entries if e.n}
        if s.chance is None or other not in means or method not in means:
            return 0.0
        room = means[method] - s.chance.mean
        least = min(least, (means[other] - s.chance.mean) / room if abs(room) > 1e-9 else 0.0)
    return least


def _explain_command(run: Run, model: str, method: str) -> str:
    source = run.asked.get("sources", {}).get(model)
    target = _target(run)
    if source is None:
        more = f", target={target!r}" if target else ""
        return f"veracity.explain(model, text, {method!r}{more})"
    more = f" --target {shlex.quote(target)}" if target else ""
    return f"veracity explain {source} 'a text' --method {shlex.quote(method)}{more}"


def _target(run: Run) -> str:
    """The label that was explained whatever the answer; empty where it was the answer."""
    target = run.asked["target"]
    if target in ("predicted", "gold"):
        return "" if target == "predicted" else "the right label"
    return run.labels[int(target)]


def _repeat_command(run: Run, *, anew: bool = False, labels: Sequence[str] = ()) -> str:
    """What makes this audit again; where it must be another one, with a folder of its own, all
    texts, and the labels in the order that fits."""
    command = str(run.asked.get("command", ""))
    if not command:
        place = f"{run.folder}-again" if anew else str(run.folder)
        return f"veracity.audit(model, data, out={place!r}) with the same arguments"
    if not anew:
        return command
    words = shlex.split(command)
    dropped = {"--out", "--limit", "--json", *(("--labels",) if labels else ())}
    kept: list[str] = []
    skip = False
    for word in words:
        name = word.partition("=")[0]
        if not skip and name not in dropped:
            kept.append(word)
        skip = not skip and word in dropped - {"--json"}
    more = ["--labels", ",".join(labels)] if labels else []
    return shlex.join([*kept, *more, "--out", f"{run.folder}-again"])


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
