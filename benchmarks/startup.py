"""What starting and a large audit cost, in seconds and peak memory; there is no peer."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from setting import Row

SENTENCES = 10_000
MOST_MEMORY = 2000
GRADIENTS = [
    "gradient",
    "input_x_gradient",
    "integrated_gradients(steps=20)",
    "gradient(norm=l1)",
]


def starting(quick: bool) -> list[dict[str, Any]]:
    commands = {
        "python alone": ["-c", "pass"],
        "import veracity": ["-c", "import veracity"],
        "veracity --help": ["-m", "veracity", "--help"],
    }
    return [
        Row(name, "", _best(command, 1 if quick else 3)).written()
        for name, command in commands.items()
    ]


def _best(command: list[str], times: int) -> float:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        found.append(time.perf_counter() - started)
    return min(found)


def large_audit(quick: bool) -> list[dict[str, Any]]:
    from veracity.auditing.audit import audit
    from veracity.data.loading import load_data
    from veracity.data.splits import split
    from veracity.models.architectures import architectures
    from veracity.models.training import train

    sentences = 200 if quick else SENTENCES
    data = load_data("rotten_tomatoes")
    architecture = architectures.make("text_cnn(embeddings=glove)")
    parts = split(data)
    training = replace(architecture.training, epochs=1 if quick else 2)
    model = train(architecture, parts.train, parts.validation, training=training).model
    again = [replace(data.examples[i % len(data)], id=f"{i}") for i in range(sentences)]
    many = replace(data, examples=tuple(again))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = audit({"text_cnn": model}, many, GRADIENTS, ["erasure"], out=Path(folder) / "r")
    seconds = time.perf_counter() - started
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return [
        Row(
            f"audit of {sentences} sentences, {len(GRADIENTS)} gradient methods, erasure",
            "",
            seconds,
            value=peak / MOST_MEMORY,
            bar=1,
            at_most=True,
            note=f"ratio: peak memory of {peak} MB to {MOST_MEMORY} MB; {found.computed} parts",
            more={"sentences": sentences},
        ).written()
    ]


CASES = {"starting": starting, "large audit": large_audit}
