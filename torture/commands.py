"""The real command in processes of its own: started, disturbed, waited for, compared."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from veracity.core.files import read_json

from .case import MOST_MEMORY, Broken

MARK = "VERACITY_TORTURE"
PLUGINS = Path(__file__).parent / "plugins"

NO_END = 120.0
"""Seconds that no command here needs, disturbed or not, on a busy machine."""
ORPHANS_END = 10.0

_MODEL = "text_cnn(size=8, filters=4, widths=(1, 2), embeddings=random)"
_REVIEWS = "made_reviews(n=200)"
_METHODS = "occlusion, gradient, lime(samples=40), random_scores"

VERBS: Mapping[str, Sequence[str]] = {
    "train": ("train", _MODEL, _REVIEWS, "--epochs", "6", "--batch-size", "16"),
    "audit": (
        *("audit", "{model}", _REVIEWS, "--split", "all", "--limit", "120"),
        *("--methods", _METHODS, "--metrics", "erasure, feature_overlap"),
    ),
    "suspects": ("suspects", "{model}", _REVIEWS, "--split", "all", "--limit", "100"),
    "dryrun": (
        *("dryrun", _MODEL, "made_reviews(n=120)", "--cues", "word", "--strengths", "1.0"),
        *("--seeds", "2", "--sentences", "6", "--methods", "occlusion, random_scores"),
    ),
    "run": ("run", "tiny_steps", "--scale", "smoke"),
}
"""The verbs that take long in earnest, at sizes that take a second or two."""

WITH_WORKERS = ("audit", "dryrun", "run")


def command(verb: str, place: Path, *, workers: int = 1) -> list[str]:
    words = [word.replace("{model}", str(place / "model")) for word in VERBS[verb]]
    more = ["--workers", str(workers)] if verb in WITH_WORKERS else []
    return [*words, *more, "--out", "out"]


# ---- starting and ending ---------------------------------------------------------------------


@dataclass
class Started:
    process: Any
    mark: str
    out: Path
    err: Path
    since: float

    def running(self) -> bool:
        """Asked without reaping it: `finish` wants to see how it ended."""
        return not os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


@dataclass(frozen=True)
class Ended:
    code: int
    """As a shell shows it, but negative where a signal was the end."""
    out: str
    err: str
    seconds: float

    def sentence(self) -> None:
        """Told to the user, and no traceback."""
        if "Traceback" in self.err:
            raise Broken(f"exit code {self.code} with a traceback: {_last(self.err)}")
        said = self.err + self.out  # faults of data are listed where results are
        if not any(sign in said for sign in ("veracity: ", "Error", "Usage", "error: ")):
            raise Broken(f"exit code {self.code} without a sentence; said {_last(self.err)!r}")

    def expect(self, *codes: int) -> Ended:
        if self.code not in codes:
            wanted = " or ".join(map(str, codes))
            raise Broken(f"expected exit code {wanted}, got {self.code}: {_last(self.err)!r}")
        if self.code == 2:
            self.sentence()
        return self


def _last(text: str) -> str:
    """The end of what was said, without the sentence that every bug is told with; of what code in
    C++ ends with, the beginning, which says where."""
    said = " ".join(text.split()).partition(". This should not happen")[0]
    place = said.find("terminate called")
    return said[-200:] if place < 0 else said[place : place + 800]


def set_mark(mark: str) -> None:
    """All that this process starts can be found by it."""
    os.environ[MARK] = mark
    os.environ["VERACITY_PLUGINS"] = str(PLUGINS)


def start(
    words: Sequence[str],
    work: Path,
    *,
    stdout: IO[bytes] | int | None = None,
    before: Callable[[], None] | None = None,
    name: str = "said",
    **environment: str,
) -> Started:
    mark = f"{os.environ.get(MARK, os.getpid())}-{time.monotonic_ns()}"
    out, err = work / f"{name}.out", work / f"{name}.err"

    def as_from_a_shell() -> None:
        for each in (signal.SIGINT, signal.SIGHUP):  # the campaign and nohup ignore them
            signal.signal(each, signal.SIG_DFL)
        if before is not None:
            before()

    with out.open("wb") as to, err.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "veracity", *words],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=to if stdout is None else stdout,
            stderr=errors,
            env={**os.environ, **environment, MARK: mark},
            start_new_session=True,
            preexec_fn=as_from_a_shell,
        )
    return Started(process, mark, out, err, time.monotonic())


def crowding() -> float:
    """How many times longer all takes while others use the machine as well."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def finish(started: Started, within: float = NO_END, *, orphans: float = ORPHANS_END) -> Ended:
    """How it ended; a hang, a survivor or too much memory is a broken promise."""
    process = started.process
    within *= crowding()
    deadline = time.monotonic() + within
    status = None
    while status is None:
        ended, found, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            status = found
        elif time.monotonic() > deadline:
            last = _last(started.err.read_text("utf-8", "replace"))
            end_marked(started.mark)
            process.wait()
            raise Broken(f"a hang: no end within {within:g} s; said {last!r}")
        else:
            time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    _no_orphans(started.mark, orphans)
    if usage.ru_maxrss * 1024 > MOST_MEMORY:
        raise Broken(f"took {usage.ru_maxrss / 2**20:.1f} GiB")
    said = [path.read_text("utf-8", "replace") for path in (started.out, started.err)]
    return Ended(process.returncode, said[0], said[1], time.monotonic() - started.since)


