"""Ways to damage bytes, JSON and tables. All of them draw from one generator."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from veracity.core.files import CHECKSUM

ON_PURPOSE = 0.1
"""So many records are changed as a person would who means it: without their checksum."""

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 10**400),
    *(0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf")),
    *("", " ", "0", "nan", "text", "\x00", "\ud800", "é\u0301", "‮", "a" * 5000, "../../etc/passwd"),
    *("{}", "[]", "lime(samples=5)", "__class__", "=1+1", "1e999", "好"),
    *([], {}, [[]], [None], [0], ["a", "a"], {"a": {}}, [1, [2, [3]]], {"": 0}, [0] * 1000),
)

TOKENS = (
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b",", b";", b"|"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b":", b"\\", b"\\u", b"\\ud800", b"NaN", b"-Infinity"),
    *(
        b"1e999",
        b"null",
        b"true",
        b"-",
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"PAR1",
        b"\xc3\x28",
        b"\xe2\x80\xa8",
    ),
    *(b"\x85", b"=1+1", b"<script>", b"9" * 400, b"[" * 2000, b"\x7f\xff\xff\xff", b"\xff" * 8),
)


def damaged(rng: random.Random, content: bytes, other: bytes = b"") -> bytes:
    """The bytes after one to three injuries; JSON is mostly hurt as JSON."""
    if content[:1] in b"{[" and content and rng.random() < 0.6:
        try:
            return mutated_json(rng, content)
        except (ValueError, RecursionError):
            pass
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = rng.choice(INJURIES)(rng, found, other)
    return bytes(found)


def _place(rng: random.Random, content: bytearray) -> int:
    """Heads and tails, which hold what is believed, are hit more often than the rest."""
    n = len(content)
    near = min(n, 128)
    return rng.choice((rng.randint(0, n), rng.randint(0, near), n - rng.randint(0, near)))


def _flip(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    for _ in range(rng.choice((1, 1, 4, 64)) if content else 0):
        content[min(_place(rng, content), len(content) - 1)] ^= 1 << rng.randrange(8)
    return content


def _cut(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    return content[: _place(rng, content)]


def _zero(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    start = _place(rng, content)
    end = min(len(content), start + rng.choice((1, 8, 512, len(content))))
    content[start:end] = bytes(end - start)
    return content


def _remove(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    start = _place(rng, content)
    del content[start : start + rng.choice((1, 4, 100))]
    return content


def _repeat(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    start = _place(rng, content)
    piece = content[start : start + rng.choice((1, 16, 1000))]
    content[start:start] = piece * rng.choice((1, 3, 20))
    return content


def _insert(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    start = _place(rng, content)
    content[start:start] = rng.choice(TOKENS)
    return content


def _mix(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    return content[: _place(rng, content)] + bytearray(other)[_place(rng, bytearray(other)) :]


def _swap(rng: random.Random, content: bytearray, other: bytes) -> bytearray:
    return bytearray(other)


Injury = Callable[[random.Random, bytearray, bytes], bytearray]
INJURIES: tuple[Injury, ...] = (
    _flip,
    _flip,
    _cut,
    _zero,
    _remove,
    _repeat,
    _insert,
    _insert,
    _mix,
    _swap,
)


def mutated_json(rng: random.Random, content: bytes) -> bytes:
    """JSON, or lines of it, with one to three values, names or places changed."""
    text = content.decode("utf-8")
    try:
        whole = json.loads(text)
        if isinstance(whole, dict) and rng.random() < ON_PURPOSE:
            whole.pop(CHECKSUM, None)
        return _dumped(mutated(rng, whole))
    except ValueError:
        lines = text.splitlines(keepends=True)
        i = rng.randrange(len(lines))
        lines[i] = _dumped(mutated(rng, json.loads(lines[i]))).decode("utf-8", "replace") + "\n"
        return "".join(lines).encode("utf-8", "replace")


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


def mutated(rng: random.Random, value: Any) -> Any:
    """The value with some of it replaced, removed, renamed, doubled or made of another kind."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _changed(rng, value, depth=0)
    return value


def _changed(rng: random.Random, value: Any, depth: int) -> Any:
    inside = (
        isinstance(value, dict | list) and value and rng.random() < (0.97 if depth < 2 else 0.75)
    )
    if not inside:
        return _other(rng, value)
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    key, chosen = rng.choice(items)
    if isinstance(value, dict):
        return _changed_object(rng, value, key, chosen, depth)
    found = list(value)
    what = rng.random()
    if what < 0.08:
        del found[key]
    elif what < 0.16:
        found.insert(key, chosen)
    elif what < 0.2:
        rng.shuffle(found)
    else:
        found[key] = _changed(rng, chosen, depth + 1)
    return found


def _changed_object(
    rng: random.Random, value: dict[str, Any], key: str, chosen: Any, depth: int
) -> dict[str, Any]:
    what = rng.random()
    if what < 0.1:
        return {k: v for k, v in value.items() if k != key}
    if what < 0.15:
        return {(str(rng.choice(ODD)) if k == key else k): v for k, v in value.items()}
    if what < 0.2:
        return {**value, str(rng.choice(ODD)): rng.choice(ODD)}
    if what < 0.25:
        return {**value, key: value[rng.choice(list(value))]}
    return {**value, key: _changed(rng, chosen, depth + 1)}


def _other(rng: random.Random, value: Any) -> Any:
    what = rng.random()
    if what < 0.15:
        return [value]
    if what < 0.2:
        return {"a": value}
    if what < 0.25:
        return str(value)
    if what < 0.45 and isinstance(value, int | float) and abs(value) < 1e300:
        return rng.choice((-value, value + 1, value - 1, value * 2, value * 1e6, value / 3))
    return rng.choice(ODD)
