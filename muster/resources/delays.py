"""Delays between tries. Pure."""

from typing import Final

JOB_BACK_OFF_MOST_S: Final = 600.0
"""The longest time that the Job controller of Kubernetes waits before it makes failed or evicted pods again.

It waits 10 s after the first of a Job's pods that failed since one succeeded, and twice as long for each further one.
Evicted pods count, also where a podFailurePolicy ignores them (pkg/controller/job/backoff_utils.go, in 1.37 as before).
The number is in its memory alone.
"""
_MOST_DOUBLINGS: Final = 60
"""Keeps the power small, as the number in a status may be any; every delay is at its longest before."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return a delay in seconds that has been doubled so many times, and is never longer than `longest_s`."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), longest_s)
