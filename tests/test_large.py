"""What takes minutes: the size at which memory would show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "run.py"


@pytest.mark.slow
def test_ten_thousand_sentences_stay_under_two_gigabytes() -> None:
    """Four gradient methods on real reviews, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--case", "startup", "large audit"],
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
    )
    (told,) = json.loads(done.stdout)
    print(told)
    assert told["sentences"] == 10_000
    assert told["peak_memory_mb"] < 2000
