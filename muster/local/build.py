"""Builds the control plane's programs from Go modules."""

from pathlib import Path

from muster.local.errors import BinariesError


def cached() -> Path:
    """The folder of the programs in the user's cache, after they were built where needed."""
    raise BinariesError("the programs of the control plane are neither in KUBEBUILDER_ASSETS nor on the PATH")
