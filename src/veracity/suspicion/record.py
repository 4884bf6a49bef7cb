"""What a model leans on, as it is written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import FolderKind, check_format, read_json, reading, write_json
from ..core.schema import from_json
from . import decisions, sentences

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
    "candidates_auc": "told_by_looks",
    "surface_auc": "told_by_surface",
    "repeat_difference": "restless",
}
"""Fields whose keys in the file are older than their names."""

SUSPECTS = FolderKind("suspects", FILE)


@dataclass(frozen=True, kw_only=True)
class SuspectExample:
    """A suspect where it stands, with what each word around it weighs."""

    id: str
    """The id of the text."""
    words: tuple[str, ...]
    """The suspect with the words around it."""
    scores: tuple[float, ...]
    """What each of them weighs towards the suspect's label."""
    marked: tuple[int, ...]
    """Which of the words are the suspect."""
    label: str
    """The label of the text."""
    answer: str
    """What the model answers to it."""
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
    """In so many texts it was tried."""
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
    """word, sign, phrase, first or last (word of a text), or casing."""
    name: str
    """The word or words, or what the way of writing is called."""
    label: str
    """The label that it speaks for."""
    texts: int
    """So many texts have it."""
    occurrences: int
    """So often it stands in them."""
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
    """The share of the texts with it that have the label."""
    base: float
    """The share of all texts that have the label."""
    association: float
    """How surely these two shares differ: a z-score."""
    topics: Mapping[str, float]
    """Its mean weight in texts of each topic that have it."""
    places: Mapping[str, float]
    """The same for the first, middle and last third of texts."""
    neighbours: Mapping[str, float]
    """The words most like it, and what they weigh."""
    put_in: Effect
    """What happens when it is put into texts that lack it."""
    taken_out: Effect
    """What happens when it is taken out of texts that have it."""
    examples: tuple[SuspectExample, ...] = ()
    """Texts that it seems to have misled, then those in which it weighs most."""
    also: tuple[str, ...] = ()
    """Weaker candidates that mostly stand on the same words."""
    max_effect: float | None = None
    """What of the spread of the model's answers it brings about at most, as a correlation."""
    names_label: bool = False
    """Whether it means nearly what the name of its label says."""


@dataclass(frozen=True, kw_only=True)
class SurfaceTrial:
    """What happened to answers when texts were given a property of the surface, or lost it."""

    name: str
    """The property, or length."""
    done: str
    """What was done to the texts, in words."""
    texts: int
    """In so many it was tried."""
    label: str = ""
    """The label that most answers turned to, or from."""
    towards: bool = True
    """Whether they turned to it."""
    turned: int = 0
    """How many did."""
    beside: str = ""
    """What was done to the same texts for comparison; empty where too few turned to ask."""
    turned_beside: int = 0
    """How many turned the same way then."""
    p_value: float = 1.0
    """The probability that so many more turn by chance, all trials, labels and ways counted."""


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """What was found in a model, and what came next but could be chance."""

    model: str
    """The name of the model."""
    data: str
    """The name of the data."""
    labels: tuple[str, ...]
    """Its labels, in their order."""
    method: str
    """The spec string of the method that weighed words."""
    vectors: str
    """What told what words mean: glove, a file, or none."""
    texts: int
    """So many texts were looked at."""
    n_candidates: int
    """So many looks were taken: candidates, times labels where there are more than two."""
    least_texts: int
    """What stands in fewer texts was not judged."""
    false_alarms: float
    """The p-value up to which a candidate is a suspect."""
    threshold: float
    """The score from which one of so many candidates is a suspect in so many texts."""
    accuracy: float
    """How often the model is right on these texts."""
    questions: int
    """So many questions were put to it."""
    seed: int
    """The seed of all that was drawn."""
    found: tuple[Suspect, ...]
    """The suspects."""
    others: tuple[Suspect, ...]
    """What came next, and could be chance."""
    dots: tuple[tuple[str, float, float, int], ...] = ()
    """Words for a plot: name, expected weight, weight, texts."""
    coverage: float | None = None
    """The share of the texts' words that the vectors hold; None where there were none."""
    remark: str = ""
    """What a budget, or words that hid one another, made of it."""
    detection_limit: str = ""
    """What alone would be found in so few texts; empty where they are enough."""
    length_auc: float = 0.5
    """How well the length of a text tells its answer, by the area under the curve."""
    label_length_auc: float | None = None
    """And how well it tells its label; None where that was not looked at."""
    turned_by_length: float | None = None
    """The share of its short texts that it answers otherwise once they are repeated until they are
    as long as the others; None where length tells too little to ask."""
    candidates_auc: tuple[float, float] | None = None
    """How well all candidates together tell answers, and what that may be at most; None where
    no answer is given often enough to say."""
    surface_auc: Mapping[str, float] = field(default_factory=dict)
    """How well properties of the surface that are no candidates tell answers."""
    surface_trials: tuple[SurfaceTrial, ...] = ()
    """What properties of the surface and length did to answers when they were tried."""
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
    """That label."""
    p_vs_chance: float | None = None
    """How likely it would be right so often if its answers were dealt out at random; None in older
    files."""
    repeat_difference: float = 0.0
    """By how much its answers to the same text differ, asked twice."""

    def __post_init__(self) -> None:
        if any(texts < 1 for *_, texts in self.dots):
            raise ValueError("expected every word of the plot in one text at least")

    @property
    def alarms(self) -> list[str]:
        """What a build should fail for."""
        return decisions.alarms(self)

    @property
    def can_clear(self) -> bool:
        """Whether finding nothing says anything."""
        return decisions.can_clear(self)

    @property
    def limits(self) -> str:
        """What could not be judged, in a sentence or two; empty where all could."""
        return sentences.limits(self)

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
            for part in ("found", "others", "unfollowed", "surface_trials"):
                if isinstance(content.get(part), list):
                    content[part] = [_renamed(suspect) for suspect in content[part]]
            del content["format"]
            read: Suspects = from_json(cls, _renamed(content))
            return read

    def __str__(self) -> str:
        return sentences.summary(self)


def _renamed(record: Any) -> Any:
    """A record under the names of its fields; what is none is left to be refused."""
    names = {key: name for name, key in ON_DISK.items()}
    return {names.get(k, k): v for k, v in record.items()} if isinstance(record, dict) else record
