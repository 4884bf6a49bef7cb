"""Short English reviews."""

from dataclasses import dataclass

from ..corpus import Reviews
from ._movie_reviews import movie_reviews


@dataclass(frozen=True)
class RottenTomatoes(Reviews):
    """8,530 one-sentence film reviews, lower-cased (Pang & Lee 2005, training part)."""

    def texts(self) -> list[tuple[str, int]]:
        """All sentences; 1 is positive."""
        return movie_reviews("rotten_tomatoes")
