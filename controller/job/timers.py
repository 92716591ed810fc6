"""Actions that wait for a timeout. Pure: the reconciler keeps the list and the clock.

A timer says nothing but that an event happened at a certain time; when it is due, everything is asked again: the Job,
its version, the policy, and whether what happened is still so. Timers start from timestamps of objects where there are
any, so they are the same after a restart of the controller.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.job import request as event
from controller.job.request import Request
from muster.api.batch import Job
from muster.api.core import Pod

_LIVE = frozenset({"Pending", "Running", "Restarting"})


@dataclass(frozen=True, slots=True)
class Timer:
    """At `due_s` (seconds since the epoch) the action of `request` is to be carried out."""

    due_s: float
    request: Request


def still_true(request: Request, job: Job, pods: Sequence[Pod], group_phase: str) -> bool:
    """Whether what the event told is so even now. A pod that is back after it failed or was evicted is no failure."""
    if job.status.state.phase not in _LIVE:
        return False
    if request.event == event.UNKNOWN:
        return group_phase == "Unknown"
    here = next((pod for pod in pods if pod.metadata.name == request.pod), None)
    if request.event == event.POD_PENDING:
        same = here is not None and here.metadata.uid == request.pod_uid and not here.metadata.deletion_timestamp
        return same and here is not None and here.status.phase in {"", "Pending"}
    if request.event in {event.POD_FAILED, event.POD_EVICTED}:
        return not (here and here.metadata.uid != request.pod_uid and here.status.phase in {"Running", "Succeeded"})
    return True
