"""The command ends at a random moment, by a random signal, and is given again."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import veracity

from ..case import Broken
from ..commands import (
    VERBS,
    Started,
    await_folder,
    command,
    done,
    epochs,
    finish,
    forked,
    kept,
    parts,
    prepared,
    same,
    start,
    usual_seconds,
    working_seconds,
)

ABOUT = "kills of the command at random moments, then the same command again"
SHARE = 16.0
DEADLINE = 240.0

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOST_KILLS = 3

_pace = [1.0]
"""Of the moments at which signals are sent: sooner after a command that ended first, later after a
hit, since a machine is seldom as busy as when the undisturbed runs were timed."""

OURS = str(Path(veracity.__file__).parent)
"""Stands in a traceback that has come to the program."""

MOST_STARTING = 0.25
"""A command that works for a smaller share of its time takes its folder only to write."""


def prepare(place: Path) -> None:
    prepared(place)


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    verb = list(VERBS)[number % len(VERBS)]
    words = command(verb, place, workers=rng.choice((1, 1, 1, 2)))
    folder, hits = work / "out", list[str]()
    # every other one is killed again while it resumes
    for _ in range(rng.randint(2, MOST_KILLS) if rng.random() < 0.5 else 1):
        before, past = parts(folder), epochs(folder)
        sent = rng.choice(SIGNALS)
        started = start(words, work)
        _wait(rng, started, place, verb, folder)
        begun = _begun(folder, started)
        _send(rng, started, sent)
        ended = finish(started, within=max(30, 3 * usual_seconds(place, verb)))
        _checked(ended.code, ended.err, sent, begun)
        kept(before, past, folder)
        _pace[0] *= 0.8 if ended.code == 0 else 1.05
        if ended.code == 0:
            break
        hits.append(sent.name)
    before, past = parts(folder), epochs(folder)
    _whole_json(folder)
    if not (verb == "train" and (folder / "veracity.json").exists()):
        # given again to a process that has imported all it needs: twice as many cases in the time
        (done if rng.random() < 0.2 else forked)(words, work).expect(0)
    kept(before, past, folder)
    same(place, verb, folder)
    return f"{verb} {'+'.join(hits) or 'ended first'}"


def _begun(folder: Path, started: Started) -> bool:
    """Whether this command, not one before it, has taken the folder."""
    lock = folder / "run.lock"
    age = time.monotonic() - started.since
    return lock.exists() and time.time() - lock.stat().st_mtime < age


def _wait(rng: random.Random, started: Started, place: Path, verb: str, folder: Path) -> None:
    """Most moments are counted from when the work begins: most of the time goes to start."""
    working, usual = working_seconds(place, verb), usual_seconds(place, verb)
    if working > MOST_STARTING * usual and rng.random() < 0.8:
        await_folder(started, folder)
        time.sleep(rng.random() * 0.7 * _pace[0] * working)
    else:  # also where the folder is taken when all but writing is done
        time.sleep(rng.random() * 0.9 * min(1.0, _pace[0]) * usual)


def _send(rng: random.Random, started: Started, sent: signal.Signals) -> None:
    """To the command alone, as `kill` does, or to all of its group, as a terminal does."""
    to_all = sent in (signal.SIGINT, signal.SIGHUP) and rng.random() < 0.5
    try:
        (os.killpg if to_all else os.kill)(started.process.pid, sent)
    except ProcessLookupError:
        return


def _checked(code: int, err: str, sent: signal.Signals, begun: bool) -> None:
    if code == 0 or (sent == signal.SIGKILL and code == -sent):
        return
    if not begun and (code in (-sent, 128 + sent) or (sent == signal.SIGINT and OURS not in err)):
        return  # before the program has the word, Python and the system do as they do
    if code == -sent:
        raise Broken(f"{sent.name}: ended by the signal without a word, work begun")
    if code != 128 + sent:
        last = " ".join(err.split())[-120:]
        raise Broken(f"{sent.name}: expected exit code {128 + sent}, got {code}: {last!r}")
    if "Traceback" in err:
        raise Broken(f"{sent.name}: exit code {code} with a traceback")
    if "veracity: " not in err:
        raise Broken(f"{sent.name}: exit code {code} without a sentence")


def _whole_json(folder: Path) -> None:
    """Whatever has its name is complete."""
    for path in folder.rglob("*.json"):
        try:
            json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise Broken(f"{path.name} is torn: {error}") from None
