"""Explanations and standings in a terminal; nothing from the data can steer it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.color import Color
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text as Line

from ..core.attributions import Attribution, ranking
from ..core.inputs import Nouns
from ..experiments.dryrun_findings import Detection, DryRunFindings
from ..experiments.dryrun_record import DryRun
from ..experiments.dryrun_sentences import SIGNS, glance, headline, remarks
from ..results.conclusions import Conclusions, Recommendation
from ..results.run import Run
from ..results.standings import Entry, Standing
from ..results.verdicts import Verdict, verdicts
from .scoreboard import ARROWS, Board, against_chance, board, leading
from .showing import number, percent, printable, words

TOP = 3
WIDE = 110
"""Narrower terminals show the headline quantities only, so that names stay whole."""
FAINT = 0.08
SUPPORTS = (0, 114, 178)
OPPOSES = (213, 94, 0)


def print_attributions(
    console: Console, attributions: Sequence[Attribution], labels: Sequence[str]
) -> None:
    """Each text with its words shaded: blue supports the label, orange opposes it."""
    plain = console.no_color or not console.is_terminal or console.color_system is None
    for attribution in attributions:
        target = attribution.target
        label = labels[target] if 0 <= target < len(labels) else str(target)
        head = Line(printable(attribution.method or "explanation"), style="bold")
        head.append(f" for {printable(label)}", style="not bold")
        console.print(head)
        console.print(Padding(_shaded(attribution, plain=plain), (0, 0, 0, 2), expand=False))
        console.print()


def _shaded(attribution: Attribution, *, plain: bool) -> Line:
    text = attribution.input
    line = Line()
    end = 0
    ranks = {int(i): r for r, i in enumerate(ranking(attribution.scores, "abs")[:TOP], start=1)}
    strengths = attribution.strengths()
    for i, (start, stop) in enumerate(text.spans):
        line.append(printable(text.text[end:start]))
        strength = float(strengths[i])
        style = Style() if plain else _shade(strength)
        line.append(printable(text.text[start:stop]), style=style)
        if i in ranks and strength != 0 and strength == strength:
            mark = f"[{'+' if strength > 0 else '−'}{ranks[i]}]"
            line.append(mark, style=Style() if plain else Style(bold=True))
        end = max(end, stop)
    line.append(printable(text.text[end:]))
    return line


def _shade(strength: float) -> Style:
    """A background from pale to full, and letters that stay readable on it."""
    if not abs(strength) >= FAINT:
        return Style()
    hue = SUPPORTS if strength > 0 else OPPOSES
    mixed = [round(235 + (c - 235) * min(1.0, abs(strength))) for c in hue]
    light = 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2] > 120
    ink = Color.from_rgb(0, 0, 0) if light else Color.from_rgb(255, 255, 255)
    return Style(color=ink, bgcolor=Color.from_rgb(*mixed), bold=abs(strength) > 0.6)


KEY = (
    "* best   ~ not told apart from the best   ≈ not shown to beat chance   ▽ below it   "
    "= as chance in every {one}   ? too few {many} to tell"
)


def print_conclusions(console: Console, run: Run, said: Conclusions) -> None:
    """Of each model what it is worth itself, a compact scoreboard, the verdicts in words, and last,
    in a box, what to do."""
    for one in said.models:
        heading = Line(printable(one.model), style="bold")
        console.print(heading.append(f": {printable(one.health.summary)}", style="not bold"))
        columns = [s for s in said.standings if s.model == one.model]
        _print_model(console, one.model, columns, run.config.baselines, one.verdicts)
    if said.standings:
        console.print(Line(run.nouns.fill(KEY)))
    for one in said.models:
        _print_box(console, one.recommendation, run.nouns)


def _print_box(console: Console, advice: Recommendation, nouns: Nouns) -> None:
    """One recommendation: the method, what it does and costs, and the commands to go on with. No
    frame at the sides, so that commands can be copied."""
    console.print(Rule(f"What to do with {printable(advice.model)}", align="left"))
    lines = [Line(printable(advice.sentence), style="bold")]
    lines += [Line(printable(line)) for line in (advice.effect, *advice.reasons) if line]
    lines += [Line(f"But {printable(caution)}.", style="yellow") for caution in advice.cautions]
    for line in lines:
        console.print(line)
    again = "Repeat this audit" if advice.method else "Then audit again"
    for what, command in ((f"Explain a {nouns.one}", advice.explain), (again, advice.repeat)):
        if command:
            console.print(Line(f"{what}:"))
            console.print(Line(f"  {printable(command)}"), soft_wrap=True)
    console.print(Rule())


def print_standings(console: Console, found: Sequence[Standing]) -> None:
    """A compact scoreboard per model, then the verdict in words."""
    baselines = [e.method for s in found[:1] for e in s.entries if e.is_chance]
    for model in dict.fromkeys(s.model for s in found):
        columns = [s for s in found if s.model == model]
        _print_model(console, model, columns, baselines, verdicts(columns))
    if found:
        console.print(Line(found[0].nouns.fill(KEY)))


def _print_model(
    console: Console,
    model: str,
    columns: Sequence[Standing],
    baselines: Sequence[str],
    said: Sequence[Verdict],
) -> None:
    if not columns:
        console.print(Line(f"{printable(model)}: no test of explanations was run"))
        return
    headlines = [s for s in columns if s.headline]
    if console.width >= WIDE or not headlines:
        headlines = leading(columns) or list(columns)
    console.print(_table(board(model, headlines, baselines=baselines)))
    for verdict in said:
        console.print(_verdict(verdict.sentence, verdict.use))
    console.print()


def plain_table(title: str = "") -> Table:
    """Columns without lines between them."""
    heading = Line(printable(title), style="bold") if title else None
    return Table(title=heading, title_justify="left", box=None, pad_edge=False)


def _table(shown: Board) -> Table:
    table = Table(title=Line(printable(shown.model), style="bold"), title_justify="left")
    table.add_column("method", overflow="fold")
    for column in shown.columns:
        table.add_column(_heading(column), justify="right")
    for row in shown.rows:
        cells = [_cell(entry) for entry in row.entries]
        table.add_row(Line(printable(row.method), style="dim" if row.baseline else ""), *cells)
    return table


def _heading(standing: Standing) -> Line:
    where = f" ({standing.where})" if standing.where else ""
    return Line(f"{printable(words(standing.name))}{where} {ARROWS[standing.better]}".rstrip())


def _cell(entry: Entry | None) -> Line:
    if entry is None or not entry.n:
        return Line("–")
    mark = "*" if entry.is_best else "~" if entry.tied_with_best else " "
    style = "bold" if entry.is_best else "underline" if entry.tied_with_best else ""
    sign, _ = against_chance(entry)
    line = Line(f"{sign} " if sign else "")
    line.append(number(entry.mean), style=style)
    return line.append(mark)


def _verdict(sentence: str, use: str | None) -> Line:
    line = Line(printable(sentence))
    if use:
        line.highlight_words([printable(f"use {use}")], style="bold")
    return line


# ---- dry runs -------------------------------------------------------------------------------

_STYLES = {"exposes": "bold", "unclear": "", "hides": "red"}
_COLUMN = 9  # characters of a cue's column


def print_dryrun(console: Console, dry: DryRun, found: DryRunFindings) -> None:
    """The answer, the matrix as far as the terminal is wide, and what else there is to know."""
    console.print(Line(printable(headline(dry, found)), style="bold"))
    if found.cells:
        console.print(_matrix(console, dry, found))
        console.print(
            Line(
                f"share of {dry.nouns.many} in which {glance(dry)}: ✓ exposes   ? unclear   "
                "✗ hides"
                + ("" if found.no_clean else "; behind /: on a model that never saw the cue")
            )
        )
    for remark in remarks(dry, found):
        console.print(Line(f"• {printable(remark)}"))


def _matrix(console: Console, dry: DryRun, found: DryRunFindings) -> Table:
    room = console.width - 54
    shown = found.cells if room >= _COLUMN * len(found.cells) else ()
    table = Table(title_justify="left")
    table.add_column("method", overflow="fold")
    table.add_column("shown", justify="right")
    table.add_column("worst case", justify="right")
    for cell in shown:
        table.add_column(Line(f"{printable(cell.cue)}\n{percent(cell.strength)}"), justify="right")
    for profile in found.profiles:
        cells = [_sight(cell.sights.get(profile.method)) for cell in shown]
        style = "dim" if profile.baseline else ""
        exposed = f"{len(profile.exposes)} of {len(found.cells)}"
        method = Line(printable(profile.method), style=style)
        table.add_row(method, Line(exposed), Line(percent(profile.worst)), *cells)
    if shown:
        chance = [Line(f"{percent(cell.chance)}  ", style="dim") for cell in shown]
        table.add_row(Line("by chance", style="dim"), Line(""), Line(""), *chance)
    return table


def _sight(sight: Detection | None) -> Line:
    if sight is None:
        return Line("–")
    line = Line(f"{percent(sight.share)} {SIGNS[sight.sees]}", style=_STYLES[sight.sees])
    if sight.clean == sight.clean:
        line.append(f"\n/ {percent(sight.clean)}  ", style="dim")
    return line
