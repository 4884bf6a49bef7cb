"""`python -m torture --minutes 30 --seed 0 --only kills,workers`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

# one thread each: processes are forked, and small models gain nothing from more
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

KINDS = Path(__file__).parent / "kinds"


def main() -> int:
    names = sorted(p.stem for p in KINDS.glob("[a-z]*.py"))
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long in all (30)")
    parser.add_argument("--seed", type=int, default=0, help="chooses the cases (0)")
    parser.add_argument("--only", default="", help=f"of {', '.join(names)}")
    parser.add_argument("--case", type=int, action="append", help="one case; may be repeated")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at once (2)")
    asked = parser.parse_args()
    chosen = [name.strip() for name in asked.only.split(",") if name.strip()] or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no kind is called {', '.join(unknown)}; there are {', '.join(names)}")
    from .runner import as_detail, as_failures, as_table, campaign

    tallies = []
    for tally in campaign(
        chosen,
        seconds=60 * asked.minutes,
        seed=asked.seed,
        jobs=1 if asked.case else asked.jobs,
        cases=asked.case or (),
    ):
        tallies.append(tally)
        said = f"{tally.tried:,} tried, {len(tally.failures):,} failed"
        print(f"{time.strftime('%H:%M:%S')} {tally.kind}: {said} ({as_detail(tally)})", flush=True)
        print(
            *as_failures(tally, asked.seed), sep="\n", end="\n" * bool(tally.failures), flush=True
        )
    print(f"\n{as_table(tallies)}")
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    # loaded before forking, used only after: every process starts with what it needs
    import torch  # noqa: F401

    import veracity.auditing.audit
    import veracity.cli.main  # noqa: F401

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
