"""What a method is given with a model: inputs, and for each of them a label and random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.inputs import Input

Inputs = Sequence[Input]

Targets = Sequence[int]
"""The label that is explained, for each input."""

Rngs = Sequence[np.random.Generator]
"""A generator of its own for each input: no answer depends on the others in the batch."""
