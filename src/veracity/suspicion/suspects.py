"""What a model leans on beyond what it means for the task, with evidence and a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..auditing.explaining import check_ability
from ..auditing.labels import fit_labels
from ..auditing.planning import SuspectsPlan, planned_suspects
from ..auditing.selection import named_models
from ..core.classifiers import Classifier, Traits
from ..core.errors import DataError, PluginError
from ..core.examples import Dataset, check_texts
from ..core.explainers import Explainer
from ..core.inputs import BoolArray, FloatArray, IntArray
from ..core.progress import Progress, Watcher
from ..data.loading import load_data
from ..data.splits import sampled
from ..data.vectors import GLOVE
from ..data.words import read_text
from ..engine.call_counter import count_calls
from ..engine.inference import probabilities
from ..explainers import explainers as known_explainers
from ..results.health import BY_LENGTH, ROUNDING, Health, judged
from ..results.separability import length_auc, separable_answers
from .candidates import CASING, FIRST, LAST, SIGN, WORD, Candidates, WordTable
from .decisions import FLIPS, MIN_COVERAGE, MORE_THAN_LABELS, WEAK_CUE
from .evidence import Evidence, RankedCandidate
from .expectation import LabelNames, WordVectors, vector_coverage
from .interventions import N_TEXTS, Interventions
from .record import Suspect, Suspects
from .scoring import score_candidates, score_threshold, texts_needed, weigh_candidates
from .sentences import detection_limit, redundant, uncovered
from .separability import candidates_auc, surface_auc
from .surface import SurfaceTrials, n_batches, neutral_words
from .topics import topics_of
from .weighing import (
    REDUNDANT_METHOD,
    REDUNDANT_SHARE,
    PartlyScored,
    default_method,
    explained_share,
    word_scores,
)

LEAST_TEXTS = 10
"""What stands in fewer texts is not judged."""

TEXTS = 3000
"""How many texts are looked at unless more are asked for."""

HEAVY = 0.3
"""A sign or a way of writing that brings about so much of the spread of answers, as a correlation,
and changes as many of them as `FLIPS` is told even where labels do not follow it; honest models of
reviews, tweets and topics had up to .12."""

ASKED_AGAIN = 20
"""So many texts are asked about twice, to see whether answers are steady."""

HALF = 0.5
"""From this share of turned answers on, it is length that turns them."""

MOST_UNFOLLOWED = 3
TOPICS = 6
MAX_DOTS = 1500
"""So many words are shown in the plot of weights against expectations."""


def default_vectors() -> str:
    """The packaged vectors, which are English, if they are there."""
    return "glove" if find_spec(GLOVE) else "none"


def suspects(
    model: Any,
    data: str | Path | Dataset,
    *,
    method: str | Explainer | None = None,
    limit: int | None = TEXTS,
    top: int = 10,
    false_alarms: float = 0.05,
    least_texts: int = LEAST_TEXTS,
    vectors: str | None = None,
    seed: int = 0,
    watch: Watcher = lambda _: None,
    tell_plan: Callable[[SuspectsPlan], None] = lambda _: None,
) -> Suspects:
    """Words, phrases and habits that weigh more in a model than their meaning warrants.

    `top` is how many are looked into closely, found or not; `vectors` tell what words mean: glove,
    a file, or none. By vectors that hardly cover the texts no word is judged. `tell_plan` hears
    what is going to be asked; a model with a budget is asked about as many texts as that holds.
    """
    if not 0 < false_alarms < 1:
        raise PluginError(f"expected a rate of false alarms between 0 and 1, got {false_alarms}")
    if top < 1 or least_texts < 2:
        raise PluginError(
            f"expected a top of 1 or more and at least 2 texts, got {top} and {least_texts}"
        )
    ((name, loaded),) = named_models(model).items()
    explainer = known_explainers.make(method or default_method(loaded))
    check_ability(explainer, loaded)
    given = load_data(data)
    check_texts(given, "looking for suspects")
    part = sampled(fit_labels(given, {name: loaded}), limit, seed=seed)
    if not part.labelled:
        raise DataError(f"{part.name} has no labels; what a word should weigh is told by them")
    plan = planned_suspects(
        part, explainer, top=top, tried=N_TEXTS, surface=n_batches(part),
        budget=Traits(loaded).budget,
        least=min(len(part), 2 * least_texts), seed=seed,
    )  # fmt: skip
    tell_plan(plan)

    # asked in another way where words one by one tell nothing, if nobody chose the way
    by_one = method is None and explainer.plugin_name() == "occlusion"
    search = _Search(
        name=name,
        model=loaded,
        explainer=explainer,
        fallback=REDUNDANT_METHOD if by_one and not Traits(loaded).costly else "",
        false_alarms=false_alarms,
        least_texts=least_texts,
        vectors=vectors or default_vectors(),
        seed=seed,
        watch=watch,
    )
    remark = "" if len(plan.data) == plan.of else f"Chosen: {plan.sentence}"
    while True:
        try:
            return _found(search, plan, remark)
        except PartlyScored as spent:
            share = f"{len(spent.scored):,} of {len(plan.data):,} texts"
            remark = f"All of this is told by {share}, since {spent}"
            # nothing of these is asked again: answers are kept
            plan = replace(plan, data=plan.data.select(sorted(spent.scored)))


@dataclass(frozen=True, kw_only=True)
class _Search:
    """What was asked for, whichever texts it is told by."""

    name: str
    model: Classifier
    explainer: Explainer
    fallback: str
    """The method that hides words together, where hiding them one by one tells nothing."""
    false_alarms: float
    least_texts: int
    vectors: str
    seed: int
    watch: Watcher


def _found(search: _Search, plan: SuspectsPlan, remark: str) -> Suspects:
    """All that was asked for, of the texts that were chosen."""
    data, top = plan.data, plan.top
    model, seed = search.model, search.seed
    words = WordTable.of([e.input for e in data])
    word_vectors = WordVectors.of(words.forms, search.vectors)
    coverage = vector_coverage(words, word_vectors, search.vectors)
    candidates = _candidates(words, data, search.least_texts, search.vectors, coverage)
    explained_labels = [1] if len(data.labels) == 2 else list(range(len(data.labels)))
    n_candidates = len(candidates) * len(explained_labels)
    with count_calls() as calls:

        def scored(by: Explainer) -> FloatArray:
            return word_scores(
                model, data, by, explained_labels, seed=seed,
                watch=lambda p: search.watch(replace(p, total=p.total + top)),
            )  # fmt: skip

        explainer = search.explainer
        scores = scored(explainer)
        gold = np.array([e.label for e in data])
        answers = probabilities(model, [e.input for e in data])
        answered = answers.argmax(axis=1)
        lengths = {e.id: (e.input.n_features, len(e.input.text)) for e in data}
        by_length = length_auc(lengths, dict(zip(lengths, answered.tolist(), strict=True)))
        share, unmoved = explained_share(model, words, scores, explained_labels, answers)
        is_redundant = share is not None and abs(share) < REDUNDANT_SHARE
        label_length_auc = length_auc(lengths, dict(zip(lengths, gold.tolist(), strict=True)))
        turned = None
        telling = by_length >= BY_LENGTH or by_length - label_length_auc >= MORE_THAN_LABELS
        if telling and not Traits(model).costly:
            turned = _turned_by_length(model, data, answered)
        if is_redundant and search.fallback and by_length >= BY_LENGTH and turned is not None:
            # where length decides, words weigh little alone or together
            is_redundant = turned < HALF
        if share is not None and is_redundant:
            if search.fallback:
                explainer = known_explainers.make(search.fallback)
                scores = scored(explainer)
            reason = redundant(share, unmoved, explainer.spec, switched=bool(search.fallback))
            remark = f"{remark}. {reason}" if remark else reason
        evidence = Evidence(
            data=data,
            candidates=candidates,
            vectors=word_vectors,
            answers=answers,
            gold=gold,
            topics=topics_of(words, TOPICS, seed=seed),
            label_names=LabelNames.of(data.labels, words.forms, search.vectors),
            interventions=Interventions(
                model=model, data=data, candidates=candidates, seed=seed, n_texts=plan.tried
            ),
            n_candidates=n_candidates,
        )
        ranked = []
        for row, label in zip(scores, explained_labels, strict=True):
            weights = weigh_candidates(candidates, row, gold == label)
            scored_all = score_candidates(weights, word_vectors, n_candidates=n_candidates)
            ranked += [
                RankedCandidate(label, i, row, weights, scored_all) for i in range(len(candidates))
            ]
        ranked.sort(key=lambda r: (-r.size, r.label, r.candidate))
        threshold = score_threshold(search.false_alarms, len(data), n_candidates)
        leaders = _leaders(
            ranked, evidence, top, threshold,
            lambda n: search.watch(
                Progress(len(data) + n, len(data) + max(n, top), "trying suspects")
            ),
        )  # fmt: skip
        surface_trials = SurfaceTrials(
            model=model, data=data, answered=answered, seed=seed, n_texts=plan.surface_tried,
            neutral=neutral_words(words, scores, least=search.least_texts),
        ).found()  # fmt: skip
        found = tuple(s for s in leaders if s.p_value <= search.false_alarms)
        health = judged(Health(model=search.name, texts=len(data)), gold, answered, data.labels)
        told = {name for s in found for name in (s.name, *s.also)}
        # labels in another order follow nothing that the model rightly goes by
        unfollowed = () if health.label_order else _unfollowed(ranked, evidence, told)
    known = {s.name for s in unfollowed}
    enough = texts_needed(WEAK_CUE, search.false_alarms, n_candidates)
    return Suspects(
        model=search.name,
        data=data.name,
        labels=data.labels,
        method=explainer.spec,
        vectors=search.vectors,
        texts=len(data),
        n_candidates=n_candidates,
        least_texts=search.least_texts,
        false_alarms=search.false_alarms,
        threshold=threshold,
        accuracy=float(np.mean(answered == gold)),
        questions=calls.questions,
        seed=seed,
        found=found,
        others=tuple(
            s
            for s in leaders
            if s.p_value > search.false_alarms and s.name not in known and not _unseen(s)
        ),
        unfollowed=unfollowed,
        fault=health.fault or health.caution,
        dots=_dots(ranked, candidates),
        coverage=coverage,
        remark=remark,
        detection_limit=detection_limit(len(data), search.least_texts, threshold, enough),
        length_auc=by_length,
        label_length_auc=label_length_auc,
        turned_by_length=turned,
        candidates_auc=candidates_auc(candidates, answered, seed=seed),
        surface_auc=surface_auc([e.input.text for e in data], answered),
        surface_trials=surface_trials,
        all_or_nothing=float(np.mean((answers == 0).any(axis=1))),
        single_answer=data.labels[answered[0]] if len(set(answered.tolist())) == 1 else "",
        redundant=is_redundant and not search.fallback,
        majority=health.majority,
        majority_label=health.majority_label,
        p_vs_chance=health.p_vs_chance,
        repeat_difference=_repeat_difference(model, data, answers),
    )


def _unseen(suspect: Suspect) -> bool:
    """Whether it is a way of writing that changes no answer by anything: the model cannot see it,
    and its weight is that of the words under it."""
    tries = [e for e in (suspect.put_in, suspect.taken_out) if e.texts]
    return (
        suspect.kind == CASING
        and bool(tries)
        and all(max(abs(e.mean), e.error) < ROUNDING for e in tries)
    )


def _turned_by_length(model: Classifier, data: Dataset, answered: IntArray) -> float:
    """Of the shortest texts, those of one answer, the share that is answered otherwise once they
    are repeated until they are as long as the others: all words that they had still stand there.
    """
    lengths = np.array([e.input.n_features for e in data])
    means = {y: lengths[answered == y].mean() for y in separable_answers(answered)}
    if not means:
        return 0.0
    shortest = min(means, key=lambda y: means[y])
    others = lengths[answered != shortest]
    if not len(others):
        return 0.0
    usual = float(np.median(others))
    places = np.flatnonzero((answered == shortest) & (lengths > 0) & (lengths < usual))[:N_TEXTS]
    repeated = [
        read_text(" ".join([data.examples[i].input.text] * math.ceil(usual / lengths[i])))
        for i in places.tolist()
    ]
    if not repeated:
        return 0.0
    return float((probabilities(model, repeated).argmax(axis=1) != shortest).mean())


def _repeat_difference(model: Classifier, data: Dataset, answers: FloatArray) -> float:
    """The largest difference between two answers to one text, the second in other company; asked
    past the engine, which remembers answers. Of a model whose questions cost none is known."""
    if Traits(model).costly:
        return 0.0
    some = slice(0, ASKED_AGAIN)
    again = np.asarray(model.probabilities([e.input for e in data.examples[some]][::-1]))[::-1]
    return float(np.abs(again - answers[some]).max(initial=0.0))


def _candidates(
    words: WordTable, data: Dataset, least_texts: int, source: str, coverage: float | None
) -> Candidates:
    """All that stands in enough texts; without words where the vectors tell nothing of them."""
    judges_words = coverage is None or coverage >= MIN_COVERAGE
    candidates = Candidates.of(words, least=least_texts, with_words=judges_words)
    if not len(candidates):
        what = "something" if judges_words else "a sign or a way of writing"
        raise DataError(
            f"expected {what} that stands in at least {least_texts} texts; {data.name} has "
            f"{len(data)} texts and nothing does. Bring more texts, or lower --least"
            + ("" if judges_words else f". {uncovered(source, coverage or 0.0)}")
        )
    return candidates


def _leaders(
    ranked: Sequence[RankedCandidate],
    evidence: Evidence,
    top: int,
    threshold: float,
    watch: Callable[[int], None],
) -> list[Suspect]:
    """The strongest candidates, and those above the threshold, each with the weaker ones that
    mostly stand on its words."""
    candidates = evidence.candidates
    taken: list[tuple[int, Suspect, list[str], BoolArray]] = []
    for one in ranked:
        above = one.size >= threshold
        if len(taken) >= top and not above:
            break
        on = candidates.places(one.candidate)
        # capitals that weigh only where a suspected word has them are that word, no habit
        weighs = one.word_scores[on].sum(axis=1)
        by_weight = candidates.kinds[one.candidate] == CASING and weighs.sum() != 0
        for candidate, _, also, covering in taken:
            covered = covering[on].any(axis=1)
            share = weighs[covered].sum() / weighs.sum() if by_weight else covered.mean()
            if share >= 0.5:
                if candidate != one.candidate and len(also) < 8:
                    also.append(candidates.names[one.candidate])
                break
        else:
            suspect = evidence.suspect(one)
            covering = np.zeros(len(candidates.words.form), dtype=np.bool_)
            # what turns out to change no answer hides nothing that stands on its words
            covering[on.ravel()] = not above or abs(suspect.score) >= threshold
            taken.append((one.candidate, suspect, [], covering))
            watch(len(taken))
    found = [replace(suspect, also=tuple(dict.fromkeys(also))) for _, suspect, also, _ in taken]
    return sorted(found, key=lambda s: -abs(s.score))


def _unfollowed(
    ranked: Sequence[RankedCandidate], evidence: Evidence, known: set[str]
) -> tuple[Suspect, ...]:
    """What means nothing, weighs much and changes answers, though labels do not follow it; then
    words that weigh much beyond their meaning, if labels do not follow them."""
    names, kinds = evidence.candidates.names, evidence.candidates.kinds
    heavy = [
        r
        for r in ranked
        if names[r.candidate] not in known
        and abs(r.scores.weight_excess[r.candidate]) >= HEAVY
        and kinds[r.candidate] in (WORD, SIGN, FIRST, LAST, CASING)
        and not evidence.followed(r)
    ]
    heavy.sort(key=lambda r: -abs(r.scores.weight_excess[r.candidate]))
    found: dict[str, Suspect] = {}
    # words with a meaning are many: these do not take the place of what has none
    words = [r for r in heavy if kinds[r.candidate] == WORD]
    others = [r for r in heavy if kinds[r.candidate] != WORD]
    for one in [*others[:MOST_UNFOLLOWED], *words[:MOST_UNFOLLOWED]]:
        suspect = evidence.suspect(one)
        effect = suspect.max_effect or 0.0
        if suspect.kind == WORD:
            effect = evidence.least_effect(one, suspect)
        flipped = [e.flipped for e in (suspect.put_in, suspect.taken_out) if e.texts]
        known_texts = found[suspect.name].texts if suspect.name in found else 0
        # a word that decides does so at the beginning of texts, too
        if effect >= HEAVY and max(flipped, default=0.0) >= FLIPS and suspect.texts > known_texts:
            found[suspect.name] = suspect
    return tuple(found.values())


def _dots(
    ranked: Sequence[RankedCandidate], candidates: Candidates
) -> tuple[tuple[str, float, float, int], ...]:
    """The strongest words first, then every so-manyth of the rest."""
    words = [
        r for r in ranked if candidates.kinds[r.candidate] == WORD and r.label == ranked[0].label
    ]
    first, rest = words[: MAX_DOTS // 3], words[MAX_DOTS // 3 :]
    step = max(1, -(-len(rest) // (MAX_DOTS - len(first)))) if rest else 1
    return tuple(
        (
            candidates.names[r.candidate],
            float(r.scores.expected[r.candidate]),
            float(r.weights.weights[r.candidate]),
            int(r.weights.texts[r.candidate]),
        )
        for r in (*first, *rest[::step])
    )
