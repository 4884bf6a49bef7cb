"""Runs cases in two processes, each watched: what hangs or dies is a failed case like any other."""

from __future__ import annotations

import multiprocessing as mp
import os
import re
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .case import as_seen, cases_of, generator, kind_named
from .commands import end_marked, set_mark

FORK = mp.get_context("fork")


@dataclass
class Tally:
    """What became of the cases of one kind."""

    kind: str
    tried: int = 0
    seconds: float = 0.0
    labels: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return self.tried - len(self.failures)

    def distinct(self) -> dict[str, list[int]]:
        """Cases that fail alike, under the message of the first."""
        alike: dict[str, list[int]] = {}
        for number, problem in self.failures.items():
            alike.setdefault(_shape(problem), []).append(number)
        return {self.failures[numbers[0]]: numbers for numbers in alike.values()}


def _shape(problem: str) -> str:
    """A message without what differs from case to case; of a crash, its kind and its place."""
    if crash := re.match(r"\w+ at [\w.]+:[^:]+:", problem):
        return crash[0]
    return re.sub(r"0x[0-9a-f]+|[\d.]+|\S*/\S*| beside .*?;|; wrote .*", "…", problem)[:160]


def campaign(
    kinds: Sequence[str], *, seconds: float, seed: int, jobs: int, cases: Sequence[int] = ()
) -> Iterator[Tally]:
    """Each kind for its share of the time; what one leaves over is the others'."""
    end = time.monotonic() + seconds
    left = {name: kind_named(name).SHARE for name in kinds}
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        common = Path(folder) / "common"
        common.mkdir()
        for name in kinds:
            _in_peace(name, common)
        for name in kinds:
            remaining = max(end - time.monotonic(), 0.0)
            share = remaining * left[name] / sum(left.values())
            del left[name]
            yield _of_kind(name, common, Path(folder) / name, share, seed, jobs, cases)


def _in_peace(name: str, common: Path) -> None:
    """Prepares in a process of its own: this one stays without threads and may be forked."""
    preparing = FORK.Process(target=_prepare, args=(name, common))
    preparing.start()
    preparing.join()
    if preparing.exitcode:
        raise SystemExit(f"torture: {name} could not be prepared")


def _of_kind(
    name: str,
    common: Path,
    work: Path,
    seconds: float,
    seed: int,
    jobs: int,
    cases: Sequence[int],
) -> Tally:
    kind, tally, started = kind_named(name), Tally(name), time.monotonic()
    work.mkdir()
    until = float("inf") if cases else started + seconds  # what is asked for by number is done
    last = cases_of(kind)
    slots = [
        _Slot(
            name,
            common,
            work,
            seed,
            until,
            list(cases)[i::jobs] if cases else range(i, last or 10**9, jobs),
            i,
        )
        for i in range(jobs)
    ]
    try:
        while open_ := {slot.pipe: slot for slot in slots if slot.pipe is not None}:
            for pipe in wait(list(open_), timeout=0.2):
                open_[pipe].hear(tally)  # type: ignore[index]
            for slot in slots:
                slot.watch(kind.DEADLINE, tally)
    finally:
        for slot in slots:
            slot.end()
    tally.seconds = time.monotonic() - started
    shutil.rmtree(work, ignore_errors=True)
    return tally


class _Slot:
    """One process that does cases one after the other, and is replaced if a case is its end."""

    def __init__(
        self, kind: str, common: Path, work: Path, seed: int, until: float, numbers: Any, index: int
    ) -> None:
        self.arguments = (kind, common, work, seed, until)
        self.numbers = numbers
        self.mark = f"{os.getpid()}-{kind}-{index}"
        self._begin()

    def _begin(self) -> None:
        self.pipe: Connection | None
        self.pipe, theirs = FORK.Pipe(duplex=False)
        self.case: int | None = None
        self.since = time.monotonic()
        self.process = FORK.Process(
            target=_work, args=(*self.arguments, self.numbers, self.mark, theirs)
        )
        self.process.start()
        theirs.close()

    def hear(self, tally: Tally) -> None:
        assert self.pipe is not None
        try:
            while self.pipe.poll():
                number, label, problem = self.pipe.recv()
                self.since = time.monotonic()
                if label is None:
                    self.case = number
                    continue
                self._count(tally, label, problem)
        except (EOFError, OSError):
            self.pipe.close()
            self.pipe = None
            self.process.join()
            if self.case is not None:
                code = self.process.exitcode or 0
                died = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                self._replace(tally, f"the process of the case ended with {died}")

    def watch(self, deadline: float, tally: Tally) -> None:
        if self.pipe is None or self.case is None or time.monotonic() - self.since < deadline:
            return
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self._replace(tally, f"no end within {deadline:g} s")

    def end(self) -> None:
        """Ends what still runs: the campaign itself leaves nobody behind."""
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        end_marked(self.mark)

    def _replace(self, tally: Tally, problem: str) -> None:
        end_marked(self.mark)
        done = self.case
        self._count(tally, "hang or crash", problem)
        self.numbers = (
            [n for n in self.numbers if n > done]
            if isinstance(self.numbers, list)
            else (range(done + self.numbers.step, self.numbers.stop, self.numbers.step))
        )
        self._begin()

    def _count(self, tally: Tally, label: str, problem: str) -> None:
        assert self.case is not None
        tally.tried += 1
        tally.labels[label] += 1
        if problem:
            tally.failures[self.case] = problem
        self.case = None


def _prepare(name: str, common: Path) -> None:
    warnings.simplefilter("ignore")
    kind_named(name).prepare(common)


def _work(
    name: str,
    common: Path,
    work: Path,
    seed: int,
    until: float,
    numbers: Sequence[int],
    mark: str,
    pipe: Connection,
) -> None:
    """The cases of one process; the number is told before, so that a death can be laid to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    set_mark(mark)
    os.chdir(work)
    kind = kind_named(name)
    for i, number in enumerate(numbers):
        if i and time.monotonic() > until:  # each kind gets a case, however late it is
            break
        pipe.send((number, None, ""))
        pipe.send((number, *_one(kind, name, number, seed, common, work / str(number))))
    pipe.close()
    os._exit(0)


def _one(kind: Any, name: str, number: int, seed: int, common: Path, work: Path) -> tuple[str, str]:
    work.mkdir()
    try:
        return kind.case(number, generator(seed, name, number), common, work), ""
    except BaseException as error:  # panics of libraries in Rust are no Exception
        return "failed", as_seen(error)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def as_table(tallies: Sequence[Tally]) -> str:
    lines = [f"{'kind':<12}{'tried':>9}{'held':>9}{'failed':>8}{'seconds':>9}"]
    rows = [(t.kind, t.tried, t.held, len(t.failures), t.seconds) for t in tallies]
    rows.append(("all", *(sum(row[i] for row in rows) for i in range(1, 5))))  # type: ignore[arg-type, misc]
    lines += [f"{n:<12}{t:>9,}{h:>9,}{f:>8,}{s:>9.0f}" for n, t, h, f, s in rows]
    return "\n".join(lines)


def as_detail(tally: Tally) -> str:
    """How many of which, in a line."""
    return ", ".join(f"{label} {n:,}" for label, n in sorted(tally.labels.items()))


def as_failures(tally: Tally, seed: int) -> Iterator[str]:
    for problem, numbers in tally.distinct().items():
        times = f"{len(numbers):,} cases" if len(numbers) > 1 else "1 case"
        yield f"{tally.kind}: {problem} ({times})"
        yield f"  python -m torture --only {tally.kind} --case {numbers[0]} --seed {seed}"
