"""The verb that does a paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Out, Seed
from .showing import ProgressBars, print_json, stderr, stdout, working


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
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default one per core.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Do a paper's experiments and show its tables beside ours; resumes when given again."""
    from ..core.files import sole_writer
    from ..recipes.papers import recipes
    from ..recipes.recipe import EXPERIMENT
    from ..reports.findings import print_findings, write_findings

    chosen = recipes.make(recipe)
    folder = out or Path("runs") / f"{chosen.plugin_name()}-{scale}"
    with sole_writer(folder, EXPERIMENT):
        with ProgressBars(as_json) as bars:
            found = chosen.run(
                folder,
                scale=scale,
                data=data or None,
                seed=seed,
                workers=workers,
                watch=lambda progress: bars.watch(chosen.plugin_name(), progress),
            )
        with working(stderr(), "writing pages"):
            report = write_findings(found, folder)
    if as_json:
        print_json({"report": str(report), "findings": str(folder / "findings.json")})
        return
    print_findings(stdout(), found)
    print(report)
