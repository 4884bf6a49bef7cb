"""All that is known about the strongest candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.examples import Dataset
from ..core.inputs import FloatArray, IntArray
from ..engine.inference import value
from .candidates import PHRASE, WORD, Candidates
from .expectation import N_NEIGHBOURS, LabelNames, WordVectors
from .interventions import Interventions
from .record import Suspect, SuspectExample
from .scoring import CandidateScores, CandidateWeights, limited_by_effects, max_effect
from .topics import Topics

FOLLOWED = 1 / 3
"""Labels that go with a word so far, of what answers do, may be what answers go by."""

FALSE_EFFECTS = 0.05
"""So often, at most, one of all candidates seems to change answers by the luck of the tries."""

EXAMPLES = 4
CONTEXT = 14
"""So many words of an example are shown on either side."""
THIRDS = ("first third", "middle", "last third")


@dataclass(frozen=True)
class RankedCandidate:
    """A candidate for one label, ready to be put in order."""

    label: int
    candidate: int
    word_scores: FloatArray  # (words,)
    weights: CandidateWeights
    scores: CandidateScores

    @property
    def size(self) -> float:
        return float(abs(self.scores.scores[self.candidate]))

    @property
    def positive(self) -> bool:
        return bool(self.scores.weight_excess[self.candidate] > 0)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a suspect is looked into with."""

    data: Dataset
    candidates: Candidates
    vectors: WordVectors
    answers: FloatArray  # (texts, labels)
    gold: IntArray  # (texts,)
    topics: Topics
    label_names: LabelNames
    interventions: Interventions
    n_candidates: int
    """Of how many, for all labels, these are the strongest."""

    def suspect(self, one: RankedCandidate) -> Suspect:
        """A candidate with everything that is known about it, for the label that it speaks for."""
        labels, words = self.data.labels, self.candidates.words
        weights, candidate = one.weights, one.candidate
        # of two labels one is explained; what speaks against it speaks for the other
        turned = len(labels) == 2 and not one.positive
        label = 1 - one.label if turned else one.label
        sign = -1.0 if turned else 1.0
        own = np.flatnonzero(self.candidates.owner == candidate)
        each = self.candidates.weights(one.word_scores)[own] * sign
        at = self.candidates.occurrences(candidate)
        texts = int(weights.texts[candidate])
        base = weights.n_labelled / weights.n_texts
        share = int(weights.texts_labelled[candidate]) / texts
        kind, name = self.candidates.kinds[candidate], self.candidates.names[candidate]
        towards = one.positive or turned
        put_in = self.interventions.put_in(candidate, label, towards=towards)
        taken_out = self.interventions.taken_out(candidate, label, towards=towards)
        way = 1.0 if towards else -1.0
        effect = max_effect(
            weights, candidate, put_in=put_in.upper_bound(way),
            taken_out=taken_out.upper_bound(way),
            answer_spread=float(value(self.answers, label, "log_odds").std()),
        )  # fmt: skip
        effects = np.where(np.arange(len(self.candidates)) == candidate, effect, np.inf)
        scores = limited_by_effects(
            one.scores, effects, n_texts=weights.n_texts, n_candidates=self.n_candidates
        )
        return Suspect(
            kind=kind,
            name=name,
            label=labels[label],
            texts=texts,
            occurrences=int(self.candidates.counts[candidate]),
            weight=sign * float(weights.weights[candidate]),
            expected=sign * float(scores.expected[candidate]),
            weight_excess=sign * float(scores.weight_excess[candidate]),
            label_excess=sign * float(scores.label_excess[candidate]),
            score=sign * float(scores.scores[candidate]),
            p_value=float(scores.p_values[candidate]),
            consistent=float(np.mean(each > 0)) if towards else float(np.mean(each < 0)),
            labelled=1 - share if turned else share,
            base=1 - base if turned else base,
            association=sign * float(weights.association[candidate]),
            topics=_means(each, self.topics.of[words.text[at]], self.topics.names, least=3),
            places=_means(each, 3 * words.place[at] // words.lengths[words.text[at]], THIRDS),
            neighbours=self._neighbours(candidate, weights, sign),
            put_in=put_in,
            taken_out=taken_out,
            examples=self._examples(candidate, at, each, sign * one.word_scores, label),
            max_effect=None if math.isinf(effect) else effect,
            names_label=kind in (WORD, PHRASE) and self.label_names.match(name, labels[label]),
        )

    def followed(self, one: RankedCandidate) -> bool:
        """Whether labels may go with a candidate about as answers do: by how much oftener texts
        with it have the label, as so few can tell, and are given it, than texts without."""
        having = np.zeros(len(self.data), dtype=np.bool_)
        having[self.candidates.texts_of(one.candidate)] = True
        n, rest = int(having.sum()), int((~having).sum())
        if not rest:
            return True
        sign = 1.0 if one.positive else -1.0
        labels, answers = (
            sign * (float(own[having].mean()) - float(own[~having].mean()))
            for own in (self.gold == one.label, self.answers.argmax(axis=1) == one.label)
        )
        rate = float((self.gold == one.label).mean())
        error = 1.96 * math.sqrt(rate * (1 - rate) * (1 / n + 1 / rest))
        return labels + error >= FOLLOWED * answers

    def least_effect(self, one: RankedCandidate, suspect: Suspect) -> float:
        """What of the spread of answers it surely brings about, as a correlation, with all that
        might have been tried counted; nothing where nothing was tried."""
        from scipy.stats import norm

        errors = float(norm.isf(FALSE_EFFECTS / 2 / max(1, self.n_candidates)))
        way = math.copysign(1.0, suspect.weight)
        label = self.data.labels.index(suspect.label)
        effect = max_effect(
            one.weights, one.candidate, put_in=suspect.put_in.lower_bound(way, errors),
            taken_out=suspect.taken_out.lower_bound(way, errors),
            answer_spread=float(value(self.answers, label, "log_odds").std()),
        )  # fmt: skip
        return 0.0 if math.isinf(effect) else effect

    def _neighbours(
        self, candidate: int, weights: CandidateWeights, sign: float
    ) -> dict[str, float]:
        if self.candidates.kinds[candidate] != WORD:
            return {}
        words = np.flatnonzero(weights.of_kind(WORD))
        by_form = {weights.parts[i][0]: float(weights.weights[i]) for i in words}
        forms = np.array(list(by_form), dtype=np.int64)
        near = self.vectors.nearest(self.candidates.parts[candidate][0], forms, N_NEIGHBOURS)
        return {weights.forms[i]: sign * by_form[int(i)] for i in near}

    def _examples(
        self, candidate: int, at: IntArray, each: FloatArray, scores: FloatArray, label: int
    ) -> tuple[SuspectExample, ...]:
        """First texts that it seems to have misled, then those in which it weighs most."""
        words = self.candidates.words
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
        return tuple(self._shown(candidate, int(at[o]), scores) for o in chosen)

    def _shown(self, candidate: int, at: int, scores: FloatArray) -> SuspectExample:
        words = self.candidates.words
        i = int(words.text[at])
        start, length = int(words.starts[i]), int(words.lengths[i])
        here, width = at - start, int(self.candidates.widths[candidate])
        low, high = max(0, here - CONTEXT), min(length, here + width + CONTEXT)
        example = self.data.examples[i]
        return SuspectExample(
            id=example.id,
            words=example.input.words[low:high],
            scores=tuple(float(s) for s in scores[start + low : start + high]),
            marked=tuple(range(here - low, here - low + width)),
            label=self.data.labels[example.label],
            answer=self.data.labels[int(self.answers[i].argmax())],
            cut=(low > 0, high < length),
            gaps=("", *example.input.gaps[low + 1 : high]),
        )


def _means(
    values: FloatArray, group: IntArray, names: Sequence[str], *, least: int = 1
) -> dict[str, float]:
    """By name the mean of the values of each group that has enough of them."""
    return {
        name: float(values[group == i].mean())
        for i, name in enumerate(names)
        if (group == i).sum() >= least
    }
