"""Which looks go beyond what their meaning warrants, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..core.inputs import BoolArray, FloatArray, IntArray
from .candidates import WORD, Candidates, is_word
from .expectation import MeaningVectors, beyond, expected, witnessed

TOLERANCE = 0.045
"""Words that rightly decide have scores up to about this, since meaning is told by few numbers. Set
on the clean set-up models of benchmarks/suspects_power.py: one in sixteen shows a suspect."""

WEIGHTY = 4.0
"""Weight counts so many times in a score: what labels tell is shared by many words, of which a
model may use some others, and chance in the draw of texts is in the labels."""

FEW = 5
"""Below so many expected texts a proportion's error is not normal."""

LEARNT_FROM = 3
"""Words in so many texts tell what others like them should weigh."""


@dataclass(frozen=True)
class CandidateWeights:
    """Every look with what it weighs for one label: all that a judgement rests on."""

    forms: tuple[str, ...]
    form_weights: FloatArray  # (forms,) of every word, however rare
    form_texts: IntArray  # (forms,)
    form_counts: IntArray  # (forms,) occurrences
    form_labelled: IntArray  # (forms,) occurrences in texts that have the label
    kinds: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    texts: IntArray  # (looks,)
    counts: IntArray  # (looks,) occurrences
    counts_labelled: IntArray  # (looks,) occurrences in texts that have the label
    spreads: FloatArray  # (looks,) how far texts differ in how often they have it
    weights: FloatArray  # (looks,) mean over occurrences, towards the label
    consistent: FloatArray  # (looks,) share of occurrences on the side of the mean
    labelled: IntArray  # (looks,) texts with it that have the label
    with_label: int
    total: int
    """Texts with the label, and all texts."""
    scale: float
    """How far texts differ in what all their words weigh together: the spread of answers."""

    def of_kind(self, *kinds: str) -> BoolArray:
        return np.array([kind in kinds for kind in self.kinds], dtype=np.bool_)

    @property
    def known_words(self) -> IntArray:
        """The forms that are looks themselves: these stand in enough texts."""
        return np.array([self.parts[i][0] for i in np.flatnonzero(self.of_kind(WORD))], np.int64)

    @property
    def association(self) -> FloatArray:
        """How surely the label is more, or less, frequent among texts with each look: z."""
        base = self.with_label / self.total
        n = self.texts
        left = np.maximum(self.total - n, 0) / max(self.total - 1, 1)
        sd = np.sqrt(np.maximum(n * base * (1 - base) * left, 1e-12))
        z: FloatArray = np.where(left > 0, (self.labelled - n * base) / sd, 0.0)
        return z


@dataclass(frozen=True)
class CandidateScores:
    """What each look was expected to weigh, and how far beyond that it goes. (looks,) all"""

    expected: FloatArray
    scores: FloatArray  # signed: positive speaks for the label
    weight_beyond: FloatArray
    """Unwarranted weight as a correlation: of the spread of answers, what goes to the look."""
    label_beyond: FloatArray
    """The same of labels: how far the look tells the label beyond what words like it tell."""
    p: FloatArray  # after all looks


def weigh_candidates(
    looks: Candidates, scores: FloatArray, labelled: BoolArray
) -> CandidateWeights:
    """Looks with the scores of the words they stand on. (words,), (texts,)"""
    each = looks.weights(scores)
    means = looks.means(each)
    sides = np.sign(means)[looks.owner]
    totals = np.bincount(looks.words.text, weights=scores, minlength=len(labelled))
    return CandidateWeights(
        looks.words.forms,
        looks.words.means(scores),
        looks.words.texts(),
        looks.words.counts(),
        looks.words.counts(labelled),
        looks.kinds,
        looks.parts,
        looks.names,
        looks.texts,
        looks.counts,
        looks.counts_with_label(labelled.astype(np.int64)),
        looks.spreads,
        means,
        looks.means((np.sign(each) == sides).astype(np.float64)),
        looks.with_label(labelled.astype(np.int64)),
        int(labelled.sum()),
        len(labelled),
        float(totals.std()),
    )


