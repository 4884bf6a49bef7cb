"""Every kind of file that we read, damaged: a sentence or success, and nothing else."""

from __future__ import annotations

import csv
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from ..case import bounded_memory, tried
from ..commands import forked, prepared
from ..good import data_files, encoder, trained, training, vectors
from ..mutations import damaged

ABOUT = "bit flips, cuts, zeros, swaps and JSON mutations of every kind of file"
SHARE = 2.0
DEADLINE = 60.0

CNN = "text_cnn(size=8, filters=4, widths=(1, 2), embeddings=random)"
LSTM = "attention_lstm(size=8, hidden=6, attention=4, embeddings=random)"
BY_COMMAND = 0.004
"""So many of the cases go through the real command; the rest call what it calls."""


PAGES = 0.15
"""So many pages are written: each takes as long as twenty other cases."""


def prepare(place: Path) -> None:
    prepared(place, ("audit", "dryrun", "suspects", "run"))
    good = place / "good"
    if good.exists():
        return
    good.mkdir()
    data_files(good / "data")
    vectors(good / "vectors")
    trained(good / "cnn", CNN)
    trained(good / "lstm", LSTM)
    encoder(good / "encoder")
    for verb in ("audit", "dryrun", "suspects", "run"):
        (good / verb).symlink_to(place / "whole" / verb / "out")
    _others(good)


def _others(good: Path) -> None:
    """A cache of answers, word sets, a lexicon, sheets of data being built."""
    import numpy as np

    from veracity.data.lexicon import own_lexicon
    from veracity.data.loading import load_data
    from veracity.models.adapters.answer_store import AnswerStore
    from veracity.studies.construction import TYPED, assign_types, sample_types
    from veracity.truths import truths

    other = good / "other"
    other.mkdir()
    store = AnswerStore.open(other / "answers.sqlite", ADDRESS)
    texts = [f"text {i}" for i in range(40)]
    store.remember(("a", "b"), {text: np.array([0.25, 0.75]) for text in texts})
    store.connection.close()
    data = load_data("made_reviews(n=40)")
    truths.make("integer_program").learnt(None, data, seed=0).save(other / "words.json")
    lines = (f"{word}\t{sign}\n" for word, sign in list(own_lexicon().items())[:30])
    (other / "lexicon.tsv").write_text("".join(lines), "utf-8")
    assign_types(data, good / "sheets", lexicon=own_lexicon())
    _corrected(good / "sheets" / TYPED.name)
    sample_types(good / "sheets", per_type=1)


def _corrected(sheet: Path) -> None:
    """As if people had found texts of every type."""
    from veracity.studies.construction import TYPES

    with sheet.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for i, row in enumerate(rows):
        row["sentiment_type"] = TYPES[i % len(TYPES)]
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


ADDRESS = "http://127.0.0.1:9/predict"

# ---- what is done with each kind of file -----------------------------------------------------


def _data(path: Path, rng: random.Random) -> None:
    from veracity.data.loading import describe, load_data, validate

    if rng.random() < 0.5:
        validate(path)
    else:
        describe(load_data(path, skip_bad=rng.random() < 0.5))


def _model(path: Path, rng: random.Random) -> None:
    from veracity.data.words import read_text
    from veracity.models.loading import load_model

    model = load_model(path / "model" if (path / "model").exists() else path)
    model.probabilities([read_text("the film is great , a bit dull"), read_text("a")])


def _checkpoint(path: Path, rng: random.Random) -> None:
    from dataclasses import replace

    from veracity.models.training import train

    architecture, parts = training(CNN)
    asked = replace(architecture.training, epochs=2, batch_size=16)
    train(architecture, parts.train, parts.validation, training=asked, checkpoint=path)


def _vectors(path: Path, rng: random.Random) -> None:
    from veracity.models.embeddings import vectors_for

    if rng.random() < 0.3:
        spec = f"text_cnn(filters=4, widths=(1, 2), embeddings={str(path)!r})"
        architecture, parts = training(spec)
        architecture.start(parts.train, seed=0)
    else:
        list(vectors_for(str(path), {"the", "film", "dull", "great", "好", "a"}))


def _audit(path: Path, rng: random.Random) -> None:
    from veracity.reports.html import write_report
    from veracity.results.conclusions import conclude
    from veracity.results.run import Run

    run = Run.open(path)
    run.examples()
    if rng.random() < PAGES:
        write_report(run)
    elif rng.random() < 0.8:
        run.scores()
        run.costs()
        run.summaries()
        for model in run.models:
            run.predictions(model)
            for explainer in run.explainers:
                run.attributions(model, explainer)
    else:
        conclude(run)


def _dryrun(path: Path, rng: random.Random) -> None:
    from veracity.experiments.dryrun_findings import findings
    from veracity.experiments.dryrun_record import DryRun
    from veracity.reports.dryrun import write_dryrun

    dry = DryRun.open(path)
    findings(dry)
    if rng.random() < PAGES:
        write_dryrun(dry)


def _suspects(path: Path, rng: random.Random) -> None:
    from veracity.reports.suspects import write_suspects
    from veracity.suspicion.record import Suspects

    str(write_suspects(Suspects.read(path / "suspects.json"), path / "page.html"))


