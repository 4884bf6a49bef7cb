"""Cases, masks and twins by hand, for tests of metrics and of what is made of them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import numpy as np

from conftest import WordWeights, words
from veracity.core.attributions import Attribution
from veracity.core.examples import Dataset, Example
from veracity.core.inputs import BoolArray, Text
from veracity.core.metrics import Case


def case(text: str, scores: Sequence[float], id_: str = "0", partner: str | None = None) -> Case:
    read = Text.of_words(text.split())
    example = Example(id_, read, 1, partner=partner)
    attribution = Attribution(read, 1, np.array(scores, dtype=float))
    return Case(example, WordWeights({}), np.array([0.4, 0.6]), attribution)


def marked(n: int, *places: int) -> BoolArray:
    return np.isin(np.arange(n), places)


def data_of(*rows: tuple[str, str, str | None]) -> Dataset:
    """Rows of id, text, partner."""
    return Dataset(
        "pairs",
        ("negative", "positive"),
        tuple(Example(i, words(t), n % 2, partner=p) for n, (i, t, p) in enumerate(rows)),
    )


def shown(page: str) -> str:
    """What a reader sees of a page."""
    body = page[page.index("<main") :]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body)))