def score_candidates(
    found: CandidateWeights, meaning: MeaningVectors, *, looks: int | None = None
) -> CandidateScores:
    """A look is suspicious as far as the model gives it weight, and the labels follow it, both
    beyond what its meaning warrants; `looks` is how many there were in all."""
    base = found.with_label / found.total
    usual = math.log(max(base, 1e-9) / max(1 - base, 1e-9))

    def log_odds(labelled: IntArray, counts: IntArray) -> FloatArray:
        # two more occurrences that are labelled as all texts are
        for_it, against = labelled + 2 * base, counts - labelled + 2 * (1 - base)
        odds: FloatArray = np.log(np.maximum(for_it, 1e-9) / np.maximum(against, 1e-9)) - usual
        return odds

    words = np.array([is_word(form) for form in found.forms], dtype=np.bool_)
    taught = np.flatnonzero(words & (found.form_texts >= LEARNT_FROM))
    told = log_odds(found.form_labelled, found.form_counts)
    values = np.stack([found.form_weights, told])
    by_form = np.zeros((2, len(found.forms)))
    by_form[:, taught] = expected(meaning.only(taught), values[:, taught], found.form_texts[taught])
    by_form[0] = witnessed(meaning, values[0], found.known_words, by_form[0])
    # signs, ways of writing and words without a vector should weigh nothing, and a phrase what its
    # words should
    warranted = np.array([by_form[:, list(parts)].sum(axis=1) for parts in found.parts]).T
    # correlations of how often texts have a look, with the answer through it and with the label
    weight = found.spreads * beyond(found.weights, warranted[0]) / (found.scale or 1.0)
    rates = _rate(usual + log_odds(found.counts_labelled, found.counts)) - base
    often = found.counts / found.total / np.where(found.spreads > 0, found.spreads, np.inf)
    spread = math.sqrt(base * (1 - base)) or 1.0
    label = often * beyond(rates, _rate(usual + warranted[1]) - base) / spread
    agree = np.sign(weight) == np.sign(label)
    sizes = np.where(agree, np.minimum(WEIGHTY * np.abs(weight), np.abs(label)), 0.0)
    return CandidateScores(
        warranted[0],
        np.sign(weight) * sizes,
        weight,
        label,
        np.maximum(
            corrected_p(sizes, found.total, looks or len(sizes)),
            _after_rare_looks(found, label > 0, looks or len(sizes)),
        ),
    )


def caused(
    found: CandidateWeights, look: int, *, put_in: float, taken_out: float, answer_spread: float
) -> float:
    """What of the spread of answers a look brings about, as a correlation: the larger of what one
    more of it changes and what each one that is there does, both as large as the tries leave
    possible, for what is dismissed should surely do little; unbounded where neither was tried.

    A weight is a share of the credit and may be that of the words under a look: capitals stand on
    words that decide, also in a model that cannot see them."""
    each = taken_out * float(found.texts[look] / found.counts[look])
    tried = [effect for effect in (put_in, each) if not math.isnan(effect)]
    if not tried:
        return math.inf
    return max(0.0, *tried) * float(found.spreads[look]) / (answer_spread or 1.0)


def limited(
    verdict: CandidateScores, effects: FloatArray, *, texts: int, looks: int
) -> CandidateScores:
    """The same where a look counts no further than answers change with it. effects: (looks,), from
    `caused`, infinite where nothing was tried"""
    sizes = np.minimum(np.abs(verdict.scores), WEIGHTY * effects)
    return replace(
        verdict,
        scores=np.sign(verdict.scores) * sizes,
        p=np.maximum(verdict.p, corrected_p(sizes, texts, looks)),
    )


def _after_rare_looks(found: CandidateWeights, more: BoolArray, looks: int) -> FloatArray:
    """Where so few texts with a look are expected to have the label, or not to, that errors are not
    normal: the exact probability that as many do, or as few; 0 elsewhere."""
    from scipy.stats import hypergeom

    rate = found.with_label / found.total
    rare = found.texts * min(rate, 1 - rate) < FEW
    p: FloatArray = np.zeros(len(found.texts))
    texts, labelled = found.texts[rare], found.labelled[rare]
    drawn = (found.total, found.with_label, texts)
    one = np.where(more[rare], hypergeom.sf(labelled - 1, *drawn), hypergeom.cdf(labelled, *drawn))
    p[rare] = -np.expm1(looks * np.log1p(-np.minimum(one, 1 - 1e-16)))
    return p


def _rate(log_odds: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-log_odds))


def corrected_p(scores: FloatArray | float, texts: int, looks: int) -> FloatArray:
    """The probability that the strongest of so many looks scores so high by chance (Šidák), if none
    truly goes beyond the tolerance: in so many texts a score errs by one over their root."""
    from scipy.stats import norm

    sizes = (np.asarray(scores, dtype=np.float64) - TOLERANCE) * math.sqrt(texts)
    one = np.minimum(norm.sf(sizes), 1 - 1e-16)
    found: FloatArray = -np.expm1(looks * np.log1p(-one))
    return found


def needed(false_alarms: float, texts: int, looks: int) -> float:
    """The score from which `after_looks` is at most the rate of false alarms."""
    return TOLERANCE + _errors(false_alarms, looks) / math.sqrt(texts)


def texts_needed(score: float, false_alarms: float, looks: int) -> int:
    """In so many texts and as many looks, `needed` is no more than this score."""
    return math.ceil((_errors(false_alarms, looks) / (score - TOLERANCE)) ** 2)


def _errors(false_alarms: float, looks: int) -> float:
    """By so many standard errors the strongest of so many looks goes astray at this rate."""
    from scipy.stats import norm

    one = -math.expm1(math.log1p(-false_alarms) / max(looks, 1))
    return float(norm.isf(one))
