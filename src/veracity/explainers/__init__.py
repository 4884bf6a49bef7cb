"""Explanation methods, one file each: the file `lime.py` is the method `lime`."""

from ..core.explainers import Explainer
from ..core.plugins import Registry, plugin_path

__path__ = plugin_path(__path__, "explainers")

explainers: Registry[Explainer] = Registry("explainer", __name__, Explainer)
