"""Numbers and texts in the form in which people are shown them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ..core.counts import duration as duration  # sentences and tables round alike
from ..data.words import is_chinese
from ..results.statistics import percent as percent
from ..results.statistics import whole_percent

UNDEFINED = "–"
_MINUS = "−"
_KANA = re.compile("[\u3040-\u30ff]")
"""Japanese shares characters with Chinese, not these."""


def number(value: float, *, signed: bool = False) -> str:
    """Three decimals where that says something, powers of ten where it does not."""
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return f"{_MINUS if value < 0 else ''}∞"
    size = abs(value)
    if size >= 1e5 or 0 < size < 5e-4:
        text = f"{value:.1e}"
    else:
        text = f"{value:.3f}" if size < 100 else f"{value:,.1f}"
    return ("+" if signed and value > 0 else "") + text.replace("-", _MINUS)


def exact_percent(value: float, *, signed: bool = False) -> str:
    """A share, or a difference of two, in percent with one decimal, as papers print it."""
    if math.isnan(value):
        return UNDEFINED
    return f"{100 * value:{'+' if signed else ''}.1f} %".replace("-", _MINUS)


def interval(low: float, high: float) -> str:
    """An interval of shares in whole percent."""
    if math.isnan(low) or math.isnan(high):
        return UNDEFINED
    return f"{whole_percent(low)}–{whole_percent(high)} %"


def correlation(value: float) -> str:
    """Two decimals, and no minus before nothing."""
    return UNDEFINED if math.isnan(value) else f"{value:z.2f}".replace("-", _MINUS)


def count(value: float) -> str:
    """A mean of counts: whole where it is whole."""
    return UNDEFINED if math.isnan(value) else f"{value:,.1f}".removesuffix(".0")


def words(name: str) -> str:
    """A name from code, as one would say it."""
    return name.replace("_", " ")


def setting_list(settings: Mapping[str, Any]) -> str:
    """`samples=500, hiding=delete`; `no settings` when there are none."""
    return ", ".join(f"{k}={v}" for k, v in settings.items()) or "no settings"


def shortened(text: str, length: int) -> str:
    """The beginning of a text, with a sign that it goes on."""
    return text if len(text) <= length else text[: length - 1] + "…"


def language(text: str) -> str:
    """What a browser is told, so that it draws Chinese characters as the Chinese do; nothing where
    we do not know."""
    return "zh" if is_chinese(text) and not _KANA.search(text) else ""


def printable(text: str) -> str:
    """Text without the characters that steer a terminal or turn the reading direction."""
    return "".join(_visible(c) for c in text)


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r\v\f" or category in ("Zl", "Zp"):
        return " "
    turns_direction = unicodedata.bidirectional(character) in _DIRECTIONS
    return "\ufffd" if category in ("Cc", "Cs") or turns_direction else character


_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
