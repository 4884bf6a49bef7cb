"""Changes of datasets, one file each: the file `insert.py` is the change `insert`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..core.changes import Change
from ..core.errors import DataError, PluginError
from ..core.examples import Dataset
from ..core.plugins import Registry, plugin_path, split_specs
from ._attack import Attack, WordAttack
from ._label_mark import LabelMark
from ._picture_mark import PictureMark
from ._planting import Planting

__all__ = [
    "Attack",
    "LabelMark",
    "PictureMark",
    "Planting",
    "WordAttack",
    "attacked",
    "changed",
    "changes",
]

__path__ = plugin_path(__path__, "changes")

changes: Registry[Change] = Registry("change", __name__, Change)


def changed(data: Dataset[Any], by: str | Sequence[str | Change], *, seed: int = 0) -> Dataset[Any]:
    """The dataset after these changes, one after the other; its name tells them."""
    specs = split_specs(by) if isinstance(by, str) else by
    steps = [changes.make(step) for step in specs]
    for step in steps:
        if unfit := step.unfit(data.kind):
            raise DataError(f"{step.spec} {unfit}, which {data.name} holds. Choose another change")
        data = step.changed(data, seed=seed)
    return replace(data, name=" + ".join([data.name, *(step.spec for step in steps)]))


def attacked(data: Dataset, by: str | Sequence[str], *, seed: int = 0) -> Dataset:
    """The dataset with the twins that these patterns make, and that nothing else has changed."""
    steps = [changes.make(spec) for spec in split_specs(by)]
    able = ", ".join(n for n in changes.names() if issubclass(changes.get(n), Attack))
    if not steps:
        raise PluginError(f"expected patterns that make twins, got none; there are: {able}")
    for step in steps:
        if not isinstance(step, Attack):
            raise PluginError(f"{step.spec} makes no twins; those that do: {able}")
        if steps.count(step) > 1:
            raise PluginError(f"{step.spec} is named twice; for more twins say copies=2")
    return changed(data, steps, seed=seed)
