"""Sizes of workloads in queues that are Closing or Closed: finished pods are replaced, but no workload may grow.

The size of a workload is the number of its pods when the planner first observes that the queue is closed. A restart of
the planner resets the sizes of workloads. While a workload is updated, pods of its new gang may start before the pods
of its old gang have ended.
"""

from collections import Counter

from extender.planner import reasons
from extender.planner.framework.answers import QueueRefusal
from extender.planner.framework.snapshot import Snapshot
from extender.planner.reasons.queues import NOT_OPEN
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from muster.api.muster.gang import workload_above
from muster.resources.vector import PODS

_Workload = tuple[str, str]
"""Queue and UID of a workload."""


class ClosingSizes:
    """The number of pods that each workload in a closed queue may still add, given the tentative changes of a cycle."""

    def __init__(self) -> None:
        self._sizes: dict[_Workload, int] = {}
        self._left: dict[_Workload, int] = {}
        self._states: dict[str, str] = {}
        """Maps a queue that is Closing or Closed to its state."""
        self._axis: dict[str, int] = {}

    def begin(self, snapshot: Snapshot) -> None:
        """Count the pods of a snapshot; forget workloads that are gone or whose queue is open again."""
        self._axis = snapshot.axis
        self._states = {name: queue.status.state for name, queue in snapshot.queues.items() if not queue.open}
        sizes, running = Counter[_Workload](), Counter[_Workload]()
        gangs: dict[_Workload, list[GangView]] = {}
        for gang in snapshot.gangs if self._states else ():
            if gang.queue in self._states:
                key, ended = _workload(gang), sum(len(each.taken) - each.alive for each in gang.pod_sets)
                running[key] += sum(each.alive for each in gang.pod_sets) + snapshot.placed.get(gang.key, 0)
                if gang.group.status.phase not in {"", "Pending"}:  # the gang was admitted
                    sizes[key] += sum(max(each.replicas, len(each.taken | each.waiting)) for each in gang.pod_sets)
                    sizes[key] -= ended
                if gang.has_pods:
                    gangs.setdefault(key, []).append(gang)
        self._sizes = {key: self._sizes.get(key, size) for key, size in sizes.items()}
        extra = {key: max(each.min_member for each in found) for key, found in gangs.items() if len(found) > 1}
        self._left = {key: size + extra.get(key, 0) - running[key] for key, size in self._sizes.items()}

    def count(self, gang: GangView, pods: int) -> None:
        """Count a gang's pods in a tentative placement; a negative number subtracts pods."""
        if gang.queue in self._states and (key := _workload(gang)) in self._left:
            self._left[key] -= pods

    def refusal(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Return a refusal if the gang's workload would exceed its size with these additional pods."""
        if not (state := self._states.get(gang.queue, "")):
            return None
        key, pods = _workload(gang), int(amounts[self._axis[PODS]]) if PODS in self._axis else 0
        if key not in self._left or pods <= max(self._left[key], 0):
            return None
        size = self._sizes[key]
        words = reasons.queues.not_growing(queue=gang.queue, state=state, size=size)
        return QueueRefusal(NOT_OPEN, gang.queue, PODS, pods, size - self._left[key], size, words)


def _workload(gang: GangView) -> _Workload:
    meta = gang.group.metadata
    owner = workload_above(meta) or meta.controller
    return gang.queue, owner.uid if owner else meta.uid
