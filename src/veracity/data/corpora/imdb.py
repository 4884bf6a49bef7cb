"""Long English reviews."""

from dataclasses import dataclass

from ..corpus import Reviews
from ._movie_reviews import movie_reviews


@dataclass(frozen=True)
class Imdb(Reviews):
    """25,000 film reviews of about 270 words (Maas et al. 2011, training part), 96 repeated."""

    def texts(self) -> list[tuple[str, int]]:
        """All reviews; 1 is positive. Repeated ones are kept: splits never part them."""
        return movie_reviews("imdb")
