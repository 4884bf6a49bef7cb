"""Models behind an HTTP address, asked over a real connection."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veracity.core.classifiers import Classifier
from veracity.core.errors import ModelError
from veracity.core.inputs import FloatArray, Text
from veracity.models.adapters.answer_store import GRACE, AnswerStore
from veracity.models.adapters.endpoints import (
    FIRST_DELAY,
    LARGEST_ANSWER,
    LONGEST_DELAY,
    Endpoint,
    retry_after,
)


@dataclass
class Reply:
    """What the server is told to answer; by default it tells the truth."""

    body: Callable[[list[str]], object] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    late: bool = False
    drip: bool = False
    slow_headers: bool = False


class Server(ThreadingHTTPServer):
    """A model that answers by the length of a text, and does as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told: list[Reply] = []
        self.batches: list[list[str]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.times: list[float] = []
        self.connections = 0
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/predict"

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the plan."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.batches.append(asked["texts"])
        self.server.headers_seen.append(dict(self.headers))
        self.server.times.append(time.monotonic())
        reply = self.server.told.pop(0) if self.server.told else Reply()
        if reply.late:
            self.server.over.wait(10)
        body = (reply.body or truth)(asked["texts"])
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        for _ in range(20 if reply.slow_headers else 0):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.server.over.wait(0.1)
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(content)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for i in range(len(content) if reply.drip else 0):
            self.wfile.write(content[i : i + 1])
            self.server.over.wait(0.1)
        self.wfile.write(b"" if reply.drip else content)

    def log_message(self, *_: object) -> None: ...


def rows(texts: list[str]) -> list[list[float]]:
    share = [min(len(text), 9) / 10 for text in texts]
    return [[1 - p, p] for p in share]


def truth(texts: list[str]) -> object:
    return {"probabilities": rows(texts)}


def says(value: object) -> Callable[[list[str]], object]:
    return lambda texts: value


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def inputs(*words: str) -> list[Text]:
    return [Text.of_words([word]) for word in words]


def assert_true(answer: FloatArray, *words: str) -> None:
    np.testing.assert_allclose(answer, rows(list(words)))


def test_batches_duplicates_and_one_connection(server: Server) -> None:
    endpoint = Endpoint(server.url, batch_size=2)
    words = ["a", "bb", "a", "ccc", "bb", "dddd", "eeeee"]
    assert_true(endpoint.probabilities(inputs(*words)), *words)
    assert server.batches == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]
    assert server.connections == 1
    assert endpoint.asked == 5
    assert_true(endpoint.probabilities(inputs("ccc", "f")), "ccc", "f")
    assert server.batches[3:] == [["f"]]
    assert endpoint.labels == ("0", "1")
    assert len(server.batches) == 4, "labels were known from the answers"


def test_odd_texts_arrive_whole(server: Server) -> None:
    words = ["", "\ud800", "很好", 'a "quoted"\nline']
    endpoint = Endpoint(server.url)
    assert_true(endpoint.probabilities([Text(word, ()) for word in words]), *words)
    assert server.texts == words


def test_labels_from_option_answer_or_width(server: Server) -> None:
    named = Reply(lambda texts: {"probabilities": rows(texts), "labels": ["neg", "pos"]})
    assert Endpoint(server.url, ["no", "yes"]).labels == ("no", "yes")
    assert server.batches == []
    server.told = [named]
    endpoint: Classifier = Endpoint(server.url)
    assert isinstance(endpoint, Classifier)
    assert endpoint.labels == ("neg", "pos")
    assert endpoint.probabilities([]).shape == (0, 2)
    assert len(server.batches) == 1
    server.told = [Reply(says([[0.1, 0.2, 0.7]]))]
    assert Endpoint(server.url).labels == ("0", "1", "2")


def test_labels_survive_in_the_cache(server: Server, tmp_path: Path) -> None:
    server.told = [Reply(lambda texts: {"probabilities": rows(texts), "labels": ["neg", "pos"]})]
    Endpoint(server.url, cache=tmp_path / "cache.db").probabilities(inputs("a"))
    assert Endpoint(server.url, cache=tmp_path / "cache.db").labels == ("neg", "pos")
    assert len(server.batches) == 1


