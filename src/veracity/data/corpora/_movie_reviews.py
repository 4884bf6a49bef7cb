"""The one file that holds both English corpora."""

from ..corpus import packaged

# Some reviews were written in Windows-1252 but decoded as Latin-1: dashes became controls.
_WINDOWS = {c: bytes([c]).decode("cp1252", "ignore") or chr(c) for c in range(0x80, 0xA0)}


def movie_reviews(source: str) -> list[tuple[str, int]]:
    """One source's texts and labels; line breaks and Windows signs are put right."""
    import pyarrow.csv as pc

    path = packaged(
        "movie_reviews",
        "data/combined_movie_reviews.csv",
        release="movie-reviews 0.0.2",
        sha256="d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
    )
    table = pc.read_csv(path, parse_options=pc.ParseOptions(newlines_in_values=True))
    columns = (table[name].to_pylist() for name in ("text", "label", "source"))
    return [
        (text.replace("<br />", "\n").translate(_WINDOWS), label)
        for text, label, origin in zip(*columns, strict=True)
        if origin == source
    ]
