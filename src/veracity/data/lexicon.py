"""Emotional words and words of like meaning: a small stock of our own, or somebody's list."""

from __future__ import annotations

import csv
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DataError
from ..core.files import read_bytes
from ..core.inputs import Text

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
class SynonymSet:
    """Words that can stand for each other, and whether they praise (1), blame (-1) or neither."""

    polarity: int
    common: tuple[str, ...]
    rare: tuple[str, ...]


@functools.cache
def synonym_sets() -> Mapping[str, SynonymSet]:
    """Our own stock, by word."""
    found: dict[str, SynonymSet] = {}
    for polarity, texts in _PLAIN.items():
        for line in "".join(texts).split("\n"):
            if line:
                common, _, rare = line.partition("|")
                one = SynonymSet(polarity, *(tuple(_words(part)) for part in (common, rare)))
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


FUNCTION_WORDS = frozenset(
    listed(
        "a an the this that these those it its he she they we you i me my your his her their "
        "our us them him who which what when where why how there here is are was were be "
        "been being am do does did has have had having will would can could may might must "
        "shall should of in on at to for from by with about into over under as than then so "
        "too very really quite just only even still also more most much many some any all "
        "both each every no not never nor and or but if because while though although "
        "however yet up out off down again such own same s t d ll m o re ve 's n't one 的 了 "
        "着 过 地 得 是 在 有 和 与 及 或 也 都 就 还 又 再 才 很 太 更 最 非常 十分 特别 "
        "比较 挺 真 好像 有点 有些 一点 一个 一些 这 那 这个 那个 这些 那些 这样 那样 这里 "
        "那里 什么 怎么 我 你 他 她 它 我们 你们 他们 自己 大家 不 没 没有 不是 别 未 但 "
        "但是 不过 可是 而 而且 并且 因为 所以 如果 虽然 然后 只是 只有 就是 还是 可以 能 会 "
        "要 想 让 把 被 给 对 从 到 向 跟 比 为 以 等 吧 吗 呢 啊 哦 呀 之 其 个 本 上 下 里 "
        "中 后 前 时 时候"
    )
)
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


def _words(part: str) -> Iterator[str]:
    return (word.strip() for word in part.split(",") if word.strip())


def _sign_of(name: str) -> float | None:
    return next((s for word, s in (("positive", 1.0), ("negative", -1.0)) if word in name), None)


def _score(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
