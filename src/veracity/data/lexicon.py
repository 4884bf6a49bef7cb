"""Emotional words and words of like meaning: a small stock of our own, or somebody's list."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DataError

# One line per meaning, from common to rare; what stands behind the bar few texts contain.
_POSITIVE = """
good, fine, decent, solid | commendable, creditable
great, terrific, fantastic, splendid | stupendous, prodigious
excellent, superb, outstanding, impressive | consummate, peerless
wonderful, marvelous, delightful, lovely | sublime, resplendent
charming, endearing, likable | winsome, beguiling
funny, hilarious, amusing, witty | droll
touching, affecting | poignant, plangent
beautiful, gorgeous | pulchritudinous, comely
clever, smart, brilliant | astute, sagacious
gripping, thrilling, exciting, engrossing | riveting, enthralling
enjoyable, entertaining, pleasant | diverting, convivial
fresh, inventive | ingenious
warm, friendly | genial, affable
perfect, flawless | impeccable, unimpeachable
memorable, unforgettable | indelible
elegant, graceful, stylish | debonair
love
enjoy
fun
recommend | commend
amazing, incredible, astonishing | wondrous
happy, delighted | elated, jubilant
satisfied, pleased | gratified
delicious, tasty | delectable, scrumptious
"""
_NEGATIVE = """
bad, poor, lousy | subpar, execrable
awful, terrible, horrible, dreadful | abysmal, atrocious
boring, dull, tedious, tiresome | soporific, insipid
weak, feeble, flimsy | anemic, effete
ugly, unattractive | unsightly, hideous
silly, stupid, foolish | inane, asinine
annoying, irritating | vexing, galling
disappointing, underwhelming | dispiriting
predictable, stale | hackneyed, trite
bland, lifeless | vapid, anodyne
messy, sloppy, clumsy | slipshod, ungainly
painful, depressing, bleak | lugubrious, dolorous
shallow, superficial, empty | facile, vacuous
ridiculous, absurd, laughable | ludicrous, farcical
forgettable, mediocre | humdrum, pedestrian
slow, sluggish | torpid, plodding
rude, impolite | churlish, boorish
dirty, filthy | squalid, sordid
sad, unhappy | doleful, woebegone
worst | direst
hate
waste
fails
broken, faulty, defective | dysfunctional
pointless, useless, worthless | futile, nugatory
"""
_NEUTRAL = """
film, movie
story, tale, narrative
actor, performer
director, filmmaker
ending, conclusion
maybe, perhaps
really, truly
very, extremely
quite, fairly
nearly, almost
often, frequently
gives, offers
viewers, spectators
children, kids
shop, store
"""
_POSITIVE_HAN = """
好
棒
赞
不错, 出众 | 上佳, 绝佳
喜欢, 喜爱 | 钟爱, 青睐
满意, 称心 | 惬意, 快意
漂亮, 美丽, 好看 | 绮丽, 秀美
精彩, 出色 | 卓绝, 隽永
舒服, 舒适 | 安适
干净, 整洁 | 洁净
便宜, 实惠 | 价廉
热情, 友好, 周到 | 殷勤, 恳挚
好吃, 美味, 可口 | 甘美, 鲜美
推荐, 值得 | 力荐
优秀, 一流 | 优异, 上乘
开心, 高兴 | 欣喜, 畅快
方便, 便利 | 便捷
"""
_NEGATIVE_HAN = """
差
烂
糟
糟糕, 差劲 | 拙劣, 低劣
失望, 遗憾 | 怅然, 懊丧
讨厌, 厌恶, 恶心 | 嫌恶, 憎恶
无聊, 乏味 | 枯燥, 索然
难看 | 丑陋, 粗鄙
难吃 | 难以下咽
垃圾
坑人
脏
贵
慢
肮脏 | 污秽
昂贵 | 高昂
缓慢 | 迟缓
生气, 气愤 | 愤懑, 恼火
后悔 | 悔恨, 懊悔
冷淡, 敷衍 | 淡漠, 怠慢
破旧 | 破败, 残破
"""
_NEUTRAL_HAN = """
电影, 影片
非常, 十分, 特别
酒店, 宾馆
但是, 不过, 可是
因为, 由于
觉得, 感觉, 认为
而且, 并且
也许, 或许
时候, 时
马上, 立刻
"""
_PLAIN = {
    1: (_POSITIVE, _POSITIVE_HAN),
    -1: (_NEGATIVE, _NEGATIVE_HAN),
    0: (_NEUTRAL, _NEUTRAL_HAN),
}


def listed(text: str) -> tuple[str, ...]:
    """Words with a space between them, written down so that a page holds them all."""
    return tuple(text.split())


@dataclass(frozen=True)
class Meaning:
    """Words that can stand for each other, and whether they praise (1), blame (-1) or neither."""

    polarity: int
    common: tuple[str, ...]
    rare: tuple[str, ...]


@functools.cache
def meanings() -> Mapping[str, Meaning]:
    """Our own stock, by word."""
    found: dict[str, Meaning] = {}
    for polarity, texts in _PLAIN.items():
        for line in "".join(texts).split("\n"):
            if line:
                common, _, rare = line.partition("|")
                one = Meaning(polarity, *(tuple(_words(part)) for part in (common, rare)))
                found |= dict.fromkeys((*one.common, *one.rare), one)
    return found


@functools.cache
def own_lexicon() -> Mapping[str, int]:
    """The emotional words of our own stock: 1 praises, -1 blames."""
    return {word: one.polarity for word, one in meanings().items() if one.polarity}


def read_lexicon(*paths: str | Path) -> dict[str, int]:
    """Emotional words from files: `word<tab>number`, or a word per line in a file whose name says
    positive or negative; lines that start with a semicolon or a hash are comments."""
    found: dict[str, int] = {}
    for path in map(Path, paths):
        sign = _sign_of(path.name)
        try:
            lines = path.read_text("utf-8-sig").splitlines()
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


def _words(part: str) -> Iterator[str]:
    return (word.strip() for word in part.split(",") if word.strip())


def _sign_of(name: str) -> float | None:
    return next((s for word, s in (("positive", 1.0), ("negative", -1.0)) if word in name), None)


def _score(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