def test_labels_in_another_order_are_refused(server: Server) -> None:
    server.told = [Reply(lambda texts: {"probabilities": rows(texts), "labels": ["pos", "neg"]})]
    with pytest.raises(ModelError, match=r"orders its labels pos, neg.*in use is neg, pos"):
        Endpoint(server.url, ["neg", "pos"]).probabilities(inputs("a"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<html>hello</html>", r"did not answer in JSON.*<html>hello"),
        (b"\xff\xfe\xfa", r"did not answer in JSON"),
        (b"[" * 100_000, r"did not answer in JSON"),
        (b"", r"did not answer in JSON"),
        ({"error": "still loading"}, r'expected \{"probabilities".*still loading'),
        (0.5, r'expected \{"probabilities"'),
        ([0.5, 0.5], r"expected one row per input.*2 × 2, got the shape 2$"),
        ([[0.5, 0.5]], r"2 × 2, got the shape 1 × 2"),
        ([[0.2, 0.3, 0.5]] * 2, r"2 × 2, got the shape 2 × 3"),
        ([[0.5, 0.5], [1.0]], r"expected a table of numbers"),
        ([["0.5", "0.5"]] * 2, r"expected a table of numbers"),
        ([[None, 1.0]] * 2, r"expected a table of numbers"),
        (b'{"probabilities": [[0.5, 0.5], [NaN, 1.0]]}', r"row 1 holds a value that is not finite"),
        (b"[[0.5, 0.5], [Infinity, 1.0]]", r"row 1 holds a value that is not finite"),
        ([[0.5, 0.5], [0.5, 0.502]], r"row 1 does not sum to 1: \[0.5, 0.502\]"),
        ([[1.5, -0.5], [0.5, 0.5]], r"row 0 holds a value outside 0 … 1"),
        ({"probabilities": [[0.5, 0.5]] * 2, "labels": ["a"]}, r"two or more different labels"),
        ({"probabilities": [[0.5, 0.5]] * 2, "labels": list("abc")}, r"3 labels and 2 columns"),
    ],
)
def test_wrong_answers_are_named_and_not_cached(
    server: Server, tmp_path: Path, body: object, expected: str
) -> None:
    cache = tmp_path / "cache.db"
    server.told = [Reply(says(body))]
    with Endpoint(server.url, ["neg", "pos"], cache=cache) as endpoint:
        with pytest.raises(ModelError, match=expected) as caught:
            endpoint.probabilities(inputs("a", "bb"))
        assert server.url in str(caught.value)
        assert len(server.batches) == 1, "a wrong answer is not asked for again"
    with sqlite3.connect(cache) as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    database.close()
    assert_true(Endpoint(server.url, cache=cache).probabilities(inputs("a", "bb")), "a", "bb")
    assert server.batches == [["a", "bb"]] * 2


def test_rounded_rows_and_bare_lists_pass(server: Server) -> None:
    server.told = [Reply(says([[0.333, 0.333, 0.333], [1, 0, 0]]))]
    answer = Endpoint(server.url).probabilities(inputs("a", "bb"))
    assert answer.tolist() == [[0.333, 0.333, 0.333], [1.0, 0.0, 0.0]]


def test_too_large_an_answer(server: Server) -> None:
    server.told = [Reply(says(b" " * (LARGEST_ANSWER + 1)))]
    with pytest.raises(ModelError, match="more than 16,777,216 bytes"):
        Endpoint(server.url).probabilities(inputs("a"))


def test_error_500_passes(server: Server) -> None:
    server.told = [Reply(status=500)]
    endpoint = Endpoint(server.url)
    assert_true(endpoint.probabilities(inputs("a")), "a")
    assert server.batches == [["a"]] * 2
    assert endpoint.asked == 1, "asking again does not count twice"


def test_error_500_stays(server: Server) -> None:
    server.told = [Reply(says(b"out of memory"), status=503)] * 2
    endpoint = Endpoint(server.url, retries=1)
    with pytest.raises(ModelError, match=r"in 2 attempts.*status 503: 'out of memory'"):
        endpoint.probabilities(inputs("a"))
    assert len(server.batches) == 2
    assert endpoint.asked == 0, "texts that brought no answer do not use up the budget"


