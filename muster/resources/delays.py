"""Delays between attempts, which grow with each failure. Pure."""

from typing import Final

JOB_BACK_OFF_MOST_S: Final = 600.0
"""Maximum time for which the Job controller of Kubernetes waits before it re-creates failed or evicted pods.

The controller waits 10 s after a Job's first failed pod since the last success, and twice as long after each further
failed pod. The controller counts disrupted pods even if a podFailurePolicy ignores them
(pkg/controller/job/backoff_utils.go, up to at least 1.37). The Job controller does not count pods that lost its
finalizer before they failed, so the extender removes this finalizer from evicted pods. The Job controller stores the
number of failed pods only in memory."""
_MOST_DOUBLINGS: Final = 60
"""Maximum number of doublings, because a status may contain any number of failures. Every delay reaches its maximum
after fewer doublings."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return a delay in seconds after this number of doublings, at most `longest_s`."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), longest_s)
