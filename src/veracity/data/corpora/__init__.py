"""Corpora, one file each: the file `imdb.py` is the corpus `imdb`."""

from ...core.plugins import Registry, plugin_path
from ..corpus import Corpus

__path__ = plugin_path(__path__, "corpora")

corpora: Registry[Corpus] = Registry("dataset", __name__, Corpus)
