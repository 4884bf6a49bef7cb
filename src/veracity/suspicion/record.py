"""What a model leans on, as it is written down and shown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.counts import counted
from ..core.files import FolderKind, check_format, read_json, reading, write_json
from ..core.schema import from_json
from ..results.health import BY_LENGTH, goes_by_length
from ..results.statistics import percent
from .candidates import PHRASE, WORD

FORMAT = 1
FILE = "suspects.json"
ON_DISK = {
    "n_candidates": "looks",
    "coverage": "covered",
    "detection_limit": "reach",
    "weight_excess": "weight_beyond",
    "label_excess": "label_beyond",
    "p_value": "p",
    "max_effect": "caused",
}
"""Fields whose keys in the file are older than their names."""

SUSPECTS = FolderKind("suspects", FILE)

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
"""Looks that surely tell answers by a smaller area under the curve are not what decides."""

TOLD_ALONE = 0.9
"""From this area on a property of the surface is what does, where nothing else is known."""

JUMPS = 0.01
"""From this share of answers that are exactly 0 or 1 on, log-odds are told with a warning."""

NEARLY_ALWAYS, HARDLY = 0.95, 0.25
"""A label's name that tells it so often, and whose neighbours warrant so little of its weight, was
probably copied into the texts."""

STANDS_OUT = 1.5
"""Among many words of a subject, one whose score is so many times the next is named."""

WEAK_CUE, STRONG_CUE = 0.3, 0.5
"""Scores: texts too few for the first find only what is plain, and for the second hardly anything,
so that nothing found says nothing."""


@dataclass(frozen=True, kw_only=True)
class SuspectExample:
    """A suspect where it stands, with what each word around it weighs."""

    id: str
    words: tuple[str, ...]
    scores: tuple[float, ...]  # towards the suspect's label
    marked: tuple[int, ...]
    """Which of the words are the suspect."""
    label: str
    answer: str
    cut: tuple[bool, bool] = (False, False)
    """Whether the text goes on before and behind."""
    gaps: tuple[str, ...] = ()
    """What stands before each word; a space where that was not written down."""

    def __post_init__(self) -> None:
        n = len(self.words)
        if len(self.scores) != n or len(self.gaps) not in (0, n):
            raise ValueError(f"expected a score and a gap for each of {n} words")
        if not all(0 <= place < n for place in self.marked):
            raise ValueError(f"expected marked words among {n}, got {self.marked}")


@dataclass(frozen=True)
class Effect:
    """What happens to answers when a suspect is put into texts, or taken out of those that have it:
    a cause, where a weight is only a share of the credit."""

    texts: int
    mean: float
    """Change of the log-odds of the suspect's label; nan where nothing could be tried."""
    same_way: float
    """The share of texts in which it moves as the suspect's weight says."""
    flipped: float
    """The share of texts whose answer changes."""
    error: float = 0.0
    """The standard error of the mean."""
    raised: str = ""
    """The label whose log-odds rise most with the suspect in the text, if one surely does."""

    def upper_bound(self, sign: float) -> float:
        """The largest mean in a direction that so many tries leave possible (95 % interval)."""
        return sign * self.mean + 1.96 * self.error

    def lower_bound(self, sign: float, errors: float) -> float:
        """The smallest that they leave possible, by so many standard errors."""
        return sign * self.mean - errors * self.error


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """One thing that carries weight, and all that is known about it."""

    kind: str
    name: str
    label: str
    texts: int
    occurrences: int
    weight: float
    """Mean score of its occurrences towards the label."""
    expected: float
    """What its meaning warrants."""
    weight_excess: float
    """What of the spread of the model's answers goes to it unwarranted, as a correlation."""
    label_excess: float
    """How far it tells the label beyond what words like it tell, as a correlation."""
    score: float
    """What the label tells, or four times the weight or the effect where one of these is less."""
    p_value: float
    """The probability that the strongest of all candidates scores as high on untouched data."""
    consistent: float
    """The share of its occurrences that speak for the label."""
    labelled: float
    """The share of the texts with it that have the label, and of all texts below."""
    base: float
    association: float
    """How surely the two differ: a z-score."""
    topics: Mapping[str, float]
    """Its mean weight in texts of each topic that have it."""
    places: Mapping[str, float]
    """The same for the first, middle and last third of texts."""
    neighbours: Mapping[str, float]
    """The words most like it, and what they weigh."""
    put_in: Effect
    taken_out: Effect
    examples: tuple[SuspectExample, ...] = ()
    also: tuple[str, ...] = ()
    """Weaker candidates that mostly stand on the same words."""
    max_effect: float | None = None
    """What of the spread of the model's answers it brings about at most, as a correlation."""
    names_label: bool = False
    """Whether it means nearly what the name of its label says."""

    @property
    def is_plain(self) -> bool:
        """Whether it is words, which a subject's vocabulary may hold: no sign stands in it."""
        if self.kind != PHRASE:
            return self.kind == WORD
        return all(any(c.isalnum() for c in word) for word in self.name.split(" "))

    @property
    def copied(self) -> bool:
        """Whether it names its label as no word of a subject would: alone, and nearly always."""
        alone = abs(self.expected) < HARDLY * abs(self.weight)
        return self.names_label and alone and self.labelled >= NEARLY_ALWAYS

    @property
    def moves(self) -> str:
        """What happens to answers without it, or with it."""
        effect = max(self.taken_out, self.put_in, key=lambda e: e.flipped if e.texts else -1.0)
        how = "taken out of" if effect is self.taken_out else "put into"
        texts = counted(effect.texts, "text")
        return f"{self.name} ({self.kind}): {how} {texts}, {percent(effect.flipped)}"

    @property
    def speaks(self) -> str:
        """For or against which label: with more than two it may tell what a text is not, and what
        answers turn to is then told by the tries."""
        if self.weight >= 0:
            return f"for {self.label}"
        raised = self.put_in.raised or self.taken_out.raised
        instead = f", for {raised}" if raised not in ("", self.label) else ""
        return f"against {self.label}{instead}"


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """What was found in a model, and what came next but could be chance."""

    model: str
    data: str
    labels: tuple[str, ...]
    method: str
    vectors: str
    texts: int
    n_candidates: int
    least_texts: int
    false_alarms: float
    threshold: float
    """The score from which one of so many candidates is a suspect in so many texts."""
    accuracy: float
    questions: int
    seed: int
    found: tuple[Suspect, ...]
    others: tuple[Suspect, ...]
    dots: tuple[tuple[str, float, float, int], ...] = ()
    """Words for a plot: name, expected weight, weight, texts."""
    coverage: float | None = None
    """The share of the texts' words that the vectors hold; None where there were none."""
    remark: str = ""
    """What a budget made of it."""
    detection_limit: str = ""
    """What alone would be found in so few texts; empty where they are enough."""
    length_auc: float = 0.5
    """How well the length of a text tells its answer, by the area under the curve."""
    label_length_auc: float | None = None
    """And how well it tells its label; None where that was not looked at."""
    turned_by_length: float | None = None
    """The share of its short texts that it answers otherwise once they are repeated until they are
    as long as the others; None where length tells too little to ask."""
    told_by_looks: tuple[float, float] | None = None
    """How well all looks together tell answers, and what that may be at most; None where no answer
    is given often enough to say."""
    told_by_surface: Mapping[str, float] = field(default_factory=dict)
    """How well properties of the surface that are no looks tell answers."""
    all_or_nothing: float = 0.0
    """The share of answers that are 0 or 1 to the last digit."""
    allowed: tuple[str, ...] = ()
    """What somebody who knows the task said is right to use."""
    single_answer: str = ""
    """The label that every text is given, if one is."""
    redundant: bool = False
    """Whether words that tell the same hid one another from the method."""
    unfollowed: tuple[Suspect, ...] = ()
    """Signs, ways of writing and words that answers hang on, though the labels do not follow
    them."""
    fault: str = ""
    """What is wrong with the model itself, so that finding nothing says nothing; else empty."""
    majority: float | None = None
    """How often always answering the commonest label would be right; None in older files."""
    majority_label: str = ""
    restless: float = 0.0
    """By how much its answers to the same text differ, asked twice."""

    def __post_init__(self) -> None:
        if any(texts < 1 for *_, texts in self.dots):
            raise ValueError("expected every word of the plot in one text at least")

    @property
    def meaningful(self) -> tuple[Suspect, ...]:
        """Suspected words that are the subject's own: whose meaning the vectors know, where they
        are too many to be planted, or that mean what their label's name says."""
        open_ = [s for s in self.found if s.name not in self.allowed and not s.copied]
        known = tuple(s for s in open_ if s.neighbours)
        if len(known) >= MANY_WORDS:
            return known
        return tuple(s for s in open_ if s.names_label)

    def _perhaps_of_subject(self) -> list[Suspect]:
        """Suspected words with a meaning, and phrases of words, too few to be the subject's for
        certain."""
        known = [
            s
            for s in self.found
            if not s.copied and (s.neighbours or (s.kind == PHRASE and s.is_plain))
        ]
        excused = {*self.allowed, *(s.name for s in self.meaningful)}
        return [s for s in known if s.name not in excused] if len(self.labels) > 2 else []

    @property
    def alarms(self) -> list[str]:
        """What a build should fail for; nothing that a model without steady answers shows."""
        if self.unsteady:
            return []
        length = ["length"] if self.leans_on_length else []
        found = [s.name for s in self.found if s not in self.meaningful]
        names = [*found, *(s.name for s in self.unfollowed), *length, *self.surface]
        return [name for name in names if name not in self.allowed]

    @property
    def unsteady(self) -> bool:
        """Whether it answers otherwise when it is asked again: what is found may be its noise."""
        return self.restless > UNSTEADY

    @property
    def about_model(self) -> str:
        """How good the model is, beside what needs no model."""
        said = f"The model is right on {self.accuracy:.3f} of {self.texts:,} texts"
        if self.majority is None:
            return said
        return f"{said}; always answering {self.majority_label} would be on {self.majority:.3f}"

    @property
    def _without_neighbours(self) -> list[Suspect]:
        return [
            s
            for s in self.found
            if not s.neighbours and not s.names_label and s.name not in self.allowed
        ]

    @property
    def meaningless(self) -> tuple[str, ...]:
        """Suspects that no subject's vocabulary holds: signs, tags, ways of writing."""
        return tuple(s.name for s in self._without_neighbours if not s.is_plain)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Suspected words whose meaning the vectors do not know."""
        some = self._without_neighbours if self.vectors != "none" else []
        return tuple(s.name for s in some if s.kind == WORD)

    @property
    def leans_on_length(self) -> bool:
        """Whether length tells answers surely, or far better than it tells labels, beyond what
        answers of so many texts do by chance."""
        if self.turned_by_length is not None and self.turned_by_length < TURNED:
            return False
        if self.length_auc >= BY_LENGTH:
            return True
        if self.label_length_auc is None:
            return False
        few = max(1.0, self.texts / len(self.labels))
        least = max(MORE_THAN_LABELS, 3 * math.sqrt((1 / few + 1 / max(1, self.texts)) / 12))
        return self.length_auc - self.label_length_auc >= least

    @property
    def unexplained(self) -> bool:
        """Whether neither what was looked at nor length tells the model's answers, though it is
        no model at chance: what decides is something else."""
        if self.found or self.unfollowed or self.leans_on_length or self.fault:
            return False
        return self.told_by_looks is not None and self.told_by_looks[1] < TOLD

    @property
    def surface(self) -> tuple[str, ...]:
        """What of a text's surface tells answers surely, or nearly where no look tells them."""
        if self.found or self.unfollowed or self.fault:
            return ()
        most = max(self.told_by_surface.values(), default=0.0)
        least = TOLD_ALONE if self.unexplained else BY_LENGTH
        return tuple(n for n, x in self.told_by_surface.items() if x == most >= least)

    @property
    def judges_words(self) -> bool:
        """Whether the vectors could tell what words mean; without any, none means anything."""
        return self.coverage is None or self.coverage >= MIN_COVERAGE

    @property
    def limits(self) -> str:
        """What could not be judged, in a sentence or two; empty where all could."""
        return ". ".join(filter(None, (self.voids, self.cautions)))

    @property
    def voids(self) -> str:
        """What takes the meaning from anything found or not found; empty where nothing does."""
        return ". ".join(filter(None, self._voids()))

    @property
    def cautions(self) -> str:
        """What else to know of it."""
        return ". ".join(filter(None, self._cautions()))

    def _voids(self) -> Iterator[str]:
        if self.unsteady:
            yield (
                "Asked twice about the same texts, the model answers otherwise (by up to "
                f"{self.restless:.2g}): what is found may be its own noise, and nothing is "
                "counted. Make it answer the same each time"
            )
        if self.single_answer:
            yield (
                f"The model answers {self.single_answer} to every text: what changes no answer "
                "here may change others. Bring texts that are answered otherwise"
            )
        elif self.fault:
            yield f"Of the model itself: {self.fault}"
        if self.unexplained and self.told_by_looks is not None:
            yield (
                "All looks together do not tell what the model answers (area under the curve "
                f"{self.told_by_looks[0]:.2f} on texts they were not fitted to; .5 is chance): "
                "what decides is none of them, or a combination, so finding nothing clears nothing"
            )
        if not self.judges_words:
            yield uncovered(self.vectors, self.coverage or 0.0)
        elif self.vectors == "none" and self.found:
            yield (
                "Nobody told what words mean (--vectors none): those that rightly decide are shown "
                "as well"
            )

    def _length(self) -> Iterator[str]:
        if not self.leans_on_length:
            return
        tried = ""
        if self.turned_by_length is not None:
            tried = (
                f". Of its short texts {percent(self.turned_by_length)} are answered otherwise "
                "once they are repeated until they are as long as the others"
            )
        if self.length_auc >= BY_LENGTH:
            length = goes_by_length(self.length_auc)
            yield length[:1].upper() + length[1:] + tried
        else:
            yield (
                f"How long a text is tells its answer far better (area under the curve "
                f"{self.length_auc:.2f}) than its label ({self.label_length_auc:.2f}): the model "
                f"{'leans' if tried else 'may lean'} on length. Try texts of one length{tried}"
            )

    def _cautions(self) -> Iterator[str]:
        yield from self._length()
        if surface := ", ".join(self.surface):
            yield (
                "Whether a text has this tells its answer (area under the curve "
                f"{self.told_by_surface[self.surface[0]]:.2f}), and no look does: {surface}. "
                "Should it decide? --fail counts it, unless it is named (--allow NAME)"
            )
        if self.all_or_nothing >= JUMPS:
            yield (
                f"{percent(self.all_or_nothing)} of the answers are 0 or 1 to the last digit: "
                "weights in log-odds are then as large as the limit that stands for infinity. Read "
                "their signs and their order"
            )
        for what, of_words in (("what means nothing and what", False), ("words that", True)):
            if some := [s.moves for s in self.unfollowed if (s.kind == WORD) == of_words]:
                yield (
                    f"Answers hang on {what} the labels of these texts do not follow "
                    f"({'; '.join(some)} of the answers change)"
                )
        if self.fault and not self.single_answer:
            # what such a model leans on is luck: neither a leak nor its subject
            yield from (self.remark, self.detection_limit)
            return
        if copied := ", ".join(
            s.name for s in self.found if s.copied and s.name not in self.allowed
        ):
            yield (
                f"Look whether labels were copied into the texts, or writers name them: {copied}. "
                "--fail counts them, unless they are named (--allow WORD,WORD)"
            )
        if self.meaningless and len(self.meaningless) < len(self.found):
            first = self.found[0].name
            also = "" if first in self.meaningless else f", beside {first}, which leads the list"
            yield (
                "Signs, tags and ways of writing are seldom a subject's own. Look first at "
                + ", ".join(self.meaningless)
                + also
            )
        if self.unknown:
            yield (
                f"The word vectors do not know {', '.join(self.unknown)}: whether the subject "
                "warrants such a word is for you to say; --fail counts it, unless it is named "
                "(--allow WORD,WORD)"
            )
        if len(self.meaningful) >= MANY_WORDS:
            yield (
                f"{len(self.meaningful)} of them are words with a meaning: where labels are "
                "subjects, most of these are the subject's own, and which are not cannot be told. "
                "Go through them from the top: what does not belong to its label's subject may be "
                "a leak" + self._standing_out(self.meaningful) + ". Name those that are right to "
                "use (--allow WORD,WORD), and --fail counts the others, once they are fewer than "
                f"{MANY_WORDS} and but for what is near the name of its label"
            )
        elif self.meaningful:
            own = ", ".join(f"{s.name} for {s.label}" for s in self.meaningful)
            yield (
                f"By the word vectors these are near the names of their labels ({own}): right "
                "where they are the subject, a leak where labels were copied into the texts. "
                "--fail does not count them"
            )
        if of_subject := self._perhaps_of_subject():
            names = ", ".join(s.name for s in of_subject)
            yield (
                f"{names} may be the subject's own: with more than two labels, honest models "
                "often lean on words of a field more than on words that mean much the same. Ask "
                "somebody who knows the subject" + self._standing_out(of_subject) + "; --fail "
                "counts them, unless they are named (--allow WORD,WORD)"
            )
        yield self.remark
        yield self.detection_limit

    @staticmethod
    def _standing_out(some: Sequence[Suspect]) -> str:
        """The first of several words, if it is far ahead of the others."""
        if len(some) < 2:
            return ""
        first, second, *_ = sorted(some, key=lambda s: -abs(s.score))
        if abs(first.score) < STANDS_OUT * abs(second.score):
            return ""
        return f", and {first.name} stands out ({first.score:.2f}, the next {second.score:.2f})"

    @property
    def nothing(self) -> str:
        """What it means that nothing was found."""
        if self.unsteady:
            return f"Of {self.n_candidates:,} looks nothing is said"
        return (
            f"None of {self.n_candidates:,} looks weighs more than its meaning warrants and tells "
            "the labels of these texts, both beyond chance"
        )

    @property
    def can_clear(self) -> bool:
        """Whether finding nothing says anything: a strong cue would have been found, a word too."""
        blind = self.single_answer or self.redundant or self.fault or not self.judges_words
        blind = blind or self.unsteady or self.unexplained or len(self.meaningful) >= MANY_WORDS
        return self.threshold <= STRONG_CUE and not blind

    def to_dict(self) -> dict[str, Any]:
        """All of it under the keys of the file."""
        return dataclasses.asdict(
            self, dict_factory=lambda items: {ON_DISK.get(k, k): v for k, v in items}
        )

    def write(self, path: Path) -> Path:
        """All of it as JSON."""
        return write_json(path, {"format": FORMAT, **self.to_dict()})

    @classmethod
    def read(cls, path: Path) -> Suspects:
        """What `write` wrote."""
        expected = f"expected {path} to be written by `veracity suspects`"
        with reading(path, expected=expected, remedy="Run it again"):
            content = read_json(path)
            check_format(content, FORMAT, path)
            for part in ("found", "others", "unfollowed"):
                if isinstance(content.get(part), list):
                    content[part] = [_renamed(suspect) for suspect in content[part]]
            del content["format"]
            read: Suspects = from_json(cls, _renamed(content))
            return read

    def __str__(self) -> str:
        found = [
            f"{self.model}: {s.kind} {s.name!r} speaks {s.speaks} in {percent(s.consistent)} of "
            f"its places ({s.texts} texts); weight {s.weight:+.3g}, expected {s.expected:+.3g}, "
            f"p {s.p_value:.2g} after {self.n_candidates:,} looks"
            for s in self.found
        ]
        nothing = [f"{self.model}: {self.nothing}"]
        about = f"{self.model}: {self.about_model}."
        return "\n".join([about, *(found or nothing), *([self.limits] if self.limits else [])])


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


def _renamed(record: Any) -> Any:
    """A record under the names of its fields; what is none is left to be refused."""
    names = {key: name for name, key in ON_DISK.items()}
    return {names.get(k, k): v for k, v in record.items()} if isinstance(record, dict) else record
