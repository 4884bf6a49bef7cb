"""Verbs that train models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import PluginError
from ..core.plugins import split_specs
from .auditing import audit_answer
from .options import DataSource, Epochs, LearningRate, Lexicon, Limit, Seed, StepTexts, Workers
from .reading import FileOptions, emotional_words, read_training
from .showing import Answer, ProgressBars, stderr

if TYPE_CHECKING:
    from ..core.examples import Dataset


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("runs/demo"),
    sentences: Annotated[int, typer.Option(min=1, help="How many reviews to audit.")] = 200,
    workers: Workers = 1,
) -> Answer:
    """Train two models on reviews, audit eight methods on them, write a report."""
    from ..core.files import sole_writer
    from ..recipes.demo import DEMONSTRATION
    from ..recipes.demo import demo as run_demo
    from ..reports.html import write_report

    with sole_writer(out, DEMONSTRATION), ProgressBars() as bars:
        audit = run_demo(out, sentences=sentences, workers=workers, watch=bars.watch)
        report = write_report(audit.run, conclusions=audit.conclusions)
    return audit_answer(audit, report)


def train(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Such as text_cnn or 'text_cnn(embeddings=glove)'."),
    ],
    data: DataSource,
    out: Annotated[Path, typer.Option(help="Folder for the trained model.")],
    file: FileOptions,
    epochs: Epochs = None,
    batch_size: StepTexts = None,
    learning_rate: LearningRate = None,
    patience: Annotated[int | None, typer.Option(help="Epochs to wait for a gain.")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest gradient norm.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Pull of weights to zero.")] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(
            help="Stop at this validation accuracy, such as 0.97; models that choose the words "
            "they read must then also read as few as they are to read."
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            help="Keep weights in OUT/snapshots whenever validation accuracy rose by this, such "
            "as 0.05."
        ),
    ] = None,
    distil: Annotated[
        str | None,
        typer.Option(
            help="Rules to teach along the way, such as but, or a TOML file of them; "
            "veracity list rules."
        ),
    ] = None,
    strength: Annotated[
        int | None, typer.Option(help="How strongly rules are taught: 1, 2 or 4.")
    ] = None,
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Train a model; stopped, it goes on from its last epoch when given again."""
    from ..core.files import check_own
    from ..data.splits import leaks, split
    from ..experiments.training import trained_once
    from ..models.architectures import architectures
    from ..models.loading import MODEL, RECORD
    from ..reports.showing import printable

    architecture = architectures.make(model)
    if (out / RECORD).exists():
        raise PluginError(f"{out} holds a trained model already. Choose another --out")
    check_own(out, MODEL)
    training = read_training(
        architecture,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        patience=patience,
        clip=clip,
        weight_decay=weight_decay,
        stop_at=stop_at,
        keep=keep,
        distil=tuple(split_specs(distil)) if distil else None,
        strength=strength,
        seed=seed,
    )
    reading = file.reading(data, limit)
    read = reading.data()
    parts = split(reading.prepared(read, seed=seed), seed=seed)
    say = stderr()
    leaked = len(leaks(parts))
    many = read.nouns.many
    balance = printable(_balance(parts.train.balance))
    say.print(f"{len(parts.train)} {many} to train on: {balance}", markup=False)
    if leaked:
        say.print(f"{leaked} {many} stand in more than one of the given splits", style="yellow")
    about = {
        "name": read.name,
        "fingerprint": read.fingerprint(),
        "balance": parts.train.balance,
        "leaks": leaked,
        "reading": reading.recorded(),
    }
    with ProgressBars() as bars:
        student = trained_once(
            architecture,
            parts,
            out,
            data=about,
            training=training,
            watch=bars.of(architecture.spec),
        )
    record = student.record
    best = record["history"][record["best"]]
    return Answer(
        json={"model": str(out), "architecture": architecture.spec, **record},
        notes=[
            f"Best after epoch {best['number'] + 1}: validation {best['validation_accuracy']:.3f}, "
            f"test {record['test']['accuracy']:.3f} ({len(parts.test)} {many})"
        ],
        lines=[out],
    )


