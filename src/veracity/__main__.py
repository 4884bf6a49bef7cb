"""`python -m veracity`, and the command `veracity`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Loads the verbs, during which ^C is answered as it is later, and runs one."""
    # torch's threads spin while they wait for one another: where something else runs on the
    # machine, an epoch of a small network takes ten times as long; read when torch is loaded
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from .cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("veracity: interrupted before anything was begun\n")
        raise SystemExit(128 + signal.SIGINT) from None
    run()


if __name__ == "__main__":
    main()
