"""Sets of words as people look at them: the strongest words, where they stand, and what lexicons
of emotional words make of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import PluginError
from ..core.examples import Dataset, Example
from ..core.plugins import nearest
from ..core.truths import WordSets, spelt

AROUND = 8
"""Words on either side of a word in its context."""
MOST_CHARACTERS = 90
"""So much is shown of either side at most, however long its words are."""
OWN_PLACES, OTHER_PLACES = 2, 1
"""Contexts of a word: in texts of its label, and in texts of another."""
NAMED = 5
"""So many documents are named at most where some are told of."""


@dataclass(frozen=True)
class WordContext:
    """A word in a text, with what stands around it."""

    id: str
    label: str
    before: str
    word: str
    after: str


@dataclass(frozen=True)
class SetWord:
    """A word of a set; what is not known is nan."""

    word: str
    score: float
    texts: float
    """Texts of its label with it."""
    elsewhere: float
    """Texts of other labels with it."""
    places: tuple[WordContext, ...] = ()


@dataclass(frozen=True)
class LabelWords:
    """The set of one label, the strongest word first."""

    label: str
    polarity: int
    """1 praises, -1 blames, 0 neither or not known."""
    order: str
    """What the words are ordered by: score, texts, or name where neither is known."""
    members: tuple[SetWord, ...]

    def strength(self, member: SetWord) -> float:
        """What a word is ordered by, as a number."""
        known = {"score": member.score, "texts": member.texts}
        return known.get(self.order, 1.0)


@dataclass(frozen=True, kw_only=True)
class LexiconOverlap:
    """The sets of one polarity beside a lexicon."""

    lexicon: str
    polarity: int
    labels: tuple[str, ...]
    same: tuple[str, ...]
    """Words of the sets that the lexicon holds to be of this polarity."""
    other: tuple[str, ...]
    """Words of the sets that it holds to be of the other."""
    unlisted: tuple[str, ...]
    """Words of the sets that it does not know."""
    listed: int
    """The lexicon's words of this polarity."""
    met: int | None
    """How many of these stand in the texts, or were looked at; None where nobody knows."""

    @property
    def size(self) -> int:
        return len(self.same) + len(self.other) + len(self.unlisted)

    @property
    def precision(self) -> float:
        """The share of the sets' words that the lexicon holds to be of the same polarity."""
        return _share(len(self.same), self.size)

    @property
    def opposed(self) -> float:
        """The share that it holds to be of the other."""
        return _share(len(self.other), self.size)

    @property
    def recall(self) -> float:
        """The share of the lexicon's words that are in the sets."""
        return _share(len(self.same), self.listed)

    @property
    def recall_met(self) -> float:
        """The same of words that could have been found."""
        return math.nan if self.met is None else _share(len(self.same), self.met)

    @property
    def jaccard(self) -> float:
        """What both have of what either has."""
        return _share(len(self.same), self.size + self.listed - len(self.same))


@dataclass(frozen=True, kw_only=True)
class WordView:
    """All that there is to see of sets of words."""

    source: str
    trained_on: str
    """The data that the sets come from; empty where their file does not say it."""
    remarks: tuple[str, ...]
    labels: tuple[LabelWords, ...]
    comparisons: tuple[LexiconOverlap, ...]
    counted_in: str
    """The data in which texts were counted; empty where they were not."""
    has_contexts: bool
    facts: Mapping[str, Any]


def word_view(
    sets: WordSets,
    data: Dataset | None = None,
    *,
    lexicons: Mapping[str, Mapping[str, int]] | None = None,
    polarity: Sequence[int] = (),
    top: int = 20,
    least: int = 3,
) -> WordView:
    """The sets with counts from the data, if there are any, and contexts for the top words.

    Words in fewer texts of their label than `least` come last: one text makes no strong word.
    """
    if data is not None:
        sets.check(data)
    signs = tuple(polarity) or (0,) * len(sets.labels)
    texts = sets.texts(data) if data is not None else sets.texts_seen
    labels = tuple(_ordered(sets, c, signs[c], texts, least) for c in range(len(sets.labels)))
    if data is not None:
        labels = _with_places(sets, labels, data, top)
    trained_on = str(sets.facts.get("trained_on", ""))
    return WordView(
        source=str(sets.facts.get("source", "an unknown source")),
        trained_on=trained_on,
        remarks=tuple(remarks(sets)),
        labels=labels,
        comparisons=tuple(
            _compared(name, words, sign, labels, _met(sets, data))
            for name, words in (lexicons or {}).items()
            for sign in (1, -1)
            if sign in signs
        ),
        counted_in=data.name if data is not None else trained_on if texts else "",
        has_contexts=data is not None,
        facts=sets.facts,
    )


def polarities(
    labels: Sequence[str],
    positive: Sequence[str] = (),
    negative: Sequence[str] = (),
    *,
    by_number: bool = True,
) -> tuple[int, ...]:
    """Which labels praise (1) and which blame (-1): as told, by their names, or by their numbers,
    of which those above the middle praise."""
    for name in (*positive, *negative):
        if name not in labels:
            raise PluginError(f"no label is called {name!r}: {nearest(name, labels)}")
    if both := set(positive) & set(negative):
        raise PluginError(
            f"expected {', '.join(sorted(both))} to be positive or negative, not both"
        )
    if positive or negative:
        return tuple((name in positive) - (name in negative) for name in labels)
    names = [name.casefold() for name in labels]
    found = tuple(n.startswith("pos") - n.startswith("neg") for n in names)
    if any(found) or not by_number:
        return found
    try:
        numbers = [float(name) for name in labels]
    except ValueError:
        return found
    middle = (min(numbers) + max(numbers)) / 2
    return tuple((n > middle) - (n < middle) for n in numbers)


