"""Randomness that depends on what is drawn for, never on when or where."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *names: str) -> np.random.Generator:
    """The generator that belongs to these names, such as an explainer's and an example's."""
    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode("utf-8", "surrogatepass"))
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "big"))