def test_retry_after_is_honoured(server: Server) -> None:
    server.told = [Reply(status=429, headers={"Retry-After": "1"})]
    assert_true(Endpoint(server.url).probabilities(inputs("a")), "a")
    first, second = server.times
    assert second - first >= 1.0 > FIRST_DELAY


def test_retry_after_within_reason() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert retry_after("7", otherwise=0.5) == 7
    assert retry_after("0", otherwise=0.5) == 0
    assert 15 < retry_after(soon, otherwise=0.5) <= 20
    assert retry_after("Mon, 01 Jan 2001 00:00:00 GMT", otherwise=0.5) == 0
    for endless in ("86400", "9" * 5000):
        assert retry_after(endless, otherwise=0.5) == LONGEST_DELAY
    for unreadable in ("", "soon", "-1", "nan", "Mon, 01 Jan 2001 00:00:00"):
        assert retry_after(unreadable, otherwise=0.5) == 0.5


def test_refusals_and_redirects_fail_at_once(server: Server) -> None:
    server.told = [
        Reply(says(b"no such model " + b"x" * 500), status=404),
        Reply(status=307, headers={"Location": "/elsewhere"}),
    ]
    endpoint = Endpoint(server.url)
    with pytest.raises(ModelError, match=r"refused: status 404: 'no such model x+'") as caught:
        endpoint.probabilities(inputs("a"))
    assert str(caught.value).count("x") == 200 - len("no such model ")
    with pytest.raises(ModelError, match=r"redirects elsewhere \(status 307\)"):
        endpoint.probabilities(inputs("a"))
    assert len(server.batches) == 2


def test_late_answers_are_asked_for_again(server: Server) -> None:
    server.told = [Reply(late=True)]
    assert_true(Endpoint(server.url, timeout=0.3).probabilities(inputs("a")), "a")
    assert len(server.batches) == 2
    server.told = [Reply(late=True)]
    with pytest.raises(ModelError, match=r"in 1 attempts \(timeout 0.3 s\).*Timeout") as caught:
        Endpoint(server.url, timeout=0.3, retries=0).probabilities(inputs("a"))
    assert isinstance(caught.value.__cause__, httpx.TimeoutException)


def test_an_answer_that_drips_is_late(server: Server) -> None:
    server.told = [Reply(drip=True)]
    start = time.monotonic()
    with pytest.raises(ModelError, match="came too slowly"):
        Endpoint(server.url, timeout=0.3, retries=0).probabilities(inputs("a"))
    assert time.monotonic() - start < 5


def test_headers_that_drip_are_late(server: Server) -> None:
    server.told = [Reply(slow_headers=True)]
    started = time.monotonic()
    endpoint = Endpoint(server.url, timeout=0.3, retries=0)
    with pytest.raises(ModelError, match=r"timeout 0\.3 s.*came too slowly"):
        endpoint.probabilities(inputs("a"))
    assert time.monotonic() - started < 1.2
    assert_true(endpoint.probabilities(inputs("a")), "a")  # over a new connection


def test_labels_that_change_between_answers_are_refused(server: Server, tmp_path: Path) -> None:
    def named(*labels: str) -> Reply:
        return Reply(lambda texts: {"probabilities": rows(texts), "labels": labels})

    for before, after in ((named("no", "yes"), named("bad", "good")), (named("x", "y"), Reply())):
        server.told = [before, after]
        cache = tmp_path / f"{len(server.batches)}.db"
        endpoint = Endpoint(server.url, ["neg", "pos"], batch_size=1, cache=cache)
        with pytest.raises(ModelError, match="expected the same in every answer"):
            endpoint.probabilities(inputs("a", "bb"))


def test_a_label_that_gives_the_token_away_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.told = [
        Reply(body=lambda texts: {"labels": ["no", "t0k3n-of-mine"], "probabilities": [[1, 0]]})
    ]
    cache = tmp_path / "answers.sqlite"
    endpoint = Endpoint(
        server.url, headers=(("X-Key", "Bearer t0k3n-of-mine"),), cache=cache, retries=0
    )
    with pytest.raises(ModelError, match="one that holds the token"):
        endpoint.probabilities([Text.of_words(["good"])])
    assert b"t0k3n" not in cache.read_bytes()


