"""A run's answer: how each model fares, what its tests say, and one recommendation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..core.counts import counted, duration
from ..core.examples import UNLABELLED, written_labels
from ..core.images import Image
from ..core.inputs import Nouns, Text
from ..core.metrics import CHANGED, FIRST
from .health import Health, health
from .run import Cost, Run
from .sampling import STEADY, draw_correlation
from .standings import Standing, standings
from .statistics import at_least, percent
from .verdicts import (
    NEARLY,
    NO_CHANCE,
    Costs,
    Verdict,
    ahead_at_home,
    condition,
    leaders_by_test,
    least_share_of_lead,
    listed,
    not_like_chance,
    questions_per_text,
    verdicts,
    with_questions,
)

MUCH_CHEAPER = 4
"""It is told where the best asks so many times as much."""

HARDLY = 0.05
"""Answers that change no oftener hardly change."""

FAR_OFTENER = 5
"""So many times as often marked words must change answers to be what they hang on."""

FEW_TEXTS = 20
"""What holds of fewer, however surely, is told with a caution."""

PLACEHOLDERS = {Text.kind: "MORE_TEXTS.csv", Image.kind: "MORE_PICTURES"}
"""By kind of input, a file or folder that is still to be made."""


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
    tested = any(not about.of_model for about in run.config.metrics.values())
    found = standings(run) if tested else []
    costs = {(c.model, c.method): c for c in run.costs() if c.examples}
    conclusions = []
    for model in run.models:
        own = [s for s in found if s.model == model]
        state = replace(health(run, model), by_words=_goes_by_words(own))
        advised = [v for v in _model_verdicts(run, own, state, costs) if v.use]
        best = _best_overall(model, advised, costs) if advised else ""
        said = _model_verdicts(run, own, state, costs, preferred=best)
        conclusions.append(
            Conclusion(model, state, tuple(said), _recommended(run, own, said, state, costs))
        )
    return Conclusions(tuple(found), tuple(conclusions))


def _model_verdicts(
    run: Run, found: Sequence[Standing], state: Health, costs: Costs, *, preferred: str = ""
) -> list[Verdict]:
    """The verdicts, without a method whose marked words change the answers no oftener than others
    do: it may order words best, and what it would show does not decide."""
    return [
        replace(v, use=None, tied=(), leads=False, disagree=False, reason=why)
        if (why := _no_effect(run, found, v))
        else v
        for v in verdicts(found, state, costs, preferred=preferred)
    ]


def _no_effect(run: Run, found: Sequence[Standing], verdict: Verdict) -> str:
    """That hiding a method's first words changes answers no oftener than hiding others, under
    every way of hiding; empty where it does, or where that was not asked."""
    best = (verdict.use, *verdict.tied)
    some = [
        (s, s.chance, entry)
        for s in found
        if s.name == CHANGED and s.metric in verdict.metrics and s.chance is not None
        for entry in s.entries
        if entry.method in best and entry.n
    ]
    tests = [one for one in some if one[2].method == verdict.use]
    if not tests or _target(run) or any(e.mean > chance.mean for _, chance, e in some):
        return ""
    nouns, first = (
        run.nouns,
        int(run.config.metrics[tests[0][0].metric].settings.get("first", FIRST)),
    )
    changes = listed(
        [
            f"{percent(e.mean)} of the answers ({nouns.units} {s.where}; {first} at random "
            f"{percent(chance.mean)})"
            for s, chance, e in tests
        ]
    )
    return (
        f"no method is recommended: hiding the {first} {nouns.units} that {verdict.use}, the best, "
        f"scores highest changes {changes}. So few {nouns.units} do not "
        f"decide here: do not show them as what the decision hangs on."
    )


def _goes_by_words(found: Sequence[Standing]) -> bool:
    """Whether hiding the words that a method marks changes many answers, and hiding as many others
    hardly any: then it is these words, not how many there are."""
    return any(
        s.chance.mean <= HARDLY
        and any(e.better_than_chance and e.mean >= FAR_OFTENER * HARDLY for e in s.entries)
        for s in found
        if s.name == CHANGED and s.chance is not None
    )


def _recommended(
    run: Run, found: Sequence[Standing], said: Sequence[Verdict], state: Health, costs: Costs
) -> Recommendation:
    if state.fault:
        sentence = f"No method is recommended for {state.model}: {state.fault}."
        again = _next_command(run, labels=state.label_order, more_texts=state.wants_texts)
        return Recommendation(model=state.model, method=None, sentence=sentence, repeat=again)
    # what voids most comes first: noise, then what is wrong with all answers, with the choice of a
    # method, with some answers
    cautions = list(state.cautions)
    narrower = [*state.rare_cautions, *_narrower(run)]
    advised = [v for v in said if v.use]
    if not advised:
        # what more texts will not mend comes first
        why = min(said, key=lambda v: v.more_texts, default=None)
        reason = why.sentence if why else "No test that ranks methods was run."
        return Recommendation(
            model=state.model,
            method=None,
            sentence=f"No method is recommended for {state.model}. {reason}",
            cautions=(*cautions, *narrower),
            repeat=_next_command(run, more_texts=why is not None and why.more_texts),
        )
    method = _best_overall(state.model, advised, costs)
    noisy = _noisy(run, state.model, method)
    place = 1 if state.unsteady else 0  # that the model itself is unsteady comes before
    cautions = [*cautions[:place], *noisy, *cautions[place:]]
    fits = [v for v in advised if method in (v.use, *v.tied)]
    others = [v for v in advised if v not in fits]
    sentence = (
        f"Use {with_questions(method, state.model, costs, run.nouns)} to "
        f"{listed([v.purpose for v in fits])}."
    )
    sentence += "".join(
        f" To {v.purpose}, {v.use} does better{_but(v, run.nouns)}." for v in others
    )
    equals = set.intersection(*({v.use or "", *v.tied} for v in fits)) - {method}
    if equals:
        sentence += f" Not told apart from it here: {listed(sorted(equals))}."
    cautions += _home_advantages(run, found, fits, method)
    for v in advised:
        tests = [s for s in found if s.headline and s.purpose == v.purpose and not_like_chance(s)]
        if v.disagree:
            cautions.append(
                f"tests disagree on what is best to {v.purpose}: {leaders_by_test(tests)}"
            )
        elif not any(s.chance for s in tests):
            cautions.append(NO_CHANCE[0].lower() + NO_CHANCE[1:])
        silent = [condition(s) for s in found if s.headline and s.purpose == v.purpose and s.best]
        silent = [name for name in silent if name not in [condition(s) for s in tests]]
        if silent:
            cautions.append(
                f"no method is shown to {v.purpose} better than random scores {listed(silent)}"
            )
    cautions = list(dict.fromkeys([*cautions, *narrower]))
    cautions += [
        v.sentence[:1].lower() + v.sentence[1:].removesuffix(".") for v in said if not v.use
    ]
    cost = costs.get((state.model, method))
    reasons = [] if cost is None else [_cost_sentence(method, cost, run.nouns)]
    reasons += _cheaper(found, method, state.model, costs)
    return Recommendation(
        model=state.model,
        method=method,
        sentence=sentence,
        effect=_effect(run, found, method) + _by_answer(run, found, state, method),
        reasons=tuple(reasons),
        cautions=tuple(cautions),
        explain=_explain_command(run, state.model, method),
        repeat=run.config.command
        or f"veracity.audit(model, data, out={str(run.folder)!r}) with the same arguments",
    )


def _homes(run: Run, method: str) -> set[str]:
    """The tests that hide as the method does itself."""
    own = run.config.explainers[method].settings.get("hiding")
    return {
        spec
        for spec, about in run.config.metrics.items()
        if own is not None and about.settings.get("hiding") == own
    }


def _home_advantages(
    run: Run, found: Sequence[Standing], fits: Sequence[Verdict], method: str
) -> list[str]:
    """Whom the method is ahead of only where tests hide as it does itself."""
    homes, said = _homes(run, method), dict[str, list[str]]()
    for v in fits:
        tests = [s for s in found if s.headline and s.purpose == v.purpose]
        if rivals := ahead_at_home(tests, method, homes):
            where = next(condition(s) for s in tests if s.metric in homes)
            told = f"{method} is ahead of {listed(rivals)} only {where}, which is how it hides"
            said.setdefault(f"{told} {run.nouns.units} itself", []).append(v.purpose)
    everywhere = [len(purposes) == len(fits) for purposes in said.values()] == [True]
    return [
        text if everywhere else f"to {listed(purposes)}, {text}" for text, purposes in said.items()
    ]


def _noisy(run: Run, model: str, method: str) -> list[str]:
    """That the order of the method's words is mostly luck, if it is."""
    correlation = draw_correlation(run, model, method)
    if correlation is None or correlation >= STEADY:
        return []
    return [
        f"the order of {method}'s {run.nouns.units} is mostly sampling noise: drawn again, its "
        f"scores correlate by {correlation:.2f} only. Give it more questions a {run.nouns.one}"
    ]


