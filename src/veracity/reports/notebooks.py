"""How an explanation and an audit look in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from ..auditing.audit import Audit
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


def audit_html(found: Audit) -> str:
    """What an audit says of each model, and how methods fare by the quantities that count."""
    said = "".join(
        f"<li><b>{escape(c.model)}</b>: {escape(sentence)}</li>"
        for c in found.conclusions.models
        for sentence in (c.health.summary, c.recommendation.sentence, c.recommendation.effect)
        if sentence
    )
    rows = "".join(
        f"<tr><td>{escape(s.model)}</td><td>{escape(s.metric)}: {escape(s.name)}</td>"
        f"<td>{escape(e.method)}</td><td>{e.mean:.3f}</td>"
        f"<td>{e.low:.3f} to {e.high:.3f}</td><td>{escape(e.group)}</td></tr>"
        for s in found.standings
        if s.headline
        for e in s.entries
    )
    names = ("model", "quantity", "method", "mean", "95 %", "group")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<ul>{said}</ul><table><tr>{head}</tr>{rows}</table>"