def done(words: Sequence[str], work: Path, **more: Any) -> Ended:
    return finish(start(words, work, **more))


def forked(words: Sequence[str], work: Path, *, within: float = NO_END) -> Ended:
    """The same command in a process forked from this one, which has imported all it needs: for
    cases in which nothing happens to the process itself."""
    mark = f"{os.environ.get(MARK, os.getpid())}-{time.monotonic_ns()}"
    started = Started(_Forked(0), mark, work / "said.out", work / "said.err", time.monotonic())
    process = os.fork()
    if not process:
        _run(words, work, mark, started)
    started.process = _Forked(process)
    return finish(started, within)


@dataclass
class _Forked:
    """What `finish` needs of a process."""

    pid: int
    returncode: int | None = None

    def wait(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # its environment does not show the mark
        os.waitpid(self.pid, 0)


def _run(words: Sequence[str], work: Path, mark: str, started: Started) -> NoReturn:
    def prepare() -> None:
        os.setsid()
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(work)
        os.environ[MARK] = mark
        for number, path in ((0, Path(os.devnull)), (1, started.out), (2, started.err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)

    as_command(words, prepare)


def as_command(words: Sequence[str], prepare: Callable[[], None]) -> NoReturn:
    """What the command does, in a forked process that has imported all it needs, on the streams 0
    to 2 as `prepare` leaves them; it ends with the command's exit code."""
    code: Any = 1
    try:
        prepare()
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(i, mode, closefd=False), encoding="utf-8")
            for i, mode in ((0, "rb"), (1, "wb"), (2, "wb"))
        )
        sys.argv = ["veracity", *words]
        warnings.resetwarnings()
        from veracity.cli.main import main

        main()
        code = 0
    except SystemExit as leave:
        code = leave.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def marked(mark: str) -> Iterator[int]:
    """Processes that carry this mark in their environment, dead ones that wait for a parent left
    out."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if wanted in (folder / "environ").read_bytes():
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    yield int(folder.name)
        except OSError:
            continue


def end_marked(mark: str) -> None:
    """Ends what a case started and left behind, and nothing else."""
    for process in list(marked(mark)):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _no_orphans(mark: str, within: float) -> None:
    deadline = time.monotonic() + within
    while left := list(marked(mark)):
        if time.monotonic() > deadline:
            end_marked(mark)
            raise Broken(f"{len(left)} processes live on {within:g} s after the command's end")
        time.sleep(0.05)


# ---- an undisturbed run, to compare with -----------------------------------------------------


def prepared(place: Path, verbs: Sequence[str] = tuple(VERBS), *, workers: int = 1) -> None:
    """Each verb once, left in peace."""
    set_mark(f"{os.getpid()}-preparing")
    model = place / "model"
    if not model.exists():
        work = place / "training"
        work.mkdir()
        spec = "text_cnn(size=16, filters=8, widths=(1, 2), embeddings=random)"
        more = ("--epochs", "6", "--batch-size", "16", "--learning-rate", "0.01")
        done(("train", spec, "made_reviews(n=400)", *more, "--out", str(model)), work).expect(0)
    for verb in verbs:
        work = whole(place, verb).parent
        if not work.exists():
            work.mkdir(parents=True)
            started = start(command(verb, place, workers=workers), work)
            await_folder(started, work / "out")
            starting = time.monotonic() - started.since
            ended = finish(started).expect(0)
            (work / "seconds").write_text(f"{ended.seconds} {ended.seconds - starting}")


def whole(place: Path, verb: str) -> Path:
    return place / "whole" / verb / "out"


def await_folder(started: Started, folder: Path, within: float = 60.0) -> None:
    """Until the command takes its folder: most of its time goes to starting."""
    until = started.since + within
    while not folder.exists() and started.running() and time.monotonic() < until:
        time.sleep(0.005)


def usual_seconds(place: Path, verb: str) -> float:
    return _seconds(place, verb)[0]


def working_seconds(place: Path, verb: str) -> float:
    """Of the usual ones, those after the folder is taken."""
    return _seconds(place, verb)[1]


def _seconds(place: Path, verb: str) -> list[float]:
    return [float(x) for x in (whole(place, verb).parent / "seconds").read_text().split()]


# ---- what was written ------------------------------------------------------------------------

PARTS = ("*.parquet", "found.json", "model.safetensors")
"""What is computed once: a resumed run leaves it as it is."""


def parts(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every part that is there, with what would show that it was written again."""
    found = {}
    for pattern in PARTS:
        for path in folder.rglob(pattern):
            if path.name != "examples.parquet" and "checkpoint" not in path.parts:
                about = path.stat()
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(folder))] = (about.st_ino, about.st_mtime_ns, digest)
    return found