def _narrower(run: Run) -> list[str]:
    """Of what alone the audit tells: explanations for one label, as many texts as were paid for."""
    found = []
    target = _target(run)
    if target:
        found.append(f"this is told of explanations for {target}, whatever the model answers")
    if run.partial is not None:
        found.append(
            f"the budget held {run.partial.texts:,} of {run.partial.of:,} {run.nouns.many} only: a "
            "larger --budget goes on from here"
        )
    if (size := run.config.dataset.size) < FEW_TEXTS:
        found.append(
            f"{run.nouns.counted(size)} are few: its figures are rough, and others may show "
            "otherwise"
        )
    return found


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
            questions_per_text(method, model, costs),
            method,
        )

    return min(methods, key=rank)


def _but(verdict: Verdict, nouns: Nouns) -> str:
    """What doing better does not mean."""
    if verdict.quality != "plausibility":
        return ""
    return f" (that it names the {nouns.units} people would does not mean that the model used them)"


def _effect(run: Run, found: Sequence[Standing], method: str) -> str:
    """How often hiding a few words changes the answer, beside random words and the best found, for
    each way of hiding by which it differs."""
    if _target(run):  # hiding words for another label is not meant to change the answer
        return ""
    changes: list[str] = []
    shown: set[str] = set()
    first, many, nouns = FIRST, "", run.nouns
    for s in found:
        entry = next((e for e in s.entries if e.method == method and e.n), None)
        if s.name != CHANGED or entry is None or percent(entry.mean) in shown:
            continue
        shown.add(percent(entry.mean))
        first = int(run.config.metrics[s.metric].settings.get("first", FIRST))
        many = f"{entry.n} {nouns.many if entry.n > 1 else nouns.one}"
        beside = [f"{nouns.units} {s.where}"]
        if s.chance is not None:
            # one draw a text: few texts tell roughly what others would do
            low, high = 100 * max(0.0, s.chance.low), 100 * s.chance.high
            beside.append(f"{first} at random {percent(s.chance.mean)}, {low:.0f} to {high:.0f}")
        if s.ceiling is not None:
            beside.append(
                f"on {s.searched} {nouns.many} searched: the best {first} found "
                f"{percent(s.ceiling)}, {method}'s {percent(entry.on_searched)}"
            )
        changes.append(f"{percent(entry.mean)} of the answers ({'; '.join(beside)})")
    if not changes:
        return ""
    units = f"{first} {nouns.units}" if first > 1 else nouns.unit
    by = "scores highest for the answer" if run.config.explainers[method].signed else "marks"
    return f"Of {many}, hiding the {units} that {method} {by} changes {listed(changes)}."


