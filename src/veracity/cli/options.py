"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.plugins import LARGEST_SEED

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="Makes every random choice repeatable.")
]
Out = Annotated[Path | None, typer.Option(help="Folder to write to.")]
RecordsFile = Annotated[Path, typer.Option(help="File to write: JSON lines, one record each.")]
Workers = Annotated[int, typer.Option(min=1, help="Worker processes.")]
WorkersPerCore = Annotated[
    int | None, typer.Option(min=1, help="Worker processes; by default one per core.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--methods", "--method", help="Separated by commas; by default all."),
]
Lexicon = Annotated[
    list[Path] | None,
    typer.Option(
        help="Emotional words: word and number with a tab between, or a list whose file name "
        "says positive or negative. By default a small stock of our own."
    ),
]
Epochs = Annotated[int | None, typer.Option(help="At most so many passes.")]
StepTexts = Annotated[int | None, typer.Option(help="Texts or pictures per step.")]
LearningRate = Annotated[float | None, typer.Option(help="Adam's step size.")]
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder (ours or transformers'), a .pkl/.joblib file, module:callable, or a URL.",
    ),
]
DataSource = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A corpus such as rotten_tomatoes or made_reviews(n=500), or a file: CSV, TSV (or "
        "any table with , ; | or tabs), JSON lines, Parquet (.gz too), or a folder written by the "
        "datasets library; of pictures a folder or zip with a subfolder for each label, or a table "
        "of paths.",
    ),
]
ColumnsOption = Annotated[
    str, typer.Option("--columns", help="Column names, such as text=review,label=stars.")
]
Layout = Annotated[
    str,
    typer.Option(
        "--layout",
        help="How a file is laid out: auto (told by its columns), plain, or one of `veracity list "
        "formats`, such as 'eraser(sets=spans)'.",
    ),
]
Labels = Annotated[
    str,
    typer.Option(
        help="Label names in the order of their numbers, separated by commas; one that holds a "
        "comma in quotes, such as '\"toys, games\",books'."
    ),
]
Language = Annotated[str, typer.Option(help="How words are told apart: auto, en or zh.")]
MaxWords = Annotated[int, typer.Option(min=1, help="Longest text that is accepted.")]
Size = Annotated[
    str,
    typer.Option(
        help="Bring pictures to this many pixels, such as 64 or 96x64 (width and height): made so "
        "large that they cover it, the middle kept."
    ),
]
Segments = Annotated[
    str | None,
    typer.Option(
        help="How pictures are cut into what is hidden together: grid, quickshift or slic, with "
        "settings such as 'slic(n=50)'; by default as they are cut, or by a grid.",
        show_default=False,
    ),
]
Masks = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Masks of a folder of pictures, called as these are: what is white ought to matter.",
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave faulty rows out.")]
Split = Annotated[
    str,
    typer.Option(
        help="train, validation, test or all; by default test of a corpus, all of a file."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Take a sample of so many examples; twins come with their originals or not at all.",
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        help="What methods and metrics do where not told: recommended, paper (as printed) or "
        "released (as the papers' code does)."
    ),
]
Questions = Annotated[
    int | None,
    typer.Option(
        min=4,
        help="What methods that sample (lime, shap) ask about a text, unless they name a number "
        "themselves; by default 1000.",
    ),
]
AllowUnpickle = Annotated[
    bool,
    typer.Option("--allow-unpickle", help="Load pickled models, which can run any code."),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="For a URL: at most so many texts are sent in all; texts and samples are chosen to "
        "fit.",
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        help="For a URL: a header such as 'Authorization: Bearer $TOKEN', with $TOKEN taken from "
        "the environment ($$ is a dollar sign); may be repeated.",
    ),
]
Timeout = Annotated[float, typer.Option(help="For a URL: seconds to wait for an answer.")]
BatchSize = Annotated[int, typer.Option(min=1, help="For a URL: texts per request.")]
Train = Annotated[
    str,
    typer.Option(
        "--train",
        metavar="DATA",
        help="What methods that learn learn from: the train part of a corpus or a file. By default "
        "what the model was trained on, if its folder says so.",
    ),
]
TrainColumns = Annotated[
    str, typer.Option("--train-columns", help="Column names of the training data.")
]
TrainLayout = Annotated[
    str, typer.Option("--train-layout", help="How the training data are laid out; as --layout.")
]
