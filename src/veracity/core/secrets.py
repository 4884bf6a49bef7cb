"""Passwords and keys in addresses and headers are printed and recorded nowhere."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO
from urllib.parse import parse_qsl, quote, unquote

HIDDEN = "***"
SHORTEST = 4
"""What is shorter is hidden where it stands in an address, not wherever its letters occur."""

# one slash, too: a path that is taken from an address keeps no more
_ADDRESS = re.compile(
    r"\b(?P<scheme>[a-z][a-z0-9+.-]*:/{1,2})(?P<credentials>[^\s/?#'\"<>]*@)?"
    r"(?P<place>[^\s?#'\"<>]*)(?P<query>\?(?!sha256=[0-9a-f]{12}\b)[^\s#'\"<>]*)?",
    re.IGNORECASE,
)
_SCHEMES = {"basic", "bearer", "digest", "token", "apikey"}
_WRAPPED = r"(?:[ \t]*[│|]?\n[│|]?[ \t]*)?"
"""What may stand between two letters where a terminal breaks a line, in a box or without."""

_known: set[str] = set()


def register(words: Iterable[str]) -> None:
    """From now on these are replaced wherever they would be printed."""
    _known.update(word for word in words if len(word) >= SHORTEST)


def register_arguments(arguments: Sequence[str]) -> None:
    """What a command line holds: addresses wherever they stand, and headers."""
    for before, word in zip(("", *arguments), arguments, strict=False):
        for found in _ADDRESS.finditer(word):
            whole = found.span() == (0, len(word))
            register(
                address_secrets(found["credentials"] or "", found["query"] or "" if whole else "")
            )
        if before == "--header" or word.startswith("--header="):
            register(header_secrets(word.removeprefix("--header=").partition(":")[2]))


def address_secrets(credentials: str, query: str) -> set[str]:
    """All that may open an address, in the forms in which a server or a library repeats it."""
    user, _, password = credentials.removesuffix("@").partition(":")
    found = {password or user, unquote(password or user)}
    pair = f"{unquote(user)}:{unquote(password)}"
    found |= {credentials.removesuffix("@"), pair, *_encoded(pair)} if credentials else set()
    query = query.removeprefix("?")
    return _forms(found | {query} | {value for _, value in parse_qsl(query)})


def header_secrets(value: str) -> set[str]:
    """A header's value and its words, save the names of schemes."""
    words = {w for w in value.split() if w.lower() not in _SCHEMES and not w.startswith("$")}
    for word in list(words):
        try:
            decoded = base64.b64decode(word, validate=True).decode("utf-8")
        except ValueError:
            continue
        if decoded.isprintable():
            words |= {decoded, decoded.partition(":")[2]}
    return _forms(words)


def _encoded(text: str) -> set[str]:
    data = text.encode("utf-8", "surrogateescape")
    both = (base64.b64encode(data), base64.urlsafe_b64encode(data))
    return {form for each in both for form in (each.decode(), each.decode().rstrip("="))}


def _forms(secrets: set[str]) -> set[str]:
    """Also as an address, JSON or Python spell them, and in base64."""
    found = set(secrets)
    for secret in filter(None, secrets):
        safe = secret.encode("utf-8", "replace").decode()
        found |= {quote(safe, safe=""), json.dumps(safe)[1:-1], repr(secret)[1:-1]}
        found |= _encoded(secret)
    return found - {""}


def redact(message: str) -> str:
    """A message without what was kept and without what addresses carry."""
    return redact_known(_ADDRESS.sub(_place, message))


def _place(found: re.Match[str]) -> str:
    return f"{found['scheme']}{found['place']}{'?…' if found['query'] else ''}"


def redact_known(text: str) -> str:
    """Text without what was kept; texts that people gave us stay as they are otherwise."""
    for secret in sorted(_known, key=len, reverse=True):  # so that no tail stays behind
        pattern = _WRAPPED.join(map(re.escape, secret))
        if len(secret) < 2 * SHORTEST:  # may be a part of words
            pattern = rf"(?<!\w){pattern}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return text


class RedactingStream:
    """A stream that prints no secret, whoever writes to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(redact_known(text) if _known else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
