"""Models that can be trained here, one file each: `text_cnn.py` is `text_cnn`."""

from ...core.plugins import Registry, plugin_path
from ..architecture import Architecture

__path__ = plugin_path(__path__, "architectures")

architectures: Registry[Architecture] = Registry("model", __name__, Architecture)
