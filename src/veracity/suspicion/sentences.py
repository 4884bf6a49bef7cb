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
    LENGTH,
    MANY_WORDS,
    MIN_COVERAGE,
    WEAK_CUE,
    barely_better,
    below_majority,
    counted_suspects,
    deciding_surface,
    is_copied,
    is_unexplained,
    is_unsteady,
    judges_words,
    leans_on_length,
    length_tells,
    meaningless,
    own_to_subject,
    perhaps_own_to_subject,
    standing_out,
    turning_nothing,
    turning_trials,
    turning_when_taken_out,
    unknown_words,
)

if TYPE_CHECKING:
    from .record import Suspect, Suspects

MOST_UNMOVED = 0.5
"""Where more texts get the same answer whatever is hidden, that is told: the others are few."""

JUMPS = 0.01
"""From this share of answers that are exactly 0 or 1 on, log-odds are told with a warning."""


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
    if not length_tells(record):
        yield f"{_trials(record, LENGTH)}. {_asked(record, LENGTH)}"
    elif record.length_auc >= BY_LENGTH:
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
    yield from _surface(record)
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
    if below_majority(record):
        yield (
            f"The model is right surely less often ({record.accuracy:.3f}) than always answering "
            f"{record.majority_label} would be ({record.majority:.3f}): what it leans on serves it "
            "badly. Check its labels and how texts are prepared for it"
        )
    if record.fault and not record.single_answer:
        # what such a model leans on is luck: neither a leak nor its subject
        yield from (record.remark, record.detection_limit)
        return
    own = own_to_subject(record)
    if idle := [
        s for s in turning_nothing(record) if s not in own and s.name not in record.allowed
    ]:
        them = "it" if len(idle) == 1 else "them"
        yield (
            f"Put into texts and taken out of texts, {', '.join(s.name for s in idle)} turned no "
            f"answer: --fail does not count {them}"
        )
    if copied := ", ".join(s.name for s in counted_suspects(record) if is_copied(s)):
        yield (
            f"Look whether labels were copied into the texts, or writers name them: {copied}. "
            "--fail counts them, unless they are named (--allow WORD,WORD)"
        )
    if meaningless(record) and len(meaningless(record)) < len(counted_suspects(record)):
        first = counted_suspects(record)[0].name
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
    if len(own) >= MANY_WORDS:
        yield _standing_out(record, own)
        yield (
            f"{len(own)} of them are words with a meaning: where labels are "
            "subjects, most of these are the subject's own, and which are not cannot be told. "
            "Go through them from the top: what does not belong to its label's subject may be "
            "a leak. Name those that are right to use (--allow WORD,WORD), and --fail counts the "
            f"others, once they are fewer than {MANY_WORDS} and but for what is near the name of "
            "its label"
        )
    elif own:
        named = ", ".join(f"{s.name} for {s.label}" for s in own)
        yield (
            f"Near the name of its label by the word vectors: {named}. That is right where it is "
            "the subject, a leak where labels were copied into the texts; --fail does not count it"
        )
    yield from _of_subject(record)
    yield record.remark
    yield record.detection_limit


def _of_subject(record: Suspects) -> Iterator[str]:
    """Of words that a subject may hold: what decides first, and apart from the others."""
    some = perhaps_own_to_subject(record)
    counts = "--fail counts {them}, unless {named} (--allow WORD,WORD)"
    ahead = standing_out(record, some)
    turning = [s for s in turning_when_taken_out(some) if s not in ahead]
    if ahead:
        yield f"{_standing_out(record, some)}; {counts}".format(**_pronouns(len(ahead)))
    if turning:
        said = ", ".join(f"{s.name} ({percent(s.taken_out.flipped)})" for s in turning)
        yield (
            f"Taken out of texts, {said} turn{'s' if len(turning) == 1 else ''} answers: look at "
            f"{{them}} first, whether it is the subject that decides; {counts}"
        ).format(**_pronouns(len(turning)))
    if rest := [s for s in some if s not in ahead and s not in turning]:
        names = ", ".join(s.name for s in rest)
        yield (
            f"{names} may be the subject's own: with more than two labels, honest models "
            "often lean on words of a field more than on words that mean much the same. Ask "
            f"somebody who knows the subject; {counts}"
        ).format(**_pronouns(len(rest)))


def _pronouns(n: int) -> dict[str, str]:
    return (
        {"them": "it", "named": "it is named"}
        if n == 1
        else {"them": "them", "named": "they are named"}
    )


def _standing_out(record: Suspects, some: Sequence[Suspect]) -> str:
    """Those of several words that are far ahead of the others; empty where none is."""
    ahead = standing_out(record, some)
    if not ahead:
        return ""
    rest = [abs(s.score) for s in (*some, *record.others) if s not in ahead]
    names = ", ".join(s.name for s in ahead)
    scores = ", ".join(f"{s.score:.2f}" for s in ahead)
    stand, them = ("stands", "it") if len(ahead) == 1 else ("stand", "them")
    return f"{names} {stand} out ({scores}, the next {max(rest):.2f}): look at {them} first"


def _surface(record: Suspects) -> Iterator[str]:
    """Properties of the surface that tell answers, or turn them when they are tried."""
    surface = deciding_surface(record)
    tried = {t.name: _trials(record, t.name) for t in turning_trials(record) if t.name != LENGTH}
    if surface:
        alone = "" if record.found or record.unfollowed else ", and no look does"
        said = [tried.pop(name) for name in surface if name in tried]
        said.append(
            f"Whether a text has {' or '.join(surface)} tells its answer (area under the curve "
            f"{record.surface_auc[surface[0]]:.2f}){alone}"
        )
        yield ". ".join([*said, _asked(record, *surface)])
    for name, said_of in tried.items():
        yield f"{said_of}. {_asked(record, name)}"


def _asked(record: Suspects, *names: str) -> str:
    """The question that such a property raises, and what --fail makes of it."""
    if set(names) <= set(record.allowed):
        return "Somebody said that it is right to use: --fail does not count it"
    named = shlex.quote(",".join(names))
    return f"Should it decide? --fail counts it, unless it is named (--allow {named})"


def _trials(record: Suspects, name: str) -> str:
    """What was done about a property or length, and what it turned."""
    said = []
    for trial in turning_trials(record):
        if trial.name != name:
            continue
        way = "turned to" if trial.towards else "turned from"
        beside = f" ({trial.turned_beside} {trial.beside})" if trial.beside else ""
        done = trial.done[:1].upper() + trial.done[1:]
        said.append(f"{done}: {trial.turned} answers {way} {trial.label}{beside}")
    return ". ".join(said)


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


def redundant(share: float, unmoved: float, method: str, *, switched: bool) -> str:
    """What it means that words, hidden one at a time, hardly matter though together they do, in
    the texts whose answers hang on words at all."""
    effect = f"iding words one at a time does {percent(max(share, 0))} of what hiding all of them"
    seen = f"H{effect} does, in the median text"
    if unmoved > MOST_UNMOVED:
        seen = (
            f"Most texts ({percent(unmoved)}) get the same answer with all words hidden. In the "
            f"others, h{effect} does, in the median one"
        )
    seen += (
        ": each alone seems to weigh nothing where several tell the same, pull different ways, or "
        "answers jump"
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
