"""One HTML file that needs nothing else: the style and the script stand in it, and a policy that
allows only those."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from .. import __version__
from ..core.counts import counted
from ..core.files import check_new, written_whole
from ..core.inputs import Nouns, Text
from ..results.run import Run, slug
from . import showing
from .agreement import AGREE, DISAGREE
from .scoreboard import ARROWS, against_chance

_HERE = Path(__file__).parent

THEME = "theme.js"
BROWSER = (THEME, "report.js")
"""The scripts of pages on which sentences or pictures are chosen."""


OURS = b'name="generator" content="Veracity"'


def write_page(content: str, path: Path) -> Path:
    """The page, whole or not at all; only a page of ours is written over."""
    check_page(path)
    with written_whole(path) as file:
        file.write(content.encode("utf-8", "replace"))
    return path


def check_page(path: Path) -> None:
    """Told before any work is done: nothing but a page of ours is written over."""
    check_new(path, OURS)


def is_newer(page: Path, shown: Path) -> bool:
    """Whether a page is there, and the file that it shows has not been written since."""
    before = shown.stat().st_mtime_ns if shown.exists() else 0
    return page.exists() and page.stat().st_mtime_ns >= before


def pair_page(run: Run, model: str) -> Path:
    """Where the page stands that shows texts beside their twins, if it was written."""
    return run.folder / ("pairs.html" if len(run.models) == 1 else f"pairs-{slug(model)}.html")


def rendered(
    template: str,
    *,
    styles: Sequence[str] = ("report.css",),
    scripts: Sequence[str] = (THEME,),
    filters: Mapping[str, Callable[..., Any]] | None = None,
    nouns: Nouns = Text.nouns,
    pictures: bool = False,
    **context: Any,
) -> str:
    """The template with these files of ours as its style and its script; `pictures` that stand in
    the page itself may be shown."""
    css, js = (
        "\n".join((_HERE / f).read_text("utf-8") for f in files) for files in (styles, scripts)
    )
    templates = environment()
    templates.filters |= filters or {}
    images = "img-src data:; " if pictures else ""
    policy = (
        f"default-src 'none'; {images}script-src '{_digest(js)}'; style-src '{_digest(css)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return templates.get_template(template).render(
        policy=policy,
        css=Markup(css),
        js=Markup(js),
        version=__version__,
        arrows=ARROWS,
        agree=AGREE,
        disagree=DISAGREE,
        nouns=nouns,
        **context,
    )


class _Compiled(BytecodeCache):
    """Templates as this process compiled them, which takes as long as to fill them: a dry run
    writes a page for each audit."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()


def environment() -> Environment:
    """The templates, and the forms in which they show things."""
    templates = Environment(
        loader=FileSystemLoader(_HERE),
        bytecode_cache=_COMPILED,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "number": showing.number,
        "percent": showing.percent,
        "counted": counted,
        "exact_percent": showing.exact_percent,
        "interval": showing.interval,
        "breakable": breakable,
        "correlation": showing.correlation,
        "count": showing.count,
        "duration": showing.duration,
        "words": showing.words,
        "language": showing.language,
        "settings": showing.setting_list,
        "chance": against_chance,
        "heat": heat,
    }
    return templates


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def breakable(name: str) -> Markup:
    """A method's name that may break where its parts meet, and preferably only there."""
    parts = re.split(r"(?<=[_,])|(?=\()", name)
    return Markup("<wbr>").join(parts)


def heat(value: float) -> str:
    """The class of a cell by its correlation, in steps of a fifth on either side of zero."""
    if math.isnan(value):
        return "none"
    return f"{'n' if value < 0 else 'p'}{min(5, math.floor(abs(value) * 5 + 0.5))}"
