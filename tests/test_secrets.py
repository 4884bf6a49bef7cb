"""Passwords and keys are shown to nobody, whichever verb they were given to."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path

import pytest

from commands import run_command
from veracity.core import secrets
from veracity.core.secrets import (
    RedactingStream,
    address_secrets,
    header_secrets,
    redact,
    redact_known,
    register,
    register_arguments,
)

URL = "http://reader:s3cretpw@127.0.0.1:9/predict?token=abcdef123456"
PAIR = base64.b64encode(b"reader:s3cretpw").decode()


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", set())


def test_addresses_lose_what_opens_them() -> None:
    for url in (URL, URL.replace("//", "/")):
        said = redact(f"there is no file {url!r}: expected a path")
        assert "127.0.0.1:9/predict?…" in said
        assert not any(secret in said for secret in ("reader", "s3cretpw", "abcdef"))
    plain = "the endpoint http://host/p?sha256=0123456789ab says x@y.z and a/b"
    assert redact(plain) == plain


def test_what_was_given_is_hidden_wherever_it_is_said() -> None:
    register_arguments(
        ["audit", URL, "--header", "Authorization: Bearer zzzyyyxxx", "--header=X-Key: qqqqwwww"]
    )
    said = f"{PAIR} s3cretpw abcdef123456 zzzyyyxxx qqqqwwww reader Bearer"
    assert redact_known(said) == "*** *** *** *** *** reader Bearer"
    broken = "│ Invalid value 's3cr   │\n│ etpw'.                │"
    assert "etpw" not in redact_known(broken)


def test_texts_keep_their_words() -> None:
    register_arguments(["explain", "m.py:f", "see http://example.org/?q=wonderful for more"])
    assert redact_known("a wonderful film") == "a wonderful film"
    register({"good1"})
    assert redact_known("goodness good1") == "goodness ***"


def test_forms_of_a_secret() -> None:
    assert {PAIR, "s3cretpw", "reader:s3cretpw"} <= address_secrets("reader:s3cretpw@", "")
    assert {"pä ss", "p%C3%A4%20ss", "p\\u00e4 ss"} <= address_secrets("u:p%C3%A4%20ss@", "")
    assert "onlykey" in address_secrets("onlykey@", "")
    assert {PAIR, "s3cretpw"} <= header_secrets(f"Basic {PAIR}")
    assert "Basic" not in header_secrets(f"Basic {PAIR}")


def test_a_discreet_stream() -> None:
    register({"s3cretpw"})
    stream = io.StringIO()
    print("the password is s3cretpw", file=RedactingStream(stream))
    assert stream.getvalue() == "the password is ***\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "m.py:f", URL, "--out", "o"),
        ("explain", "m.py:f", "good", "--method", URL),
        ("report", URL),
        ("compare", URL, URL, "--json"),
        ("list", URL),
        ("explain", "m.py:f", "good", "--seed", URL),
        ("report", URL, "--debug"),
    ],
)
def test_verbs_that_take_no_address_repeat_none(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "m.py").write_text("def f(texts): return [[0.5, 0.5] for _ in texts]")
    out = run_command(*arguments, cwd=tmp_path)
    assert out.returncode == 2
    said = "".join((out.stdout + out.stderr).replace("│", "").split())
    assert not any(secret in said for secret in ("s3cretpw", "abcdef123456", PAIR))


def test_a_locale_of_ascii_reads_words_and_paths(tmp_path: Path) -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}; from veracity.cli.main import main; main()"
    (tmp_path / "d.csv").write_text("text,label\ngood,1\nbad,0\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code, "plant", "d.csv", "--out", "gepflänzt.jsonl", "--json"],
        cwd=tmp_path,
        env={
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONPATH": ":".join(filter(None, sys.path)),
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b'"data": "gepfl\\u00e4nzt.jsonl"' in done.stdout
    assert (tmp_path / "gepflänzt.jsonl").exists()
