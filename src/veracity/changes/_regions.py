"""Where a manipulation acts (definitions 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.inputs import BoolArray


def effective_region(before: NDArray[Any], after: NDArray[Any]) -> BoolArray:
    """The features that a manipulation changes."""
    return np.asarray(before != after, dtype=np.bool_)


def joint_effective_region(before: NDArray[Any], afters: Sequence[NDArray[Any]]) -> BoolArray:
    """The features that any of the manipulations would change, whichever was applied: that nothing
    was done is evidence too."""
    touched = [effective_region(before, after) for after in afters]
    return np.asarray(np.logical_or.reduce(touched), dtype=np.bool_)