def test_no_text_is_asked_twice_at_once(server: Server, tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(40)]

    def work(name: int) -> None:
        with Endpoint(server.url, batch_size=4, cache=tmp_path / "cache.db") as endpoint:
            assert_true(endpoint.probabilities(inputs(*words)), *words)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(server.texts) == sorted(words)


def test_a_killed_process_keeps_no_text(server: Server, tmp_path: Path) -> None:
    endpoint = Endpoint(server.url, cache=tmp_path / "cache.db")
    process = os.fork()
    if not process:
        store = AnswerStore.open(tmp_path / "cache.db", endpoint.address)
        store.claim(["a"], width=2, seconds=60, budget=None)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    started = time.monotonic()
    assert_true(endpoint.probabilities(inputs("a")), "a")
    assert time.monotonic() - started < 5


def test_a_text_that_another_machine_lost_is_asked_again(server: Server, tmp_path: Path) -> None:
    with Endpoint(server.url, cache=tmp_path / "cache.db") as endpoint:
        store = AnswerStore.open(tmp_path / "cache.db", endpoint.address)
        store.claim(["a"], width=2, seconds=0.2 - GRACE, budget=None)
        store.connection.execute("UPDATE claims SET host = 'elsewhere'")
        assert_true(endpoint.probabilities(inputs("a")), "a")
        store.connection.close()


NUMBERS = st.one_of(st.floats(), st.integers(), st.sampled_from([0.5, 1, 10**400, 1e308]))
ROWS = st.lists(st.lists(NUMBERS, max_size=3), max_size=3)
JSON = st.recursive(
    st.one_of(NUMBERS, st.none(), st.booleans(), st.text(max_size=4)),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.one_of(
    st.binary(max_size=40),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.builds(
        lambda p, names: json.dumps({"probabilities": p, "labels": names}).encode(), ROWS, JSON
    ),
    st.builds(lambda n: json.dumps(truth(["a", "b"])).encode()[:n], st.integers(0, 50)),
    st.sampled_from([json.dumps(truth(["a", "b"])).encode(e) for e in ("utf-16", "cp500")]),
    st.sampled_from([b"[" * 100_000, b"9" * 10_000]),
)


NOBODY = Endpoint("http://host/predict")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(BODIES)
def test_any_answer_is_probabilities_or_a_sentence(body: bytes) -> None:
    with contextlib.suppress(ModelError):
        labels, found = NOBODY._read(body, count=2)
        assert found.shape == (2, len(labels))
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=2e-3)


def test_nobody_listens(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}", retries=0)
    with pytest.raises(ModelError, match=rf"127.0.0.1:{port} gave no answer.*ConnectError"):
        endpoint.probabilities(inputs("a"))


