"""Slips of the pen: letters that change places, are left out or doubled, or look alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..core.inputs import Text
from ..data.lexicon import listed
from ._attack import WordAttack
from ._noise import confusions, misspelt

_LOOKS = listed(
    "未末 己已巳 日曰 大太犬 人入 士土 天夫 千干 午牛 王玉 目自 白百 木本 力刀 几九 广厂 车东 "
    "鸟乌 免兔 住往 便使 拔拨 清请情 晴睛 蓝篮 辛幸 令今 折拆 侯候 竟竞 栗粟 毫豪 喝渴 "
    "哪那 很狠 味昧 差羞 服报 好妤 贵责 快块 慢漫 间问"
)


@dataclass(frozen=True)
class Spelling(WordAttack):
    """Swaps, drops or doubles a letter of some words; of Chinese, a character that looks alike."""

    adv_type: ClassVar[str] = "idr"

    def options(self, text: Text) -> Mapping[int, Sequence[str]]:
        return misspelt(text, _slips, confusions(_LOOKS))


def _slips(word: str) -> list[str]:
    """Every word that one slip behind the first letter makes; the first is rarely got wrong."""
    found = []
    for i in range(1, len(word)):
        found.append(word[:i] + word[i + 1 :])
        found.append(word[: i + 1] + word[i:])
        if i + 1 < len(word):
            found.append(word[:i] + word[i + 1] + word[i] + word[i + 2 :])
    return [slip for slip in dict.fromkeys(found) if slip != word]
