"""A model behind an HTTP address: asked in batches, never twice, and never beyond a budget."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

import numpy as np

from ...core.errors import BudgetSpent, ModelError
from ...core.inputs import FloatArray, Input, Text
from ...core.secrets import address_secrets, header_secrets
from .answer_store import AnswerStore
from .callables import PROBE, checked_labels, checked_probabilities, numbered_labels

if TYPE_CHECKING:
    import httpx

EXPECTED = '{"probabilities": [[…], …]} with one row per input, or the bare list of rows'
FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
LARGEST_ANSWER = 16 * 2**20
EXCERPT = 200
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

OFTEN = 0.05
"""Seconds between two looks for answers that another process is asking for."""


class Endpoint:
    """An address that takes `{"texts": […]}`, or `{"images": […]}` as PNG in base64, and answers
    with probabilities, as a classifier.

    Processes that share a cache file share their answers, and no text is asked twice. Only the
    address and the text tell answers apart: where a header chooses the model, give each model its
    own cache. Without a cache file, cache and budget hold for one process each.
    """

    costly = True
    """Questions are paid for: what is done for show alone is left out."""

    def __init__(
        self,
        url: str,
        labels: Sequence[str] | None = None,
        *,
        batch_size: int = 32,
        timeout: float = 30.0,
        retries: int = 3,
        cache: Path | None = None,
        budget: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.url = url
        self.address = _address(url)
        self.name = f"the endpoint {self.address}"
        self.batch_size = _at_least("batch_size", batch_size, 1)
        self.retries = _at_least("retries", retries, 0)
        self.budget = budget if budget is None else _at_least("budget", budget, 0)
        if not 0 < timeout < math.inf:
            raise ModelError(f"expected timeout to be a number of seconds above 0, got {timeout}")
        self.timeout = timeout
        # A worker may stand in another folder.
        self.cache = None if cache is None else Path(cache).resolve()
        self.headers = _checked_headers(headers)
        self.probe: Input = Text.of_words(PROBE.split())
        self._opened: _Session | None = None
        self._labels = None if labels is None else checked_labels(labels, source=self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """What the endpoint calls its labels; one probe finds out if nothing was asked before."""
        if self._known_labels() is None:
            self._rows([self.probe])
        return self._known_labels() or ()

    @labels.setter
    def labels(self, labels: Sequence[str]) -> None:
        self._labels = checked_labels(labels, source=self.name)

    @property
    def asked(self) -> int:
        """Texts sent and answered, by every process and run that shares the cache file."""
        return self._session.store.asked()

    def probabilities(self, inputs: Sequence[Text]) -> FloatArray:  # (inputs, labels)
        """The endpoint's answers, each text asked at most once."""
        if not inputs:
            return np.zeros((0, len(self.labels)))
        rows = self._rows(inputs)
        return np.stack([rows[_name(one)] for one in inputs])

    def probe_with(self, inputs: Sequence[Input]) -> None:
        """What is sent to learn the labels: a text, unless the endpoint is for something else."""
        if inputs and inputs[0].kind != Text.kind:
            self.probe = inputs[0]

    def identity(self) -> str:
        """The address, without what opens it."""
        return f"endpoint {self.address}"

    def close(self) -> None:
        """Let go of connections; the next question opens them again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _session(self) -> _Session:
        # A forked child must not write into its parent's sockets and database.
        if self._opened is None or self._opened.process != os.getpid():
            self._opened = _Session.open(self)
            weakref.finalize(self, self._opened.close)
        return self._opened

    def _known_labels(self) -> tuple[str, ...] | None:
        if self._labels is None:
            self._labels = self._session.store.labels()
        return self._labels

    def _rows(self, inputs: Sequence[Input]) -> dict[str, FloatArray]:
        """A row per distinct text: from the cache, or asked and cached batch by batch. What another
        process is asking is waited for."""
        store = self._session.store
        by_name = {_name(one): one for one in inputs}
        distinct = list(by_name)
        known = self._known_labels()
        rows = store.find(distinct, width=len(known)) if known else {}
        missing = deque(text for text in distinct if text not in rows)
        while missing:
            some = [missing.popleft() for _ in range(min(len(missing), self.batch_size))]
            width = len(self._known_labels() or ())
            claim = store.claim(some, width=width, seconds=self.timeout, budget=self.budget)
            rows |= claim.answered
            missing.extendleft(reversed(claim.denied))
            missing.extend(claim.others)
            if claim.mine:
                rows |= self._ask({name: by_name[name] for name in claim.mine})
            elif claim.denied:
                raise BudgetSpent(
                    f"{self.name} has been asked {store.asked()} questions, the budget is "
                    f"{self.budget}, and {len(missing)} more are needed now. Everything asked so "
                    "far is cached: a larger --budget (budget= in Python) continues from here"
                )
            elif not claim.answered:
                time.sleep(OFTEN)
        return rows

    def _ask(self, inputs: Mapping[str, Input]) -> dict[str, FloatArray]:
        store, texts = self._session.store, list(inputs)
        kind = next(iter(inputs.values())).kind
        try:
            try:
                wires = [one.wire for one in inputs.values()]
                body = self._send(json.dumps({f"{kind}s": wires}).encode(), texts)
            except ModelError:
                store.count(-len(texts))  # no answer came, so none is owed
                raise
            labels, values = self._read(body, count=len(texts))
            rows = dict(zip(texts, values, strict=True))
            store.remember(labels, rows)
            return rows
        finally:
            store.release(texts)

    def _read(self, body: bytes, *, count: int) -> tuple[tuple[str, ...], FloatArray]:
        """The labels and probabilities in an answer, or a sentence that says what is wrong."""
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise ModelError(
                f"{self.name} did not answer in JSON: expected {EXPECTED}, "
                f"got {self._excerpt(body)}"
            ) from None
        parts = answer if isinstance(answer, dict) else {"probabilities": answer}
        if not isinstance(parts.get("probabilities"), list):
            raise ModelError(f"{self.name}: expected {EXPECTED}, got {self._excerpt(body)}")
        known = self._known_labels()
        width = len(known) if known else None
        values = checked_probabilities(
            parts["probabilities"], source=self.name, rows=count, width=width
        )
        if parts.get("labels") is None:
            labels = numbered_labels(values.shape[1])
        else:
            labels = checked_labels(parts["labels"], source=self.name)
            secrets = [s for s in _secrets(self.url, self.headers) if len(s) >= 8]
            if any(s in label for s in secrets for label in labels):
                raise ModelError(
                    f"{self.name}: expected names of labels, got one that holds the token with "
                    "which it was asked. Labels are stored and shown: nothing was kept"
                )
        if len(labels) != values.shape[1]:
            raise ModelError(
                f"{self.name}: expected a label per column, "
                f"got {len(labels)} labels and {values.shape[1]} columns"
            )
        if known and labels != known and sorted(labels) == sorted(known):
            raise ModelError(
                f"{self.name} orders its labels {', '.join(labels)}, but the order in use is "
                f"{', '.join(known)}: give the labels in the endpoint's order; if the model "
                "behind the address has changed, use a new cache"
            )
        before = self._session.store.labels()
        if before is not None and len(labels) == len(before) and labels != before:
            raise ModelError(
                f"{self.name} calls its labels {', '.join(labels)}, and called them "
                f"{', '.join(before)} before: expected the same in every answer. If the model "
                "behind the address has changed, use a new cache"
            )
        return labels, values

    def _send(self, body: bytes, texts: Sequence[str]) -> bytes:
        """The body of a good answer, asking again where a failure may pass."""
        import httpx

        trouble, delay, cause = "", 0.0, None
        for attempt in range(self.retries + 1):
            if attempt:
                self._session.store.extend(texts, seconds=delay + self.timeout)
            time.sleep(delay)
            delay = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY)
            try:
                status, headers, content = self._post(body)
            except httpx.TransportError as error:
                trouble, cause = f"{type(error).__name__} {self._hidden(str(error))}", error
                continue
            except (httpx.RequestError, httpx.InvalidURL) as error:
                raise ModelError(f"{self.name}: {self._hidden(str(error))}") from None
            if 200 <= status < 300:
                return content
            trouble, cause = f"status {status}: {self._excerpt(content)}", None
            if 300 <= status < 400:
                raise ModelError(
                    f"{self.name} redirects elsewhere (status {status}), which is not followed: "
                    "give the final address"
                )
            if status != 429 and status < 500:
                raise ModelError(f"{self.name} refused: {trouble}")
            delay = retry_after(headers.get("retry-after", ""), otherwise=delay)
        raise ModelError(
            f"{self.name} gave no answer in {self.retries + 1} attempts "
            f"(timeout {self.timeout:g} s); the last: {trouble}"
        ) from cause

    def _post(self, body: bytes) -> tuple[int, httpx.Headers, bytes]:
        import httpx

        content = bytearray()
        with self._session.within(self.timeout) as line:
            try:
                with line.client.stream(
                    "POST", self.url, content=body, extensions={"trace": line.note}
                ) as response:
                    for chunk in response.iter_bytes():
                        content += chunk
                        if len(content) > LARGEST_ANSWER:
                            raise ModelError(
                                f"{self.name} answers with more than {LARGEST_ANSWER:,} bytes: "
                                f"expected {EXPECTED}"
                            )
                    return response.status_code, response.headers, bytes(content)
            except httpx.TransportError:
                if line.cut.is_set():
                    raise httpx.ReadTimeout("the answer came too slowly") from None
                raise

    def _excerpt(self, body: bytes) -> str:
        return repr(self._hidden(body.decode("utf-8", "replace"))[:EXCERPT])

    def _hidden(self, message: str) -> str:
        """A message without the credentials that a server may have echoed."""
        for secret in _secrets(self.url, self.headers):
            message = message.replace(secret, "***")
        return message


@dataclass(frozen=True, kw_only=True)
class _Session:
    """What one process holds open."""

    process: int
    client: httpx.Client
    store: AnswerStore
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sockets: weakref.WeakSet[socket.socket] = field(default_factory=weakref.WeakSet)
    cut: threading.Event = field(default_factory=threading.Event)
    """Set when an answer took too long and the line was cut."""

    @classmethod
    def open(cls, endpoint: Endpoint) -> _Session:
        import httpx

        store = AnswerStore.open(endpoint.cache, endpoint.address)
        headers = {"content-type": "application/json", **dict(endpoint.headers)}
        client = httpx.Client(headers=headers, timeout=endpoint.timeout, follow_redirects=False)
        return cls(process=os.getpid(), client=client, store=store)

    @contextmanager
    def within(self, seconds: float) -> Iterator[_Session]:
        """One request at a time, and all of it in time: the client's own limit is per packet, and
        a server may send its headers byte by byte."""
        with self._lock:
            self.cut.clear()
            timer = threading.Timer(seconds, self._cut)
            timer.daemon = True
            timer.start()
            try:
                yield self
            finally:
                timer.cancel()

    def note(self, _: str, info: Mapping[str, Any]) -> None:
        """Hears what the client does: connections that it opens can be cut."""
        opened = getattr(info.get("return_value"), "get_extra_info", lambda _: None)("socket")
        if opened is not None:
            self._sockets.add(opened)

    def _cut(self) -> None:
        self.cut.set()
        for each in list(self._sockets):
            with suppress(OSError):  # closed already
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.client.close()
        self.store.connection.close()


def _name(one: Input) -> str:
    """What an answer is kept under: a text itself, anything larger by its key."""
    return one.wire if isinstance(one, Text) else one.key


def _address(url: str) -> str:
    """The URL without its credentials; the query may hold keys and choose models, so a hash."""
    parts = _split(url)
    if parts is None:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise ModelError(f"expected an address such as http://localhost:8000/predict, got {shown}")
    digest = hashlib.sha256(parts.query.encode()).hexdigest()[:12]
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + (f"?sha256={digest}" if parts.query else "")


def _split(url: str) -> SplitResult | None:
    with suppress(ValueError):  # a port that is no number, a bracket left open, half a character
        url.encode()
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    return None


def _secrets(url: str, headers: tuple[tuple[str, str], ...]) -> list[str]:
    """All that may open the door, longest first so that no tail stays behind."""
    parts = urlsplit(url)
    user = parts.username or ""
    found = address_secrets(parts.netloc.rpartition("@")[0], parts.query) | {user, unquote(user)}
    for _, value in headers:
        found |= header_secrets(value)
    return sorted(found - {""}, key=len, reverse=True)


def _checked_headers(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    for name, value in headers:
        if not HEADER_NAME.fullmatch(name):
            raise ModelError(f"{name!r} cannot be the name of a header: expected such as X-Key")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise ModelError(
                f"the value of the header {name} cannot be sent: expected printable ASCII "
                "without spaces or line ends around it"
            )
    return tuple((name, value) for name, value in headers)


def _at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise ModelError(f"expected {name} to be {least} or more, got {value}")
    return value


def retry_after(header: str, *, otherwise: float) -> float:
    """The seconds a server asks us to wait, as a number or a date, within a bound."""
    seconds = otherwise
    if header.isdecimal():
        seconds = float(header)
    else:
        with suppress(ValueError, TypeError):
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_DELAY)
