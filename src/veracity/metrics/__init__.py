"""Tests of explanations, one file each: the file `erasure.py` is the metric `erasure`."""

from ..core.metrics import Metric
from ..core.plugins import Registry, plugin_path

__path__ = plugin_path(__path__, "metrics")

metrics: Registry[Metric] = Registry("metric", __name__, Metric)
