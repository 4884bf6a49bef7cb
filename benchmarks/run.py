"""Us and the field's own libraries on the same model, sentences and settings; `make bench` runs it.

Every case runs in a process of its own, so that memory and threads are clean. `--only NAME` runs
the cases whose name holds NAME and keeps the other rows; `--quick` tries everything on few
sentences and writes beside the real results.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import plots
import setting

FILES = (
    "startup",
    "agreement",
    "picture_agreement",
    "masked_samples",
    "picture_samples",
    "against_lime",
    "against_shap",
    "against_captum",
    "against_zennit",
    "against_quantus",
    "against_interpreto",
    "against_ferret",
    "against_highs",
    "growth",
)
NO_MODELS = {"startup", "against_highs"}
"""Files whose cases ask no model of ours."""
HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
"""A folder and not the environment: what these drag in would disturb the tests."""
LONGEST = 1800
"""Seconds after which a case is given up."""


def cases(only: str) -> list[tuple[str, str]]:
    """The file and name of every case that is asked for."""
    found = []
    for file in FILES:
        for name in importlib.import_module(file).CASES:
            if only.lower() in f"{file}: {name}".lower():
                found.append((file, name))
    return found


def run_here(file: str, name: str, quick: bool) -> None:
    """The body of a case's own process: its rows are the last line it prints."""
    setting.all_cores()
    rows = importlib.import_module(file).CASES[name](quick)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps([{**row, "peak_memory_mb": peak, "name": name} for row in rows]))


def run_apart(file: str, name: str, quick: bool) -> list[dict[str, Any]]:
    """A case in a process of its own; one that fails becomes a row that says how."""
    paths = [os.environ.get("VERACITY_BENCH_PEERS", str(PEERS)), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in reversed(paths) if p),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, str(HERE / "run.py"), "--case", file, name]
    try:
        done = subprocess.run(
            command + ["--quick"] * quick,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        late = setting.skipped(name, "", f"not done after {LONGEST} s")
        return [{**late, "name": name, "failed": True}]
    if done.returncode:
        said = done.stderr.strip().splitlines()
        print("\n".join(f"    {line}" for line in said[-12:]), flush=True)
        reason = said[-1] if said else f"exit code {done.returncode}"
        return [{**setting.skipped(name, "", f"failed: {reason}"), "name": name, "failed": True}]
    rows: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose name holds this")
    parser.add_argument("--quick", action="store_true", help="few sentences: does it all run?")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        run_here(asked.case[0], asked.case[1], asked.quick)
        return 0
    chosen = cases(asked.only)
    if asked.list or not chosen:
        print("\n".join(f"{file}: {name}" for file, name in cases("")))
        return 0 if asked.list else 2
    if {file for file, _ in chosen} - NO_MODELS:
        setting.train_all()
    target = setting.RESULTS / ("quick.json" if asked.quick else "latest.json")
    target.parent.mkdir(exist_ok=True)
    rows = _kept(target, chosen) if asked.only else []
    started = time.perf_counter()
    for number, (file, name) in enumerate(chosen, start=1):
        begun = time.perf_counter()
        print(f"[{number}/{len(chosen)}] {file}: {name}", flush=True)
        found = run_apart(file, name, asked.quick)
        for row in found:
            print(f"    {plots.line(row)}", flush=True)
        print(f"    {time.perf_counter() - begun:.0f} s", flush=True)
        rows += found
        # written as it goes: a run that is stopped has not lost what it measured
        target.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\n{plots.table(rows)}\n\n{(time.perf_counter() - started) / 60:.1f} minutes, {target}")
    plots.ratios(rows, target.with_suffix(""))
    return 1 if any(row.get("failed") for row in rows) else 0


def _kept(target: Path, chosen: list[tuple[str, str]]) -> list[dict[str, Any]]:
    if not target.exists():
        return []
    names = {name for _, name in chosen}
    return [row for row in json.loads(target.read_text()) if row.get("name") not in names]


if __name__ == "__main__":
    sys.exit(main())
