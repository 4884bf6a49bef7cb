"""How long the rest takes: each kind of work timed by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import WordWeights
from veracity.auditing.audit import audit
from veracity.auditing.pace import Pace
from veracity.cli.showing import ProgressBars, time_left
from veracity.core.progress import Progress, TrainingProgress
from veracity.data.splits import Splits


def left(pace: Pace, now: float) -> tuple[float, bool]:
    seconds, more = pace.left(now)
    return round(seconds, 6), more


def test_kinds_are_timed_by_themselves() -> None:
    pace = Pace(Counter({"quick": 40, "slow": 40}), started=0.0)
    pace.done("quick", 10, 1.0, computed=True)
    assert left(pace, 1.0) == (3.0, True)  # nothing is known of the slow ones
    pace.done("slow", 10, 100.0, computed=True)
    assert left(pace, 101.0) == (3.0 + 300.0, False)
    # half as long on two processes
    assert left(pace, 50.5) == (303.0 / 2, False)


def test_what_was_there_already_tells_nothing() -> None:
    pace = Pace(Counter({"slow": 30}), started=0.0)
    pace.done("slow", 10, 0.5, computed=False)
    assert left(pace, 0.5) == (0, True)
    pace.done("slow", 10, 100.0, computed=True)
    assert left(pace, 100.5) == (100.0, False)


def test_an_audit_tells_what_is_left(bag: WordWeights, made: Splits, tmp_path: Path) -> None:
    told: list[Progress] = []
    data = made.test.select(range(12))
    audit(bag, data, "occlusion", "erasure", out=tmp_path / "r", batch_size=4, watch=told.append)
    assert told[0].more_to_come  # predictions tell nothing of explanations
    assert not told[4].more_to_come
    assert told[-1].seconds_left == 0


@pytest.mark.parametrize(
    ("seconds", "more", "said"),
    [
        (30, False, ""),
        (600, False, "about 10 min left"),
        (600, True, "at least 10 min left"),
        (9000, False, "about 2.5 h left"),
    ],
)
def test_time_as_a_person_says_it(seconds: float, more: bool, said: str) -> None:
    assert time_left(seconds, more) == said


def test_a_log_says_it_once_it_is_known(capsys: Any) -> None:
    def shown(progress: Sequence[Progress]) -> list[str]:
        with ProgressBars() as bars:
            for one in progress:
                bars.watch("audit", one)
        return [line for line in capsys.readouterr().err.splitlines() if line]

    lines = shown(
        [
            Progress(1, 100, "m: predictions", seconds_left=0.0, more_to_come=True),
            Progress(2, 100, "m: lime", seconds_left=7200.0, more_to_come=False),
            Progress(3, 100, "m: shap", seconds_left=7100.0, more_to_come=False),
            Progress(50, 100, "m: shap", seconds_left=3600.0, more_to_come=False),
            Progress(100, 100, "m: shap", seconds_left=0.0, more_to_come=False),
        ]
    )
    assert lines == [
        "audit: m: lime (2 of 100, about 2.0 h left)",
        "audit: m: shap (50 of 100, about 60 min left)",
        "audit: m: shap (100 of 100)",
    ]


def test_a_log_of_many_trainings_is_no_list_of_epochs(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a training that is the work itself every epoch is told; of one among many, a sign of life
    a minute."""
    clock = [0.0]
    monkeypatch.setattr("veracity.cli.showing.time.monotonic", lambda: clock[0])

    def told(step: str) -> int:
        with ProgressBars() as bars:
            for epoch in range(9):
                clock[0] += 25.0
                done = TrainingProgress(
                    epoch + 1, 9, f"epoch {epoch}", epoch=epoch, loss=0.1, result="r", step=step
                )
                bars.watch("train", done)
        return len([line for line in capsys.readouterr().err.splitlines() if line])

    assert (told(""), told("m 1")) == (9, 3)
