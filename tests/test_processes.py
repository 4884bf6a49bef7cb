"""Processes that die or are told to: nothing hangs, nothing is left, exit codes tell it."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import run_command
from deadly_jobs import Deadly, Hungry
from test_docs import ROOT
from veracity.cli import exits
from veracity.core.errors import RunError
from veracity.engine.executors import Local

DIED = "a worker process ended unexpectedly"


class Weighty(Deadly):
    """With so much that a worker must have read it before all is sent; and of this module, which
    takes a worker a while to import."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, weight=bytes(3_000_000))


class Killer(threading.Thread):
    """Kills workers that begin, each after a pause."""

    def __init__(self, pauses: list[float]) -> None:
        super().__init__(daemon=True)
        self.pauses = pauses
        self.killed: set[int] = set()

    def run(self) -> None:
        deadline = time.monotonic() + 20
        while len(self.killed) < len(self.pauses) and time.monotonic() < deadline:
            for child in multiprocessing.active_children():
                if child.pid not in self.killed and len(self.killed) < len(self.pauses):
                    time.sleep(self.pauses[len(self.killed)])
                    assert child.pid is not None
                    self.killed.add(child.pid)
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.001)


@pytest.mark.parametrize("pause", [0.0, 0.3 * random.Random(15).random()])
def test_a_worker_killed_as_it_starts_is_done_without(pause: float, tmp_path: Path) -> None:
    """The pool of the standard library wrote to the dead one for ever."""
    killer = Killer([pause])
    killer.start()
    with pytest.warns(UserWarning, match=DIED):
        found = list(Local(2).map(Weighty(tmp_path), [1, 2, 3]))
    assert sorted(found) == [1, 4, 9] and len(killer.killed) == 1
    assert not multiprocessing.active_children()


@pytest.mark.filterwarnings(f"ignore:{DIED}")
def test_all_workers_killed_as_they_start_end_in_a_sentence(tmp_path: Path) -> None:
    killer = Killer([0.0, 0.0])
    killer.start()
    with pytest.raises(RunError, match=f"{DIED}, perhaps for lack of memory. What was written"):
        list(Local(2).map(Weighty(tmp_path), [1, 2, 3]))
    assert len(killer.killed) == 2


def test_the_job_of_a_dead_worker_is_done_once_more(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"{DIED}.* one worker fewer"):
        found = list(Local(2).map(Deadly(tmp_path, {2: 1}), [1, 2, 3, 4]))
    assert sorted(found) == [1, 4, 9, 16]


def test_a_worker_that_leaves_a_process_behind_is_seen_to_be_dead(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=DIED):
        found = list(Local(2).map(Deadly(tmp_path, {2: 1}, leaves=True), [1, 2, 3]))
    left = int((tmp_path / "left").read_text())
    assert alive(left)
    os.kill(left, signal.SIGKILL)
    assert sorted(found) == [1, 4, 9]


@pytest.mark.filterwarnings(f"ignore:{DIED}")
def test_a_job_that_ends_two_workers_is_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=DIED):
        list(Local(3).map(Deadly(tmp_path, {2: 9}), [1, 2, 3]))
    assert len(list(tmp_path.iterdir())) == 2
    assert not multiprocessing.active_children()


def test_a_job_that_lacked_memory_is_done_with_a_worker_fewer(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="lack of memory. Going on"):
        assert sorted(Local(2).map(Hungry(tmp_path), [1, 2, 3])) == [1, 2, 3]


NESTED = """
import os, sys, time
from pathlib import Path
from veracity.engine.executors import Local
def busy(job):
    Path(sys.argv[1], str(os.getpid())).touch()
    return len(str(7 ** 10 ** 8))  # minutes within one instruction: no thread of Python's gets in
def outer(job):
    return list(Local(2).map(busy, [1, 2])) if job else busy(job)
if __name__ == "__main__":
    list(Local(2).map(outer, [0, 1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread of Python's looks")
def test_workers_and_theirs_end_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "nested.py").write_text(NESTED)
    pids = tmp_path / "pids"
    pids.mkdir()
    parent = subprocess.Popen([sys.executable, "nested.py", str(pids)], cwd=tmp_path)
    until(lambda: len(list(pids.iterdir())) == 3, 30)
    parent.kill()
    parent.wait()
    until(lambda: not any(alive(int(p.name)) for p in pids.iterdir()), 10)


def until(true: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


# ---- signals ---------------------------------------------------------------------------------


@pytest.fixture
def handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_asks_a_command_to_end_is_told_alike(name: str) -> None:
    number = getattr(signal, name)
    signal.signal(number, signal.SIG_DFL)
    with exits.Signals.handled():
        pass
    assert signal.getsignal(number) == signal.SIG_DFL
    with pytest.raises(KeyboardInterrupt), exits.Signals.handled() as signals:
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert signals.number == number
    os.kill(os.getpid(), number)  # what is put in order then is not disturbed
    signal.signal(number, signal.SIG_IGN)  # as nohup does
    with exits.Signals.handled() as signals:
        os.kill(os.getpid(), number)
    assert signals.number is None


@pytest.mark.usefixtures("handlers")
def test_a_swallowed_signal_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "RESEND_SECONDS", 0.05)
    said: list[object] = []
    monkeypatch.setattr(sys, "__unraisablehook__", said.append)

    class Closing:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), exits.Signals.handled() as signals:
        Closing()
        time.sleep(5)
    assert not said
    assert signals.number == signal.SIGTERM
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


FOREIGN = """
def called_by_a_library():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
    done.append(True)
