"""The campaign that `make torture` runs: a small part of it, and that it notices what breaks."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torture.case import Broken, generator, kind_named, tried
from torture.commands import marked, same
from torture.good import data_files
from torture.kinds import damaged
from torture.mutations import mutated
from torture.runner import as_failures, as_table, campaign
from veracity.core.plugins import format_spec, parse_spec

SEED = 3


@pytest.mark.parametrize(("kind", "cases"), [("readers", 150), ("specs", 300)])
@pytest.mark.filterwarnings("ignore")
def test_made_up_input_is_read_or_told(kind: str, cases: int, tmp_path: Path) -> None:
    tried_ = kind_named(kind)
    for number in range(cases):
        work = tmp_path / str(number)
        work.mkdir()
        tried_.case(number, generator(SEED, kind, number), tmp_path, work)


@pytest.mark.filterwarnings("ignore")
def test_damaged_data_are_read_or_told(tmp_path: Path) -> None:
    data_files(tmp_path / "data")
    for number in range(200):
        work = tmp_path / str(number)
        work.mkdir()
        damaged.read_hurt("data", generator(SEED, "damaged", number), tmp_path, work)


_words = st.text("ab_ ,()='\"\\\né好", max_size=8)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inside: st.lists(inside, max_size=3).map(tuple),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(("samples", "width", "kernel", "marks")), _values, max_size=4)
)
@settings(max_examples=100, derandomize=True, deadline=None)
def test_what_a_spec_prints_is_what_it_reads(values: dict[str, Any]) -> None:
    assert parse_spec(format_spec("lime", values)) == ("lime", values)


@pytest.mark.parametrize("word", ["if", "None", "True", "true", "null", "ﬁne"])
def test_a_word_that_python_reads_otherwise_is_quoted(word: str) -> None:
    assert parse_spec(format_spec("lime", {"kernel": word})) == ("lime", {"kernel": word})


@given(st.text(max_size=60))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_any_text_is_a_spec_or_told(text: str) -> None:
    tried(lambda: parse_spec(text))


@pytest.fixture
def made_up() -> Iterator[str]:
    """A kind whose every third case fails, hangs or dies."""

    def case(number: int, rng: random.Random, place: Path, work: Path) -> str:
        assert (place / "ready").exists() and not list(work.iterdir())
        if number == 1:
            raise Broken(f"expected nothing to break, saw {rng.random()}")
        if number == 4:
            time.sleep(30)
        if number == 7:
            os._exit(3)
        if number == 8:
            raise KeyError("gone")
        return "even" if number % 2 == 0 else "odd"

    module: Any = SimpleNamespace(
        ABOUT="",
        SHARE=1.0,
        DEADLINE=0.5,
        CASES=10,
        prepare=lambda p: (p / "ready").touch(),
        case=case,
    )
    sys.modules["torture.kinds.made_up"] = module
    yield "made_up"
    del sys.modules["torture.kinds.made_up"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_hangs_and_deaths_are_failed_cases_and_the_rest_goes_on(made_up: str) -> None:
    (tally,) = campaign([made_up], seconds=60, seed=SEED, jobs=2)
    assert tally.tried == 10 and set(tally.failures) == {1, 4, 7, 8}
    assert (
        tally.failures[1]
        == f"expected nothing to break, saw {generator(SEED, made_up, 1).random()}"
    )
    assert tally.failures[4] == "no end within 0.5 s"
    assert tally.failures[7] == "the process of the case ended with exit code 3"
    assert tally.failures[8].startswith("KeyError")
    assert tally.labels["even"] == 3 and tally.labels["odd"] == 3
    shown = list(as_failures(tally, SEED))
    assert f"  python -m torture --only made_up --case 4 --seed {SEED}" in shown
    assert as_table([tally]).splitlines()[1].split()[:4] == ["made_up", "10", "6", "4"]
    (again,) = campaign([made_up], seconds=60, seed=SEED, jobs=1, cases=[1])
    assert again.failures == {1: tally.failures[1]}


def test_a_result_that_differs_is_noticed_by_how_much(tmp_path: Path) -> None:
    for place in ("whole/audit/out", "out"):
        (tmp_path / place).mkdir(parents=True)
    whole, found = tmp_path / "whole" / "audit" / "out" / "a.json", tmp_path / "out" / "a.json"
    whole.write_text('{"mean": [0.5, 1.0], "seconds": 1.5, "made": {"created": "now"}}')
    found.write_text('{"mean": [0.5, 1.0], "seconds": 2.5, "made": {"created": "then"}}')
    same(tmp_path, "audit", tmp_path / "out")
    found.write_text('{"mean": [0.5, 1.25], "seconds": 2.5, "made": {}}')
    with pytest.raises(Broken, match=r"differs by 0.25 at .mean\[1\]"):
        same(tmp_path, "audit", tmp_path / "out")
    (tmp_path / "out" / "b.json").write_text("{}")
    with pytest.raises(Broken, match=r"left over, such as b.json"):
        same(tmp_path, "audit", tmp_path / "out")


def test_a_process_is_found_by_its_mark() -> None:
    import subprocess

    sleeper = subprocess.Popen(["sleep", "20"], env={**os.environ, "VERACITY_TORTURE": "here-1"})
    try:
        until = time.monotonic() + 10
        # a process that begins is there a moment before what surrounds it
        while not (found := list(marked("here-1"))) and time.monotonic() < until:
            time.sleep(0.01)
        assert found == [sleeper.pid]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert not list(marked("here-1"))


def test_the_same_seed_is_the_same_case() -> None:
    good = {"a": [1, 2, {"b": "c"}], "d": 0.5}
    first, again, other = (mutated(generator(seed, "x", 5), good) for seed in (1, 1, 2))
    assert repr(first) == repr(again) and repr(first) != repr(other)
    assert good == {"a": [1, 2, {"b": "c"}], "d": 0.5}
