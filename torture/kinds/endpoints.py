"""Servers that are slow, wrong or hostile: a sentence in time, and no text asked twice."""

from __future__ import annotations

import functools
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..case import Broken, bounded_memory, tried
from ..commands import done
from ..mutations import ODD, damaged, mutated

ABOUT = "hostile servers on the loopback"
SHARE = 2.0
DEADLINE = 60.0

TIMEOUT = 0.25
TRIES = 2
IN_TIME = TRIES * TIMEOUT + 3.0
BY_COMMAND = 0.002
LABELS = ["negative", "positive"]


class Server(ThreadingHTTPServer):
    """Answers by the length of a text, unless it is told otherwise."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave: Callable[[Handler, list[str], bytes], None] | None = None
        self.answered: Counter[str] = Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/predict"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        texts = json.loads(body)["texts"]
        good = json.dumps({"probabilities": _rows(texts), "labels": LABELS}).encode()
        if self.server.behave is None:
            self.answer(good)
            self.server.answered.update(texts)
        else:
            self.server.behave(self, texts, good)

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""


def _rows(texts: list[str]) -> list[list[float]]:
    return [[p, 1 - p] for p in (1 / (1 + len(text)) for text in texts)]


Behaviour = Callable[[random.Random, Handler, list[str], bytes], None]


def _slow_headers(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    for letter in b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 200:
        to.wfile.write(bytes([letter]))
        to.wfile.flush()
        time.sleep(0.03)


def _drip(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    to.send_response(200)
    to.send_header("content-length", str(len(good) + 1000))
    to.end_headers()
    for letter in good + b" " * 1000:
        to.wfile.write(bytes([letter]))
        to.wfile.flush()
        time.sleep(0.03)


def _silent(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    time.sleep(IN_TIME + 1)


def _huge(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    to.send_response(200)
    to.send_header("transfer-encoding", "chunked")
    to.end_headers()
    for _ in range(400):
        to.wfile.write(b"100000\r\n" + b" " * 2**20 + b"\r\n")


def _bomb(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    import gzip

    to.answer(_packed_bomb(gzip), content_encoding="gzip")


@functools.cache
def _packed_bomb(gzip: Any) -> bytes:
    packed: bytes = gzip.compress(b" " * 2**29, 1)
    return packed


def _reset(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    linger = struct.pack("ii", 1, 0)
    to.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    if rng.random() < 0.5:
        to.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{")
    to.close_connection = True
    to.connection.close()


def _status(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    status = rng.choice(
        (100, 199, 201, 204, 301, 302, 307, 308, 400, 401, 404, 418, 429, 500, 503, 599)
    )
    headers = {"location": rng.choice(("/elsewhere", "http://[", "file:///etc/passwd", "\xff"))}
    after = rng.choice(("0", "-1", "nan", "1e9", "Wed, 21 Oct 9999 07:28:00 GMT", "x" * 5000, "٣"))
    body = b"" if status in (100, 199, 204) else rng.choice((good, b"\xff\xfe<b>no</b>", b""))
    to.answer(body, status, **headers, retry_after=after.encode().decode("latin-1"))


def _garbage(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\ncontent-type: application/json\r\n\r\n"
    to.wfile.write(damaged(rng, head + good))
    to.close_connection = True


def _mutated(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    to.answer(json.dumps(mutated(rng, json.loads(good))).encode())


def _damaged(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    body = damaged(rng, good, rng.choice((b"<html>", b"\xff\xfe\x00", b"[" * 100_000)))
    encoding = rng.choice(("", "", "", "gzip", "deflate", "br", "x"))
    to.answer(body, 200, content_encoding=encoding or "identity")


def _odd(rng: random.Random, to: Handler, texts: list[str], good: bytes) -> None:
    rows = [[rng.choice(ODD) for _ in range(rng.choice((1, 2, 2, 2, 3)))] for _ in texts]
    labels = [rng.choice(ODD) for _ in range(rng.choice((0, 2, 2, 3)))]
    shape = rng.choice(({"probabilities": rows, "labels": labels}, {"probabilities": rows}, rows))
    to.answer(json.dumps(shape).encode())


FAST: tuple[Behaviour, ...] = (*4 * (_mutated, _damaged, _odd), _status, _reset, _garbage)
SLOW: tuple[Behaviour, ...] = (_slow_headers, _drip, _silent, _huge, _bomb)


@functools.cache
def _server() -> Server:
    """One for each process; what waits between attempts is made short for it."""
    from veracity.models.adapters import endpoints

    endpoints.FIRST_DELAY, endpoints.LONGEST_DELAY = 0.01, 0.05
    return Server()


def prepare(place: Path) -> None:
    """Nothing to write."""


def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
    server = _server()
    server.answered.clear()
    if rng.random() < BY_COMMAND:
        return _command(rng, server, work)
    if rng.random() < 0.03:
        return _changing_labels(rng, server, work)
    behaviour = rng.choice(SLOW) if rng.random() < 0.004 else rng.choice(FAST)
    # some answers are good, so that there is something not to be asked twice
    whims = random.Random(rng.random())

    def behave(to: Handler, texts: list[str], good: bytes) -> None:
        if whims.random() < 0.4:
            to.answer(good)
            server.answered.update(texts)
        else:
            behaviour(whims, to, texts, good)

    _asked(number, rng, server, behave, work / "cache")
    server.behave = None
    return behaviour.__name__.strip("_").replace("_", " ")


def _asked(number: int, rng: random.Random, server: Server, behave: Any, cache: Path) -> None:
    from veracity.data.words import read_text

    server.behave = behave
    texts = [read_text(f"text {i} of case {number}") for i in range(rng.choice((1, 3, 9)))]
    # to set up a connection takes longer than most cases: most share one
    own = rng.random() < 0.1
    endpoint = _endpoint(server.url, rng.choice((None, LABELS)), cache) if own else _shared()
    for _ in range(2):
        started = time.monotonic()
        with bounded_memory():
            tried(lambda: endpoint.probabilities(texts))
        # batches follow each other; each has its time
        if time.monotonic() - started > IN_TIME * (1 + len(texts) // 3):
            raise Broken(f"no answer or sentence within {IN_TIME:g} s a batch")
    if own:
        endpoint.close()


def _endpoint(url: str, labels: list[str] | None, cache: Path | None = None) -> Any:
    from veracity.models.adapters.endpoints import Endpoint

    return Endpoint(url, labels, batch_size=3, timeout=TIMEOUT, retries=TRIES - 1, cache=cache)


@functools.cache
def _shared() -> Any:
    return _endpoint(_server().url, LABELS)


def _changing_labels(rng: random.Random, server: Server, work: Path) -> str:
    """The second answer has other labels, or the same in another order: an error."""
    from veracity.core.errors import ModelError
    from veracity.data.words import read_text
    from veracity.models.adapters.endpoints import Endpoint

    other = rng.choice((LABELS[::-1], ["c", "d"], ["negative", "c"], ["0", "1"]))
    count = 0

    def behave(to: Handler, texts: list[str], good: bytes) -> None:
        nonlocal count
        count += 1
        content = json.loads(good)
        to.answer(json.dumps({**content, "labels": other if count > 1 else LABELS}).encode())

    server.behave = behave
    with Endpoint(server.url, batch_size=1, timeout=TIMEOUT, retries=0) as endpoint:
        try:
            endpoint.probabilities([read_text("one"), read_text("two")])
        except ModelError:
            return "changing labels"
        finally:
            server.behave = None
    raise Broken(f"labels changed to {', '.join(other)} and nobody was told")


def _command(rng: random.Random, server: Server, work: Path) -> str:
    """A whole audit by two workers: no text is asked twice."""
    server.behave = None
    words = ("audit", server.url, "made_reviews(n=40)", "--split", "all", "--limit", "12")
    more = (
        "--methods",
        "occlusion, lime(samples=40)",
        "--workers",
        rng.choice("12"),
        "--out",
        "out",
    )
    done([*words, *more], work).expect(0)
    twice = {text: n for text, n in server.answered.items() if n > 1}
    if twice:
        raise Broken(f"{len(twice)} of {len(server.answered)} texts were asked more than once")
    return "audit by command"
