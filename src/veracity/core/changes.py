"""What a change of a dataset is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from .examples import Dataset, Example
from .inputs import TakesInputs
from .plugins import Plugin

PLANTED = "planted"
"""The kind of truth masks that mark what a change put there to tell the label."""

DECOY = "decoy"
"""The kind that marks what looks alike and tells nothing."""

PATTERN = "pattern"
"""The fact that names the pattern which made a twin."""

BOUND = "bound"
"""The fact that says how often a model that misses what was planted can be right at most."""

ORIGINAL_LABEL = "original_label"

MANIPULATION = "manipulation"
"""The fact that names what was done to an input: a mark's number, or `none`."""

UNTOUCHED = "none"


def is_marked(example: Example[Any]) -> bool:
    """Whether a mark was put into it; of pictures the region is known where there is none, too."""
    done = example.facts.get(MANIPULATION, "").split(",")
    return PLANTED in example.truths and set(done) != {UNTOUCHED}


class Change(Plugin, TakesInputs, ABC):
    """Dataset → dataset with its own truth masks; what is random is drawn once per example from
    the seed and the example's id, so neither order nor company matters."""

    @abstractmethod
    def changed(self, data: Dataset[Any], *, seed: int) -> Dataset[Any]:
        """The same examples, changed or with twins beside them, each saying in its facts what
        happened to it."""
