"""Every verb that writes is pointed at a folder, or a file, that is somebody's."""

from __future__ import annotations

import random
from pathlib import Path

from ..case import Broken
from ..commands import forked, prepared
from ..good import encoder, reviews

ABOUT = "other people's files: refused, and not a byte of them changed"
SHARE = 1.0
DEADLINE = 150.0

_CNN = "text_cnn(size=8, filters=4, widths=(1, 2), embeddings=random)"
_FEW = "made_reviews(n=60)"
FOLDERS = {
    "train": ("train", _CNN, _FEW, "--epochs", "1", "--out", "{out}"),
    "audit": ("audit", "{model}", _FEW, "--methods", "random_scores", "--out", "{out}"),
    "suspects": ("suspects", "{model}", _FEW, "--out", "{out}"),
    "robustness": ("robustness", "{model}", _FEW, "--by", "keyboard", "--out", "{out}"),
    "dryrun": (
        *("dryrun", _CNN, _FEW, "--cues", "word", "--strengths", "1.0", "--seeds", "1"),
        *("--methods", "random_scores", "--workers", "1", "--out", "{out}"),
    ),
    "run": ("run", "tiny_steps", "--scale", "smoke", "--workers", "1", "--out", "{out}"),
    "augment": (
        *("augment", _CNN, _FEW, "{pairs}", "--by", "keyboard", "--epochs", "1"),
        *("--out", "{out}"),
    ),
    "pretrain": (
        "pretrain",
        "{encoder}",
        "{csv}",
        "--epochs",
        "1",
        "--limit",
        "20",
        "--out",
        "{out}",
    ),
    "build": ("data", "build", "types", _FEW, "{out}"),
    "train itself": (
        "train",
        "transformer(encoder='{out}')",
        _FEW,
        "--epochs",
        "1",
        "--out",
        "{out}",
    ),
}
FILES = {
    "plant": ("plant", _FEW, "--by", "reassign, insert(marks=('sent', 'dated'))", "--out", "{out}"),
    "attack": ("data", "attack", _FEW, "--by", "keyboard", "--out", "{out}"),
    "convert": ("data", "convert", "{csv}", "--to", "records", "--out", "{out}"),
    "explain": ("explain", "{model}", "a dull film", "--method", "occlusion", "--out", "{out}"),
    "report": ("report", "{audit}", "--out", "{out}"),
    "truths learn": ("truths", "learn", "integer_program", _FEW, "--out", "{out}"),
}
CASES = 40 * (len(FOLDERS) + len(FILES))

NAMES = (
    *("checkpoint/keep.txt", "checkpoint/state.json", "model.safetensors", "vocabulary.json"),
    *("suspects.json", "suspects.html", "report.html", "run.json", "dryrun.json", "findings.json"),
    *("steps/notes.txt", "models/notes.txt", "examples.parquet", "predictions/a.parquet"),
    *("notes.txt", ".hidden", "thesis.part", "1-types.csv", "robustness.json", "summaries.json"),
    *(
        "snapshots/epoch-1.safetensors",
        "checkpoint",
        "report/index.html",
        "attributions/a/b.parquet",
    ),
)


def prepare(place: Path) -> None:
    prepared(place, ("audit",))
    reviews(place / "reviews.csv")
    encoder(place / "encoder")
    pairs = place / "pairs.jsonl"
    if not pairs.exists():
        words = ("data", "attack", _FEW, "--by", "keyboard", "--out", str(pairs))
        forked(words, place).expect(0)


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    verbs = {**FOLDERS, **FILES}
    verb = list(verbs)[number % len(verbs)]
    theirs = work / "theirs"
    theirs.mkdir()
    target = theirs
    if verb in FILES:
        target = theirs / rng.choice(("a.jsonl", "report.html", "words.json"))
        if verb in ("plant", "attack", "convert"):
            target = target.with_suffix(".jsonl")
        target.write_bytes(b"mine")
    elif verb == "train itself":
        encoder(theirs)
    else:
        for name in rng.sample(NAMES, rng.choice((1, 1, 2, 4))):
            path = theirs / name
            if not path.exists() and not path.parent.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(rng.choice((b"mine", b"{}", b"", b'{"format": 1}')))
    places = {
        "out": target,
        "model": place / "model",
        "csv": place / "reviews.csv",
        "audit": place / "whole" / "audit" / "out",
        "encoder": place / "encoder",
        "pairs": place / "pairs.jsonl",
    }
    words = [word.format(**places) if "{" in word else word for word in verbs[verb]]
    before = _content(theirs)
    ended = forked(words, work)
    after = _content(theirs)
    gone = [n for n in before if n not in after]
    if gone:
        raise Broken(f"{verb}: deleted {', '.join(gone)} (exit code {ended.code})")
    if changed := [n for n in before if before[n] != after[n]]:
        raise Broken(f"{verb}: wrote over {', '.join(changed)} (exit code {ended.code})")
    held = ", ".join(before)
    if verb == "build" and ended.code == 0:
        return verb  # sheets lie among the files of those who fill them in
    if ended.code == 0:
        raise Broken(f"{verb}: not refused beside {held}; wrote {', '.join(after.keys() - before)}")
    ended.expect(2)
    if new := sorted(after.keys() - before - {"run.lock"}):
        raise Broken(f"{verb}: refused beside {held}, but left {', '.join(new)} there")
    return verb


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
