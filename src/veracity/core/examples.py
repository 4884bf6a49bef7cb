"""Labelled inputs and what is known about them."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from .errors import DataError
from .inputs import BoolArray, In, Nouns, Text, input_kind

UNLABELLED = "unlabelled"
"""The last label of data that nobody labelled: no model answers it."""


def read_labels(text: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in quotes, as in CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error:
        raise DataError(
            "expected names separated by commas, those with a comma in quotes, such as "
            f"'\"toys, games\",books'; got {text!r}"
        ) from None
    return [name.strip() for row in rows for name in row]


def written_labels(names: Iterable[str]) -> str:
    """Names as they are read back."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def check_texts(data: Dataset[Any], what: str) -> None:
    """A sentence where something that knows words alone is given something else."""
    if data.kind != Text.kind:
        raise DataError(f"{what} is for texts, and {data.name} holds {data.nouns.many}")


def families(partners: Mapping[str, str | None]) -> dict[str, str]:
    """By id of a text and of its original, if it is a twin: the text at the root of all that belong
    together, twins of twins too. One of them says nearly what the others say."""
    above: dict[str, str] = {}

    def root(one: str) -> str:
        while (other := above.get(one, one)) != one:
            one = other
        return one

    for one, partner in partners.items():
        if partner and root(one) != root(partner):
            above[root(one)] = root(partner)
    return {one: root(one) for one in partners}


@dataclass(frozen=True)
class Example(Generic[In]):
    """One labelled input, with every set of features known to decide its label."""

    id: str
    input: In
    label: int
    truths: Mapping[str, tuple[BoolArray, ...]] = field(default_factory=dict)
    partner: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The original that this is or is a twin of; `Dataset.families` knows twins of twins."""
        return self.id if self.partner is None else self.partner


@dataclass(frozen=True)
class Dataset(Generic[In]):
    """Examples under one name with one set of labels."""

    name: str
    labels: tuple[str, ...]
    examples: tuple[Example[In], ...]
    own_labels: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The order that the data give their labels, where another was asked for: a sample is drawn by
    it, so that the same texts are."""

    def __len__(self) -> int:
        return len(self.examples)

    def __str__(self) -> str:
        return f"{self.name}: {len(self):,} examples, labels {', '.join(self.labels)}"

    def __iter__(self) -> Iterator[Example[In]]:
        return iter(self.examples)

    @property
    def kind(self) -> str:
        """The kind of its inputs."""
        return self.examples[0].input.kind if self.examples else Text.kind

    @property
    def nouns(self) -> Nouns:
        """What sentences call its inputs."""
        return input_kind(self.kind).nouns

    @property
    def truth_kinds(self) -> tuple[str, ...]:
        """The kinds of truth masks that at least one example carries."""
        return tuple(sorted({kind for example in self.examples for kind in example.truths}))

    @property
    def balance(self) -> dict[str, int]:
        """How many examples each label has."""
        counts = Counter(example.label for example in self.examples)
        return {name: counts[i] for i, name in enumerate(self.labels)}

    @property
    def labelled(self) -> bool:
        """Whether somebody said what is right."""
        return UNLABELLED not in self.labels

    @property
    def pairs(self) -> tuple[tuple[Example[In], Example[In]], ...]:
        """Every twin behind its original, where the data hold both."""
        by_id = {example.id: example for example in self.examples}
        return tuple(
            (by_id[twin.partner], twin)
            for twin in self.examples
            if twin.partner is not None and twin.partner in by_id and twin.partner != twin.id
        )

    @property
    def families(self) -> dict[str, str]:
        """By id the family of every example: what is drawn whole, and counts as one draw."""
        return families({e.id: e.partner for e in self.examples})

    def select(self, indices: Iterable[int]) -> Dataset[In]:
        """The examples at these places, in this order."""
        return replace(self, examples=tuple(self.examples[i] for i in indices))

    def fingerprint(self) -> str:
        """A hash of all that can change a result."""
        digest = hashlib.sha256(repr(self.labels).encode())
        for e in self.examples:
            marks = _words_marked if e.input.kind == Text.kind else _digest
            truths = {k: [marks(m) for m in masks] for k, masks in sorted(e.truths.items())}
            facts = sorted(e.facts.items())
            rest = (e.label, truths, e.partner, facts)
            row = f"({e.id!r}, {e.input.key}, {', '.join(map(repr, rest))})"
            digest.update(row.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _words_marked(mask: BoolArray) -> list[bool]:
    """Written out: by this, data of texts have always been known."""
    marked: list[bool] = mask.tolist()
    return marked


def _digest(mask: BoolArray) -> str:
    """The marks of a picture are too many to be written out."""
    return f"{len(mask)}:{hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()}"
