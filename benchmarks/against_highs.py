"""The integer programme of pseudo ground truth: ours, and HiGHS left alone with the same programme.

Both sides get the same documents, costs and time. Every measurement is a process of its own, so
that its peak memory is its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from setting import SEED, Row
from veracity.data.loading import load_data
from veracity.data.splits import sampled
from veracity.truths._covering import ROUNDING, highs, solve_cover
from veracity.truths._programme import as_cover
from veracity.truths.integer_program import IntegerProgram

SECONDS = 150.0
SIZES = {
    "about 2,000 documents": (IntegerProgram(rule="max"), None),
    "about 6,000 documents": (IntegerProgram(rule="sum"), 6400),
}
"""The paper's words (rare ones, five to a document) and those of highest TF-IDF in sum."""


def measure(side: str, size: str, seconds: float, limit: int | None) -> dict[str, Any]:
    """The body of a measurement's process."""
    programme, texts = SIZES[size]
    data = sampled(load_data("rotten_tomatoes"), limit or texts, seed=SEED)
    vocabulary, _ = programme.vocabulary(None, data)
    documents, kept = programme.documents(vocabulary, data)
    labels = [data.examples[i].label for i in kept]
    cover, _ = as_cover(documents, labels, len(data.labels), vocabulary=len(vocabulary))
    started, before = time.perf_counter(), time.process_time()
    if side == "ours":
        rng, penalty = np.random.default_rng(SEED), programme.penalty * len(documents)
        answer = solve_cover(cover, seconds=seconds, penalty=penalty, rng=rng, solver=highs)
        assert not answer.bare, "the sentences can all be covered"
        chosen, bound = answer.chosen, answer.bound
    else:
        found, bound, _ = highs(cover, seconds)
        # without an answer nothing is taken: no cost can be told, and the gap is all
        chosen = np.zeros(len(cover.costs), dtype=np.bool_) if found is None else found
    cost = float(cover.costs @ chosen) if cover.fits(chosen) else float("inf")
    return {
        "words": len(vocabulary),
        "documents": len(documents),
        "seconds": time.perf_counter() - started,
        "processor_s": time.process_time() - before,
        "cost": cost,
        "bound": bound,
        "gap": 1.0 if np.isinf(cost) else max(0.0, cost - bound) / cost,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _apart(*asked: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), json.dumps(asked)],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    if done.returncode:
        raise RuntimeError(f"{asked}: {done.stderr.strip()[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def programmes(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for size in SIZES:
        asked = (size, 10.0 if quick else SECONDS, 400 if quick else None)
        ours, peer = _apart("ours", *asked), _apart("peer", *asked)
        said = (
            f"{name} {side['gap']:.2%} (cost {side['cost']:,.1f}, at least {side['bound']:,.1f}, "
            f"{side['processor_s']:.0f} s of processor, {side['peak_memory_mb']} MB)"
            for name, side in (("ours", ours), ("peer", peer))
        )
        rows.append(
            Row(
                f"integer programme, {ours['words']} words × {ours['documents']} documents",
                "scipy.milp",
                ours["seconds"],
                peer["seconds"],
                value=peer["gap"] / ours["gap"] if ours["gap"] > ROUNDING else None,
                note=f"ratio: of gaps, {' against '.join(said)}",
                more={"ours": ours, "plain": peer},
            ).written()
        )
    return rows


CASES = {"integer programme": programmes}

if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
