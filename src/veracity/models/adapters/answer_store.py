"""Answers that were paid for, kept in a file that several processes share."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from ...core.errors import ModelError
from ...core.inputs import FloatArray

TABLES = """
CREATE TABLE IF NOT EXISTS endpoints (
    address TEXT PRIMARY KEY, asked INTEGER NOT NULL DEFAULT 0, labels TEXT
);
CREATE TABLE IF NOT EXISTS answers (
    address TEXT, text BLOB, probabilities BLOB NOT NULL, PRIMARY KEY (address, text)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    address TEXT, text BLOB, host TEXT, process INTEGER, until REAL, PRIMARY KEY (address, text)
) WITHOUT ROWID;
"""

HERE = "WHERE address = ? AND text = ?"
HOST = platform.node()
BUSY = 20.0
"""Seconds to wait for a store that another process holds."""
GRACE = 5.0
"""Seconds by which a claim outlasts the answer that it waits for."""


@dataclass(frozen=True)
class Reservation:
    """Some texts, by what is to become of them."""

    mine: list[str] = field(default_factory=list)
    """To be asked now, by nobody else."""
    others: list[str] = field(default_factory=list)
    """Being asked by another process."""
    answered: dict[str, FloatArray] = field(default_factory=dict)
    """By another process, in the meantime."""
    denied: list[str] = field(default_factory=list)
    """Beyond the budget."""


@dataclass(frozen=True)
class AnswerStore:
    """What an address has answered and how much it was asked, safe for several processes."""

    connection: sqlite3.Connection
    address: str
    file: Path | None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def open(cls, file: Path | None, address: str) -> AnswerStore:
        """The store in a file, or one that lives as long as the process."""
        with _readable(file):
            if file is not None:
                _check_store(file)
                file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                file or ":memory:", timeout=BUSY, isolation_level=None, check_same_thread=False
            )
            try:
                # Two processes that switch at once: one is told it is locked, both get the mode.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")
                connection.execute(
                    "INSERT OR IGNORE INTO endpoints (address) VALUES (?)", (address,)
                )
            except BaseException:
                connection.close()
                raise
        return cls(connection, address, file)

    def asked(self) -> int:
        """Texts sent to the address."""
        return int(self._endpoint("asked"))

    def labels(self) -> tuple[str, ...] | None:
        """The labels of the first answer, if there was one."""
        text = self._endpoint("labels")
        return None if text is None else tuple(json.loads(text))

    def find(self, texts: Sequence[str], *, width: int) -> dict[str, FloatArray]:
        """The rows known of these texts."""
        query = f"SELECT probabilities FROM answers {HERE}"
        rows = {}
        with self._lock, _readable(self.file):
            for text in texts:
                hit = self.connection.execute(query, (self.address, _key(text))).fetchone()
                if hit is not None and len(hit[0]) == 8 * width:
                    rows[text] = np.frombuffer(hit[0], dtype="<f8")
        return rows

    def remember(self, labels: tuple[str, ...], rows: Mapping[str, FloatArray]) -> None:
        """Keep the answers to a batch."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE endpoints SET labels = coalesce(labels, ?) WHERE address = ?",
                (json.dumps(labels), self.address),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                [(self.address, _key(t), row.astype("<f8").tobytes()) for t, row in rows.items()],
            )

    def claim(
        self, texts: Sequence[str], *, width: int, seconds: float, budget: int | None
    ) -> Reservation:
        """Who asks which of these texts. What is claimed counts as asked from now on, and is left
        to this process for so long, or until it is gone."""
        with self._transaction() as connection:
            # somebody else's may have been the first answer of all
            width = width or len(self.labels() or ())
            found = Reservation(answered=self.find(texts, width=width))
            left = math.inf if budget is None else budget - self.asked()
            for text in texts:
                if text in found.answered:
                    continue
                if self._claimed(text):
                    found.others.append(text)
                elif len(found.mine) >= left:
                    found.denied.append(text)
                else:
                    found.mine.append(text)
            self.count(len(found.mine))
            until = time.time() + seconds + GRACE
            connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)",
                [(self.address, _key(t), HOST, os.getpid(), until) for t in found.mine],
            )
        return found

    def _claimed(self, text: str) -> bool:
        """Whether somebody who still lives asks for it: a killed process keeps no text."""
        query = f"SELECT host, process, until FROM claims {HERE}"
        row = self.connection.execute(query, (self.address, _key(text))).fetchone()
        if row is None:
            return False
        host, process, until = row
        return bool(until > time.time() and (host != HOST or _lives(process)))

    def extend(self, texts: Sequence[str], *, seconds: float) -> None:
        """Keep a claim while a server makes us wait."""
        with self._transaction() as connection:
            connection.executemany(
                f"UPDATE claims SET until = ? {HERE}",
                [(time.time() + seconds + GRACE, self.address, _key(text)) for text in texts],
            )

    def release(self, texts: Sequence[str]) -> None:
        """Give claims up: answered or not, nobody is asking any more."""
        with self._transaction() as connection:
            connection.executemany(
                f"DELETE FROM claims {HERE}", [(self.address, _key(text)) for text in texts]
            )

    def count(self, more: int) -> None:
        """Texts sent, or taken back because no answer came."""
        with self._lock, _readable(self.file):
            self.connection.execute(
                "UPDATE endpoints SET asked = asked + ? WHERE address = ?", (more, self.address)
            )

    def _endpoint(self, column: str) -> Any:
        query = f"SELECT {column} FROM endpoints WHERE address = ?"
        with self._lock, _readable(self.file):
            return self.connection.execute(query, (self.address,)).fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _readable(self.file), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield self.connection


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of each table; an earlier version had fewer."""
    query = (
        "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c "
        "WHERE t.type = 'table'"
    )
    found: dict[str, set[str]] = {}
    for table, column in database.execute(query):
        found.setdefault(table, set()).add(column)
    return found


def _check_store(file: Path) -> None:
    """Somebody else's database is not written to: what there is must hold our tables only."""
    if file.is_symlink() and not file.exists():
        raise OSError("it is a link that leads nowhere")
    if not file.exists():
        return
    # what is immutable is read without leaving a trace
    seen = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1", uri=True)
    with closing(seen), closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(TABLES)
        known, held = _columns(ours), _columns(seen)
        other = [name for name in held if not held[name] <= known.get(name, set())]
    if other:
        raise OSError(f"it holds the table {other[0]} of somebody else")


@contextmanager
def _readable(file: Path | None) -> Iterator[None]:
    """A database's complaint as a sentence that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise ModelError(
            f"the cache {file} cannot be used ({error}): expected a file that veracity wrote, "
            "or the path of a new one in a folder that can be written"
        ) from error


def _lives(process: int) -> bool:
    """Whether a process of this machine is there; where nobody can tell, claims run out."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
