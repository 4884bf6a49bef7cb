"""Sets of words in a terminal, and as one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from ..results.truths import LabelWords, LexiconOverlap, SetWord, WordView
from .pages import rendered, write_page
from .showing import count, duration, number, percent, printable, shortened
from .terminal import plain_table

PAGE = "truths.html"
MOST_WORDS = 500
"""So many words of a label are in the page's table at most, the strongest."""
MOST_LISTED = 150
"""So many words are named at most where a lexicon says something else."""
LONGEST = 60
"""Longer words are cut short: nobody reads them, and they would break the page."""
WIDEST_WORD, WITHOUT_CONTEXT, NARROW = 20, 48, 30
"""Columns that words take, that all but contexts take, and that contexts need."""
NAMED = 12
"""Words that a line of a terminal names."""
STEPS = 9
CONTEXTS = 10
"""Words of a label that the page shows in context."""
SIDES = {1: "positive", -1: "negative", 0: "plain"}


# ---- in a terminal --------------------------------------------------------------------------


def print_words(console: Console, view: WordView, top: int) -> None:
    """A table of the strongest words per label, then lexicons, then what to know of the sets."""
    for one in view.labels:
        room = console.width - WITHOUT_CONTEXT if view.has_contexts else 0
        console.print(_table(one, top, room))
        console.print()
    if view.comparisons:
        console.print(_lexicons(view.comparisons))
        for c in view.comparisons:
            for what, words in (("says the opposite of", c.other), ("does not know", c.unlisted)):
                if words:
                    console.print(Line(printable(f"{c.lexicon} {what} {_some(words, NAMED)}")))
        console.print()
    for remark in view.remarks:
        console.print(Line(printable(remark)))


def _table(one: LabelWords, top: int, room: int) -> Table:
    """With contexts where there is room for them."""
    contexts = room >= NARROW
    shown = one.members[:top]
    left = len(one.members) - len(shown)
    some = f", the strongest {len(shown)}" if left and one.order != "name" else ""
    table = plain_table(f"{one.label}: {len(one.members):,} words{some}")
    table.add_column("word", overflow="fold", max_width=WIDEST_WORD if contexts else None)
    for heading in ("score", "texts", "elsewhere"):
        table.add_column(heading, justify="right", no_wrap=True)
    if contexts:
        table.add_column("in context", no_wrap=True, overflow="ellipsis", max_width=room)
    for m in shown:
        context = [_in_context(m, room)] if contexts else []
        word = Line(printable(shortened(m.word, LONGEST)), style="bold")
        table.add_row(word, number(m.score), count(m.texts), count(m.elsewhere), *context)
    return table


def _in_context(member: SetWord, room: int) -> Line:
    if not member.places:
        return Line("")
    place = member.places[0]
    word = printable(shortened(place.word, room // 2))
    # what is cut off is what stands before and behind, never the word
    before = printable(place.before)
    kept = max(0, min(room // 2, room - len(word)))
    line = Line("…" + before[-kept + 1 :] if len(before) > kept else before)
    line.append(word, style="bold underline")
    return line.append(printable(place.after))


def _lexicons(comparisons: Sequence[LexiconOverlap]) -> Table:
    table = plain_table()
    table.add_column("lexicon", overflow="fold")
    table.add_column("labels", overflow="fold")
    for heading in ("same", "opposite", "recall", "of met", "Jaccard"):
        table.add_column(heading, justify="right", no_wrap=True)
    for c in comparisons:
        table.add_row(
            Line(printable(f"{c.lexicon}, {SIDES[c.polarity]}"), style="bold"),
            Line(printable(", ".join(c.labels))),
            *map(percent, (c.precision, c.opposed, c.recall, c.recall_met, c.jaccard)),
        )
    return table


def _some(words: Sequence[str], most: int) -> str:
    shown = ", ".join(shortened(word, LONGEST) for word in words[:most])
    left = len(words) - most
    return f"{shown} and {left:,} more" if left > 0 else shown


# ---- the page -------------------------------------------------------------------------------


def write_words(view: WordView, path: Path, *, top: int = 20) -> Path:
    return write_page(words_page(view, top=top), path)


def words_page(view: WordView, *, top: int = 20) -> str:
    """The whole page as text."""
    return rendered(
        PAGE,
        styles=("report.css", "truths.css"),
        scripts=("truths.js",),
        filters={"cut": lambda text: shortened(text, LONGEST), "side": SIDES.__getitem__},
        view=view,
        clouds=[_cloud(one, top) for one in view.labels],
        top=top,
        contexts=CONTEXTS,
        most_words=MOST_WORDS,
        most_listed=MOST_LISTED,
        facts=_facts(view),
    )


@dataclass(frozen=True)
class _Word:
    text: str
    step: int
    title: str
    """How strong it is, in a number; empty where nobody knows."""


@dataclass(frozen=True)
class _Cloud:
    one: LabelWords
    words: tuple[_Word, ...]
    size: str
    """What the size of a word stands for."""


def _cloud(one: LabelWords, top: int) -> _Cloud:
    """The strongest words, the larger the nearer to the middle."""
    shown = one.members[:top]
    values, titles, size = [1.0] * len(shown), [""] * len(shown), "no strengths are known"
    if one.order == "score":
        values = [m.score for m in shown]
        titles, size = [number(v) for v in values], "size by score"
    texts = [m.texts for m in shown]
    if len(set(values)) == 1 and len(set(texts)) > 1:  # scores that are all alike say nothing
        values, titles, size = texts, [count(v) for v in texts], "size by texts of the label"
    known = [v for v in values if not math.isnan(v)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    shares = [(v - low) / (high - low) if high > low else 0.5 for v in values]
    words = [
        _Word(m.word, 0 if math.isnan(share) else round(STEPS * share), title)
        for m, share, title in zip(shown, shares, titles, strict=True)
    ]
    words.sort(key=lambda word: -word.step)
    return _Cloud(one, (*words[1::2][::-1], *words[0::2]), size)


def _facts(view: WordView) -> list[tuple[str, str]]:
    """How the sets were found, as far as their file says it in a way that is understood."""
    facts: Any = view.facts
    shown = [("Source", view.source), ("Learnt from", view.trained_on)]
    for name, what in (
        ("vocabulary", "Words looked at"),
        ("documents", "Texts used"),
        ("dropped", "Texts left out"),
        ("objective", "Times a word stands in a text of another label"),
        ("cost", "Cost"),
        ("bound", "No answer costs less than"),
        ("gap", "Gap"),
        ("seconds", "Time"),
    ):
        value = facts.get(name)
        if type(value) in (int, float) and -1e300 < value < 1e300:
            forms = {"gap": f"{value:.2%}", "seconds": duration(float(value))}
            shown.append((what, forms.get(name, f"{value:,.6g}")))
    return [(what, shortened(text, 300)) for what, text in shown if text]
