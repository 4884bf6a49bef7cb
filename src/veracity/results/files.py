"""Kept while the reports move over."""

from ..core.files import written_whole

__all__ = ["written_whole"]
