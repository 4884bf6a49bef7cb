"""Jobs in this process and in others: what they give, and what they tell while they work."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from veracity.core.progress import Progress
from veracity.engine.executors import Local, cores, report_progress


@dataclass(frozen=True)
class Squares:
    """Tells a piece of news that is not often repeated, and many that are."""

    fails: int | None = None
    pause: float = 0.0

    def __call__(self, job: int) -> int:
        report_progress(Progress(0, 3000, f"begun {job}"))
        for i in range(3000):
            report_progress(Progress(i, 3000, "counting"))
        time.sleep(self.pause)  # what comes behind a result is not heard
        if job == self.fails:
            raise ValueError(f"job {job} fails")
        (done,) = Local().map(abs, [job])  # work within work is that job's
        report_progress(Progress(3000, 3000, f"{done} taken"))
        return done * done


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_heard_wherever_they_work(workers: int) -> None:
    seen: list[tuple[int, str]] = []
    found = Local(workers).map(
        Squares(pause=1.0),
        iter([-1, -2, -3]),
        progress=lambda job, p: seen.append((job, p.doing)),
    )
    assert sorted(found) == [1, 4, 9]
    assert {(job, f"begun {job}") for job in (-1, -2, -3)} <= set(seen)
    assert {(job, f"{-job} taken") for job in (-1, -2, -3)} <= set(seen)
    counts = [job for job, doing in seen if doing == "counting"]
    # what comes too fast from another process is left out
    assert len(counts) == 9000 if workers == 1 else 3 <= len(counts) < 300
    before = len(seen)
    report_progress(Progress(1, 1, "nobody watches"))
    assert len(seen) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_ends_the_rest_and_hangs_nowhere(workers: int) -> None:
    started = time.monotonic()
    with pytest.raises(ValueError, match="job 2 fails"):
        list(Local(workers).map(Squares(fails=2), [1, 2, 3, 4], progress=lambda *_: None))
    assert time.monotonic() - started < 60


def warned_of(job: int) -> int:
    warnings.warn(f"{job} is odd", UserWarning, stacklevel=1)
    return job


@pytest.mark.parametrize("workers", [1, 2])
def test_what_jobs_warn_of_is_said_here(workers: int) -> None:
    with pytest.warns(UserWarning, match="is odd") as said:
        assert sorted(Local(workers).map(warned_of, [1, 3])) == [1, 3]
    assert sorted(str(w.message) for w in said) == ["1 is odd", "3 is odd"]


def warned_then_failed(job: int) -> int:
    warnings.warn("the file is odd", UserWarning, stacklevel=1)
    raise ValueError(f"job {job} fails")


def test_what_was_warned_of_before_a_failure_is_not_lost() -> None:
    with pytest.raises(ValueError, match="fails") as failed:
        list(Local(2).map(warned_then_failed, [1, 3]))
    assert failed.value.__notes__ == ["warned before: the file is odd"]


def test_a_worker_has_its_share_of_the_cores() -> None:
    assert cores() == os.cpu_count()
    workers = min(2, os.cpu_count() or 1)
    assert set(Local(2).map(own_cores, [0, 1, 2])) == {(os.cpu_count() or 1) // workers}


def own_cores(job: int) -> int:
    return cores()


def test_unwatched_jobs_give_the_same() -> None:
    assert sorted(Local(2).map(Squares(), [-1, -2])) == [1, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_taken_only_as_they_can_be_done(workers: int) -> None:
    taken = 0

    def jobs() -> Iterator[int]:
        nonlocal taken
        for job in range(1, 21):
            taken = job
            yield job

    ahead = []
    for done, _ in enumerate(Local(workers).map(abs, jobs()), start=1):
        ahead.append(taken - done)
    assert len(ahead) == taken == 20
    assert max(ahead) <= 2 * workers
