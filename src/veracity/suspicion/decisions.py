"""What to make of the suspects: which are alarms, which the subject's own, what clears a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..results.health import BY_LENGTH
from .candidates import PHRASE, WORD

if TYPE_CHECKING:
    from .record import Suspect, Suspects

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
        for s in record.found
        if not is_copied(s) and (s.neighbours or (s.kind == PHRASE and is_plain(s)))
    ]
    excused = {*record.allowed, *(s.name for s in own_to_subject(record))}
    return [s for s in known if s.name not in excused] if len(record.labels) > 2 else []


def alarms(record: Suspects) -> list[str]:
    """What a build should fail for; nothing that a model without steady answers shows."""
    if is_unsteady(record):
        return []
    length = ["length"] if leans_on_length(record) else []
    passed = (*own_to_subject(record), *turning_nothing(record))
    found = [s.name for s in record.found if s not in passed]
    names = [*found, *(s.name for s in record.unfollowed), *length, *deciding_surface(record)]
    return [name for name in names if name not in record.allowed]


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


def is_unsteady(record: Suspects) -> bool:
    """Whether it answers otherwise when it is asked again: what is found may be its noise."""
    return record.repeat_difference > UNSTEADY


def _without_neighbours(record: Suspects) -> list[Suspect]:
    return [
        s
        for s in record.found
        if not s.neighbours and not s.names_label and s.name not in record.allowed
    ]


def meaningless(record: Suspects) -> tuple[str, ...]:
    """Suspects that no subject's vocabulary holds: signs, tags, ways of writing."""
    return tuple(s.name for s in _without_neighbours(record) if not is_plain(s))


def unknown_words(record: Suspects) -> tuple[str, ...]:
    """Suspected words whose meaning the vectors do not know."""
    some = _without_neighbours(record) if record.vectors != "none" else []
    return tuple(s.name for s in some if s.kind == WORD)


def leans_on_length(record: Suspects) -> bool:
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
    """What of a text's surface tells answers surely, or nearly where no candidate tells them."""
    most = max(record.surface_auc.values(), default=0.0)
    least = TOLD_ALONE if is_unexplained(record) else BY_LENGTH
    return tuple(n for n, x in record.surface_auc.items() if x == most >= least)


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
