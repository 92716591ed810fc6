"""Delays between tries. Pure."""

from typing import Final

_MOST_DOUBLINGS: Final = 60
"""Keeps the power small, as the number in a status may be any; every delay is at its longest before."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return a delay in seconds that has been doubled so many times, and is never longer than `longest_s`."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), longest_s)
