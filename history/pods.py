"""Facts from a pod: the pod's gang, the resources that the pod holds, and the times of its start and its end. Pure.

The API server writes times in whole seconds. For a change that was observed live, the recorder's clock adds the
fraction of the second. For a change that was read afterwards, the middle of the second is used.
"""

from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

import msgspec
from msgspec import field

from history.model import MS, NAME_CHARS, MemberEnd, clean, vector_of
from history.tally import rank
from muster.api import names
from muster.api.base import Resource, Wire
from muster.api.kubernetes.core import ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from muster.api.kubernetes.meta import readable_time
from muster.api.kubernetes.pod_problems import deletion_began, exit_problem, failed_at
from muster.api.kubernetes.scheduling import DISRUPTION_TARGET
from muster.api.limits import RESOURCES
from muster.resources.gpus import counted
from muster.resources.vector import Vector
from muster.workloads.charges import charged_amounts, charged_queue
from muster.workloads.table import gang_of, group_name

_GENERIC = "Eviction API: evicting"
"""Message that the API server writes into the condition of every pod that is evicted through its Eviction API."""
DELETED = "its pod was deleted"
"""Reason for a member's end that was caused by a deletion."""
_NODE_WENT = frozenset({"DeletionByTaintManager", "DeletionByPodGC"})


class Ran(Wire):
    """A running container."""

    started_at: str | None = None


class Terminated(ContainerStateTerminated):
    """An ended container, with its start time."""

    started_at: str | None = None


class ContainerStateTimes(ContainerState):
    """The state of a container, with its start and end times."""

    running: Ran | None = None
    terminated: Terminated | None = None


class ContainerStatusTimes(ContainerStatus):
    """The status of a container, with its start and end times."""

    state: ContainerStateTimes = field(default_factory=ContainerStateTimes)


class RecordedStatus(PodStatus):
    """The status of a pod, with the start and end times of its containers."""

    container_statuses: list[ContainerStatusTimes] = field(default_factory=list)  # type: ignore[assignment]
    init_container_statuses: list[ContainerStatusTimes] = field(default_factory=list)  # type: ignore[assignment]


class RecordedPod(Pod):
    """A pod with the start and end times of its containers; only this package needs these times."""

    status: RecordedStatus = field(default_factory=RecordedStatus)


RECORDED_PODS = Resource("", "v1", "pods", "Pod", RecordedPod)


