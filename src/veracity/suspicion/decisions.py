"""What to make of the suspects: which are alarms, which the subject's own, what clears a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..results.health import BY_LENGTH
from ..results.statistics import share_interval
from .candidates import PHRASE, WORD

if TYPE_CHECKING:
    from .record import SurfaceTrial, Suspect, Suspects

MIN_COVERAGE = 0.75
"""Vectors that hold fewer of the texts' words tell nothing of them: English texts of many kinds
have .85 to 1 of theirs in the packaged ones, German .4 and French .6."""

MANY_WORDS = 10
"""Among so many suspected words with a meaning most are a subject's own, and which are not cannot
be told."""

MORE_THAN_LABELS = 0.15
"""By so much the area under the curve is larger for answers than for labels, if length tells the
answers of a model that leans on it."""

TURNED = 0.2
"""A model leans on length if it answers so many of its short texts otherwise once they are repeated
until they are long."""

LENGTH = "length"
"""The name under which it is counted and allowed."""

FLIPS = 0.1
"""What means nothing, or weighs beyond its meaning, decides if it turns so many answers."""

SURE = 0.05
"""A trial of the surface counts up to this p-value, all trials counted."""

FAR_OFTENER = 2
"""And so many times as many as what is done for comparison."""

UNSTEADY = 0.02
"""Answers to one text that differ by more make suspects of noise: a weight is a mean over texts,
which smaller differences do not move."""

TOLD = 0.6
"""Candidates that surely tell answers by a smaller area under the curve are not what decides."""

TOLD_ALONE = 0.9
"""From this area on a property of the surface is what does, where nothing else is known."""

ENOUGH_TRIES = 50
"""Put into and taken out of so many texts together without turning one answer, a suspect is none
that a build should fail for."""

SURELY_BETTER = 0.005
"""Answers no less likely by chance clear nothing: what such a model leans on is mostly luck."""

STANDS_OUT, MOST_AHEAD = 1.5, 3
"""Among many words of a subject up to so many, whose scores are so many times the next, are
named."""

NEARLY_ALWAYS, HARDLY = 0.95, 0.25
"""A label's name that tells it so often, and whose neighbours warrant so little of its weight, was
probably copied into the texts."""

WEAK_CUE, STRONG_CUE = 0.3, 0.5
"""Scores: texts too few for the first find only what is plain, and for the second hardly anything,
so that nothing found says nothing."""


def is_plain(suspect: Suspect) -> bool:
    """Whether it is words, which a subject's vocabulary may hold: no sign stands in it."""
    if suspect.kind != PHRASE:
        return suspect.kind == WORD
    return all(any(c.isalnum() for c in word) for word in suspect.name.split(" "))


def is_copied(suspect: Suspect) -> bool:
    """Whether it names its label as no word of a subject would: alone, and nearly always."""
    alone = abs(suspect.expected) < HARDLY * abs(suspect.weight)
    return suspect.names_label and alone and suspect.labelled >= NEARLY_ALWAYS


def own_to_subject(record: Suspects) -> tuple[Suspect, ...]:
    """Suspected words that are the subject's own: whose meaning the vectors know, where they
    are too many to be planted, or that mean what their label's name says."""
    open_ = [s for s in record.found if s.name not in record.allowed and not is_copied(s)]
    known = tuple(s for s in open_ if s.neighbours)
    if len(known) >= MANY_WORDS:
        return known
    return tuple(s for s in open_ if s.names_label)


def perhaps_own_to_subject(record: Suspects) -> list[Suspect]:
    """Suspected words with a meaning, and phrases of words, too few to be the subject's for
    certain."""
    known = [
        s
        for s in counted_suspects(record)
        if not is_copied(s) and (s.neighbours or (s.kind == PHRASE and is_plain(s)))
    ]
    excused = {s.name for s in own_to_subject(record)}
    return [s for s in known if s.name not in excused] if len(record.labels) > 2 else []


