"""Which candidates go beyond what their meaning warrants, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray
from .candidates import WORD, Candidates, is_word
from .expectation import WordVectors, excess, expected_values, raised_to_neighbours

TOLERANCE = 0.045
"""Words that rightly decide have scores up to about this, since meaning is told by few numbers. Set
on the clean set-up models of benchmarks/suspects_power.py: one in sixteen shows a suspect."""

WEIGHT_FACTOR = 4.0
"""Weight counts so many times in a score: what labels tell is shared by many words, of which a
model may use some others, and chance in the draw of texts is in the labels."""

MIN_EXPECTED_TEXTS = 5
"""Below so many expected texts a proportion's error is not normal."""

MIN_TRAINING_TEXTS = 3
"""Words in so many texts tell what others like them should weigh."""


@dataclass(frozen=True, kw_only=True)
class CandidateWeights:
    """Every candidate with what it weighs for one label: all that a judgement rests on."""

    forms: tuple[str, ...]
    form_weights: FloatArray  # (forms,) of every word, however rare
    form_texts: IntArray  # (forms,)
    form_counts: IntArray  # (forms,) occurrences
    form_counts_labelled: IntArray  # (forms,) occurrences in texts that have the label
    kinds: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    texts: IntArray  # (candidates,)
    counts: IntArray  # (candidates,) occurrences
    counts_labelled: IntArray  # (candidates,) occurrences in texts that have the label
    spreads: FloatArray  # (candidates,) how far texts differ in how often they have it
    weights: FloatArray  # (candidates,) mean over occurrences, towards the label
    texts_labelled: IntArray  # (candidates,) texts with it that have the label
    n_labelled: int
    n_texts: int
    """Texts with the label, and all texts."""
    scale: float
    """How far texts differ in what all their words weigh together: the spread of answers."""

    def of_kind(self, *kinds: str) -> BoolArray:
        return np.array([kind in kinds for kind in self.kinds], dtype=np.bool_)

    @property
    def known_words(self) -> IntArray:
        """The forms that are candidates themselves: these stand in enough texts."""
        return np.array([self.parts[i][0] for i in np.flatnonzero(self.of_kind(WORD))], np.int64)

    @property
    def association(self) -> FloatArray:
        """How surely the label is more, or less, frequent among texts with each candidate: z."""
        base = self.n_labelled / self.n_texts
        n = self.texts
        left = np.maximum(self.n_texts - n, 0) / max(self.n_texts - 1, 1)
        sd = np.sqrt(np.maximum(n * base * (1 - base) * left, 1e-12))
        z: FloatArray = np.where(left > 0, (self.texts_labelled - n * base) / sd, 0.0)
        return z


@dataclass(frozen=True)
class CandidateScores:
    """What candidates were expected to weigh, and how far beyond they go. (candidates,) each"""

    expected: FloatArray
    scores: FloatArray  # signed: positive speaks for the label
    weight_excess: FloatArray
    """Unwarranted weight as a correlation: of the spread of answers, what goes to it."""
    label_excess: FloatArray
    """The same of labels: how far it tells the label beyond what words like it tell."""
    p_values: FloatArray  # corrected for the number of candidates


def weigh_candidates(
    candidates: Candidates, scores: FloatArray, labelled: BoolArray
) -> CandidateWeights:
    """Candidates with the scores of the words they stand on. (words,), (texts,)"""
    words, labels = candidates.words, labelled.astype(np.int64)
    totals = np.bincount(words.text, weights=scores, minlength=len(labelled))
    return CandidateWeights(
        forms=words.forms,
        form_weights=words.means(scores),
        form_texts=words.texts(),
        form_counts=words.counts(),
        form_counts_labelled=words.counts(labelled),
        kinds=candidates.kinds,
        parts=candidates.parts,
        names=candidates.names,
        texts=candidates.texts,
        counts=candidates.counts,
        counts_labelled=candidates.counts_with_label(labels),
        spreads=candidates.spreads,
        weights=candidates.means(candidates.weights(scores)),
        texts_labelled=candidates.texts_with_label(labels),
        n_labelled=int(labelled.sum()),
        n_texts=len(labelled),
        scale=float(totals.std()),
    )


