"""Verbs that build data with people: each reads a filled-in sheet and writes the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AllowUnpickle, DataSource, Lexicon, Limit, RecordsFile, Seed
from .reading import FileOptions, ModelOptions, check_new, emotional_words
from .showing import Answer

Folder = Annotated[Path, typer.Argument(help="Folder that holds the sheets.")]
Round = Annotated[
    int, typer.Option("--round", min=1, help="Rejected rationales come back in a next round.")
]


def types(
    data: DataSource,
    folder: Folder,
    file: FileOptions,
    lexicon: Lexicon = None,
    model: Annotated[
        str, typer.Option(help="Trained model that judges snippets; by default the lexicon does.")
    ] = "",
    limit: Limit = None,
    seed: Seed = 0,
    allow_unpickle: AllowUnpickle = False,
) -> Answer:
    """Guess the sentiment type of raw texts; people then correct 1-types.csv."""
    from ..studies.construction import TYPED, assign_types, by_model

    raw = file.part(data, "all", limit, seed)
    judge = by_model(ModelOptions(allow_unpickle).model(model, file.labels)) if model else None
    found = assign_types(raw, folder, lexicon=emotional_words(lexicon), polarities=judge)
    return _sheet(found, folder / TYPED.name, "correct the types, then: data build sample")


def sample(
    folder: Folder,
    per_type: Annotated[int, typer.Option(min=1, help="Originals of each sentiment type.")],
    seed: Seed = 0,
) -> Answer:
    """Draw equally many texts per type; people then write twins into 2-twins.csv."""
    from ..studies.construction import WRITTEN, sample_types

    found = sample_types(folder, per_type=per_type, seed=seed)
    return _sheet(found, folder / WRITTEN.name, "write twins, then: data build twins")


def twins(folder: Folder, seed: Seed = 0) -> Answer:
    """Keep one twin per original; people then give labels and types in 3-labels.csv."""
    from ..studies.construction import LABELLED, choose_twins

    found = choose_twins(folder, seed=seed)
    hint = "label both texts, give each twin its sentiment_type, then: data build rationales"
    return _sheet(found, folder / LABELLED.name, hint)


def rationales(folder: Folder) -> Answer:
    """Number the words of labelled texts; people then mark all rationales in 4-rationales.csv."""
    from ..studies.construction import MARKED, ask_rationales

    found = ask_rationales(folder)
    hint = "write numbers of words, a line per set, then: data build ratings"
    return _sheet(found, folder / MARKED.name, hint)


def ratings(folder: Folder, number: Round = 1) -> Answer:
    """Show every rationale by itself; other people then rate it in 5-ratings.csv."""
    from ..studies.construction import RATED, ask_ratings

    found = ask_ratings(folder, turn=number)
    if not found["sets"]:
        return _sheet(found, None, "nothing is left to rate: go on with data build assemble")
    hint = "rate, then: data build judge" + (f" --round {number}" if number > 1 else "")
    return _sheet(found, folder / RATED.in_round(number), hint)


def judge(folder: Folder, number: Round = 1) -> Answer:
    """Keep the accepted rationales and return the rejected ones in a new sheet."""
    from ..studies.construction import KEPT, MARKED
    from ..studies.construction import judge as judged

    found = judged(folder, turn=number)
    again = folder / MARKED.in_round(number + 1)
    hint = "then: data build assemble"
    if found["rejected"]:
        hint = f"mend {again}, then: data build ratings --round {number + 1}"
    return _sheet(found, folder / KEPT.in_round(number), hint)


def assemble(folder: Folder, out: RecordsFile) -> Answer:
    """Write the records of all pairs whose texts both have an accepted rationale."""
    from ..data.records import write_records
    from ..studies.construction import assemble as assembled

    check_new(out)
    made, waiting = assembled(folder, name=out.stem)
    write_records(made, out)
    hint = f"then: veracity data validate {out}"
    return _sheet({"pairs": len(made) // 2, "waiting": waiting}, out, hint)


def _sheet(counts: dict[str, Any], path: Path | None, hint: str) -> Answer:
    """What was written, and what people do next."""
    counted = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items())
    return Answer(
        json={"written": path and str(path), **counts},
        notes=[f"{counted}; {hint}"],
        lines=[path] if path else [],
    )


VERBS = {
    verb.__name__: verb for verb in (types, sample, twins, rationales, ratings, judge, assemble)
}
