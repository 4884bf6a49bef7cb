"""Verbs that build data with people: each reads a filled-in sheet and writes the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AllowUnpickle, DataSource, Json, Limit, Seed
from .reading import FileOptions, ModelOptions, check_new
from .showing import print_json, stderr

Folder = Annotated[Path, typer.Argument(help="Folder that holds the sheets.")]
Round = Annotated[
    int, typer.Option("--round", min=1, help="Rejected rationales come back in a next round.")
]


def types(
    data: DataSource,
    folder: Folder,
    file: FileOptions,
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(
            help="Emotional words: word and number with a tab between, or a list whose file name "
            "says positive or negative. By default a small stock of our own."
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Trained model that judges snippets; by default the lexicon does.")
    ] = "",
    limit: Limit = None,
    seed: Seed = 0,
    allow_unpickle: AllowUnpickle = False,
    as_json: Json = False,
) -> None:
    """Guess the sentiment type of raw texts; people then correct 1-types.csv."""
    from ..data.lexicon import own_lexicon, read_lexicon
    from ..data.splits import sampled
    from ..studies.construction import TYPED, assign_types, by_model

    read = file.data(data)
    judge = None
    if model:
        judge = by_model(ModelOptions(allow_unpickle).model(model, file.labels))
    words = read_lexicon(*lexicon) if lexicon else own_lexicon()
    raw = sampled(read, limit, seed=seed)
    found = assign_types(raw, folder, lexicon=words, polarities=judge)
    _tell(found, folder / TYPED.name, "correct the types, then: data build sample", as_json)


def sample(
    folder: Folder,
    per_type: Annotated[int, typer.Option(min=1, help="Originals of each sentiment type.")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw equally many texts per type; people then write twins into 2-twins.csv."""
    from ..studies.construction import WRITTEN, sample_types

    found = sample_types(folder, per_type=per_type, seed=seed)
    _tell(found, folder / WRITTEN.name, "write twins, then: data build twins", as_json)


def twins(folder: Folder, seed: Seed = 0, as_json: Json = False) -> None:
    """Keep one twin per original; people then give labels and types in 3-labels.csv."""
    from ..studies.construction import LABELLED, choose_twins

    found = choose_twins(folder, seed=seed)
    hint = "label both texts, give each twin its sentiment_type, then: data build rationales"
    _tell(found, folder / LABELLED.name, hint, as_json)


def rationales(folder: Folder, as_json: Json = False) -> None:
    """Number the words of labelled texts; people then mark all rationales in 4-rationales.csv."""
    from ..studies.construction import MARKED, ask_rationales

    found = ask_rationales(folder)
    hint = "write numbers of words, a line per set, then: data build ratings"
    _tell(found, folder / MARKED.name, hint, as_json)


def ratings(folder: Folder, number: Round = 1, as_json: Json = False) -> None:
    """Show every rationale by itself; other people then rate it in 5-ratings.csv."""
    from ..studies.construction import RATED, ask_ratings

    found = ask_ratings(folder, turn=number)
    if not found["sets"]:
        _tell(found, None, "nothing is left to rate: go on with data build assemble", as_json)
        return
    hint = "rate, then: data build judge" + (f" --round {number}" if number > 1 else "")
    _tell(found, folder / RATED.in_round(number), hint, as_json)


def judge(folder: Folder, number: Round = 1, as_json: Json = False) -> None:
    """Keep the accepted rationales and return the rejected ones in a new sheet."""
    from ..studies.construction import KEPT, MARKED
    from ..studies.construction import judge as judged

    found = judged(folder, turn=number)
    again = folder / MARKED.in_round(number + 1)
    hint = "then: data build assemble"
    if found["rejected"]:
        hint = f"mend {again}, then: data build ratings --round {number + 1}"
    _tell(found, folder / KEPT.in_round(number), hint, as_json)


def assemble(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="File to write: JSON lines, one record each.")],
    as_json: Json = False,
) -> None:
    """Write the records of all pairs whose texts both have an accepted rationale."""
    from ..data.records import write_records
    from ..studies.construction import assemble as assembled

    check_new(out)
    made, waiting = assembled(folder, name=out.stem)
    write_records(made, out)
    hint = f"then: veracity data validate {out}"
    _tell({"pairs": len(made) // 2, "waiting": waiting}, out, hint, as_json)


def _tell(found: dict[str, Any], path: Path | None, hint: str, as_json: bool) -> None:
    if as_json:
        print_json({"written": path and str(path), **found})
        return
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found.items())
    stderr().print(f"{counts}; {hint}", markup=False)
    if path:
        print(path)


VERBS = {
    "types": types,
    "sample": sample,
    "twins": twins,
    "rationales": rationales,
    "ratings": ratings,
    "judge": judge,
    "assemble": assemble,
}
