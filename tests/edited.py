"""Records of ours, changed as a person changes them who means it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veracity.core.files import CHECKSUM


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """What a record holds, to be changed; it is written again without its checksum."""
    content = json.loads(path.read_text("utf-8"))
    content.pop(CHECKSUM, None)
    yield content
    path.write_text(json.dumps(content), "utf-8")