def _by_answer(run: Run, found: Sequence[Standing], state: Health, method: str) -> str:
    """Where some answers are rare, what hiding does to each: one figure would be that of the
    common ones, or hide that only the rare ones change."""
    test = next((s for s in found if s.name == CHANGED and s.chance), None)
    if not state.rare or test is None or _target(run):
        return ""
    answers = run.predictions(state.model)
    counts: dict[str, list[float]] = {}
    for example, value in run.column(test.metric, CHANGED, state.model).of(method).items():
        counts.setdefault(run.labels[int(np.argmax(answers[example]))], []).append(value)
    rows = [f"{name} {sum(v):.0f} of {len(v)}" for name, v in sorted(counts.items())]
    return f" By answer ({run.nouns.units} {test.where}): {', '.join(rows)}."


def _cost_sentence(method: str, cost: Cost, nouns: Nouns) -> str:
    questions = cost.questions_per_text
    answers = f" and {counted(questions, 'question')} to the model" if questions >= 1 else ""
    return f"{method} costs {duration(cost.seconds_per_text)}{answers} a {nouns.one}."


def _cheaper(found: Sequence[Standing], method: str, model: str, costs: Costs) -> list[str]:
    """The cheapest method that gains almost as much over chance in every headline test of
    faithfulness, if it asks far less."""
    tests = [s for s in found if s.headline and s.quality == "faithfulness" and s.chance]
    dear = costs.get((model, method))
    if dear is None or not tests or dear.questions_per_text < 10:
        return []
    nearly: list[tuple[float, str, float, float]] = []
    for other in {e.method for s in tests for e in s.entries} - {method}:
        cost = costs.get((model, other))
        if cost is None:
            continue
        least = least_share_of_lead(tests, other, method)
        questions = cost.questions_per_text
        if least >= NEARLY and questions * MUCH_CHEAPER <= dear.questions_per_text:
            nearly.append((questions, other, least, cost.seconds_per_text))
    return [
        f"{other} does nearly as well at {counted(questions, 'question')} and "
        f"{duration(seconds)} a {tests[0].nouns.one}: in every test by hiding it gains at least "
        f"{at_least(least)} of what {method} gains over chance{_apart(tests, other)}."
        for questions, other, least, seconds in sorted(nearly)[:1]
    ]


