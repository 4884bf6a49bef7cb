"""Verbs that say what there is to choose from."""

from __future__ import annotations

from typing import Any

from .options import Json
from .showing import print_json, stdout


def list_explainers(as_json: Json = False) -> None:
    """The explanation methods, with what they need of a model."""
    from ..core.classifiers import ability_name
    from ..explainers import explainers

    _list(explainers, as_json, lambda cls: ability_name(cls.needs), "needs")


def list_metrics(as_json: Json = False) -> None:
    """The tests of explanations, with what they measure."""
    from ..metrics import metrics

    _list(metrics, as_json, lambda cls: ", ".join(cls.quantities), "quantities")


def list_models(as_json: Json = False) -> None:
    """The models that can be trained here."""
    from ..models.architectures import architectures

    _list(architectures, as_json, lambda cls: f"{cls.training.epochs} epochs", "training")


def list_changes(as_json: Json = False) -> None:
    """The ways to change data so that the truth is known."""
    from ..changes import changes

    _list(changes, as_json, lambda cls: "", "")


def list_truths(as_json: Json = False) -> None:
    """The sources of words that are held to decide."""
    from ..truths import truths

    _list(truths, as_json, lambda cls: "", "")


def list_recipes(as_json: Json = False) -> None:
    """The papers' experiments."""
    from ..recipes.papers import recipes

    _list(recipes, as_json, lambda cls: ", ".join(cls.settings()["scales"]), "scales")


def list_datasets(as_json: Json = False) -> None:
    """The corpora that go by a name."""
    from ..data.corpora import corpora

    _list(corpora, as_json, lambda cls: "", "")


def list_formats(as_json: Json = False) -> None:
    """The layouts of other people's files that are read, and the columns that tell them."""
    from ..data.formats import formats

    _list(formats, as_json, lambda cls: ", ".join(sorted(cls.fields)), "columns")


def _list(registry: Any, as_json: bool, extra: Any, heading: str) -> None:
    from ..core.plugins import first_line, settings

    rows = []
    for name in registry.names():
        cls = registry.get(name)
        options = settings(cls()) if _has_defaults(cls) else {}
        row = {"name": name, "about": first_line(cls), "settings": options}
        row |= {"profiles": cls.profiles} if cls.profiles else {}
        if heading:
            row[heading] = extra(cls)
        rows.append(row)
    if as_json:
        print_json({registry.kind + "s": rows})
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it is, and its settings")
    if heading:
        table.add_column(heading, style="dim")
    for row in rows:
        shown = ", ".join(f"{k}={v}" for k, v in row["settings"].items())
        about = row["about"] if not shown else f"{row['about']}\n[dim]{escape(shown)}[/dim]"
        for profile, values in row.get("profiles", {}).items():
            unlike = ", ".join(f"{k}={v}" for k, v in values.items())
            about += f"\n[dim]{escape(f'profile={profile}: {unlike}')}[/dim]"
        table.add_row(row["name"], about, *([row[heading]] if heading else []))
    stdout().print(table)


def _has_defaults(cls: type) -> bool:
    import dataclasses

    return dataclasses.is_dataclass(cls) and all(
        f.default is not dataclasses.MISSING for f in dataclasses.fields(cls)
    )


VERBS = {
    "explainers": list_explainers,
    "metrics": list_metrics,
    "models": list_models,
    "changes": list_changes,
    "truths": list_truths,
    "recipes": list_recipes,
    "datasets": list_datasets,
    "formats": list_formats,
}
