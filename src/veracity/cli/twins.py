"""Verbs about texts and their adversarial twins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import DataError
from .options import (
    AllowUnpickle,
    BatchSize,
    Budget,
    ColumnsOption,
    DataSource,
    Json,
    Labels,
    Language,
    Layout,
    Limit,
    MaxWords,
    ModelSource,
    Out,
    Seed,
    SkipBad,
    Split,
    Timeout,
)
from .reading import loaded_model, part_of, read_data, short_names
from .showing import Bars, print_json, stdout


def robustness(
    model: ModelSource,
    data: DataSource,
    also: Annotated[
        list[str] | None, typer.Option(help="Another MODEL beside it; may be repeated.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Make twins by these patterns first, separated by commas, such as 'keyboard, "
            "negation'; see `veracity list changes`. By default the twins that the data hold."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="What marks the words of each pair on the page.")
    ] = "occlusion",
    out: Out = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    seed: Seed = 0,
    columns: ColumnsOption = "",
    labels: Labels = "",
    language: Language = "auto",
    max_words: MaxWords = 5000,
    skip_bad: SkipBad = False,
    layout: Layout = "auto",
    split: Split = "",
    limit: Limit = None,
    allow_unpickle: AllowUnpickle = False,
    budget: Budget = None,
    timeout: Timeout = 30.0,
    batch_size: BatchSize = 32,
    as_json: Json = False,
) -> None:
    """Is a model still right on adversarial twins? A table, and a page that shows each pair."""
    from ..auditing import audit, default_folder
    from ..changes import attacked
    from ..explainers import explainers
    from ..reports.pairs import print_robustness, write_pair_pages
    from ..results.robustness import FILE, robustness_of, write_robustness

    explainers.make(method)
    read = read_data(data, columns, labels, language, max_words, skip_bad, layout)
    part = part_of(read, data, split, limit, seed)
    if by:
        part = attacked(part, by, seed=seed)
    if not part.pairs:
        raise DataError(
            f"{data}: expected texts with adversarial twins, got no pair. Give originals their "
            "twins' ids in rel_ids, or twins their original's in partner, or make twins with "
            "--by 'keyboard, negation'"
        )
    names = short_names([model, *(also or [])])
    folder = out or default_folder(part, ["robustness", *names])
    answers = Path(f"{folder.resolve()}.answers.sqlite")
    models = {
        name: loaded_model(source, labels, allow_unpickle, budget, timeout, batch_size, answers)
        for name, source in names.items()
    }
    with Bars(as_json) as shown:
        run = audit(
            models,
            part,
            [method],
            ["consistency"],
            out=folder,
            seed=seed,
            workers=workers,
            watch=lambda progress: shown.watch("robustness", progress),
        ).run
    found = {name: robustness_of(run, name) for name in run.models}
    write_robustness(found, folder / FILE)
    pages = write_pair_pages(run, method=run.explainers[0])
    if as_json:
        told = {name: one.told() for name, one in found.items()}
        print_json({"run": str(folder), "pages": [str(p) for p in pages], "models": told})
        return
    console = stdout()
    print_robustness(console, found)
    for page in pages:
        console.print(f"Pairs: {page}", markup=False, soft_wrap=True)
