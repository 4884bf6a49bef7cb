"""What training on pattern-made twins changes, and on which texts (definitions 7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import DataError
from ..core.examples import Dataset
from ..core.inputs import BoolArray, FloatArray, IntArray
from ..results.robustness import paired_p
from ..results.statistics import grouped_interval, share_interval, sign_flip_test

FILE = "augmentation.json"


@dataclass(frozen=True)
class Rate:
    """An accuracy, the mean over trainings, and its 95 % interval over texts."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Two models on the same texts: trained as ever, and on pattern-made twins as well."""

    name: str
    texts: int
    originals: int
    """How many originals the texts come from: so many are independent."""
    plain: Rate
    augmented: Rate
    difference: float
    """Augmented minus plain, with its 95 % interval over originals."""
    low: float
    high: float
    p: float
    """How likely the two differ as much by chance; of one training McNemar's where texts are
    independent, else over originals."""
    by_seed: tuple[float, ...]
    """The difference of each pair of trainings: what the luck of training does."""


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The same architecture trained on texts, and on them and pattern-made twins."""

    architecture: str
    train: str
    tested: str
    by: str
    tested_by: str
    seeds: int
    train_texts: int
    added_texts: int
    held_out: int
    """Texts that were kept from training since they are tested."""
    left_out: int
    """Pairs that take no part: their original has several sentiments."""
    gains: tuple[Gain, ...]


def gains_of(
    data: Dataset, kinds: Mapping[str, IntArray], plain: BoolArray, augmented: BoolArray
) -> tuple[Gain, ...]:
    """For each kind of texts, given by their places, what two models that were trained several
    times are right on. (trainings, examples) each"""
    if plain.shape != augmented.shape or plain.shape[1:] != (len(data),):
        raise DataError(
            f"expected two models that answered {len(data)} texts as often, got answers of the "
            f"shapes {plain.shape} and {augmented.shape}"
        )
    by_id = data.families
    family = [by_id[e.id] for e in data]
    return tuple(
        _gain(name, [family[i] for i in places], plain[:, places], augmented[:, places])
        for name, places in kinds.items()
        if len(places)
    )


def _gain(name: str, groups: Sequence[str], plain: BoolArray, augmented: BoolArray) -> Gain:
    before, after = (one.mean(axis=0) for one in (plain, augmented))  # (texts,)
    difference = after - before
    if len(plain) == 1:
        sides = [(bool(a), bool(b)) for a, b in zip(augmented[0], plain[0], strict=True)]
        p = paired_p(groups, sides)
    else:
        p = sign_flip_test(difference, groups)
    low, high = np.clip(grouped_interval(difference, groups), -1.0, 1.0).tolist()
    return Gain(
        name=name,
        texts=len(groups),
        originals=len(set(groups)),
        plain=_rate(before, groups),
        augmented=_rate(after, groups),
        difference=float(difference.mean()),
        low=low,
        high=high,
        p=p,
        by_seed=tuple((augmented.mean(axis=1) - plain.mean(axis=1)).tolist()),
    )


def _rate(right: FloatArray, groups: Sequence[str]) -> Rate:
    return Rate(float(right.mean()), *share_interval(right, groups))
