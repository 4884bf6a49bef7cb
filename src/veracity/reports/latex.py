"""Standings as a LaTeX table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from ..results.standings import Entry, Standing
from .scoreboard import Board, board
from .showing import printable, words

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "-": r"{-}",  # two in a row would become a dash
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": r"{[}",  # after \\ a bracket would be taken for a length
    "]": r"{]}",
}
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", "": ""}


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(_SPECIAL.get(c, c) for c in printable(text))


def latex_table(standings: Sequence[Standing]) -> str:
    """Methods in rows, quantities in columns, a block per model; for the package booktabs."""
    models = list(dict.fromkeys(s.model for s in standings))
    quantities = list(dict.fromkeys((s.metric, s.name) for s in standings))
    if not quantities:
        raise ValueError("expected at least one standing to put in a table, got none")
    better = {(s.metric, s.name): s.better for s in standings}
    heads = [escaped(words(name)) + _ARROWS[better[metric, name]] for metric, name in quantities]
    lines = [
        r"% \usepackage{booktabs,textcomp} \usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(quantities)}}}",
        r"\toprule",
        *_metric_row([metric for metric, _ in quantities]),
        _line(["Method", *heads]),
    ]
    for model in models:
        lines.append(r"\midrule")
        if len(models) > 1:
            span = len(quantities) + 1
            lines.append(rf"\multicolumn{{{span}}}{{l}}{{\textit{{{escaped(model)}}}}} \\")
        of_model = [s for s in standings if s.model == model]
        lines += _rows(board(model, of_model), quantities)
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{Means over {standings[0].nouns.many}. Bold: best; underlined: not told apart "
        r"from the best "
        r"(paired sign-flip and skewness-adjusted t-tests, Holm-corrected).}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _metric_row(metrics: Sequence[str]) -> list[str]:
    """The metrics above their quantities, where there is more than one to tell apart."""
    if len(set(metrics)) < 2:
        return []
    cells = [
        rf"\multicolumn{{{len(list(alike))}}}{{c}}{{{escaped(metric)}}}"
        for metric, alike in groupby(metrics)
    ]
    return [_line(["", *cells])]


def _rows(shown: Board, quantities: Sequence[tuple[str, str]]) -> list[str]:
    place = {(s.metric, s.name): i for i, s in enumerate(shown.columns)}
    lines = []
    for row in shown.rows:
        entries = [row.entries[place[q]] if q in place else None for q in quantities]
        lines.append(_line([escaped(row.method), *(_cell(e) for e in entries)]))
    return lines


def _cell(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.mean):
        return "--"
    figure = f"${entry.mean:.3f}$"
    if entry.is_best:
        return rf"$\mathbf{{{entry.mean:.3f}}}$"
    return rf"\underline{{{figure}}}" if entry.tied_with_best else figure


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
