"""Suspects and their limits in sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.counts import counted
from ..results.health import BY_LENGTH, goes_by_length
from ..results.statistics import percent
from .candidates import WORD
from .decisions import (
    MANY_WORDS,
    MIN_COVERAGE,
    WEAK_CUE,
    barely_better,
    deciding_surface,
    is_copied,
    is_unexplained,
    is_unsteady,
    judges_words,
    leans_on_length,
    meaningless,
    own_to_subject,
    perhaps_own_to_subject,
    turning_nothing,
    unknown_words,
)

if TYPE_CHECKING:
    from .record import Suspect, Suspects

JUMPS = 0.01
"""From this share of answers that are exactly 0 or 1 on, log-odds are told with a warning."""

STANDS_OUT = 1.5
"""Among many words of a subject, one whose score is so many times the next is named."""


def flips(suspect: Suspect) -> str:
    """What happens to answers without it, or with it."""
    effect = max(suspect.taken_out, suspect.put_in, key=lambda e: e.flipped if e.texts else -1.0)
    how = "taken out of" if effect is suspect.taken_out else "put into"
    texts = counted(effect.texts, "text")
    return f"{suspect.name} ({suspect.kind}): {how} {texts}, {percent(effect.flipped)}"


def direction(suspect: Suspect) -> str:
    """For or against which label: with more than two it may tell what a text is not, and what
    answers turn to is then told by the tries."""
    if suspect.weight >= 0:
        return f"for {suspect.label}"
    raised = suspect.put_in.raised or suspect.taken_out.raised
    instead = f", for {raised}" if raised not in ("", suspect.label) else ""
    return f"against {suspect.label}{instead}"


def about_model(record: Suspects) -> str:
    """How good the model is, beside what needs no model."""
    said = f"The model is right on {record.accuracy:.3f} of {record.texts:,} texts"
    if record.majority is None:
        return said
    return f"{said}; always answering {record.majority_label} would be on {record.majority:.3f}"


def limits(record: Suspects) -> str:
    """What could not be judged, in a sentence or two; empty where all could."""
    return ". ".join(filter(None, (voids(record), cautions(record))))


def voids(record: Suspects) -> str:
    """What takes the meaning from anything found or not found; empty where nothing does."""
    return ". ".join(filter(None, _voids(record)))


def cautions(record: Suspects) -> str:
    """What else to know of it."""
    return ". ".join(filter(None, _cautions(record)))


def _voids(record: Suspects) -> Iterator[str]:
    if is_unsteady(record):
        yield (
            "Asked twice about the same texts, the model answers otherwise (by up to "
            f"{record.repeat_difference:.2g}): what is found may be its own noise, and nothing is "
            "counted. Make it answer the same each time"
        )
    if record.single_answer:
        yield (
            f"The model answers {record.single_answer} to every text: what changes no answer "
            "here may change others. Bring texts that are answered otherwise"
        )
    elif record.fault:
        yield f"Of the model itself: {record.fault}"
    elif barely_better(record):
        yield (
            f"So often right the model could be by luck (p {record.p_vs_chance:.2g} against its "
            "own answers dealt out at random), and what it leans on may be luck as well: bring "
            "more labelled texts, or mend it. Finding nothing clears nothing"
        )
    if is_unexplained(record) and record.candidates_auc is not None:
        found = ", those found too," if record.found else ""
        yield (
            f"All looks together{found} do not tell what the model answers (area under the curve "
            f"{record.candidates_auc[0]:.2f} on texts they were not fitted to; .5 is chance): what "
            f"decides is none of them, or a combination, so finding nothing{' else' * bool(found)} "
            "clears nothing"
        )
    if not judges_words(record):
        yield uncovered(record.vectors, record.coverage or 0.0)
    elif record.vectors == "none" and record.found:
        yield (
            "Nobody told what words mean (--vectors none): those that rightly decide are shown "
            "as well"
        )


def _length(record: Suspects) -> Iterator[str]:
    if not leans_on_length(record):
        return
    tried = ""
    if record.turned_by_length is not None:
        tried = (
            f". Of its short texts {percent(record.turned_by_length)} are answered otherwise "
            "once they are repeated until they are as long as the others"
        )
    if record.length_auc >= BY_LENGTH:
        length = goes_by_length(record.length_auc)
        yield length[:1].upper() + length[1:] + tried
    else:
        yield (
            f"How long a text is tells its answer far better (area under the curve "
            f"{record.length_auc:.2f}) than its label ({record.label_length_auc:.2f}): the model "
            f"{'leans' if tried else 'may lean'} on length. Try texts of one length{tried}"
        )


def _cautions(record: Suspects) -> Iterator[str]:
    yield from _length(record)
    if surface := deciding_surface(record):
        alone = "" if record.found or record.unfollowed else ", and no look does"
        yield (
            f"Whether a text has {' or '.join(surface)} tells its answer (area under the curve "
            f"{record.surface_auc[surface[0]]:.2f}){alone}. Should it decide? --fail counts it, "
            f"unless it is named (--allow {shlex.quote(surface[0])})"
        )
    if record.all_or_nothing >= JUMPS:
        yield (
            f"{percent(record.all_or_nothing)} of the answers are 0 or 1 to the last digit: "
            "weights in log-odds are then as large as the limit that stands for infinity. Read "
            "their signs and their order"
        )
    for what, of_words in (("what means nothing and what", False), ("words that", True)):
        if some := [flips(s) for s in record.unfollowed if (s.kind == WORD) == of_words]:
            yield (
                f"Answers hang on {what} the labels of these texts do not follow "
                f"({'; '.join(some)} of the answers change)"
            )
    if record.fault and not record.single_answer:
        # what such a model leans on is luck: neither a leak nor its subject
        yield from (record.remark, record.detection_limit)
        return
    if idle := turning_nothing(record):
        them = "it" if len(idle) == 1 else "them"
        yield (
            f"Put into texts and taken out of texts, {', '.join(s.name for s in idle)} turned no "
            f"answer: --fail does not count {them}"
        )
    if copied := ", ".join(
        s.name for s in record.found if is_copied(s) and s.name not in record.allowed
    ):
        yield (
            f"Look whether labels were copied into the texts, or writers name them: {copied}. "
            "--fail counts them, unless they are named (--allow WORD,WORD)"
        )
    if meaningless(record) and len(meaningless(record)) < len(record.found):
        first = record.found[0].name
        also = "" if first in meaningless(record) else f", beside {first}, which leads the list"
        yield (
            "Signs, tags and ways of writing are seldom a subject's own. Look first at "
            + ", ".join(meaningless(record))
            + also
        )
    if unknown_words(record):
        yield (
            f"The word vectors do not know {', '.join(unknown_words(record))}: whether the subject "
            "warrants such a word is for you to say; --fail counts it, unless it is named "
            "(--allow WORD,WORD)"
        )
    if len(own_to_subject(record)) >= MANY_WORDS:
        yield (
            f"{len(own_to_subject(record))} of them are words with a meaning: where labels are "
            "subjects, most of these are the subject's own, and which are not cannot be told. "
            "Go through them from the top: what does not belong to its label's subject may be "
            "a leak" + _standing_out(own_to_subject(record)) + ". Name those that are right to "
            "use (--allow WORD,WORD), and --fail counts the others, once they are fewer than "
            f"{MANY_WORDS} and but for what is near the name of its label"
        )
    elif own_to_subject(record):
        own = ", ".join(f"{s.name} for {s.label}" for s in own_to_subject(record))
        yield (
            f"Near the name of its label by the word vectors: {own}. That is right where it is the "
            "subject, a leak where labels were copied into the texts; --fail does not count it"
        )
    if of_subject := perhaps_own_to_subject(record):
        names = ", ".join(s.name for s in of_subject)
        yield (
            f"{names} may be the subject's own: with more than two labels, honest models "
            "often lean on words of a field more than on words that mean much the same. Ask "
            "somebody who knows the subject" + _standing_out(of_subject) + "; --fail "
            "counts them, unless they are named (--allow WORD,WORD)"
        )
    yield record.remark
    yield record.detection_limit


def _standing_out(some: Sequence[Suspect]) -> str:
    """The first of several words, if it is far ahead of the others."""
    if len(some) < 2:
        return ""
    first, second, *_ = sorted(some, key=lambda s: -abs(s.score))
    if abs(first.score) < STANDS_OUT * abs(second.score):
        return ""
    return f", and {first.name} stands out ({first.score:.2f}, the next {second.score:.2f})"


def nothing_found(record: Suspects) -> str:
    """What it means that nothing was found."""
    if is_unsteady(record):
        return f"Of {record.n_candidates:,} looks nothing is said"
    return (
        f"None of {record.n_candidates:,} looks weighs more than its meaning warrants and tells "
        "the labels of these texts, both beyond chance"
    )


def summary(record: Suspects) -> str:
    found = [
        f"{record.model}: {s.kind} {s.name!r} speaks {direction(s)} in {percent(s.consistent)} of "
        f"its places ({s.texts} texts); weight {s.weight:+.3g}, expected {s.expected:+.3g}, "
        f"p {s.p_value:.2g} after {record.n_candidates:,} looks"
        for s in record.found
    ]
    nothing = [f"{record.model}: {nothing_found(record)}"]
    about = f"{record.model}: {about_model(record)}."
    return "\n".join([about, *(found or nothing), *([limits(record)] if limits(record) else [])])


def uncovered(vectors: str, coverage: float) -> str:
    """Why words could not be judged, and what to do."""
    return (
        f"Words and phrases were not judged, only signs and ways of writing: the word vectors "
        f"({vectors}) hold {100 * coverage:.1f} % of the texts' words, and from "
        f"{percent(MIN_COVERAGE)} on they could tell what words mean. Give vectors of the "
        "texts' language with --vectors FILE; with --vectors none every word that decides is shown"
    )


def redundant(share: float, method: str, *, switched: bool) -> str:
    """What it means that words, hidden one at a time, hardly matter though together they do."""
    seen = (
        f"Hiding words one at a time does {percent(max(share, 0))} of what hiding all of them "
        "does, in the median text: each alone seems to weigh nothing where several tell the same, "
        "pull different ways, or answers jump"
    )
    if switched:
        return f"{seen}. So weights are told by {method}, which hides words together"
    return f"{seen}. Give --method 'shap(samples=100, output=log_odds)', which hides them together"


def detection_limit(n_texts: int, least_texts: int, threshold: float, enough: int) -> str:
    """What so few texts leave to be found; `enough` would find a weak cue."""
    if threshold <= WEAK_CUE:
        return ""
    return (
        f"{n_texts:,} texts: only a cue that stands in at least {least_texts} of them and scores "
        f"{threshold:.2f} or more would be found; about {enough:,} texts would find {WEAK_CUE}"
    )
