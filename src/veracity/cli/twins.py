"""Verbs about texts and their adversarial twins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import DataError
from ..core.files import write_json
from .options import (
    DataSource,
    Epochs,
    LearningRate,
    Limit,
    ModelSource,
    Out,
    Seed,
    Split,
    StepTexts,
    TrainColumns,
    TrainLayout,
    Workers,
)
from .reading import FileOptions, ModelOptions, read_training, short_names
from .showing import Answer, ProgressBars


def robustness(
    model: ModelSource,
    data: DataSource,
    file: FileOptions,
    service: ModelOptions,
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
    workers: Workers = 1,
    seed: Seed = 0,
    split: Split = "",
    limit: Limit = None,
) -> Answer:
    """Is a model still right on adversarial twins? A table, and a page that shows each pair."""
    from ..auditing.audit import audit, default_folder
    from ..changes import attacked
    from ..explainers import explainers
    from ..reports.pairs import print_robustness, write_pair_pages
    from ..results.robustness import FILE, robustness_of

    explainers.make(method)
    part = file.part(data, split, limit, seed)
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
    models = service.models(names, file.labels, beside=folder)
    with ProgressBars() as bars:
        run = audit(
            models,
            part,
            [method],
            ["consistency"],
            out=folder,
            seed=seed,
            workers=workers,
            extras=False,
            watch=bars.of("robustness"),
        ).run
    found = {name: robustness_of(run, name) for name in run.models}
    content = {name: one.to_dict() for name, one in found.items()}
    write_json(folder / FILE, content, checksum=False)
    pages = write_pair_pages(run, method=run.explainers[0])
    return Answer(
        json={
            "run": str(folder),
            "pages": [str(p) for p in pages],
            "models": content,
        },
        show=lambda console: print_robustness(console, found),
        written=[("Pairs", page) for page in pages],
    )


def augment(
    architecture: Annotated[
        str,
        typer.Argument(
            metavar="ARCHITECTURE", help="What to train, such as text_cnn; see `list models`."
        ),
    ],
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Texts to train on, as DATA.")],
    twins: Annotated[
        str,
        typer.Argument(
            metavar="TWINS", help="Originals and twins that people wrote, to try the models on."
        ),
    ],
    by: Annotated[
        list[str],
        typer.Option(
            help="Patterns that add twins to the training texts, separated by commas, such as "
            "'keyboard, synonyms'; see `veracity list changes`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the models and what was found.")],
    file: FileOptions,
    tested_by: Annotated[
        list[str] | None,
        typer.Option(help="Patterns that make twins of the tested originals; by default --by."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="So many trainings of each kind.")] = 1,
    epochs: Epochs = None,
    batch_size: StepTexts = None,
    learning_rate: LearningRate = None,
    seed: Seed = 0,
    train_columns: TrainColumns = "",
    train_layout: TrainLayout = "auto",
    limit: Annotated[int | None, typer.Option(help="Train on a sample of so many texts.")] = None,
) -> Answer:
    """Does training on pattern-made twins help, and against whom? Trains both ways; resumes."""
    from dataclasses import replace

    from ..experiments.augmentation import augmentation
    from ..experiments.augmentation_record import FILE
    from ..models.architectures import architectures
    from ..reports.augmentation import print_augmentation, write_augmentation

    made = architectures.make(architecture)
    training = read_training(
        made, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate
    )
    tested = file.data(twins)
    teaching = replace(file, columns=train_columns, layout=train_layout)
    taught = teaching.part(train, "all", limit, seed)
    with ProgressBars() as bars:
        found = augmentation(
            made,
            taught,
            tested,
            by=by,
            out=out,
            tested_by=tested_by or (),
            seeds=seeds,
            seed=seed,
            training=training,
            watch=bars.of("augment"),
        )
    page = write_augmentation(found, out)
    return Answer(
        json={"found": str(out / FILE), "report": str(page), **asdict(found)},
        show=lambda console: print_augmentation(console, found),
        written=[("Models and figures", out), ("Report", page)],
    )
