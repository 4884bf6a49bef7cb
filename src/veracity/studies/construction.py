"""Original and adversarial texts by people (definitions 7.2): what a machine can do between the
sheets that people fill in."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.classifiers import Classifier
from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import Text
from ..data.fields import FACTS, RATINGS
from ..data.readers import Columns, RawRow, RawTable
from ..data.records import read_records
from ..data.words import is_chinese, read_text
from ..engine.inference import probabilities
from ..engine.seeds import generator
from .sheets import (
    Sheet,
    SheetLine,
    listed,
    read_lines,
    read_sheet,
    refuse_faulty,
    unwritten,
    write_sheet,
)

TYPES, ADVERSARIAL = FACTS["sentiment_type"], FACTS["adv_type"]
ACCEPTED = {"sufficient": 3, "understandable": 3, "compact": 4}
"""The least rating of each kind that a rationale is accepted with (definitions 7.2)."""

Polarities = Callable[[Sequence[Text]], Sequence[int]]
"""What a snippet classifier answers: a number per snippet, the same for the same polarity."""

Marked = tuple[str, tuple[int, ...]]
"""A rationale set: the id of its text and the places of its words."""

TYPED = Sheet("1-types.csv", ("id", "text", "sentiment_type", "corrected_type"), once=True)
WRITTEN = Sheet("2-twins.csv", ("id", "text", "sentiment_type", "adv_type", "twin"))
LABELLED = Sheet(
    "3-labels.csv",
    ("id", "text", "sample_type", "adv_type", "partner", "sentiment_type", "label"),
    once=True,
)
MARKED = Sheet("4-rationales.csv", ("id", "text", "label", "numbered", "words", "why"))
RATED = Sheet("5-ratings.csv", ("id", "text", "label", "words", "rationale", *RATINGS))
KEPT = Sheet("6-accepted.csv", ("id", "words", *RATINGS))

_STOPS = re.compile(r"[.,;:!?…。，；：！？、\n]+|\s[-–—]+\s")


# ---- rules ----------------------------------------------------------------------------------


def accepted(ratings: Mapping[str, int]) -> bool:
    """Whether a rated rationale set is good enough: it supports the label, reads clearly, and has
    no word too many."""
    return all(ratings[name] >= least for name, least in ACCEPTED.items())


def snippets(text: str) -> list[str]:
    """A text split at its punctuation."""
    return [part.strip() for part in _STOPS.split(text) if part.strip()]


def sentiment_types(
    texts: Sequence[str], lexicon: Mapping[str, int], polarities: Polarities
) -> list[str]:
    """The types to pre-assign: obscure without an emotional word, multiple where the snippets that
    hold one disagree, else single. Snippets without one are not asked for: a classifier of two
    labels must give them a polarity that they do not have."""
    telling = [
        (number, part)
        for number, text in enumerate(texts)
        for part in map(read_text, snippets(text))
        if any(word.casefold() in lexicon for word in part.words)
    ]
    found: dict[int, set[int]] = defaultdict(set)
    answers = polarities([part for _, part in telling]) if telling else []
    for (number, _), polarity in zip(telling, answers, strict=True):
        found[number].add(polarity)
    sizes = [len(found[number]) for number in range(len(texts))]
    return ["obscure" if not n else "single" if n == 1 else "multiple" for n in sizes]


def by_lexicon(lexicon: Mapping[str, int]) -> Polarities:
    """The snippet classifier that needs no model: which emotional words are more."""

    def polarities(parts: Sequence[Text]) -> list[int]:
        sums = [sum(lexicon.get(w.casefold(), 0) for w in part.words) for part in parts]
        return [int(np.sign(total)) for total in sums]

    return polarities


def by_model(model: Classifier) -> Polarities:
    """A trained model as snippet classifier."""

    def polarities(parts: Sequence[Text]) -> list[int]:
        return [int(label) for label in np.argmax(probabilities(model, parts), axis=1)]

    return polarities


# ---- steps: each reads what people filled in and writes what they fill in next --------------


def assign_types(
    data: Dataset,
    folder: Path,
    *,
    lexicon: Mapping[str, int],
    polarities: Polarities | None = None,
) -> dict[str, int]:
    """Step 2: a sheet of raw texts with their types as guessed, for people to correct."""
    texts = [e.input.text for e in data]
    kinds = sentiment_types(texts, lexicon, polarities or by_lexicon(lexicon))
    lines = [
        {"id": e.id, "text": e.input.text, "sentiment_type": kind}
        for e, kind in zip(data, kinds, strict=True)
    ]
    write_sheet(TYPED, folder, lines)
    return {kind: kinds.count(kind) for kind in TYPES}


def sample_types(folder: Path, *, per_type: int, seed: int = 0) -> dict[str, int]:
    """Steps 3 and 4: equally many originals of each type, each with a line for every kind of twin
    that somebody may be able to write."""
    if per_type < 1:
        raise DataError(f"expected 1 or more texts per type, got {per_type}")
    by_type: dict[str, list[SheetLine]] = defaultdict(list)
    for kind, line in read_lines(TYPED, folder, lambda line: (_type(line), line)):
        by_type[kind].append(line)
    short = {kind: len(by_type[kind]) for kind in TYPES if len(by_type[kind]) < per_type}
    if short:
        have = ", ".join(f"{kind} {count}" for kind, count in short.items())
        raise DataError(
            f"expected {per_type} texts of each type, got only {have}; ask for fewer (--per-type) "
            "or start from more texts"
        )
    drawn: list[tuple[str, SheetLine]] = []
    for kind in TYPES:
        order = generator(seed, "sample_types", kind).permutation(len(by_type[kind]))
        drawn += [(kind, by_type[kind][i]) for i in sorted(order[:per_type])]
    rows = [
        {"id": line["id"], "text": line["text"], "sentiment_type": kind, "adv_type": adv_type}
        for kind, line in drawn
        for adv_type in ADVERSARIAL
    ]
    write_sheet(WRITTEN, folder, rows)
    return dict.fromkeys(TYPES, per_type)


def choose_twins(folder: Path, *, seed: int = 0) -> dict[str, int]:
    """Steps 4 and 5: of the twins that were written one per original, by chance, and a sheet to
    label both; originals nobody could rewrite are left out, so that the two stay in proportion."""
    written: dict[str, list[SheetLine]] = defaultdict(list)
    for line in read_lines(WRITTEN, folder, _written):
        written[line["id"]].append(line)
    rows: list[dict[str, str]] = []
    taken = set(written)
    for name, lines in written.items():
        able = [line for line in lines if line["twin"]]
        if not able:
            continue
        one = able[int(generator(seed, "choose_twins", name).integers(len(able)))]
        twin = f"{name}-adv"
        while twin in taken:
            twin += "-adv"
        taken.add(twin)
        kind = {"sentiment_type": one["sentiment_type"]}
        attack = {"adv_type": one["adv_type"], "partner": name}
        rows.append({"id": name, "text": one["text"], "sample_type": "ori", **kind})
        rows.append({"id": twin, "text": one["twin"], "sample_type": "adv", **attack})
    if not rows:
        raise DataError(f"{folder / WRITTEN.name}: expected at least one twin to be written")
    write_sheet(LABELLED, folder, rows)
    return {"pairs": len(rows) // 2, "without_twin": len(written) - len(rows) // 2}


def ask_rationales(folder: Path) -> dict[str, Any]:
    """Step 6: a sheet with the words of every labelled text numbered; `words` takes the numbers
    of a rationale set, and a line is repeated for every further set."""
    data = _labelled(folder)
    write_sheet(MARKED, folder, [_to_mark(e, data.labels) for e in data])
    counts = Counter(data.labels[e.label] for e in data)
    return {"texts": len(data), "labels": {label: counts[label] for label in data.labels}}


def ask_ratings(folder: Path, *, turn: int = 1) -> dict[str, int]:
    """Step 7: a sheet with every rationale set of a round, for other people to rate; none where
    all that were rejected are given up."""
    data = _labelled(folder)
    known = {e.id: e for e in data}
    rows = [
        {
            "id": name,
            "text": known[name].input.text,
            "label": data.labels[known[name].label],
            "words": " ".join(map(str, places)),
            "rationale": " ".join(known[name].input.words[i] for i in places),
        }
        for name, places in _all_marked(folder, known, turn)
    ]
    if rows:
        write_sheet(RATED, folder, rows, turn=turn)
    return {"sets": len(rows)}


def judge(folder: Path, *, turn: int = 1) -> dict[str, int]:
    """Step 7: accepted sets are kept; rejected ones return in the next round's sheet, each with
    what was wrong. Where several people rated a set, all must accept it."""
    data = _labelled(folder)
    known = {e.id: e for e in data}
    marked = _all_marked(folder, known, turn)
    source = MARKED.in_round(turn)

    def rating(line: SheetLine) -> tuple[Marked, dict[str, int]]:
        one = _marked(line, known)
        if one not in marked:
            raise ValueError(f"{_named(one)} are no set of {source}; rate only what it marks")
        return one, _ratings(line)

    rated: dict[Marked, list[dict[str, int]]] = {one: [] for one in marked}
    for one, scores in read_lines(RATED, folder, rating, turn=turn):
        rated[one].append(scores)
    lost = [
        f"{_named(one)} are marked on line {marked[one]} of {source} but have no line here; add "
        "it, and rate them"
        for one, ratings in rated.items()
        if not ratings
    ]
    refuse_faulty(lost, RATED, folder, turn=turn)
    kept, returned = [], []
    for (name, places), ratings in rated.items():
        words = " ".join(map(str, places))
        lowest = {kind: min(scores[kind] for scores in ratings) for kind in RATINGS}
        if accepted(lowest):
            kept.append({"id": name, "words": words, **{k: str(v) for k, v in lowest.items()}})
            continue
        low = ", ".join(f"{k} {lowest[k]}" for k, least in ACCEPTED.items() if lowest[k] < least)
        returned.append(_to_mark(known[name], data.labels, f"was {words}: {low}"))
    if returned:
        unwritten(MARKED, folder, turn=turn + 1)  # both sheets or none
    write_sheet(KEPT, folder, kept, turn=turn)
    if returned:
        write_sheet(MARKED, folder, returned, turn=turn + 1)
    return {"accepted": len(kept), "rejected": len(returned)}


def assemble(folder: Path, *, name: str = "") -> tuple[Dataset, int]:
    """Records of every pair whose two texts have an accepted rationale set, and how many pairs
    still wait for one."""
    sets: dict[str, dict[tuple[int, ...], dict[str, int]]] = defaultdict(dict)
    data = _labelled(folder)
    known = {e.id: e for e in data}

    def kept(line: SheetLine) -> tuple[Marked, dict[str, int]]:
        return _marked(line, known), _ratings(line)

    turn = 1
    while (folder / KEPT.in_round(turn)).exists():
        for (text, places), scores in read_lines(KEPT, folder, kept, turn=turn, empty=True):
            sets[text][places] = scores
        turn += 1
    pairs = [(e.partner, e.id) for e in data if e.partner is not None]
    ready = {member for pair in pairs if all(m in sets for m in pair) for member in pair}
    if not ready:
        raise DataError(
            f"{folder}: expected a pair whose two texts have an accepted rationale; none has. "
            "Rate more sets, then judge them"
        )
    examples = tuple(_with_sets(e, sets[e.id]) for e in data if e.id in ready)
    made = replace(data, name=name or folder.resolve().name, examples=examples)
    return made, len(pairs) - len(ready) // 2


# ---- parts ----------------------------------------------------------------------------------


def _labelled(folder: Path) -> Dataset:
    """The pairs as people labelled them, held to all rules of the record schema."""
    lines = read_sheet(LABELLED, folder)
    usual: dict[str, str] = {}
    for label, _ in Counter(line["label"] for line in lines).most_common():
        usual.setdefault(_unspaced(label.casefold()), label)
    ids, partners = ({line[column] for line in lines} for column in ("id", "partner"))
    rows = []
    for line in lines:
        values = {key: line[key] or None for key in LABELLED.columns}
        faults = list(_label_slips(line["label"], usual))
        if not line["sentiment_type"]:
            faults.append("expected a sentiment_type, got none")
        if line["partner"] not in ids and line["id"] not in partners:
            faults.append("the other text of its pair is gone; put it back, or take this out too")
        rows.append(RawRow(line.number, values, "; ".join(faults)))
    table = RawTable(LABELLED.columns, tuple(rows))
    found = read_records(table, Columns(), name="construction")
    refuse_faulty([str(f) for f in found.faults if f.severity == "error"], LABELLED, folder)
    doubts = [str(f) for f in found.faults if f.severity == "warning"]
    if doubts:
        path = folder / LABELLED.name
        warnings.warn(f"{path}: look at these lines again:\n{listed(doubts)}", stacklevel=3)
    return found.dataset


def _label_slips(label: str, usual: Mapping[str, str]) -> Iterator[str]:
    """What keeps people from having meant a label, given how it is written most often."""
    if not label:
        yield "the label is missing"
    elif not any(sign.isalnum() for sign in label):
        yield f"expected the label to be a word or a number, got {label!r}"
    elif label != usual[_unspaced(label.casefold())]:
        meant = usual[_unspaced(label.casefold())]
        yield f"the label {label!r} is {meant!r} elsewhere; write all alike"


def _all_marked(folder: Path, known: Mapping[str, Example], turn: int) -> dict[Marked, int]:
    """The sets of a round and their lines. One that was rejected and is left empty is given up."""

    def marked(line: SheetLine) -> tuple[Marked, int] | None:
        given_up = turn > 1 and not line["words"]
        return None if given_up else (_marked(line, known), line.number)

    return dict(filter(None, read_lines(MARKED, folder, marked, turn=turn, empty=turn > 1)))


def _marked(line: SheetLine, known: Mapping[str, Example]) -> Marked:
    name, words = line["id"], line["words"]
    if name not in known:
        raise ValueError(
            f"{LABELLED.name} has no text {name!r}; put it back there, or take this line out"
        )
    n = known[name].input.n_features
    parts = [part for part in re.split(r"[\s,;]+", words) if part]
    if not parts:
        raise ValueError("expected the numbers of a rationale's words, got none")
    if not all(part.isdecimal() and int(part) < n for part in parts):
        raise ValueError(f"expected numbers of words from 0 to {n - 1}, got {words!r}")
    return name, tuple(sorted({int(part) for part in parts}))


def _named(one: Marked) -> str:
    return f"words {' '.join(map(str, one[1]))} of {one[0]!r}"


def _to_mark(example: Example, labels: Sequence[str], why: str = "") -> dict[str, str]:
    numbered = " ".join(f"{i}:{word}" for i, word in enumerate(example.input.words))
    return {
        "id": example.id,
        "text": example.input.text,
        "label": labels[example.label],
        "numbered": numbered,
        "why": why,
    }


def _with_sets(example: Example, sets: Mapping[tuple[int, ...], dict[str, int]]) -> Example:
    n = example.input.n_features
    masks = tuple(np.isin(np.arange(n), places) for places in sets)
    scores = json.dumps(list(sets.values()), sort_keys=True)
    return replace(example, truths={"rationale": masks}, facts={**example.facts, "scores": scores})


def _ratings(line: SheetLine) -> dict[str, int]:
    for name, best in RATINGS.items():
        if not line[name].isdecimal() or not 1 <= int(line[name]) <= best:
            raise ValueError(f"expected {name} to be rated from 1 to {best}, got {line[name]!r}")
    return {name: int(line[name]) for name in RATINGS}


def _type(line: SheetLine) -> str:
    kind = line["corrected_type"] or line["sentiment_type"]
    if kind not in TYPES:
        raise ValueError(f"expected a type of {_either(TYPES)}; got {kind!r}")
    return kind


def _written(line: SheetLine) -> SheetLine:
    text, twin, kind = line["text"], line["twin"], line["adv_type"]
    if twin and _unspaced(twin) == _unspaced(text):
        raise ValueError("the twin is the same text as its original")
    if twin and kind not in ADVERSARIAL:
        raise ValueError(f"expected adv_type to be {_either(ADVERSARIAL)}; got {kind!r}")
    if twin and is_chinese(twin) != is_chinese(text):
        raise ValueError("the twin is in another language")
    return line


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _either(options: Sequence[str]) -> str:
    return ", ".join(options[:-1]) + f" or {options[-1]}"
