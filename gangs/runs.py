"""Run times of past gangs of a queue, and the expected remaining time of a running gang. Pure.

Each interval is bounded by two past run times, without assuming a distribution. If a gang is like the previous gangs of
its queue, its run time is in the interval in 80 % of cases.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from gangs.rows import RowSources, pods_by_gang
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import readable_time
from muster.api.volcano.batch import Job

OUT_OF = 10
"""A number of run times, of which one is shorter and one is longer than the interval. The interval therefore contains
80 % of the run times."""
LEAST = OUT_OF - 1
"""Minimum number of past runs for an interval. With fewer runs, no two run times bound an interval that contains 80 %
of run times."""
LATEST = 200
"""Maximum number of recent runs per queue, because usage patterns change."""
_ENDS = ("Completed", "Failed")


class Interval(NamedTuple):
    """Two times in seconds; the second time is infinite if unknown."""

    early_s: float
    late_s: float


def past_runs(objects: RowSources) -> dict[str, list[float]]:
    """Return a mapping from a queue to its completed gangs' run times in seconds, latest last.

    Volcano Jobs record when they started and ended; for other gangs, the times are read from the pods. Gangs whose Job
    or pods have been deleted are not included.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for job in objects.jobs or ():
        if (run := _of_job(job)) is not None:
            found[job.spec.queue or "default"].append(run)
    jobs = {job.metadata.uid for job in objects.jobs or ()}
    pods = pods_by_gang(objects.pods or ())
    for group in objects.groups:
        meta = group.metadata
        ours = meta.controller is not None and meta.controller.uid in jobs
        run = None if ours or group.status.phase != "Completed" else _of_pods(pods[meta.namespace, meta.name])
        if run is not None:
            found[group.spec.queue].append(run)
    return {queue: [run_s for _, run_s in sorted(runs)[-LATEST:]] for queue, runs in found.items()}


def _of_job(job: Job) -> tuple[float, float] | None:
    """Return end and duration of a Job's last run; None if the run did not end by itself."""
    at = {each.status: readable_time(each.last_transition_time) for each in job.status.conditions}
    end = at.get(job.status.state.phase) if job.status.state.phase in _ENDS else None
    begin = at.get("Running")
    return None if begin is None or end is None or end < begin else (end, end - begin)


def _of_pods(pods: Sequence[Pod]) -> tuple[float, float] | None:
    begins = [readable_time(pod.status.start_time) for pod in pods]
    ends = [
        readable_time(each.state.terminated.finished_at)
        for pod in pods
        for each in pod.status.container_statuses
        if each.state.terminated
    ]
    begun, ended = [each for each in begins if each is not None], [each for each in ends if each is not None]
    if not begun or not ended or max(ended) < min(begun):
        return None
    return max(ended), max(ended) - min(begun)
