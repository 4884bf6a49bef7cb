"""The verb that does a paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Out, Seed, WorkersPerCore
from .showing import Answer, ProgressBars, stderr, working


def run(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="Such as planted_text; see list recipes.")
    ],
    scale: Annotated[
        str,
        typer.Option(help="smoke (minutes), laptop (one to three hours) or paper (as published)."),
    ] = "laptop",
    data: Annotated[
        str, typer.Option(help="A file or corpus to use instead of the one that comes with us.")
    ] = "",
    out: Out = None,
    seed: Seed = 0,
    workers: WorkersPerCore = None,
) -> Answer:
    """Do a paper's experiments and show its tables beside ours; resumes when given again."""
    from ..core.files import sole_writer
    from ..recipes.papers import recipes
    from ..recipes.recipe import EXPERIMENT
    from ..reports.findings import print_findings, write_findings

    chosen = recipes.make(recipe)
    folder = out or Path("runs") / f"{chosen.plugin_name()}-{scale}"
    with sole_writer(folder, EXPERIMENT):
        with ProgressBars() as bars:
            found = chosen.run(
                folder,
                scale=scale,
                data=data or None,
                seed=seed,
                workers=workers,
                watch=bars.of(chosen.plugin_name()),
            )
        with working(stderr(), "writing pages"):
            report = write_findings(found, folder)
    return Answer(
        json={"report": str(report), "findings": str(folder / "findings.json")},
        show=lambda console: print_findings(console, found),
        lines=[report],
    )
