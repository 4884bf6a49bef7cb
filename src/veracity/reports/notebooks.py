"""How an explanation and an audit look in a notebook."""

from __future__ import annotations

from typing import Any

from ..auditing.audit import Audit
from ..core.attributions import Attribution
from ..core.images import Image
from ..core.inputs import Text
from .pages import environment
from .pictures import data_uri, painted


def attribution_html(found: Attribution[Any]) -> str:
    """A text with its words coloured; a picture beside itself with the map laid over it; inputs of
    other kinds as what they are called."""
    picture = data_uri(painted(found)) if isinstance(found.input, Image) else ""
    return _shown("attribution", found, isinstance(found.input, Text), picture)


def audit_html(found: Audit) -> str:
    """What an audit says of each model, and how methods fare by the quantities that count."""
    return _shown("audit", found)


def _shown(macro: str, *given: Any) -> str:
    template = environment().get_template("notebook.html")
    return str(getattr(template.module, macro)(*given))
