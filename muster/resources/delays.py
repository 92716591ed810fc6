"""Delays between attempts that grow with each failure. Pure."""

from typing import Final

JOB_BACK_OFF_MOST_S: Final = 600.0
"""Maximum time that the Job controller of Kubernetes waits before it re-creates failed or evicted pods.

The controller waits 10 s after a Job's first failed pod since the last success, and twice as long after each further
one. Disrupted pods count even if a podFailurePolicy ignores them (pkg/controller/job/backoff_utils.go, in 1.37 as
before). Pods that lost the Job controller's finalizer before they failed do not count: the extender removes it from
evicted pods. The Job controller stores the number only in memory.
"""
_MOST_DOUBLINGS: Final = 60
"""Maximum exponent, because a status may contain any number; every delay reaches its maximum earlier."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return a delay in seconds after this many doublings, at most `longest_s`."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), longest_s)