"""

OURS = """
def calls():
    called_by_a_library()
    while True:
        pass
"""


@pytest.mark.usefixtures("handlers")
def test_a_signal_waits_for_code_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "OWN_CODE_SECONDS", 60.0)
    done: list[bool] = []
    foreign = {"__name__": "torch.hooks", "os": os, "signal": signal, "time": time, "done": done}
    exec(FOREIGN, foreign)
    ours = {"__name__": "veracity.engine", "called_by_a_library": foreign["called_by_a_library"]}
    exec(OURS, ours)
    with pytest.raises(KeyboardInterrupt), exits.Signals.handled():
        ours["calls"]()  # type: ignore[operator]
    assert done


DEAF = """
import time
from pathlib import Path
def answer(texts):
    Path("begun").touch()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""


def test_a_third_signal_ends_a_command_whose_model_swallows_all(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    words = ["explain", "deaf.py:answer", "good film", "--method", "occlusion"]
    command = subprocess.Popen([sys.executable, "-m", "veracity", *words], cwd=tmp_path)
    try:
        until(lambda: (tmp_path / "begun").exists(), 60)
        for _ in range(2):
            command.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                command.wait(0.5)
        command.terminate()
        assert command.wait(10) == 128 + signal.SIGTERM
    finally:
        command.kill()


WAITING = """
import os, time
from pathlib import Path
labels = ["negative", "positive"]
def answer(texts):
    if os.getppid() != int(Path("above").read_text() or 0):  # in a worker
        Path(f"worker-{os.getpid()}").touch()
        time.sleep(60)
    return [[0.4, 0.6]] * len(texts)
"""


def test_a_terminated_audit_says_how_to_go_on_and_leaves_no_worker(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "above").write_text(str(os.getpid()))
    process = subprocess.Popen(
        [sys.executable, "-m", "veracity", "audit", "waiting.py:answer", "made_reviews(n=60)",
         "--split", "all", "--methods", "occlusion", "--workers", "2", "--out", "r"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: len(list(tmp_path.glob("worker-*"))) == 2, 60)
    process.terminate()
    _, said = process.communicate(timeout=10)
    assert process.returncode == 143
    assert "interrupted" in said and "the same command goes on" in said
    assert "Traceback" not in said
    assert not any(alive(int(p.name.removeprefix("worker-"))) for p in tmp_path.glob("worker-*"))


# ---- exit codes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_to_a_command_that_is_leaving_changes_nothing(name: str) -> None:
    script = (
        "import atexit, os, signal, sys\n"
        f"atexit.register(lambda: os.kill(os.getpid(), signal.{name}))\n"
        "from veracity.cli.main import main\n"
        "sys.argv = ['veracity', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_while_the_verbs_load_has_the_code_of_one() -> None:
    script = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'veracity.cli.auditing':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from veracity.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 130
    assert done.stderr == "veracity: interrupted before anything was begun\n"


def test_the_codes_are_those_of_the_document() -> None:
    table = (ROOT / "docs/how-to/ci.md").read_text("utf-8")
    codes = re.findall(r"^\| (\d+)(?: \+ n)? \|", table, flags=re.MULTILINE)
    named = (0, exits.MISSED_THRESHOLD, exits.BAD_INPUT, exits.BUG, exits.SIGNALLED)
    assert codes == [str(code) for code in named]
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        assert re.search(rf"\b{128 + getattr(signal, name)} \({name}", table)
    assert f"{exits.CLOSED_PIPE} where the reader of a pipe left" in table
    assert "docs/how-to/ci.md" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_pipe_that_nobody_reads_is_no_missed_bar(json: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        said = run_command("data", "describe", "made_reviews(n=60)", *json, cwd=tmp_path, to=pipe)
    assert (said.returncode, said.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", [["list", "explainers"], ["list", "explainers", "--json"]])
def test_a_full_standard_output_is_told(command: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        said = run_command(*command, cwd=tmp_path, to=full)
    assert said.returncode == 2
    assert "could not write to standard output or to the disk: No space left" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("code", ["0", "1", "'done'"])
def test_a_model_that_ends_the_program_is_told(code: str, tmp_path: Path) -> None:
    (tmp_path / "quits.py").write_text(
        f"import sys\nlabels = ['a', 'b']\ndef answer(texts):\n    sys.exit({code})\n"
    )
    said = run_command("explain", "quits.py:answer", "one two", cwd=tmp_path)
    assert said.returncode == 2, said.stderr
    assert said.stderr.startswith("veracity: ") and "Traceback" not in said.stderr


def test_a_fault_keeps_its_code_when_it_is_debugged(tmp_path: Path) -> None:
    said = run_command("data", "describe", "nowhere.csv", "--debug", cwd=tmp_path)
    assert said.returncode == 2
    assert "Traceback" in said.stderr


@pytest.mark.parametrize(
    "deed", ["import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
             "import sys; sys.stderr.close()"],
)  # fmt: skip
def test_what_a_model_leaves_behind_keeps_nobody(deed: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        f"def f(texts):\n    {deed}\n    return [[0.4, 0.6]] * len(texts)\n"
    )
    done = run_command(
        "explain", "m.py:f", "a text", "--method", "occlusion", cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr
