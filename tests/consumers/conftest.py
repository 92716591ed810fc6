"""The end of a run for which this machine has none of the programs."""

from lacking import pytest_sessionfinish

__all__ = ["pytest_sessionfinish"]
