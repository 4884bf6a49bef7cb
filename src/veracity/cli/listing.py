"""Verbs that say what there is to choose from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from .reading import command
from .showing import Answer

if TYPE_CHECKING:
    from rich.console import Console


KINDS = {
    "explainers": (
        "explainers:explainers",
        "The explanation methods, with what they need of a model.",
    ),
    "metrics": ("metrics:metrics", "The tests of explanations, with what they measure."),
    "models": ("models.architectures:architectures", "The models that can be trained here."),
    "word_vectors": (
        "models.word_vectors:word_vectors",
        "The sources of word vectors that hang on the words around.",
    ),
    "changes": ("changes:changes", "The ways to change data so that the truth is known."),
    "truths": ("truths:truths", "The sources of words that are held to decide."),
    "recipes": ("recipes.papers:recipes", "The papers' experiments."),
    "datasets": ("data.corpora:corpora", "The corpora that go by a name."),
    "formats": (
        "data.formats:formats",
        "The layouts of other people's files that are read, and the columns that tell them.",
    ),
}
"""Where the plug-ins of a kind are registered, and what they are."""


def _lister(kind: str) -> Callable[[], Answer]:
    def list_kind() -> Answer:
        return _list(kind)

    list_kind.__doc__ = KINDS[kind][1]
    return list_kind


def rules() -> Answer:
    """The rules that say which clause of a text ought to decide; your own go into TOML files."""
    from ..rules import known_rules

    rows = [asdict(rule) for rule in known_rules().values()]

    def show(console: Console) -> None:
        from ..reports.terminal import plain_table

        table = plain_table()
        for column in ("name", "what it says", "keywords or pattern", "decides", "language"):
            table.add_column(column, no_wrap=column == "name")
        for row in rows:
            sign = row["pattern"] or ", ".join(row["keywords"])
            side = "dominant group" if row["pattern"] else row["dominant"]
            table.add_row(row["name"], row["about"], sign, side, row["language"] or "any")
        console.print(table)

    return Answer(json={"rules": rows}, show=show)


VERBS = {**{kind: _lister(kind) for kind in KINDS}, "rules": rules}


def _registry(kind: str) -> Any:
    module, _, name = KINDS[kind][0].partition(":")
    return getattr(import_module(f"veracity.{module}"), name)


def _fact(kind: str, cls: Any) -> dict[str, str]:
    """What else is to know of the plug-ins of a kind."""
    from ..core.classifiers import ability_name

    match kind:
        case "explainers":
            return {"needs": ability_name(cls.needs)}
        case "metrics":
            return {"quantities": ", ".join(cls.quantities)}
        case "models":
            return {"training": f"{cls.training.epochs} epochs"}
        case "recipes":
            return {"scales": ", ".join(cls.settings()["scales"])}
        case "formats":
            return {"columns": ", ".join(sorted(cls.fields))}
    return {}


def _row(kind: str, name: str, cls: Any) -> dict[str, Any]:
    from ..core.plugins import description, settings_of

    options = settings_of(cls)
    # what has no default cannot be shown by it
    values = {s.name: s.default for s in options} if all(s.optional for s in options) else {}
    row = {"name": name, "about": description(cls), "settings": values}
    return row | ({"profiles": cls.profiles} if cls.profiles else {}) | _fact(kind, cls)


def _list(kind: str) -> Answer:
    registry = _registry(kind)
    rows = [_row(kind, name, registry.get(name)) for name in registry.names()]
    heading = next(iter(_fact(kind, registry.get(registry.names()[0]))), "")

    def show(console: Console) -> None:
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        table.add_column("name", style="bold", no_wrap=True)
        table.add_column("what it is, and its settings")
        if heading:
            table.add_column(heading, style="dim")
        for row in rows:
            about = row["about"]
            for line in filter(None, (_values(row["settings"]), *_profiles(row))):
                about += f"\n[dim]{escape(line)}[/dim]"
            table.add_row(row["name"], about, *([row[heading]] if heading else []))
        console.print(table)

    return Answer(json={f"{registry.kind}s": rows}, show=show)


def _values(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in settings.items())


def _profiles(row: Mapping[str, Any]) -> Iterator[str]:
    for profile, values in row.get("profiles", {}).items():
        yield f"profile={profile}: {_values(values)}"


# ---- one plug-in ------------------------------------------------------------------------------


class PluginGroup(TyperGroup):
    """`veracity list lime` beside `veracity list explainers`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or _plugin_command(cmd_name)


def _plugin_command(name: str) -> Any:
    """A command that describes what goes by a name, be it of several kinds; None where nothing
    does."""
    kinds = [kind for kind in KINDS if name in _registry(kind).names()]
    if not kinds:
        return None
    app = typer.Typer(add_completion=False)

    @app.command(name)
    @command
    def describe() -> Answer:
        """What it does, and its settings."""
        return _describe(name, kinds)

    return typer.main.get_command(app)


def _describe(name: str, kinds: list[str]) -> Answer:
    from ..core.plugins import LARGEST, settings_of

    found = []
    for kind in kinds:
        registry = _registry(kind)
        cls: Any = registry.get(name)
        about = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(cls) or "")
        options = [asdict(setting) for setting in settings_of(cls)]
        own = {"kind": registry.kind, "about": about, "settings": options}
        found.append(_row(kind, name, cls) | own)

    def show(console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        for row, kind in zip(found, kinds, strict=True):
            console.print(f"{name}, one of {kind}\n\n{row['about']}\n", markup=False)
            table = Table(box=None, pad_edge=False)
            for column in ("setting", "kind", "default", "what it is"):
                table.add_column(column)
            for option in row["settings"]:
                default = str(option["default"]) if option["optional"] else "(to be given)"
                # the limit that all numbers have is no news
                bounded = option["largest"] not in (None, LARGEST)
                bounds = f" (up to {option['largest']:,})" if bounded else ""
                cells = (option["name"], option["kind"] + bounds, default, option["description"])
                table.add_row(*map(Text, cells))
            if row["settings"]:
                console.print(table)
            for line in _profiles(row):
                console.print(line, markup=False)
            for title in _fact(kind, _registry(kind).get(name)):
                if row[title]:
                    console.print(f"{title}: {row[title]}", markup=False, soft_wrap=True)

    return Answer(json={"plugins": found}, show=show)
