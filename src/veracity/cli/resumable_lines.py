"""JSON lines that are kept as they come, in any order, and put in order when all are there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from gzip import GzipFile
from pathlib import Path
from typing import Any

from ..core.errors import RunError
from ..core.files import written_whole


class ResumableLines:
    """A file in the making: what is in it survives a kill, and the same work goes on from there."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.part = path.with_name(f"{path.name}.part")
        self.header = _encoded({"asked": config})
        self.done: dict[int, tuple[int, int]] = {}
        """By place: where in the part its line stands, and how long it is."""

    def open(self) -> None:
        """Takes up what an earlier try left, if it was the same work; a torn end is cut off."""
        if not self.part.exists():
            self._append(self.header, "wb")
            return
        with self.part.open("rb") as file:
            if file.readline() != self.header:
                raise RunError(
                    f"{self.part} holds the beginning of other work. Choose another --out, or "
                    "delete that file"
                )
            whole = file.tell()
            for line in file:
                try:
                    place = int(json.loads(line)["place"])
                except (ValueError, KeyError, TypeError):
                    break
                if not line.endswith(b"\n"):
                    break
                self.done[place] = (whole, len(line))
                whole += len(line)
        with self.part.open("r+b") as file:
            file.truncate(whole)

    def add(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """Lines for these places, on the disk when this returns."""
        start = self.part.stat().st_size
        written = b""
        for place, row in rows:
            line = _encoded({"place": place, **row})
            self.done[place] = (start + len(written), len(line))
            written += line
        self._append(written, "ab")

    def finish(self) -> None:
        """All lines in the order of their places, under the file's own name."""
        with self.part.open("rb") as file, written_whole(self.path) as out, ExitStack() as stack:
            packed = self.path.suffix.lower() == ".gz"
            lines = stack.enter_context(GzipFile("", "wb", fileobj=out, mtime=0)) if packed else out
            for place in sorted(self.done):
                start, length = self.done[place]
                file.seek(start)
                row = json.loads(file.read(length))
                del row["place"]
                lines.write(_encoded(row))
        self.part.unlink()

    def _append(self, content: bytes, mode: str) -> None:
        try:
            self.part.parent.mkdir(parents=True, exist_ok=True)
            with self.part.open(mode) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(
                f"could not write {self.part}: {error.strerror or error}. Nothing written before "
                "is lost: make room, then give the same command again to go on"
            ) from error


def _encoded(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
