"""What all verbs have in common: whether this replica can answer at all, and how calls are counted."""

from collections.abc import Callable
from functools import cache

from prometheus_client import Counter

from extender.live import Live
from extender.planner.reasons.verbs import Reason, Verdict


def labels(reason: Reason | None) -> tuple[str, str]:
    """The labels `verdict` and `reason` of a call that ended so."""
    return (reason.verdict, reason.tag) if reason else (Verdict.PASSED, "")


def counted(metric: Counter) -> Callable[[str, Reason | None], Counter]:
    """What counts calls by the kind of their pod and by how they ended, in a metric with these labels.

    Each is looked up once: prometheus_client takes a lock and makes a key of the labels whenever it is asked.
    """
    return cache(lambda kind, reason: metric.labels(kind, *labels(reason)))


def unavailable(cluster: Live, active: Callable[[], bool]) -> Reason | None:
    """Why this replica cannot answer at all now: another one leads, or it does not know the cluster yet."""
    if not active():
        return Reason.NOT_LEADING
    return None if cluster.synced else Reason.NOT_SYNCED