def standing_out(record: Suspects, some: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """The first of several words, if they are far ahead of all that comes next."""
    ranked = sorted(some, key=lambda s: -abs(s.score))
    names = {s.name for s in some}
    below = max((abs(s.score) for s in record.others if s.name not in names), default=0.0)
    sizes = [*(abs(s.score) for s in ranked), below]
    for n in range(1, min(MOST_AHEAD, len(ranked)) + 1):
        if sizes[n - 1] >= STANDS_OUT * sizes[n] > 0:
            return tuple(ranked[:n])
    return ()


def turning_when_taken_out(some: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """Those whose texts are often answered otherwise without them."""
    return tuple(s for s in some if s.taken_out.texts and s.taken_out.flipped >= FLIPS)


def counted_suspects(record: Suspects) -> list[Suspect]:
    """The suspects that a build should fail for."""
    if is_unsteady(record):
        return []
    passed = (*own_to_subject(record), *turning_nothing(record))
    return [s for s in record.found if s not in passed and s.name not in record.allowed]


def alarms(record: Suspects) -> list[str]:
    """What a build should fail for; nothing that a model without steady answers shows."""
    if is_unsteady(record):
        return []
    length = [LENGTH] if leans_on_length(record) else []
    found = [s.name for s in counted_suspects(record)]
    surface = [*deciding_surface(record), *(t.name for t in turning_trials(record))]
    names = [*found, *(s.name for s in record.unfollowed), *length, *surface]
    return [name for name in dict.fromkeys(names) if name not in record.allowed]


def turning_nothing(record: Suspects) -> tuple[Suspect, ...]:
    """Suspects that turned no answer when they were put in and taken out; nothing is said of
    models in which several words stand in for one."""
    return tuple(s for s in record.found if not record.redundant and _turns_nothing(s))


def _turns_nothing(suspect: Suspect) -> bool:
    tries = [e for e in (suspect.put_in, suspect.taken_out) if e.texts]
    enough = sum(e.texts for e in tries) >= ENOUGH_TRIES
    return len(tries) == 2 and enough and not any(e.flipped for e in tries)


def barely_better(record: Suspects) -> bool:
    """Whether answers as often right could well be luck, though nothing else is wrong with the
    model."""
    return not record.fault and (record.p_vs_chance or 0.0) > SURELY_BETTER


def below_majority(record: Suspects) -> bool:
    """Whether the model is surely less often right than always answering the commonest label, and
    nothing is said of it otherwise."""
    if record.fault or record.majority is None:
        return False
    right = round(record.accuracy * record.texts)
    answers = np.arange(record.texts) < right
    return share_interval(answers.astype(np.float64))[1] < record.majority


def is_unsteady(record: Suspects) -> bool:
    """Whether it answers otherwise when it is asked again: what is found may be its noise."""
    return record.repeat_difference > UNSTEADY


def _without_neighbours(record: Suspects) -> list[Suspect]:
    return [s for s in counted_suspects(record) if not s.neighbours and not s.names_label]


def meaningless(record: Suspects) -> tuple[str, ...]:
    """Suspects that no subject's vocabulary holds: signs, tags, ways of writing."""
    return tuple(s.name for s in _without_neighbours(record) if not is_plain(s))


def unknown_words(record: Suspects) -> tuple[str, ...]:
    """Suspected words whose meaning the vectors do not know."""
    some = _without_neighbours(record) if record.vectors != "none" else []
    return tuple(s.name for s in some if s.kind == WORD)


def leans_on_length(record: Suspects) -> bool:
    """Whether length tells answers, or turns them when it is tried."""
    return length_tells(record) or any(t.name == LENGTH for t in turning_trials(record))


def length_tells(record: Suspects) -> bool:
    """Whether length tells answers surely, or far better than it tells labels, beyond what
    answers of so many texts do by chance."""
    if record.turned_by_length is not None and record.turned_by_length < TURNED:
        return False
    if record.length_auc >= BY_LENGTH:
        return True
    if record.label_length_auc is None:
        return False
    few = max(1.0, record.texts / len(record.labels))
    least = max(MORE_THAN_LABELS, 3 * math.sqrt((1 / few + 1 / max(1, record.texts)) / 12))
    return record.length_auc - record.label_length_auc >= least


def is_unexplained(record: Suspects) -> bool:
    """Whether neither what was looked at, words among it, nor length tells the model's answers,
    though it is no model at chance: what decides is something else."""
    if not judges_words(record) or leans_on_length(record) or record.fault:
        return False
    return record.candidates_auc is not None and record.candidates_auc[1] < TOLD


def deciding_surface(record: Suspects) -> tuple[str, ...]:
    """What of a text's surface tells answers surely, or nearly where no candidate tells them; of
    several that always go together those that turn answers when they are tried, if any do."""
    most = max(record.surface_auc.values(), default=0.0)
    least = TOLD_ALONE if is_unexplained(record) else BY_LENGTH
    telling = tuple(n for n, x in record.surface_auc.items() if x == most >= least)
    turning = {t.name for t in turning_trials(record)}
    return tuple(n for n in telling if n in turning) or telling


def turning_trials(record: Suspects) -> tuple[SurfaceTrial, ...]:
    """Trials of the surface and of length that turned answers far oftener, and surely so, than
    what was done for comparison."""
    return tuple(t for t in record.surface_trials if _turns(t))


def _turns(trial: SurfaceTrial) -> bool:
    least = TURNED if trial.name == LENGTH else FLIPS
    more = trial.turned - trial.turned_beside
    return (
        more >= least * trial.texts
        and trial.turned >= FAR_OFTENER * trial.turned_beside
        and trial.p_value <= SURE
    )


def judges_words(record: Suspects) -> bool:
    """Whether the vectors could tell what words mean; without any, none means anything."""
    return record.coverage is None or record.coverage >= MIN_COVERAGE


def can_clear(record: Suspects) -> bool:
    """Whether finding nothing says anything: a strong cue would have been found, a word too."""
    blind = record.single_answer or record.redundant or record.fault or not judges_words(record)
    blind = (
        blind
        or is_unsteady(record)
        or is_unexplained(record)
        or barely_better(record)
        or len(own_to_subject(record)) >= MANY_WORDS
    )
    return record.threshold <= STRONG_CUE and not blind
