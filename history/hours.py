"""Amounts over time as people read them: hours of one whole, or of a GiB; and texts in CSV. Pure."""

from typing import Final

HOUR_S: Final = 3_600
_GIB: Final = 1 << 30
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def is_bytewise(resource: str) -> bool:
    """Return True for a resource that is counted in bytes, and shown in GiB."""
    return resource.startswith(("memory", "ephemeral-storage", "hugepages-"))


def hours(resource: str, seconds: float) -> float:
    """Return unit-hours of unit-seconds: GiB-hours of what is counted in bytes."""
    return seconds / HOUR_S / (_GIB if is_bytewise(resource) else 1)


def cell(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: names of users may begin with anything."""
    return f"'{text}" if text.startswith(_FORMULAS) else text