def epochs(folder: Path) -> list[Any]:
    """What a training has behind it; its seconds show that an epoch was not done again."""
    for name in ("veracity.json", "checkpoint/state.json"):
        if (folder / name).exists():
            history: list[Any] = json.loads((folder / name).read_text())["history"]
            return history
    return []


def kept(before: Mapping[str, Any], past: Sequence[Any], folder: Path) -> None:
    now = parts(folder)
    lost = [name for name in before if name not in now]
    if lost:
        raise Broken(f"{len(lost)} parts lost, such as {lost[0]}")
    again = [name for name in before if before[name] != now[name]]
    if again:
        raise Broken(f"{len(again)} parts computed twice, such as {again[0]}")
    if past and epochs(folder)[: len(past)] != list(past):
        raise Broken(f"{len(past)} epochs were done again")


def same(place: Path, verb: str, folder: Path) -> None:
    """Equal to the undisturbed run in every value, but for timings and times of day."""
    expected = whole(place, verb)
    ours, theirs = _files(expected), _files(folder)
    if ours.keys() != theirs.keys():
        differ = sorted(ours.keys() ^ theirs.keys())
        raise Broken(f"{verb}: {len(differ)} files lacking or left over, such as {differ[0]}")
    for name, path in ours.items():
        if path.suffix != ".html" and path.read_bytes() != theirs[name].read_bytes():
            _compared(verb, name, path, theirs[name])


def _files(folder: Path) -> dict[str, Path]:
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in (".part", ".lock")
        and "checkpoint" not in path.parts
    }


CHANGING = ("seconds", "metadata", "made", "created", "command", "parts")
"""How the names of what differs from one run to the next end."""


def _compared(verb: str, name: str, expected: Path, found: Path) -> None:
    if expected.suffix == ".parquet":
        import pyarrow.parquet as pq

        a, b = (pq.read_table(p).to_pylist() for p in (expected, found))
    elif expected.suffix == ".json":
        a, b = (read_json(p) for p in (expected, found))  # whose checksums fit, though they differ
    else:
        raise Broken(f"{verb}: {name} differs from the undisturbed run's")
    gap, where = _gap(a, b, "")
    if gap:
        raise Broken(f"{verb}: {name} differs by {gap:g} at {where}")


def _gap(a: Any, b: Any, where: str) -> tuple[float, str]:
    """The largest difference and its place; infinite where values are not numbers."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        pairs = [(a[k], b[k], f"{where}.{k}") for k in a if not k.endswith(CHANGING)]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
    elif isinstance(a, str) and isinstance(b, str) and a[:1] in "{[" and a != b:
        try:
            return _gap(json.loads(a), json.loads(b), where)
        except ValueError:
            return math.inf, where
    elif type(a) is float and type(b) is float:
        return (0.0 if a == b or (a != a and b != b) else abs(a - b) or math.inf), where
    else:
        return (0.0 if a == b else math.inf), where
    return max((_gap(*pair) for pair in pairs), default=(0.0, where))
