"""Where words stand in a text: one rule for alphabets, jieba for Chinese."""

from __future__ import annotations

import functools
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.errors import DataError, MissingExtra
from ..core.inputs import Span, Text

LANGUAGES = ("auto", "en", "zh")

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "".join(
    chr(c) for c in range(0x300, 0x3100) if unicodedata.category(chr(c)) in ("Mn", "Mc")
)
_KEYCAP = "[0-9#*]\ufe0f?\u20e3"
_PICTURE = (
    "[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
    "[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"
)
_EMOJI = f"[\U0001f1e6-\U0001f1ff]{{2}}|{_PICTURE}(?:\u200d{_PICTURE})*"
# What cannot be seen is not a word: controls, joiners, selectors, byte-order marks.
_SIGN = (
    r"(?P<sign>_|[^\w\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    r"\ufe00-\ufe0f\ufeff\ud800-\udfff])(?P=sign)*"
)


def _words(no_letters: str) -> str:
    letters = rf"(?:[^\W_{no_letters}]++[{_MARKS}]*+)++"
    return f"{_KEYCAP}|{letters}(?:['’]{letters})*|{_EMOJI}|{_SIGN}"


_ENGLISH = re.compile(_words(""))
# Latin letters that touch Han ones go to jieba together, which knows words such as T恤.
_CHINESE = re.compile(f"(?P<han>[a-zA-Z0-9]*[{_HAN}][{_HAN}a-zA-Z0-9]*)|{_words(_HAN)}")
_ANY_HAN = re.compile(f"[{_HAN}]")

_SPANS: dict[Span, Span] = {}
"""The same few spans recur in every text: sharing them makes a large corpus ten times smaller."""
_LONG = 20_000
"""Characters; longer texts are too rare to share anything."""


def is_chinese(text: str) -> bool:
    """Whether a text holds a Chinese character, and so needs a segmenter."""
    return _ANY_HAN.search(text) is not None


def read_text(text: str, language: str = "auto") -> Text:
    """A text with its words found by the rules of its language."""
    if language not in LANGUAGES:
        raise DataError(f"expected the language to be {', '.join(LANGUAGES)}; got {language!r}")
    if language == "zh" or (language == "auto" and is_chinese(text)):
        return _text(text, _chinese_spans(text))
    return _text(text, [match.span() for match in _ENGLISH.finditer(text)])


def text_of_tokens(tokens: Sequence[str], text: str | None = None) -> Text:
    """A dataset's own words, placed in its text, or else spelling one themselves."""
    if text is not None:
        spans = _touching(tokens, text) or _apart(tokens, text)
        if spans is not None:
            return _text(text, spans)
    return Text.of_words(tokens, "" if any(map(is_chinese, tokens)) else " ")


def _text(text: str, spans: Iterable[Span]) -> Text:
    if len(text) > _LONG:
        return Text(text, tuple(spans))
    return Text(text, tuple([_SPANS.setdefault(span, span) for span in spans]))


def _touching(tokens: Sequence[str], text: str) -> list[Span] | None:
    """The places of tokens that leave nothing but white space between them."""
    spans, start = [], 0
    for token in tokens:
        while not text.startswith(token, start) and text[start : start + 1].isspace():
            start += 1
        if not text.startswith(token, start):
            return None
        spans.append((start, start + len(token)))
        start += len(token)
    return spans


def _apart(tokens: Sequence[str], text: str) -> list[Span] | None:
    """The places of tokens that leave some signs out: each the next whole word, never a part."""
    spans, start = [], 0
    for token in tokens:
        start = text.find(token, start)
        while start >= 0 and (_glued(text, start) or _glued(text, start + len(token))):
            start = text.find(token, start + 1)
        if start < 0:
            return None
        spans.append((start, start + len(token)))
        start += len(token)
    return spans


def _glued(text: str, cut: int) -> bool:
    """Whether a cut at this place would go through a word."""
    around = text[max(cut - 1, 0) : cut + 1] if cut else ""
    return len(around) == 2 and all(c.isalnum() and not is_chinese(c) for c in around)


def _chinese_spans(text: str) -> Iterator[Span]:
    segmenter = _segmenter()
    for match in _CHINESE.finditer(text):
        if match["han"] is None:
            yield match.span()
            continue
        for _, start, end in segmenter.tokenize(match["han"]):
            yield match.start() + start, match.start() + end


@functools.cache
def _segmenter() -> Any:
    """jieba with its own dictionary: no words added elsewhere, no log lines, no cache file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise MissingExtra("jieba", "chinese", "Finding the words of a Chinese text") from None
    segmenter = jieba.Tokenizer()
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter
