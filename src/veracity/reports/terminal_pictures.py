"""Pictures in terminals that can show them, told by what their environment says."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from rich.console import Console

Protocol = Literal["iterm2", "kitty", "sixel", ""]

SIXEL = ("mlterm", "foot", "yaft", "contour")
"""Terminals that are known to draw sixels, by the beginning of TERM."""

CHUNK = 4096
"""A kitty takes so many characters at once."""

COLOURS = 64
"""Of a picture in sixels."""


def picture_protocol(environment: Mapping[str, str]) -> Protocol:
    """How this terminal is sent pictures; empty where it is not known to show any. Inside tmux or
    screen nothing is sent: these would not pass it on."""
    term = environment.get("TERM", "")
    if environment.get("TMUX") or term.startswith(("screen", "tmux")):
        return ""
    if environment.get("KITTY_WINDOW_ID") or "kitty" in term or term == "xterm-ghostty":
        return "kitty"
    program = environment.get("TERM_PROGRAM", "")
    if program in ("iTerm.app", "WezTerm") or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return "sixel" if "sixel" in term or term.startswith(SIXEL) else ""


def show_picture(console: Console, made: Callable[[], Any]) -> bool:
    """One of Pillow's pictures, made and shown only where it can be."""
    how = picture_protocol(os.environ) if console.is_terminal and not console.no_color else ""
    if not how:
        return False
    console.file.write("".join(sent(made(), how)) + "\n")
    return True


def sent(picture: Any, how: Protocol) -> Iterator[str]:
    """What a terminal is sent to show one of Pillow's pictures."""
    if how == "sixel":
        yield from _sixels(picture)
        return
    file = io.BytesIO()
    picture.save(file, "PNG")
    content = base64.b64encode(file.getvalue()).decode()
    if how == "iterm2":
        yield f"\x1b]1337;File=inline=1;size={len(file.getvalue())}:{content}\x07"
        return
    chunks = [content[i : i + CHUNK] for i in range(0, len(content), CHUNK)]
    for i, chunk in enumerate(chunks):
        first = "a=T,f=100," if i == 0 else ""
        yield f"\x1b_G{first}m={int(i + 1 < len(chunks))};{chunk}\x1b\\"


def _sixels(picture: Any) -> Iterator[str]:
    """Six rows at a time, colour by colour; characters that repeat are counted."""
    few = picture.convert("RGB").quantize(COLOURS)
    palette = np.array(few.getpalette()[: 3 * COLOURS]).reshape(-1, 3) * 100 // 255
    pixels = np.asarray(few)
    yield "\x1bPq"
    for i, (r, g, b) in enumerate(palette.tolist()):
        yield f"#{i};2;{r};{g};{b}"
    weights = 1 << np.arange(6)
    for top in range(0, len(pixels), 6):
        rows = pixels[top : top + 6]
        for colour in np.unique(rows).tolist():
            codes = (rows == colour).T @ weights[: len(rows)] + 63
            starts = np.flatnonzero(np.diff(codes, prepend=-1))
            lengths = np.diff([*starts.tolist(), len(codes)])
            runs = zip(codes[starts].tolist(), lengths.tolist(), strict=True)
            line = "".join(f"!{n}{chr(code)}" if n > 3 else chr(code) * n for code, n in runs)
            yield f"#{colour}{line}$"
        yield "-"
    yield "\x1b\\"