def _findings(path: Path, rng: random.Random) -> None:
    from veracity.reports.findings import write_findings
    from veracity.results.findings import Findings

    found = Findings.read(path)
    if rng.random() < PAGES:
        write_findings(found, path)


def _answers(path: Path, rng: random.Random) -> None:
    from veracity.data.words import read_text
    from veracity.models.adapters.endpoints import Endpoint

    with Endpoint(ADDRESS, retries=0, cache=path, timeout=1.0) as endpoint:
        endpoint.probabilities([read_text(f"text {i}") for i in range(40)])


def _words(path: Path, rng: random.Random) -> None:
    from veracity.core.truths import WordSets
    from veracity.data.loading import load_data
    from veracity.results.truths import word_view

    sets = WordSets.load(path)
    word_view(sets, load_data("made_reviews(n=4)"))


def _lexicon(path: Path, rng: random.Random) -> None:
    from veracity.data.lexicon import read_lexicon

    read_lexicon(path)


def _sheets(path: Path, rng: random.Random) -> None:
    from veracity.studies import construction

    if rng.random() < 0.5:
        (path / "2-twins.csv").unlink(missing_ok=True)
        construction.sample_types(path, per_type=1)
    else:
        construction.choose_twins(path)


Reader = Callable[[Path, random.Random], None]
FILES: dict[str, tuple[str, Reader, float, str]] = {
    "data": ("data", _data, 12, "data validate"),
    "vectors": ("vectors", _vectors, 4, ""),
    "answers": ("other/answers.sqlite", _answers, 2, ""),
    "word sets": ("other/words.json", _words, 3, "truths show"),
    "lexicon": ("other/lexicon.tsv", _lexicon, 2, ""),
}
"""Single files: where, what reads them, how often beside the others, a verb that takes them."""
FOLDERS: dict[str, tuple[str, Reader, float, str]] = {
    "text_cnn": ("cnn/model", _model, 4, "explain"),
    "attention_lstm": ("lstm/model", _model, 3, "explain"),
    "transformers": ("encoder", _model, 2, "explain"),
    "checkpoint": ("cnn/checkpoint", _checkpoint, 1.5, ""),
    "run": ("audit", _audit, 4, "report"),
    "dry run": ("dryrun", _dryrun, 2, "report"),
    "suspects": ("suspects", _suspects, 3, ""),
    "findings": ("run", _findings, 3, "report"),
    "sheets": ("sheets", _sheets, 3, ""),
    "dataset": ("data/dataset", _data, 2, "data validate"),
}
"""Folders, of which one or two files are damaged."""
EVERYTHING = {**FILES, **FOLDERS}


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    weights = [weight for _, _, weight, _ in EVERYTHING.values()]
    (name,) = rng.choices(list(EVERYTHING), weights)
    verb = EVERYTHING[name][3]
    if verb and rng.random() < BY_COMMAND:
        words = verb.split()
        more = ("a dull film", "--method", "occlusion") if verb == "explain" else ()
        faults = (1,) if verb == "data validate" else ()
        target = hurt_copy(name, rng, place / "good", work)
        forked([*words, str(target), *more], work).expect(0, 2, *faults)
        return f"{verb} by command"
    read_hurt(name, rng, place / "good", work)
    return name


def read_hurt(name: str, rng: random.Random, good: Path, work: Path) -> None:
    """Reads one damaged file or folder of this kind."""
    target = hurt_copy(name, rng, good, work)
    with bounded_memory():
        tried(lambda: EVERYTHING[name][1](target, rng))


def hurt_copy(name: str, rng: random.Random, good: Path, work: Path) -> Path:
    copy = _damaged_folder if name in FOLDERS else _damaged_file
    return copy(rng, good / EVERYTHING[name][0], work)


def _damaged_file(rng: random.Random, good: Path, work: Path) -> Path:
    files = sorted(p for p in good.iterdir() if p.is_file()) if good.is_dir() else [good]
    chosen, other = rng.choice(files), rng.choice(files)
    target = work / chosen.name
    target.write_bytes(damaged(rng, chosen.read_bytes(), other.read_bytes()))
    return target


def _damaged_folder(rng: random.Random, good: Path, work: Path) -> Path:
    """A copy by links, in which the damaged files are new ones."""
    target = work / "folder"
    shutil.copytree(good.resolve(), target, copy_function=_linked)
    files = sorted(
        p for p in target.rglob("*") if p.is_file() and p.suffix not in (".lock", ".html")
    )
    (target / "run.lock").unlink(missing_ok=True)
    for _ in range(rng.choice((1, 1, 1, 2))):
        # the few files that speak of the others are hit as often as all the others
        heads = [p for p in files if p.suffix == ".json"] or files
        victim = rng.choice(heads if rng.random() < 0.6 else files)
        _hurt(rng, victim, rng.choice(files))
    return target


def _hurt(rng: random.Random, victim: Path, other: Path) -> None:
    if not victim.is_file() or not other.is_file():
        return
    content, strange = victim.read_bytes(), other.read_bytes()
    victim.unlink()
    if rng.random() > 0.05:
        victim.write_bytes(damaged(rng, content, strange))


def _linked(source: str, target: str) -> None:
    os.link(source, target)
