"""What a terminal or a program gets to read: progress, tables, JSON."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.files import plain
from ..core.progress import Progress, TrainingProgress, Watcher
from ..core.secrets import redact

if TYPE_CHECKING:
    from rich.console import Console


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)


def stdout() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def print_json(content: Any) -> None:
    text = json.dumps(plain(content), ensure_ascii=False).encode("utf-8", "replace").decode()
    # a stream of another encoding would put question marks in the place of signs
    print(re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a verb has found, for a program and for a person."""

    json: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    notes: Sequence[str] = ()
    """Lines on standard error."""
    show: Callable[[Console], None] | None = None
    """Prints what is more than lines."""
    written: Sequence[tuple[str, Path]] = ()
    """What was written, told by its title behind what is shown of it."""
    lines: Sequence[object] = ()
    """Lines on standard output, most often the path of what was written."""
    exit_code: int = 0

    def print(self, as_json: bool) -> None:
        if as_json:
            print_json(self.json() if callable(self.json) else self.json)
            return
        for note in self.notes:
            stderr().print(note, markup=False, soft_wrap=True)
        if self.show is not None:
            self.show(stdout())
        for title, path in self.written:
            stdout().print(f"{title}: {path}", markup=False, soft_wrap=True)
        for line in self.lines:
            print(line)


@contextmanager
def working(console: Console, said: str) -> Iterator[None]:
    """For work that cannot say how far it is: what it does, and on a terminal for how long."""
    from rich.progress import Progress as Display
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    if not console.is_terminal:
        console.print(said, markup=False, soft_wrap=True)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Display(*columns, console=console) as shown:
        shown.add_task(said, total=None)
        yield


BETWEEN_EPOCHS = 60.0
"""Seconds without a line, after which the end of an epoch is told of a step of a longer work."""


class ProgressBars:
    """Progress on standard error; plain lines where that is not a terminal."""

    def __init__(self) -> None:
        self.console = stderr()
        self.tenths: dict[str, int] = {}
        self.started: dict[str, tuple[float, int]] = {}
        self.forecast: set[str] = set()
        self.tasks: dict[str, Any] = {}
        self.bar: Any = None
        self.spoken = -math.inf

    def __enter__(self) -> ProgressBars:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Display

        if self.console.is_terminal:
            self.bar = Display(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", markup=False),
                console=self.console,
            )
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def of(self, what: str) -> Watcher:
        """Shows the progress of this."""
        return partial(self.watch, what)

    def watch(self, what: str, progress: Progress) -> None:
        """The whole has one bar, and each step of it as long as it takes; so has each epoch."""
        name = progress.step or what
        if not isinstance(progress, TrainingProgress):
            self._hide(progress.doing)  # a step that is done
            seconds = progress.seconds_left
            left = None if seconds is None else (seconds, progress.more_to_come)
            self._show(name, progress.done, progress.total, f"{name}: {progress.doing}", left)
        elif progress.result is not None:
            # of one training among many, a sign of life is enough
            if not progress.step or time.monotonic() - self.spoken >= BETWEEN_EPOCHS:
                self._say(f"{name}: {progress.doing}")
        elif self.bar is not None:  # elsewhere the end of an epoch tells enough
            epoch = f"{name}: {progress.doing}"
            key = progress.step or epoch
            self._show(key, progress.done, progress.total, f"{epoch}, loss {progress.loss:.3f}")
            if key == epoch and progress.done == progress.total:
                self._hide(key)

    def _hide(self, key: str) -> None:
        if key in self.tasks:
            self.bar.update(self.tasks[key], visible=False)

    def _show(
        self, key: str, done: int, total: int, text: str, left: tuple[float, bool] | None = None
    ) -> None:
        """`left` are the seconds that the work itself expects; without, what is done tells."""
        started, before = self.started.setdefault(key, (time.monotonic(), done))
        if left is None and done > before:
            left = (time.monotonic() - started) / (done - before) * (total - done), False
        soon = time_left(*left) if left is not None and done < total else ""
        if self.bar is not None:
            if key not in self.tasks:
                self.tasks[key] = self.bar.add_task(text, total=total, left="")
            self.bar.update(
                self.tasks[key], completed=done, total=total, description=text, left=soon
            )
            return
        tenth = 10 * done // max(total, 1)
        # as soon as it is known how long it takes, who watches a log wants to know it
        first = bool(soon) and left is not None and not left[1] and key not in self.forecast
        if tenth > self.tenths.get(key, 0) or first:
            self.tenths[key] = tenth
            self.forecast |= {key} if first else set()
            rest = f", {soon}" if soon else ""
            self._say(f"{text} ({done} of {total}{rest})")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False)
        self.spoken = time.monotonic()


def time_left(seconds: float, and_more: bool = False) -> str:
    """As a person would say it; nothing where it is soon over."""
    if seconds < 60:
        return ""
    how = "at least" if and_more else "about"
    if seconds < 5400:
        return f"{how} {seconds / 60:.0f} min left"
    return f"{how} {seconds / 3600:.1f} h left"


def typed_command() -> str:
    """What was typed, for a report that says how to repeat it; empty where this is no command."""
    import shlex

    if Path(sys.argv[0]).stem not in ("veracity", "__main__"):
        return ""
    words = ["veracity"]
    for before, word in zip(sys.argv, sys.argv[1:], strict=False):
        if before == "--header":
            words.append(without_token(word))
        elif word.startswith("--header="):
            words.append(f"--header={without_token(word.removeprefix('--header='))}")
        else:
            words.append(redact(word))
    return shlex.join(words)


def without_token(header: str) -> str:
    """A header as it may be shown: one that names a variable says nothing, and of any other the
    value is left to a variable."""
    name, _, value = header.partition(":")
    return header if "$" in value else f"{name}: $TOKEN"
