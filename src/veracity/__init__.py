"""Veracity finds out which explanations of a classifier tell the truth."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .auditing import audit, explain, plan
    from .auditing.dryrun import dryrun
    from .auditing.suspects import suspects
    from .data import load_data
    from .models import load_model
    from .models.pretraining import pretrain
    from .reports.html import write_report

_WHERE = {
    "audit": "auditing",
    "dryrun": "auditing.dryrun",
    "explain": "auditing",
    "load_data": "data",
    "load_model": "models",
    "plan": "auditing",
    "pretrain": "models.pretraining",
    "suspects": "auditing.suspects",
    "write_report": "reports.html",
}

__all__ = [
    "__version__",
    "audit",
    "dryrun",
    "explain",
    "load_data",
    "load_model",
    "plan",
    "pretrain",
    "suspects",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Heavy parts load when first used, so that importing the package costs nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'veracity' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