def score_candidates(
    weights: CandidateWeights, vectors: WordVectors, *, n_candidates: int | None = None
) -> CandidateScores:
    """A candidate is suspicious as far as the model gives it weight, and the labels follow it, both
    beyond what its meaning warrants; `n_candidates` is how many there were in all."""
    n = n_candidates or len(weights.names)
    base = weights.n_labelled / weights.n_texts
    base_log_odds = math.log(max(base, 1e-9) / max(1 - base, 1e-9))

    def log_odds(labelled: IntArray, counts: IntArray) -> FloatArray:
        # two more occurrences that are labelled as all texts are
        for_it, against = labelled + 2 * base, counts - labelled + 2 * (1 - base)
        odds: FloatArray = (
            np.log(np.maximum(for_it, 1e-9) / np.maximum(against, 1e-9)) - base_log_odds
        )
        return odds

    words = np.array([is_word(form) for form in weights.forms], dtype=np.bool_)
    training = np.flatnonzero(words & (weights.form_texts >= MIN_TRAINING_TEXTS))
    label_odds = log_odds(weights.form_counts_labelled, weights.form_counts)
    values = np.stack([weights.form_weights, label_odds])
    by_form = np.zeros((2, len(weights.forms)))
    by_form[:, training] = expected_values(
        vectors.only(training), values[:, training], weights.form_texts[training]
    )
    by_form[0] = raised_to_neighbours(vectors, values[0], weights.known_words, by_form[0])
    # signs, ways of writing and words without a vector should weigh nothing, and a phrase what its
    # words should
    expected = np.array([by_form[:, list(parts)].sum(axis=1) for parts in weights.parts]).T
    # correlations of how often texts have it, with the answer through it and with the label
    weight = weights.spreads * excess(weights.weights, expected[0]) / (weights.scale or 1.0)
    rates = _rate(base_log_odds + log_odds(weights.counts_labelled, weights.counts)) - base
    often = (
        weights.counts / weights.n_texts / np.where(weights.spreads > 0, weights.spreads, np.inf)
    )
    spread = math.sqrt(base * (1 - base)) or 1.0
    label = often * excess(rates, _rate(base_log_odds + expected[1]) - base) / spread
    agree = np.sign(weight) == np.sign(label)
    sizes = np.where(agree, np.minimum(WEIGHT_FACTOR * np.abs(weight), np.abs(label)), 0.0)
    return CandidateScores(
        expected=expected[0],
        scores=np.sign(weight) * sizes,
        weight_excess=weight,
        label_excess=label,
        p_values=np.maximum(
            corrected_p(sizes, weights.n_texts, n), _exact_p(weights, label > 0, n)
        ),
    )


def max_effect(
    weights: CandidateWeights,
    candidate: int,
    *,
    put_in: float,
    taken_out: float,
    answer_spread: float,
) -> float:
    """What of the spread of answers a candidate brings about, as a correlation: the larger of what
    one more of it changes and what each one that is there does, both as large as the tries leave
    possible, for what is dismissed should surely do little; unbounded where neither was tried.

    A weight is a share of the credit and may be that of the words under a candidate: capitals stand
    on words that decide, also in a model that cannot see them."""
    each = taken_out * float(weights.texts[candidate] / weights.counts[candidate])
    tried = [effect for effect in (put_in, each) if not math.isnan(effect)]
    if not tried:
        return math.inf
    return max(0.0, *tried) * float(weights.spreads[candidate]) / (answer_spread or 1.0)


def limited_by_effects(
    scores: CandidateScores, effects: FloatArray, *, n_texts: int, n_candidates: int
) -> CandidateScores:
    """The same where a candidate counts no further than answers change with it. effects:
    (candidates,), from `max_effect`, infinite where nothing was tried"""
    sizes = np.minimum(np.abs(scores.scores), WEIGHT_FACTOR * effects)
    return replace(
        scores,
        scores=np.sign(scores.scores) * sizes,
        p_values=np.maximum(scores.p_values, corrected_p(sizes, n_texts, n_candidates)),
    )


def _exact_p(weights: CandidateWeights, more: BoolArray, n_candidates: int) -> FloatArray:
    """Where so few texts with a candidate are expected to have the label, or not to, that errors
    are not normal: the exact probability that as many do, or as few; 0 elsewhere."""
    from scipy.stats import hypergeom

    rate = weights.n_labelled / weights.n_texts
    rare = weights.texts * min(rate, 1 - rate) < MIN_EXPECTED_TEXTS
    p: FloatArray = np.zeros(len(weights.texts))
    texts, labelled = weights.texts[rare], weights.texts_labelled[rare]
    drawn = (weights.n_texts, weights.n_labelled, texts)
    one = np.where(more[rare], hypergeom.sf(labelled - 1, *drawn), hypergeom.cdf(labelled, *drawn))
    p[rare] = -np.expm1(n_candidates * np.log1p(-np.minimum(one, 1 - 1e-16)))
    return p


def _rate(log_odds: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-log_odds))


def corrected_p(scores: FloatArray | float, n_texts: int, n_candidates: int) -> FloatArray:
    """The probability that the strongest of so many candidates scores so high by chance (Šidák), if
    none truly goes beyond the tolerance: in so many texts a score errs by one over their root."""
    from scipy.special import ndtr

    sizes = (np.asarray(scores, dtype=np.float64) - TOLERANCE) * math.sqrt(n_texts)
    one = np.minimum(ndtr(-sizes), 1 - 1e-16)
    found: FloatArray = -np.expm1(n_candidates * np.log1p(-one))
    return found


def score_threshold(false_alarms: float, n_texts: int, n_candidates: int) -> float:
    """The score from which `corrected_p` is at most the rate of false alarms."""
    return TOLERANCE + _critical_value(false_alarms, n_candidates) / math.sqrt(n_texts)


def texts_needed(score: float, false_alarms: float, n_candidates: int) -> int:
    """In so many texts and of as many candidates, `score_threshold` is no more than this score."""
    return math.ceil((_critical_value(false_alarms, n_candidates) / (score - TOLERANCE)) ** 2)


def _critical_value(false_alarms: float, n_candidates: int) -> float:
    """By so many standard errors the strongest of so many candidates goes astray at this rate."""
    from scipy.special import ndtri

    one = -math.expm1(math.log1p(-false_alarms) / max(n_candidates, 1))
    return -float(ndtri(one))
