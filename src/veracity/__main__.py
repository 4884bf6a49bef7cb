"""`python -m veracity`, and the command `veracity`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Loads the verbs, during which ^C is answered as it is later, and runs one."""
    try:
        from .cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("veracity: interrupted before anything was begun\n")
        raise SystemExit(128 + signal.SIGINT) from None
    run()


if __name__ == "__main__":
    main()
