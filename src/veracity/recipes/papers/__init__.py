"""The papers' experiments, one file each: `planted_text.py` is the recipe `planted_text`."""

from ...core.plugins import Registry, plugin_path
from ..recipe import Recipe

__path__ = plugin_path(__path__, "recipes")

recipes: Registry[Recipe] = Registry("recipe", __name__, Recipe)
