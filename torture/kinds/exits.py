"""What a command's end says: 0, 1, 2, 70, 128 + n, with standard output as it may be found."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from ..case import Broken
from ..commands import MARK, Ended, Started, done, finish, prepared, start
from ..good import reviews

ABOUT = "exit codes; closed pipes and full devices as standard output"
SHARE = 2.0
DEADLINE = 150.0

_FEW = "made_reviews(n=60)"
_AUDIT = ("audit", "{model}", _FEW, "--methods", "random_scores", "--metrics", "erasure", "--out")
CODES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("--version",)),
    (0, ("--help",)),
    (0, ("list", "explainers", "--json")),
    (0, ("data", "describe", "{csv}", "--json")),
    (0, (*_AUDIT, "a")),
    (0, (*_AUDIT, "a", "--fail-under", "accuracy=0.01")),
    (1, (*_AUDIT, "a", "--fail-under", "accuracy=0.9999")),
    (1, (*_AUDIT, "a", "--fail-under", "accuracy=0.9999", "--json")),
    (2, (*_AUDIT, "a", "--fail-under", "nonsense")),
    (2, (*_AUDIT, "a", "--seed", "x")),
    (2, (*_AUDIT, "a", "--seed", "-5")),
    (2, (*_AUDIT, "{csv}")),
    (2, ("no-such-verb",)),
    (2, ("audit",)),
    (2, ("audit", "nothing", "nowhere.csv")),
    (2, ("audit", "{model}", "/dev/zero", "--out", "a")),
    (2, ("data", "describe", "/dev/zero")),
    (2, ("data", "describe", "fifo")),
    (2, ("data", "describe", "{model}")),
    (2, ("explain", "leaves.py:predict", "a dull film", "--method", "occlusion")),
    (2, ("audit", "leaves.py:predict", _FEW, "--out", "a")),
    (2, ("audit", "late.py:predict", _FEW, "--out", "a", "--methods", "occlusion")),
    (2, ("explain", "{model}", "a dull film", "--method", "lime(width=1e308)")),
    (2, ("report", "{csv}")),
    (70, ("bug",)),
)
STREAMS = ("closed pipe", "full", "closed", "errors closed")
STREAMED = (
    ("list", "explainers"),
    ("list", "metrics", "--json"),
    ("data", "describe", "{csv}", "--json"),
    (*_AUDIT, "a"),
    (*_AUDIT, "a", "--json"),
    ("explain", "{model}", "a dull film", "--method", "occlusion", "--json"),
    ("data", "validate", "{csv}"),
)
CASES = len(CODES) + len(STREAMS) * len(STREAMED)

LEAVES = "import sys\n\ndef predict(texts):\n    sys.exit(0)\n"
LATE = """
import sys
count = 0

def predict(texts):
    global count
    count += 1
    if count > 5:
        sys.exit(0)
    return [[0.5, 0.5]] * len(texts)
"""
BUG = """
import sys
from veracity.cli import main

def broken(*_, **__):
    raise RuntimeError("a bug")

sys.argv = ["veracity", "list", "explainers"]
main.app = broken
main.main()
"""


def prepare(place: Path) -> None:
    prepared(place, ())
    reviews(place / "reviews.csv")


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    places = {"model": place / "model", "csv": place / "reviews.csv"}
    (work / "leaves.py").write_text(LEAVES)
    (work / "late.py").write_text(LATE)
    os.mkfifo(work / "fifo")
    if number < len(CODES):
        code, words = CODES[number]
        if words == ("bug",):
            return _bug(work)
        done([w.format(**places) for w in words], work).expect(code)
        return f"code {code}"
    how = STREAMS[(number - len(CODES)) % len(STREAMS)]
    words = STREAMED[(number - len(CODES)) // len(STREAMS) % len(STREAMED)]
    _streamed([w.format(**places) for w in words], work, how)
    return how


def _bug(work: Path) -> str:
    errors = work / "said.err"
    with errors.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", BUG], stderr=file)
    (work / "said.out").touch()
    mark = os.environ[MARK] + "-bug"
    finish(Started(process, mark, work / "said.out", errors, time.monotonic())).expect(70)
    return "code 70"


def _streamed(words: list[str], work: Path, how: str) -> None:
    if how == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
        ended = finish(start(words, work, stdout=writer))
        os.close(writer)
        _expect(ended, 0, 141)
    elif how == "full":
        with Path("/dev/full").open("wb") as full:
            ended = finish(start(words, work, stdout=full))
        _expect(ended, 2)
        ended.sentence()
    else:
        number = 1 if how == "closed" else 2
        _expect(finish(start(words, work, before=lambda: os.close(number))), 0, 2)


def _expect(ended: Ended, *codes: int) -> None:
    code = 128 - ended.code if ended.code < 0 else ended.code
    if code not in codes or "Traceback" in ended.err or "Exception ignored" in ended.err:
        last = " ".join(ended.err.split())[-160:]
        raise Broken(f"expected exit code {' or '.join(map(str, codes))}, got {code}: {last!r}")