def _apart(tests: Sequence[Standing], other: str) -> str:
    """In how many tests a method is surely behind all the same."""
    behind = sum(
        not (e.is_best or e.tied_with_best) for s in tests for e in s.entries if e.method == other
    )
    return f", though it is told apart from the best in {behind} of {len(tests)}" if behind else ""


def _explain_command(run: Run, model: str, method: str) -> str:
    source = run.config.sources.get(model)
    target = _target(run)
    if source is None:
        more = f", target={target!r}" if target else ""
        return f"veracity.explain(model, {run.nouns.one}, {method!r}{more})"
    labels = [name for name in run.labels if name != UNLABELLED]
    known = list(run.config.models[model].labels)
    if "--labels" not in shlex.split(source) and known != labels:
        source += f" --labels {shlex.quote(written_labels(labels))}"  # it has only numbers for them
    more = f" --target {shlex.quote(target)}" if target else ""
    shown = f"{run.nouns.sample}{_as_read(run)} --method {shlex.quote(method)}"
    return f"veracity explain {source} {shown}{more}"


def _as_read(run: Run) -> str:
    """The options with which the run's pictures were brought to their size and cut."""
    found = ""
    for option in ("--size", "--segments"):
        _, given = _without(shlex.split(run.config.command), {option})
        found += "".join(f" {option} {shlex.quote(value)}" for value in given[-1:])
    return found


def _target(run: Run) -> str:
    """The label that was explained whatever the answer; empty where it was the answer."""
    target = run.config.target
    if target in ("predicted", "gold"):
        return "" if target == "predicted" else "the right label"
    return run.labels[int(target)]


def _next_command(run: Run, *, labels: Sequence[str] = (), more_texts: bool = False) -> str:
    """The audit to make once what is wrong is mended: with a folder of its own, the labels in the
    order that fits, and more texts where these do not tell: all where this was a sample, else a
    file that is still to be made; nothing where this command could not be told apart."""
    command = run.config.command
    place = f"{run.folder}-again"
    if not command:
        data = f"more_{run.nouns.many}" if more_texts else "data"
        return f"veracity.audit(model, {data}, out={place!r}) with the same arguments"
    options = {"--out", "--json"} | ({"--labels"} if labels else set())
    kept, _ = _without(shlex.split(command), options)
    if more_texts:
        kept, limits = _without(kept, {"--limit"})
        size = run.config.dataset.size
        if not any(limit.isdecimal() and int(limit) <= size for limit in limits):
            place_of_data = [i for i, word in enumerate(kept) if i > 1 and _is_data(run, word)]
            if not place_of_data:
                return ""
            kept[place_of_data[0]] = PLACEHOLDERS.get(run.config.dataset.kind, "MORE")
    more = ["--labels", written_labels(labels)] if labels else []
    return shlex.join([*kept, *more, "--out", place])


def _without(words: Sequence[str], options: set[str]) -> tuple[list[str], list[str]]:
    """A command without some of its options, and what these were given."""
    kept: list[str] = []
    given: list[str] = []
    skip = False
    for word in words:
        name, equals, value = word.partition("=")
        if skip:
            given.append(word)
        elif name not in options:
            kept.append(word)
        elif equals:
            given.append(value)
        skip = not skip and word in options - {"--json"}
    return kept, given


def _is_data(run: Run, word: str) -> bool:
    """Whether a word of a command names the data, which are called as their file without ends; a
    model may be called the same."""
    if word in [shlex.split(source)[0] for source in run.config.sources.values()]:
        return False
    name = run.config.dataset.name
    return name in (word, Path(word).name.removesuffix(".gz").rsplit(".", 1)[0])
