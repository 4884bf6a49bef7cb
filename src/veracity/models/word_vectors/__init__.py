"""Vectors of words that hang on the words around, one file a source: `bert.py` is `bert`."""

from __future__ import annotations

from ...core.plugins import Registry, nearest, parse_spec, plugin_path
from ..contextual import WordVectors

__path__ = plugin_path(__path__, "word_vectors")

word_vectors: Registry[WordVectors] = Registry("source of word vectors", __name__, WordVectors)


def source_of(embeddings: str) -> WordVectors | None:
    """The source that a setting such as `bert(longest=64)` spells; None where it names a table of
    vectors or a file."""
    spelt = embeddings.endswith(")")
    if not spelt and embeddings not in word_vectors.names():
        return None
    if spelt and parse_spec(embeddings)[0] not in word_vectors.names():
        raise ValueError(
            f"no source of word vectors is called {parse_spec(embeddings)[0]!r}: "
            f"{nearest(parse_spec(embeddings)[0], word_vectors.names())}"
        )
    return word_vectors.make(embeddings)
