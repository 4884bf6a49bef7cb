"""Slips of the fingers: a neighbouring key, or the wrong character of the right sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..core.inputs import Text
from ..data.lexicon import listed
from ._attack import WordAttack
from ._noise import confusions, misspelt

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Chinese is typed by sound: each group sounds alike, tones apart.
_SOUNDS = listed(
    "的地得 在再 做作 那哪 他她它 是事试 很狠 号好 店电点 服福 务物误 吃持 味位 家加 价架 房防 "
    "间见 书输 质制 量亮 环还 境静 意义 思司 满慢 快块 有又 没煤 可客 以已 人仁 多都 少绍 心新 "
    "真针 美每 门们 时实 后候 前钱 机级 经精 常长 名明 情请 工公 力利"
)


@dataclass(frozen=True)
class Keyboard(WordAttack):
    """Hits a key beside the right one in some words; of Chinese, a character that sounds alike."""

    adv_type: ClassVar[str] = "idr"

    def options(self, text: Text) -> Mapping[int, Sequence[str]]:
        return misspelt(text, _slips, confusions(_SOUNDS))


def _slips(word: str) -> list[str]:
    """Every word with one inner letter exchanged for a neighbour on its row."""
    found = []
    for i, letter in enumerate(word[1:], start=1):
        row = next((row for row in _ROWS if letter.lower() in row), "")
        place = row.find(letter.lower())
        for beside in row[max(place - 1, 0) : place] + row[place + 1 : place + 2]:
            hit = beside.upper() if letter.isupper() else beside
            found.append(word[:i] + hit + word[i + 1 :])
    return found
