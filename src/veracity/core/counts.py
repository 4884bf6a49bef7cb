"""Numbers with their nouns, as sentences have them."""

from __future__ import annotations


def counted(n: float, one: str, many: str = "") -> str:
    """`1 question`, `1,200 questions`; a noun in another plural is given in both."""
    shown = f"{n:,.0f}"
    return f"{shown} {one if shown == '1' else many or f'{one}s'}"
