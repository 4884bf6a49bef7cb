"""What a terminal or a program gets to read: progress, tables, JSON."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.secrets import hidden

if TYPE_CHECKING:
    from rich.console import Console


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)


def stdout() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def print_json(content: Any) -> None:
    text = json.dumps(finite(content), ensure_ascii=False).encode("utf-8", "replace").decode()
    # a stream of another encoding would put question marks in the place of signs
    print(re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text))


def finite(content: Any) -> Any:
    """JSON has neither NaN nor infinity: what is not defined is null."""
    if isinstance(content, dict):
        return {str(k): finite(v) for k, v in content.items()}
    if isinstance(content, list | tuple):
        return [finite(v) for v in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


@contextmanager
def working(console: Console, said: str) -> Iterator[None]:
    """For work that cannot say how far it is: what it does, and on a terminal for how long."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if not console.is_terminal:
        console.print(said, markup=False, soft_wrap=True)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console) as shown:
        shown.add_task(said, total=None)
        yield


class ProgressBars:
    """Progress on standard error; plain lines where that is not a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.console = stderr()
        self.quiet = quiet
        self.said: dict[str, int] = {}
        self.passing: set[str] = set()
        """Steps of an experiment, each with one bar for as long as it takes."""
        self.begun: dict[str, tuple[float, int]] = {}
        self.foretold: set[str] = set()
        self.tasks: dict[str, Any] = {}
        self.bar: Any = None

    def __enter__(self) -> ProgressBars:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        if self.console.is_terminal:
            self.bar = Progress(
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

    def watch(self, what: str, progress: Any) -> None:
        """Takes the progress of a training, of an audit, or of an experiment and its steps."""
        name = type(progress).__name__
        if name == "Within":
            self.passing.add(progress.doing)
            self.watch(progress.doing, progress.news)
        elif name == "Epoch":
            rate = progress.selection_rate
            self.console.print(
                f"{what}: epoch {progress.number + 1}, loss {progress.loss:.3f}, "
                f"training {progress.train_accuracy:.3f}, "
                f"validation {progress.validation_accuracy:.3f}, "
                f"{'' if rate is None else f'words read {rate:.3f}, '}{progress.seconds:.1f} s",
                markup=False,
            )
        elif name == "Pass":
            self.console.print(
                f"{what}: epoch {progress.number + 1}, loss {progress.loss:.3f}; held out: words "
                f"{progress.words:.3f}, polarity {progress.polarity:.3f} "
                f"({progress.polarity_accuracy:.0%} right), pairs {progress.pairs:.3f}, "
                f"{progress.seconds:.1f} s",
                markup=False,
            )
        elif hasattr(progress, "batches"):
            epoch = f"{what}: epoch {progress.epoch + 1}/{progress.epochs}"
            text = f"{epoch}, loss {progress.loss:.3f}"
            if self.bar is not None:  # elsewhere the end of an epoch tells enough
                key = what if what in self.passing else epoch
                self._show(key, progress.batch, progress.batches, text)
                if key == epoch and progress.batch == progress.batches:
                    self._hide(key)
        else:
            if name == "Step":
                self._hide(progress.doing)  # it is done
            seconds = getattr(progress, "seconds_left", None)
            left = None if seconds is None else (seconds, progress.and_more)
            self._show(what, progress.done, progress.total, f"{what}: {progress.doing}", left)

    def _hide(self, key: str) -> None:
        if key in self.tasks:
            self.bar.update(self.tasks[key], visible=False)

    def _show(
        self, key: str, done: int, total: int, text: str, left: tuple[float, bool] | None = None
    ) -> None:
        """`left` are the seconds that the work itself expects; without, what is done tells."""
        started, before = self.begun.setdefault(key, (time.monotonic(), done))
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
        first = bool(soon) and left is not None and not left[1] and key not in self.foretold
        if tenth > self.said.get(key, 0) or first:
            self.said[key] = tenth
            self.foretold |= {key} if first else set()
            told = f", {soon}" if soon else ""
            self.console.print(f"{text} ({done} of {total}{told})", markup=False)


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
            words.append(hidden(word))
    return shlex.join(words)


def without_token(header: str) -> str:
    """A header as it may be shown: one that names a variable says nothing, and of any other the
    value is left to a variable."""
    name, _, value = header.partition(":")
    return header if "$" in value else f"{name}: $TOKEN"
