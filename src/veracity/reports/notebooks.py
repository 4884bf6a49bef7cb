"""How an explanation looks in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from ..core.attributions import Attribution
from ..core.inputs import Text


def attribution_html(found: Attribution[Any]) -> str:
    """A text with its words coloured; inputs of other kinds as what they are called."""
    shown = _coloured(found) if isinstance(found.input, Text) else escape(str(found.input))
    return f'<div style="line-height:1.9"><b>{escape(found.method)}</b><br>{shown}</div>'


def _coloured(found: Attribution) -> str:
    words = "".join(
        f'{escape(gap)}<span style="background:rgba({"0,114,178" if s >= 0 else "213,94,0"},'
        f'{abs(s) * 0.75:.2f});padding:1px 3px;border-radius:3px" '
        f'title="{score:+.4g}">{escape(word)}</span>'
        for gap, word, score, s in zip(
            found.input.gaps, found.input.words, found.scores, found.strengths(), strict=False
        )
    )
    return words + escape(found.input.gaps[-1])