def remarks(sets: WordSets) -> Iterator[str]:
    """What somebody who leans on these sets should know, a sentence each."""
    facts = sets.facts
    covered = facts.get("covered")
    for name, words in zip(sets.labels, sets.words, strict=True):
        share = covered.get(name) if isinstance(covered, dict) else None
        coverage = f", {share:.1%} of the words of its texts" if _is_number(share) else ""
        yield f"{name}: {len(words):,} words{coverage}"
    if _is_number(facts.get("gap")):
        yield (
            "proven: no sets touch other labels less"
            if facts.get("status") == "optimal"
            else f"stopped at the time limit: best sets cost up to {facts['gap']:.1%} less (gap)"
        )
    kept, dropped = facts.get("documents"), facts.get("dropped")
    if _is_number(kept) and _is_number(dropped) and dropped:
        why = "too few words looked at" if "status" in facts else "the model is wrong on them"
        yield f"{dropped:,} of {kept + dropped:,} texts left out: {why}"
    violated = facts.get("violated")
    if isinstance(violated, list) and violated:
        named = ", ".join(str(v)[:40] for v in violated[:NAMED])
        more = ", …" if len(violated) > NAMED else ""
        yield f"{len(violated):,} texts hold no word of their label’s set ({named}{more})"


# ---- words ------------------------------------------------------------------------------------


def _ordered(
    sets: WordSets, label: int, polarity: int, texts: Mapping[str, Sequence[int]], least: int
) -> LabelWords:
    words = sets.words[label]
    order = "score" if sets.scores else "texts" if texts else "name"
    members = []
    for word in words:
        seen = texts.get(word, [math.nan] * len(sets.labels))
        own = float(seen[label])
        score = sets.scores[word][label] if word in sets.scores else math.nan
        members.append(SetWord(word, score, own, float(sum(seen)) - own))
    found = LabelWords(sets.labels[label], polarity, order, ())

    def place(m: SetWord) -> tuple[bool, float, float, float, str]:
        known = [found.strength(m), m.texts, -m.elsewhere]
        # what is not known comes last
        strength, own, clean = (math.inf if math.isnan(v) else -v for v in known)
        return m.texts < least, strength, own, clean, m.word

    return replace(found, members=tuple(sorted(members, key=place)))


def _with_places(
    sets: WordSets, labels: Sequence[LabelWords], data: Dataset, top: int
) -> tuple[LabelWords, ...]:
    """Contexts for the top words, the first that the data offer, one of a text at most."""
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for c, one in enumerate(labels):
        for m in one.members[:top]:
            wanted[m.word].append(c)
    found: defaultdict[tuple[int, str, bool], list[WordContext]] = defaultdict(list)
    for e in data:
        seen = set()
        for i, word in enumerate(e.input.words):
            key = spelt(word, sets.cased)
            if key in seen or key not in wanted:
                continue
            seen.add(key)
            for c in wanted[key]:
                own = e.label == c
                places = found[c, key, own]
                if len(places) < (OWN_PLACES if own else OTHER_PLACES):
                    places.append(_place(e, i, data.labels))

    def placed(m: SetWord, c: int) -> SetWord:
        return replace(m, places=(*found[c, m.word, True], *found[c, m.word, False]))

    return tuple(
        replace(one, members=tuple(placed(m, c) for m in one.members))
        for c, one in enumerate(labels)
    )


def _place(example: Example, i: int, labels: Sequence[str]) -> WordContext:
    text, spans = example.input.text, example.input.spans
    start, end = spans[i]
    first, last = max(0, i - AROUND), min(len(spans) - 1, i + AROUND)
    before, after = text[spans[first][0] : start], text[end : spans[last][1]]
    cut = first > 0 or len(before) > MOST_CHARACTERS
    goes_on = last < len(spans) - 1 or len(after) > MOST_CHARACTERS
    before = ("… " if cut else "") + before[-MOST_CHARACTERS:]
    after = after[:MOST_CHARACTERS] + (" …" if goes_on else "")
    return WordContext(example.id, labels[example.label], before, text[start:end], after)


# ---- lexicons ---------------------------------------------------------------------------------


def _met(sets: WordSets, data: Dataset | None) -> frozenset[str] | None:
    """The words that could have been found."""
    if data is not None:
        return frozenset(word.casefold() for e in data for word in e.input.words)
    return frozenset(word.casefold() for word in sets.scores) or None


def _compared(
    name: str,
    lexicon: Mapping[str, int],
    polarity: int,
    labels: Sequence[LabelWords],
    met: frozenset[str] | None,
) -> LexiconOverlap:
    mine = [one for one in labels if one.polarity == polarity]
    words = dict.fromkeys(m.word.casefold() for one in mine for m in one.members)
    listed = {word for word, sign in lexicon.items() if sign == polarity}
    return LexiconOverlap(
        lexicon=name,
        polarity=polarity,
        labels=tuple(one.label for one in mine),
        same=tuple(w for w in words if w in listed),
        other=tuple(w for w in words if lexicon.get(w) == -polarity),
        unlisted=tuple(w for w in words if w not in lexicon),
        listed=len(listed),
        met=None if met is None else len(listed & met),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _is_number(value: Any) -> bool:
    # nan and whole numbers beyond any float are none
    return type(value) in (int, float) and -1e300 < value < 1e300