class ObservationTime(NamedTuple):
    """Time of an observation in milliseconds, and the precision of this time."""

    at: int
    live: bool
    """True if the change was observed when it happened. For a change that was observed live, the recorder's clock is
    more precise than the object's timestamp."""
    within: int = 0
    """Uncertainty of the time in milliseconds, for a change that was read afterwards."""

    def time_of(self, stamp: str | None) -> int:
        """Return the exact time of a change from its timestamp in whole seconds.

        If there is no timestamp, return the time of the observation.
        """
        second = readable_time(stamp)
        if second is None:
            return self.at
        first = round(second * MS)
        if self.live:
            least, most = self._within_second(first)
            return (least + most) // 2
        return min(first + MS // 2, max(self.at, first))

    def error(self, stamp: str | None) -> int:
        """Return the maximum error of the result of `time_of`, in milliseconds."""
        second = readable_time(stamp)
        if not self.live:
            return 0 if second is None else MS // 2
        if second is None:
            return self.within
        least, most = self._within_second(round(second * MS))
        return (most - least + 1) // 2

    def _within_second(self, first: int) -> tuple[int, int]:
        """Return the earliest and the latest possible time within the recorded second.

        If the observation was made outside this second, both times are the boundary of the second that is nearer to the
        observation.
        """
        least, most = max(first, self.at - self.within), min(first + MS - 1, self.at + self.within)
        if least > most:
            least = most = first if self.at < first else first + MS - 1
        return least, most


class Ended(NamedTuple):
    """The end of a pod: the time, the reason and a text, and the time of the pod's failure (`failed_at`)."""

    at: int
    reason: MemberEnd
    text: str = ""
    within: int = 0
    failed_at: str = "~"


def belongs(pod: Pod) -> str | None:
    """Return the name of the PodGroup of a pod whose usage is charged; None for a pod of another scheduler."""
    return gang_of(pod) or group_name(pod.metadata) if charged_queue(pod) else None


def queue_of(pod: Pod) -> str:
    """Return the queue that a pod itself names."""
    return clean(charged_queue(pod) or names.DEFAULT_QUEUE, NAME_CHARS)


def amounts_of(pod: Pod, offered: Vector | None = None) -> Vector:
    """Return the amounts charged for a pod; if the pod's quantities are unreadable, it counts only as one pod.

    At most the amount of a resource that the node offers (`offered`) is charged (`charged_amounts`). If a pod names too
    many resources, because admission was bypassed, only the usual resources count. Members with equal requests share
    the vector, so that it is stored once, and their times are integrated together.
    """
    try:
        asked = {name: amount for name, amount in counted(pod).items() if amount > 0}
        named = nsmallest(RESOURCES.value, asked, key=lambda each: rank(None, "", each))
        amounts = {name: amount for name, amount in asked.items() if name in named}
    except ValueError:
        amounts = {"pods": 1}
    return vector_of(msgspec.json.encode(charged_amounts(amounts, offered)).decode())


def bound_at(pod: Pod) -> str | None:
    """Return the time at which a pod was bound to its node, as recorded by the API server."""
    condition = pod.status.condition("PodScheduled")
    known = condition is not None and condition.status == "True"
    return condition.last_transition_time if condition and known else pod.metadata.creation_timestamp


def ran_from(pod: RecordedPod, moment: ObservationTime) -> int | None:
    """Return the time when the pod's first container started; None if no container has started."""
    known = [text for text in _starts(pod) if readable_time(text) is not None]
    return moment.time_of(min(known, key=_second)) if known else None


def _second(text: str) -> float:
    return readable_time(text) or 0.0


def _starts(pod: RecordedPod) -> Iterator[str]:
    for status in pod.status.container_statuses:
        for state in (status.state.running, status.state.terminated):
            if state is not None and state.started_at:
                yield state.started_at


def ended(pod: RecordedPod, moment: ObservationTime) -> Ended | None:
    """Return how an existing pod has ended; None if it has not ended."""
    if not pod.finished:
        return None
    failed = MemberEnd.DELETED if _killed(pod) else MemberEnd.FAILED
    reason = MemberEnd.COMPLETED if pod.status.phase == "Succeeded" else disrupted(pod) or failed
    return Ended(moment.time_of(_last(pod)), reason, why(pod), moment.error(_last(pod)), failed_at(pod))


def gone(pod: RecordedPod, moment: ObservationTime) -> Ended:
    """Return how a deleted pod has ended, derived from the pod's last observed state."""
    known, last = ended(pod, moment), _last(pod)
    return known or Ended(moment.time_of(last), disrupted(pod) or MemberEnd.DELETED, why(pod), moment.error(last))


def _killed(pod: RecordedPod) -> bool:
    """Return True if the pod's last container ended after the deletion of the pod was requested."""
    began, last = deletion_began(pod.metadata), _last(pod)
    return began is not None and (last is None or _second(last) >= _second(began))


def stamps(pod: Pod) -> Iterator[str | None]:
    """Yield the times that the kubelet and the API server have written into a pod after its creation."""
    yield from (each.last_transition_time for each in pod.status.conditions)
    if isinstance(pod, RecordedPod):
        yield from _starts(pod)
        yield _last(pod)


def disrupted(pod: Pod) -> MemberEnd | None:
    """Return the kind of a pod's disruption: evicted, or lost with its node; None if the pod was not disrupted."""
    condition = pod.status.condition(DISRUPTION_TARGET)
    if condition is None or condition.status != "True":
        return MemberEnd.EVICTED if pod.status.reason in {"Evicted", "Preempting"} else None
    return MemberEnd.LOST if condition.reason in _NODE_WENT else MemberEnd.EVICTED


def _last(pod: RecordedPod) -> str | None:
    """Return the time when the pod's last container ended; None if not all containers have ended."""
    ends = [status.state.terminated for status in pod.status.container_statuses]
    times = [one.finished_at for one in ends if one is not None and readable_time(one.finished_at) is not None]
    return max(filter(None, times), key=_second, default=None) if len(times) == len(ends) else None


def why(pod: RecordedPod) -> str:
    """Return a text about the cause of a pod's failure; empty if the cause is unknown."""
    condition = pod.status.condition(DISRUPTION_TARGET)
    if condition is not None and condition.status == "True" and condition.message:
        return "" if condition.message == _GENERIC else condition.message
    if pod.status.message:
        return pod.status.message
    if _killed(pod):
        return DELETED
    failed = exit_problem(pod)
    return failed.words if failed else ""
