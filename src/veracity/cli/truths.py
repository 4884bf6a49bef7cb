"""Verbs about words that are held to decide: learn them, look at them, mark them in data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from ..core.errors import DataError, PluginError
from .options import AllowUnpickle, DataSource, Limit, RecordsFile, Seed, Split
from .reading import FileOptions, ModelOptions, check_new, label_list, part_of
from .showing import Answer, stderr, working

Words = Annotated[
    Path, typer.Argument(metavar="WORDS", help="A file written by `veracity truths learn`.")
]


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="gram_activation, integer_program, hybrid, or one with settings such as "
            "'integer_program(words=3000, seconds=60)'; see `veracity list truths`.",
        ),
    ],
    data: DataSource,
    out: Annotated[Path, typer.Option(help="File to write, such as words.json.")],
    file: FileOptions,
    model: Annotated[
        str,
        typer.Option(
            help="Model that gram_activation and hybrid look into: a convolution of ours."
        ),
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            help="What to learn from: train (as `veracity train` splits data with this seed), "
            "validation, test or all."
        ),
    ] = "train",
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Learn which words decide each label, where nobody marked them."""
    from ..results.truths import remarks
    from ..truths import learnt_truth, truths

    chosen = truths.make(source)
    check_new(out, records=False)
    # first the sample, then its part, as a model trained with the same limit got it
    part = part_of(file.part(data, "all", limit, seed), data, split, None, seed)
    network = ModelOptions().model(model, file.labels) if model else None
    doing = (
        f"{chosen.spec} reads {len(part):,} texts of {part.name}: {chosen.expected_wait(len(part))}"
    )
    with working(stderr(), doing):
        found = learnt_truth(chosen, network, part, seed=seed)
    found.save(out)
    hint = f"next: veracity truths show {quote(str(out))} {quote(data)}"
    return Answer(
        json={"words": str(out), "labels": found.labels, **found.facts},
        notes=[*remarks(found), hint],
        lines=[out],
    )


def show(
    words: Words,
    file: FileOptions,
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Counts texts, and shows words in context."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Words per label to show.")] = 20,
    least: Annotated[
        int, typer.Option(min=1, help="Words in fewer texts of their label come last.")
    ] = 3,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare with emotional words: a file with word, tab and number, or lists whose "
            "file names say positive and negative; may be repeated. `own` is a small stock of ours."
        ),
    ] = None,
    positive: Annotated[
        str, typer.Option(help="Labels that praise, if their names do not say so.")
    ] = "",
    negative: Annotated[str, typer.Option(help="Labels that blame.")] = "",
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page.")] = None,
    split: Split = "all",
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Show the strongest words of each label, where they stand, and what lexicons say of them."""
    from ..core.truths import WordSets
    from ..data.lexicon import OWN, read_lexicons
    from ..reports.pages import check_page
    from ..reports.truths import print_words, write_words
    from ..results.truths import polarities, word_view

    if html is not None:
        check_page(html)
    sets = WordSets.load(words)
    named = (label_list(positive) or (), label_list(negative) or ())
    # nobody asked: numbers may be topics, so only names count
    signs = polarities(sets.labels, *named, by_number=bool(lexicon))
    if lexicon and not any(signs):
        raise PluginError(
            f"expected to know which of {', '.join(sets.labels)} praise and which blame, since a "
            "lexicon tells praise from blame. Name them with --positive and --negative"
        )
    lexicons = read_lexicons(*(lexicon or ([OWN] if any(signs) else [])))
    read = None if data is None else file.part(data, split, limit, seed)
    view = word_view(sets, read, lexicons=lexicons, polarity=signs, top=top, least=least)
    if html is not None:
        write_words(view, html, top=top)
    return Answer(
        json={"page": str(html) if html else None, **_view_json(view, top)},
        show=lambda console: print_words(console, view, top),
        written=[("\nPage", html)] if html is not None else [],
    )


def mark(
    words: Words,
    data: DataSource,
    out: RecordsFile,
    file: FileOptions,
    kind: Annotated[
        str,
        typer.Option(help="Name of the marks; audits look for pseudo, or for truth=NAME."),
    ] = "pseudo",
    predicted_by: Annotated[
        str,
        typer.Option(help="Mark the words of the label that this model predicts, not the given."),
    ] = "",
    split: Split = "",
    seed: Seed = 0,
    limit: Limit = None,
    allow_unpickle: AllowUnpickle = False,
) -> Answer:
    """Mark these words in data, so that `veracity audit` tests methods against them."""
    from ..core.truths import WordSets
    from ..data.records import write_records
    from ..engine.inference import probabilities

    sets = WordSets.load(words)
    check_new(out)
    part = file.part(data, split, limit, seed)
    if kind in part.truth_kinds:
        raise DataError(
            f"{part.name} holds marks of the kind {kind!r} already. Choose another --kind"
        )
    sets.check(part)
    by = None
    if predicted_by:
        model = ModelOptions(allow_unpickle).model(predicted_by, file.labels)
        if model.labels != sets.labels:
            raise DataError(
                f"expected a model with the labels {', '.join(sets.labels)}; {predicted_by} has "
                f"{', '.join(model.labels)}"
            )
        by = probabilities(model, [e.input for e in part]).argmax(axis=1).tolist()
    marked = sets.marked(part, kind, by=by)
    write_records(marked, out)
    masks = [e.truths[kind][0] for e in marked]
    held = sum(bool(m.any()) for m in masks)
    share = sum(int(m.sum()) for m in masks) / max(1, sum(map(len, masks)))
    metrics = "" if kind == "pseudo" else f" --metrics 'truth_agreement(truth={kind})'"
    count = len(marked)
    return Answer(
        json={"data": str(out), "examples": count, "with_marks": held, "share": share},
        notes=[
            f"{held:,} of {count:,} texts hold a word of their label’s set, {share:.1%} of words",
            f"next: veracity audit MODEL {quote(str(out))}{metrics}",
        ],
        lines=[out],
    )


def _view_json(view: Any, top: int) -> dict[str, Any]:
    """What a program wants of a view: the words that are shown, and figures in place of lists."""
    measures = ("size", "precision", "opposed", "recall", "recall_met", "jaccard")
    return {
        "source": view.source,
        "facts": view.facts,
        "labels": {
            one.label: {
                "size": len(one.members),
                "order": one.order,
                "words": [asdict(member) for member in one.members[:top]],
            }
            for one in view.labels
        },
        "lexicons": [asdict(c) | {m: getattr(c, m) for m in measures} for c in view.comparisons],
    }


VERBS = {"learn": learn, "show": show, "mark": mark}