def test_cache_is_shared_by_objects(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "new folder" / "cache.db"
    first, second = (Endpoint(server.url, cache=cache) for _ in range(2))
    assert_true(first.probabilities(inputs("a", "bb")), "a", "bb")
    assert_true(second.probabilities(inputs("bb", "ccc", "a")), "bb", "ccc", "a")
    assert server.batches == [["a", "bb"], ["ccc"]]
    assert first.asked == second.asked == 3
    Endpoint(server.url + "/other", cache=cache).probabilities(inputs("a"))
    assert server.batches[2:] == [["a"]], "another address is another model"


def test_cache_is_shared_by_processes(server: Server, tmp_path: Path) -> None:
    endpoint = Endpoint(server.url, ["neg", "pos"], cache=tmp_path / "cache.db")
    endpoint.probabilities(inputs("a", "bb"))
    code = (
        "import pickle, sys; e, x = pickle.load(sys.stdin.buffer)\n"
        "print(e.labels, e.probabilities(x).tolist(), e.asked)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((endpoint, inputs("bb", "ccc"))),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().strip() == f"('neg', 'pos') {rows(['bb', 'ccc'])} 3"
    assert server.batches == [["a", "bb"], ["ccc"]]
    endpoint.probabilities(inputs("ccc"))
    assert len(server.batches) == 2


def test_budget_is_shared_by_processes(server: Server, tmp_path: Path) -> None:
    endpoint = Endpoint(server.url, batch_size=3, cache=tmp_path / "cache.db", budget=20)
    words = [[f"{name}{i}" for i in range(16)] for name in "xy"]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs: list[Future[FloatArray]] = [
            pool.submit(endpoint.probabilities, inputs(*each)) for each in words
        ]
        errors = [job.exception() for job in jobs]
    spent = [error for error in errors if error is not None]
    assert spent, "32 texts do not fit into 20"
    assert all(isinstance(error, ModelError) and "budget is 20" in str(error) for error in spent)
    assert endpoint.asked == len(server.texts) == 20
    more = Endpoint(server.url, cache=tmp_path / "cache.db", budget=32)
    flat = words[0] + words[1]
    assert_true(more.probabilities(inputs(*flat)), *flat)
    assert sorted(server.texts) == sorted(flat), "every text was asked exactly once"


def test_budget_and_where_it_continues(server: Server, tmp_path: Path) -> None:
    words = [c * 3 for c in "abcdefg"]
    endpoint = Endpoint(server.url, batch_size=2, cache=tmp_path / "cache.db", budget=5)
    expected = r"asked 5 questions, the budget is 5, and 2 more are needed.*cached.*--budget"
    with pytest.raises(ModelError, match=expected):
        endpoint.probabilities(inputs(*words))
    assert server.batches == [["aaa", "bbb"], ["ccc", "ddd"], ["eee"]]
    assert_true(endpoint.probabilities(inputs(*words[:5])), *words[:5])
    larger = Endpoint(server.url, cache=tmp_path / "cache.db", budget=7)
    assert_true(larger.probabilities(inputs(*words)), *words)
    assert server.batches[3:] == [["fff", "ggg"]]
    with pytest.raises(ModelError, match="budget is 0, and 1 more are needed"):
        Endpoint(server.url, budget=0).probabilities(inputs("a"))


def test_a_failure_loses_no_earlier_batch(server: Server, tmp_path: Path) -> None:
    server.told = [Reply(), Reply(), Reply(status=400)]
    endpoint = Endpoint(server.url, batch_size=1, cache=tmp_path / "cache.db")
    with pytest.raises(ModelError, match="status 400"):
        endpoint.probabilities(inputs("a", "bb", "ccc"))
    again = Endpoint(server.url, cache=tmp_path / "cache.db")
    assert_true(again.probabilities(inputs("a", "bb", "ccc")), "a", "bb", "ccc")
    assert server.batches == [["a"], ["bb"], ["ccc"], ["ccc"]]


def test_a_changed_model_is_noticed(server: Server, tmp_path: Path) -> None:
    Endpoint(server.url, cache=tmp_path / "cache.db").probabilities(inputs("a"))
    server.told = [Reply(says([[0.2, 0.3, 0.5]]))] * 2
    endpoint = Endpoint(server.url, cache=tmp_path / "cache.db")
    with pytest.raises(ModelError, match="1 × 2, got the shape 1 × 3"):
        endpoint.probabilities(inputs("bb"))
    wider = Endpoint(server.url, ["a", "b", "c"], cache=tmp_path / "cache.db")
    assert wider.probabilities(inputs("a")).tolist() == [[0.2, 0.3, 0.5]]


def test_pickling_drops_connections_not_settings(server: Server) -> None:
    endpoint = Endpoint(server.url, headers=(("X-Key", "k3y"),), retries=5, budget=9)
    endpoint.probabilities(inputs("a"))
    copy = pickle.loads(pickle.dumps(endpoint))
    assert (copy.retries, copy.budget, copy.identity()) == (5, 9, endpoint.identity())
    assert_true(copy.probabilities(inputs("a", "bb")), "a", "bb")
    assert server.batches == [["a"], ["a", "bb"]], "without a file the cache stays at home"
    assert [seen["X-Key"] for seen in server.headers_seen] == ["k3y", "k3y"]


def test_closing_and_asking_again(server: Server, tmp_path: Path) -> None:
    endpoint = Endpoint(server.url, cache=tmp_path / "cache.db")
    endpoint.probabilities(inputs("a"))
    endpoint.close()
    endpoint.close()
    assert_true(endpoint.probabilities(inputs("a", "bb")), "a", "bb")
    assert server.batches == [["a"], ["bb"]]


def test_credentials_stay_out_of_sight(server: Server, tmp_path: Path) -> None:
    secrets = ("us3r", "p4ss word", "t0ken", "qu3ry")
    url = server.url.replace("//", "//us3r:p4ss%20word@") + "?key=qu3ry"
    cache = tmp_path / "cache.db"
    endpoint = Endpoint(
        url, retries=0, cache=cache, headers=(("X-Key", "Bearer t0ken"), ("X-Other", "1"))
    )
    echo = ", ".join(secrets).encode()
    server.told = [
        Reply(says(echo), status=403),
        Reply(says(echo), status=500),
        Reply(says(echo)),
        Reply(says({"error": echo.decode()})),
    ]
    seen = [endpoint.identity(), endpoint.name, repr(endpoint)]
    for expected in ("refused", "gave no answer", "did not answer in JSON", "expected"):
        with pytest.raises(ModelError, match=expected) as caught:
            endpoint.probabilities(inputs("a"))
        seen.append(str(caught.value))
    assert "***" in seen[3]
    endpoint.probabilities(inputs("a"))
    endpoint.close()
    seen.append(cache.read_bytes().decode("latin-1"))
    for secret in (*secrets, "p4ss%20word"):
        assert not any(secret in text for text in seen), secret
    assert server.headers_seen[0]["X-Key"] == "Bearer t0ken"
    assert server.headers_seen[0]["Authorization"].startswith("Basic ")
    other = Endpoint(url.replace("qu3ry", "other"))
    assert other.identity() != endpoint.identity(), "a query may choose the model"


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "file:///etc/hosts", "host/x", "http://", "http://h:x/", "http://[::"]
)
def test_only_http(url: str) -> None:
    with pytest.raises(ModelError, match="expected an address such as http://"):
        Endpoint(url)


