"""Delays between attempts that grow with each failure. Pure."""

from typing import Final

JOB_BACK_OFF_MOST_S: Final = 600.0
"""Maximum time that the Job controller of Kubernetes waits before it re-creates failed or evicted pods.

The controller waits 10 s after a Job's first failed pod since the last success, and twice as long after each further
one. The controller counts disrupted pods even if a podFailurePolicy ignores them (pkg/controller/job/backoff_utils.go,
in 1.37 as before). The controller does not count pods that lost the controller's finalizer before they failed, so the
extender removes this finalizer from evicted pods. The controller stores the number of failed pods only in memory."""
_MOST_DOUBLINGS: Final = 60
"""Maximum number of doublings, because a status may contain any number of failures; every delay reaches its maximum
earlier."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return a delay in seconds after this many doublings, at most `longest_s`."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), longest_s)