def pretrain(
    encoder: Annotated[
        str,
        typer.Argument(
            metavar="ENCODER",
            help="Folder of a transformers encoder, or minilm or chinese; or elmo, or "
            "elmo(size=128, memory=512), to learn a language model of letters; or sentibert, or "
            "sentibert(encoder=FOLDER), to learn the labels of phrases in a treebank.",
        ),
    ],
    data: DataSource,
    out: Annotated[Path, typer.Option(help="Folder for the encoder.")],
    file: FileOptions,
    lexicon: Lexicon = None,
    mine: Annotated[
        bool,
        typer.Option(
            "--mine",
            help="Add words that stand beside praise rather than blame, or the reverse.",
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="sentibert: trees to hold against the treebank's own on its test part: spacy, "
            "balanced, right or a file."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the texts.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per step.")] = 32,
    learning_rate: Annotated[
        float | None, typer.Option(help="Size of a step; 5e-5 unless told, of elmo 1e-3.")
    ] = None,
    seed: Seed = 0,
    limit: Limit = None,
) -> Answer:
    """Teach an encoder emotional words before it sees labels; stopped, it goes on when given again.

    What it writes is an encoder like any other: veracity train 'transformer(encoder=OUT)' DATA.
    Of elmo and sentibert it is a source of word vectors:
    'text_cnn(embeddings=elmo(encoder=OUT))'."""
    steps: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "seed": seed}
    steps |= {"learning_rate": learning_rate} if learning_rate is not None else {}
    kind = encoder.partition("(")[0].strip()
    if against is not None and kind != "sentibert":
        raise PluginError("--against is for sentibert, which reads trees. Leave it out")
    if kind in ("elmo", "sentibert"):
        if lexicon or mine:
            alone = "texts" if kind == "elmo" else "trees"
            raise PluginError(
                f"--lexicon and --mine are for encoders; {kind} learns from {alone} alone"
            )
        texts = file.part(data, "all", limit, seed)
        if kind == "elmo":
            return _pretrain_elmo(encoder, texts, out, steps)
        return _pretrain_sentibert(encoder, texts, out, steps, against)
    from ..core.files import check_own
    from ..models.pretraining import ENCODER, PRETRAINED, Pretraining
    from ..models.pretraining import pretrain as pretrained

    if (out / PRETRAINED).exists():
        raise PluginError(f"{out} holds a pretrained encoder already. Choose another --out")
    check_own(out, ENCODER)
    words = emotional_words(lexicon)
    try:
        settings = Pretraining(**steps)
    except ValueError as error:
        raise PluginError(str(error)) from None
    texts = file.part(data, "all", limit, seed)
    with ProgressBars() as bars:
        found = pretrained(
            encoder,
            texts,
            lexicon=words,
            out=out,
            mine=mine,
            pretraining=settings,
            watch=bars.of("pretraining"),
        )
    return Answer(
        json={"encoder": str(out), **found.record},
        notes=[
            f"{found.record['words']:,} emotional words, {found.record['aspects']:,} aspects; best "
            f"after epoch {found.best.number + 1}. Then: veracity train "
            f"\"transformer(encoder='{out}')\" DATA --out MODEL"
        ],
        lines=[out],
    )


def _pretrain_sentibert(
    spec: str, trees: Dataset, out: Path, steps: Mapping[str, Any], against: str | None
) -> Answer:
    from ..core.files import check_own
    from ..models.phrase_pretraining import RECORD, SENTIBERT, pretrain_sentibert
    from ..models.pretraining import EncoderTraining
    from ..models.word_vectors import word_vectors
    from ..results.statistics import percent

    source: Any = word_vectors.make(spec)
    if (out / RECORD).exists():
        raise PluginError(f"{out} holds a pretrained network already. Choose another --out")
    check_own(out, SENTIBERT)
    try:
        training = EncoderTraining(**steps)
    except ValueError as error:
        raise PluginError(str(error)) from None
    with ProgressBars() as bars:
        found = pretrain_sentibert(
            source.encoder or "minilm",
            trees,
            out=out,
            against=against,
            training=training,
            watch=bars.of("pretraining"),
        )
    notes = [
        f"{name}: {percent(level['accuracy'])} of {level['nodes']:,} labels right, the most "
        f"frequent one would be {percent(level['majority'])}"
        for name, level in found.record["test"].items()
        if level["nodes"]
    ]
    if other := found.record.get("other_trees"):
        roots = other["roots"]
        notes.append(
            f"trees from {against}: bracket F1 {other['bracket_f1']:.3f}; roots "
            f"{percent(roots['other_trees'])} right, with their own trees "
            f"{percent(roots['own_trees'])}"
        )
    notes.append(
        f"Then: veracity train \"text_cnn(embeddings=sentibert(encoder='{out}'))\" DATA --out MODEL"
    )
    return Answer(json={"encoder": str(out), **found.record}, notes=notes, lines=[out])


def _pretrain_elmo(spec: str, texts: Dataset, out: Path, steps: Mapping[str, Any]) -> Answer:
    from ..core.files import check_own
    from ..core.plugins import check_settings, parse_spec
    from ..models.elmo_pretraining import ElmoPretraining, pretrain_elmo
    from ..models.pretraining import ENCODER, PRETRAINED

    if (out / PRETRAINED).exists():
        raise PluginError(f"{out} holds a pretrained encoder already. Choose another --out")
    check_own(out, ENCODER)
    sizes = parse_spec(spec)[1]
    check_settings(ElmoPretraining, sizes)
    try:
        settings = ElmoPretraining(**{**steps, **sizes})
    except ValueError as error:
        raise PluginError(str(error)) from None
    with ProgressBars() as bars:
        found = pretrain_elmo(texts, out=out, pretraining=settings, watch=bars.of("pretraining"))
    return Answer(
        json={"encoder": str(out), **found.record},
        notes=[
            f"Held-out perplexity {found.best.perplexity:.1f} after epoch {found.best.number + 1} "
            f"(by word frequency alone {found.record['unigram_perplexity']:.1f}). Then: veracity "
            f"train \"text_cnn(embeddings=elmo(encoder='{out}'))\" DATA --out MODEL"
        ],
        lines=[out],
    )


def _balance(balance: dict[str, int]) -> str:
    from ..results.statistics import percent

    total = sum(balance.values())
    return ", ".join(f"{name} {n} ({percent(n / total)})" for name, n in balance.items())
