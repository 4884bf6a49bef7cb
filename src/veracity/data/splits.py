"""Training, validation and test parts that share no text and no pair of twins."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core.errors import DataError
from ..core.examples import Dataset, Example
from ..core.inputs import Input, Text

PARTS = ("train", "validation", "test")

Stratum = Callable[[Example[Any]], tuple[int, ...]]
"""What is to be in proportion in every part."""

ReportOn = Literal["outer", "inner"]
"""What a model is judged by: texts that nothing was chosen by, or those of early stopping."""
NAMES = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}


@dataclass(frozen=True)
class Splits:
    """One dataset in three parts."""

    train: Dataset
    validation: Dataset
    test: Dataset

    def fingerprint(self) -> str:
        """Tells these parts from others."""
        return "".join(p.fingerprint()[:16] for p in (self.train, self.validation, self.test))


@dataclass(frozen=True)
class Fold:
    """One training of a nested cross-validation: which it is, and what it is given."""

    outer: int
    inner: int
    parts: Splits


def normalised(text: str) -> str:
    """A text without what does not make it another text: case and white space."""
    return " ".join(text.casefold().split())


def content(one: Input) -> str:
    """What two inputs share that may not stand in two parts."""
    return normalised(one.text) if isinstance(one, Text) else one.key


def of_label(example: Example[Any]) -> tuple[int, ...]:
    return (example.label,)


def split(
    dataset: Dataset,
    *,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    stratum: Stratum = of_label,
) -> Splits:
    """The parts a dataset names itself, or seeded ones with the labels, or whatever else tells
    strata apart, in proportion."""
    if len(shares) != 3 or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise DataError(f"expected three shares that add up to 1, got {tuple(shares)}")
    given = given_parts(dataset)
    odd = sorted(set(given) - set(PARTS))
    if odd and set(odd) != set(given):
        raise DataError(
            "expected every example's split to be train, validation (dev, val) or test; "
            f"got {', '.join(map(repr, odd))} too"
        )
    missing = [part for part in PARTS if not given.get(part)]
    if "train" in missing:
        given = {"train": list(range(len(dataset)))}
        missing = ["validation", "test"]
    if missing:
        wanted = [shares[i] if p == "train" or p in missing else 0 for i, p in enumerate(PARTS)]
        if sum(wanted) > 0:
            given |= _dealt(
                dataset, given["train"], [w / sum(wanted) for w in wanted], seed, stratum
            )
    return Splits(*(dataset.select(given.get(part, ())) for part in PARTS))


def given_parts(dataset: Dataset) -> dict[str, list[int]]:
    """The places of each part that examples say they belong to; "" where they say nothing."""
    parts: dict[str, list[int]] = defaultdict(list)
    for i, example in enumerate(dataset):
        name = example.facts.get("split", "").lower()
        parts[NAMES.get(name, name)].append(i)
    return dict(parts)


def sampled(dataset: Dataset, limit: int | None, *, seed: int = 0) -> Dataset:
    """A seeded sample with the labels in proportion, or all when that is fewer. Twins come with
    their originals or not at all, and one pair at least is taken."""
    if limit is None or limit >= len(dataset):
        return dataset
    if not dataset.pairs:
        return dataset.select(sample_places(_own_places(dataset), limit, seed))
    groups = _inseparable(dataset, list(range(len(dataset))), by_text=False)
    places = _own_places(dataset)
    labels = [places[group[0]] for group in groups]
    sizes = np.array([len(group) for group in groups])
    count = max(1, limit * len(groups) // len(dataset))
    while count > 1 and sizes[sample_places(labels, count, seed)].sum() > limit:
        count -= 1
    chosen = set(sample_places(labels, count, seed))
    room = limit - int(sizes[list(chosen)].sum())
    for place in np.random.default_rng(seed).permutation(len(groups)).tolist():
        if place not in chosen and sizes[place] <= room:  # what is left over is filled up
            chosen.add(place)
            room -= int(sizes[place])
    return dataset.select(sorted(i for place in chosen for i in groups[place]))


def sample_places(labels: list[int], limit: int | None, seed: int) -> list[int]:
    """Places of a sample, in order; taken evenly from the shuffled places of each label."""
    if limit is None or limit >= len(labels):
        return list(range(len(labels)))
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    by_label = shuffled[np.argsort(np.asarray(labels)[shuffled], kind="stable")]
    even = (np.arange(limit) + 0.5) * len(labels) / limit
    return [int(i) for i in np.sort(by_label[even.astype(np.int64)])]


def _own_places(dataset: Dataset) -> list[int]:
    """Each example's label by its place in the data's own order, which --labels cannot change."""
    own = {name: place for place, name in enumerate(dataset.own_labels)}
    try:
        return [own[dataset.labels[e.label]] if own else e.label for e in dataset]
    except KeyError:  # they were given other names since
        return [e.label for e in dataset]


def leaks(splits: Splits) -> list[str]:
    """Inputs that stand in more than one part, as messages call them."""
    return [str(one) for one in leaked(splits).values()]


def leaked(splits: Splits) -> dict[str, Input]:
    """Inputs that stand in more than one part, by what they share."""
    parts: list[dict[str, Input]] = [
        {content(example.input): example.input for example in part}
        for part in (splits.train, splits.validation, splits.test)
    ]
    later = {**parts[2], **parts[1], **parts[0]}
    return {key: one for key, one in later.items() if sum(key in part for part in parts) > 1}


def nested_folds(
    dataset: Dataset,
    *,
    outer: int,
    inner: int,
    report_on: ReportOn = "outer",
    seed: int = 0,
    stratum: Stratum = of_label,
) -> list[Fold]:
    """Every training of a nested cross-validation (definitions 2.1).

    Of each outer fold the rest is dealt into inner folds, each of which is once the validation
    part. The test part is the outer fold, or, as released code has it, that validation part again.
    """
    if outer < 2 or inner < 2:
        raise DataError(f"expected two folds or more, outer and inner, got {outer} and {inner}")
    every = list(range(len(dataset)))
    found = []
    for o, tested in enumerate(_folds(dataset, every, outer, (seed,), stratum)):
        rest = sorted(set(every) - set(tested))
        for i, validated in enumerate(_folds(dataset, rest, inner, (seed, o), stratum)):
            trained = sorted(set(rest) - set(validated))
            judged = validated if report_on == "inner" else tested
            parts = (dataset.select(places) for places in (trained, validated, judged))
            found.append(Fold(o, i, Splits(*parts)))
    return found


def _folds(
    dataset: Dataset, members: list[int], count: int, seed: tuple[int, ...], stratum: Stratum
) -> list[list[int]]:
    dealt = _parts(dataset, members, [1 / count] * count, seed, stratum)
    if not all(dealt):
        raise DataError(f"expected texts enough for {count} folds, got {len(members)}")
    return dealt


def _dealt(
    dataset: Dataset, members: list[int], shares: Sequence[float], seed: int, stratum: Stratum
) -> dict[str, list[int]]:
    parts = zip(PARTS, shares, _parts(dataset, members, shares, seed, stratum), strict=True)
    return {name: places for name, share, places in parts if share > 0}


def _parts(
    dataset: Dataset,
    members: list[int],
    shares: Sequence[float],
    seed: int | tuple[int, ...],
    stratum: Stratum,
) -> list[list[int]]:
    """Groups dealt to the part that lacks most, stratum by stratum; parts without a share get
    none."""
    rng = np.random.default_rng(seed)
    strata: dict[tuple[tuple[int, ...], ...], list[list[int]]] = defaultdict(list)
    for group in _inseparable(dataset, members):
        strata[tuple(sorted(stratum(dataset.examples[i]) for i in group))].append(group)
    dealt: list[list[list[int]]] = [[] for _ in shares]
    lacking = np.zeros(len(shares))
    for _, groups in sorted(strata.items()):
        lacking += np.asarray(shares) * sum(map(len, groups))
        for place in rng.permutation(len(groups)):
            part = int(np.argmax(np.where(np.asarray(shares) > 0, lacking, -np.inf)))
            dealt[part].append(groups[place])
            lacking[part] -= len(groups[place])
    for part, share in enumerate(shares):
        richest = max(dealt, key=len)
        if share > 0 and not dealt[part] and len(richest) > 1:
            dealt[part].append(richest.pop())
    return [sorted(i for group in part for i in group) for part in dealt]


def _inseparable(dataset: Dataset, members: list[int], *, by_text: bool = True) -> list[list[int]]:
    """Examples that are twins, and those with one text, may never be parted."""
    parent = {i: i for i in members}

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    first: dict[tuple[str, str], int] = {}
    for i in members:
        example = dataset.examples[i]
        twin = example.partner if example.partner is not None else example.id
        keys = [("id", example.id), ("id", twin)]
        if by_text:
            keys.append(("text", content(example.input)))
        for key in keys:
            parent[root(i)] = root(first.setdefault(key, i))
    groups: dict[int, list[int]] = defaultdict(list)
    for i in members:
        groups[root(i)].append(i)
    return list(groups.values())
