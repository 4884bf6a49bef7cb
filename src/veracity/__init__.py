"""Veracity finds out which explanations of a classifier tell the truth."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .auditing.audit import audit, plan
    from .auditing.explaining import explain
    from .data.loading import load_data
    from .experiments.dryrun import dryrun
    from .models.loading import load_model
    from .models.pretraining import pretrain
    from .reports.html import write_report
    from .reports.notebooks import attribution_html as attribution_html
    from .reports.notebooks import audit_html as audit_html
    from .suspicion.suspects import suspects

_WHERE = {
    "attribution_html": "reports.notebooks",
    "audit": "auditing.audit",
    "audit_html": "reports.notebooks",
    "dryrun": "experiments.dryrun",
    "explain": "auditing.explaining",
    "load_data": "data.loading",
    "load_model": "models.loading",
    "plan": "auditing.audit",
    "pretrain": "models.pretraining",
    "suspects": "suspicion.suspects",
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
