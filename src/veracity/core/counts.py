"""Numbers with their nouns and units, as sentences and tables have them."""

from __future__ import annotations

import math


def counted(n: float, one: str, many: str = "") -> str:
    """`1 question`, `1,200 questions`; a noun in another plural is given in both."""
    shown = f"{n:,.0f}"
    return f"{shown} {one if shown == '1' else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Seconds in the unit in which they are easy to read; a dash where there are none."""
    if math.isnan(seconds):
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return "0 s"
