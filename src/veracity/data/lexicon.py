"""Emotional words and words of like meaning: a small stock of our own, or somebody's list."""

from __future__ import annotations

import csv
import functools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DataError
from ..core.files import read_bytes
from ..core.inputs import Text

_STOCK: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
"""Our own words, as the file beside this one lists them."""


def listed(text: str) -> tuple[str, ...]:
    """Words with a space between them, written down so that a page holds them all."""
    return tuple(text.split())


@dataclass(frozen=True)
class SynonymSet:
    """Words that can stand for each other, and whether they praise (1), blame (-1) or neither."""

    polarity: int
    common: tuple[str, ...]
    rare: tuple[str, ...]


@functools.cache
def synonym_sets() -> Mapping[str, SynonymSet]:
    """Our own stock, by word."""
    found: dict[str, SynonymSet] = {}
    for name, polarity in (("positive", 1), ("negative", -1), ("neutral", 0)):
        for line in _STOCK[name].splitlines():
            common, _, rare = line.partition("|")
            one = SynonymSet(polarity, _words(common), _words(rare))
            found |= dict.fromkeys((*one.common, *one.rare), one)
    return found


@functools.cache
def own_lexicon() -> Mapping[str, int]:
    """The emotional words of our own stock: 1 praises, -1 blames."""
    return {word: one.polarity for word, one in synonym_sets().items() if one.polarity}


def read_lexicon(*paths: str | Path) -> dict[str, int]:
    """Emotional words from files: `word<tab>number`, or a word per line in a file whose name says
    positive or negative; lines that start with a semicolon or a hash are comments."""
    found: dict[str, int] = {}
    for path in map(Path, paths):
        sign = _sign_of(path.name)
        try:
            lines = read_bytes(path).decode("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: expected a word list in UTF-8; {error}") from None
        for number, fields in enumerate(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)):
            if not fields or not fields[0].strip() or fields[0].startswith((";", "#")):
                continue
            score = _score(fields[1]) if len(fields) > 1 else sign
            if score is None:
                raise DataError(
                    f"{path}, line {number + 1}: expected a word, a tab and a number, or a file "
                    f"name with positive or negative in it; got {fields[:2]}"
                )
            if score:
                found[fields[0].strip().casefold()] = 1 if score > 0 else -1
    if not found:
        raise DataError("expected a lexicon with at least one emotional word, got none")
    return found


OWN = "own"
"""What our own stock goes by where lexicons are named."""


def read_lexicons(*sources: str | Path) -> dict[str, Mapping[str, int]]:
    """Lexicons by name: lists of positive and of negative words that are named alike are one."""
    groups: dict[Path, list[Path]] = {}
    for path in map(Path, sources):
        bare = re.sub("positive|negative", "", path.stem).strip(" _-.") or "words"
        key = path.with_name(bare) if _sign_of(path.name) else path
        groups.setdefault(key, []).append(path)
    found: dict[str, Mapping[str, int]] = {}
    for key, paths in groups.items():
        own = str(key) == OWN and not key.exists()
        name = str(key) if key.stem in found else key.stem
        found[name] = own_lexicon() if own else read_lexicon(*paths)
    return found


FUNCTION_WORDS = frozenset(_STOCK["function_words"].split())
"""Words that name nothing one could have an opinion of."""

LONGEST_PHRASE = 4
"""Words; somebody's list may hold phrases, and a segmenter may split what the list keeps whole."""


@dataclass(frozen=True)
class Emotion:
    """Where an emotional word or phrase of a lexicon stands in a text: [first, behind)."""

    first: int
    behind: int
    polarity: int


def emotions(text: Text, lexicon: Mapping[str, int]) -> tuple[Emotion, ...]:
    """All that a lexicon knows in a text, the longest phrase first where several begin."""
    found: list[Emotion] = []
    place = 0
    while place < text.n_features:
        for behind in range(min(place + LONGEST_PHRASE, text.n_features), place, -1):
            start, end = text.spans[place][0], text.spans[behind - 1][1]
            polarity = lexicon.get(text.text[start:end].casefold(), 0)
            if polarity:
                found.append(Emotion(place, behind, polarity))
                break
        place = found[-1].behind if found and found[-1].first == place else place + 1
    return tuple(found)


def mined_lexicon(
    texts: Sequence[Text], seeds: Mapping[str, int], *, least: int = 10, threshold: float = 1.0
) -> dict[str, int]:
    """The seeds, and the words that stand in the same texts as praise rather than blame, or the
    reverse: by the difference of pointwise mutual information with either (Turney 2002; the sum
    over seeds in Tian et al. 2020 lets rare pairs decide). A word must be in `least` texts."""
    alone: Counter[str] = Counter()
    beside: dict[int, Counter[str]] = {1: Counter(), -1: Counter()}
    times = {1: 0, -1: 0}
    for text in texts:
        words = {w.casefold() for w in text.words if any(c.isalnum() for c in w)}
        alone.update(words)
        sides = [e.polarity for e in emotions(text, seeds)]
        for side in (1, -1):
            times[side] += sides.count(side)
            for word in words:
                beside[side][word] += sides.count(side)
    if not all(times.values()):
        raise DataError(
            "expected the texts to hold seed words that praise and seed words that blame; got "
            f"{times[1]:,} and {times[-1]:,}. Give more seeds with --lexicon FILE"
        )
    found = dict(seeds)
    for word, count in alone.items():
        if count < least or word in seeds or word in FUNCTION_WORDS:
            continue
        praise, blame = ((beside[s][word] + 0.5) / times[s] for s in (1, -1))
        if abs(math.log(praise / blame)) >= threshold:
            found[word] = 1 if praise > blame else -1
    return found


def _words(part: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in part.split(",") if word.strip())


def _sign_of(name: str) -> float | None:
    return next((s for word, s in (("positive", 1.0), ("negative", -1.0)) if word in name), None)


def _score(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