def test_wrong_settings_are_named() -> None:
    url = "http://127.0.0.1/"
    with pytest.raises(ModelError, match="expected batch_size to be 1 or more, got 0"):
        Endpoint(url, batch_size=0)
    with pytest.raises(ModelError, match="expected retries to be 0 or more"):
        Endpoint(url, retries=-1)
    with pytest.raises(ModelError, match="expected budget to be 0 or more"):
        Endpoint(url, budget=-1)
    with pytest.raises(ModelError, match="expected timeout"):
        Endpoint(url, timeout=0)
    with pytest.raises(ModelError, match="'X Key' cannot be the name"):
        Endpoint(url, headers=(("X Key", "v"),))
    with pytest.raises(ModelError, match="header X-Key cannot be sent") as caught:
        Endpoint(url, headers=(("X-Key", "s3cret\n"),))
    assert "s3cret" not in str(caught.value)


def test_a_cache_that_cannot_be_used(server: Server, tmp_path: Path) -> None:
    broken = tmp_path / "cache.db"
    broken.write_bytes(b"not a database, but long enough to be taken for one" * 50)
    for cache in (broken, tmp_path, broken / "below"):
        endpoint = Endpoint(server.url, cache=cache)
        with pytest.raises(ModelError, match=f"the cache {cache} cannot be used"):
            endpoint.probabilities(inputs("a"))
    assert server.batches == []


def test_store_bears_many_writers(tmp_path: Path) -> None:
    def work(name: int) -> None:
        store = AnswerStore.open(tmp_path / "cache.db", "http://host")
        for i in range(20):
            store.claim([f"{name} {i}"], width=2, seconds=9, budget=None)
            store.remember(("0", "1"), {f"{name} {i}": np.array([0.5, 0.5])})
        store.connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    store = AnswerStore.open(tmp_path / "cache.db", "http://host")
    assert store.asked() == 120
    texts = [f"{name} {i}" for name in range(6) for i in range(20)]
    assert len(store.find(texts, width=2)) == 120
    assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.connection.close()


def test_a_database_of_others_is_not_touched(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "theirs.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as theirs:
        theirs.execute("CREATE TABLE answers (question TEXT)")
        theirs.commit()
    before = file.read_bytes()
    with pytest.raises(ModelError, match="the table answers of somebody else"):
        Endpoint(server.url, cache=file).probabilities([Text.of_words(["good"])])
    assert file.read_bytes() == before and not list(tmp_path.glob("*-wal"))
