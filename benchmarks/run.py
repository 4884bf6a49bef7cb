"""What starting and a large audit cost, in seconds and peak memory; `make bench` runs it."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "latest.json"
GRADIENTS = [
    "gradient",
    "input_x_gradient",
    "integrated_gradients(steps=20)",
    "gradient(norm=l1)",
]


def seconds(*command: str) -> float:
    """The best of three runs of a command."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


def large_audit(sentences: int) -> None:
    """Run in a process of its own, so that its peak memory is its own."""
    from dataclasses import replace

    from veracity.auditing import audit
    from veracity.data import load_data, split
    from veracity.models.architectures import architectures
    from veracity.models.training import train

    data = load_data("rotten_tomatoes")
    architecture = architectures.make("text_cnn(embeddings=glove)")
    parts = split(data)
    training = replace(architecture.training, epochs=2)
    model = train(architecture, parts.train, parts.validation, training=training).model
    again = [replace(data.examples[i % len(data)], id=f"{i}") for i in range(sentences)]
    many = replace(data, examples=tuple(again))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = audit({"text_cnn": model}, many, GRADIENTS, ["erasure"], out=Path(folder) / "r")
        parts_written = found.computed
    report = {
        "case": f"audit of {sentences} sentences, {len(GRADIENTS)} gradient methods, erasure",
        "seconds": round(time.perf_counter() - started, 1),
        "parts": parts_written,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(report))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--large-audit", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.large_audit:
        large_audit(asked.sentences)
        return
    rows: list[dict[str, object]] = [
        {"case": "python alone", "seconds": round(seconds("-c", "pass"), 3)},
        {"case": "import veracity", "seconds": round(seconds("-c", "import veracity"), 3)},
        {"case": "veracity --help", "seconds": round(seconds("-m", "veracity", "--help"), 3)},
    ]
    command = [sys.executable, __file__, "--large-audit", "--sentences", str(asked.sentences)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    rows.append(json.loads(done.stdout))
    for row in rows:
        print("  ".join(f"{k}: {v}" for k, v in row.items()))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
