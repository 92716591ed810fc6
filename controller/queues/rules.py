"""The state of a queue, its status, and the requests of the pods in it. The functions do no I/O and read no clock.

A queue that was closed while it contained gangs is Closing until these gangs are gone. Closing a queue also closes its
descendants, which open again when the queue opens. An annotation distinguishes queues that were closed with their
parent from queues that a Command has closed.

A pod is charged to the queue of its gang, with its current requests, while it is bound to a node and has not finished.
A pod without a PodGroup is charged to the queue that it named when it was first seen with its node. The charge of a pod
is capped at the amounts that its node has offered.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import structs

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.scheduling import PodGroup, PodGroupStatus, Queue, QueueState, QueueStatus
from muster.resources import gpus
from muster.resources.vector import Vector, add, subtract, to_quantities
from muster.workloads.charges import charged_amounts, charged_queue
from muster.workloads.table import gang_of

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
SHUT = frozenset({"Closed", "Closing"})


@dataclass(slots=True)
class Load:
    """The load of a queue: its number of gangs in each phase, and the requests of pods in it and its descendants."""

    gangs: Counter[str] = field(default_factory=Counter)
    allocated: Vector = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """True if the queue contains a gang that has not completed."""
        return any(count for phase, count in self.gangs.items() if phase != "completed")


@dataclass(frozen=True, slots=True)
class WantedState:
    """The desired state of a queue; `by_parent` is true if the queue is closed because its parent is."""

    state: QueueState
    by_parent: bool


def counted(gangs: Iterable[PodGroupStatus]) -> Counter[str]:
    """Return the number of gangs for each counter in a queue's status."""
    return Counter((gang.phase or "Pending").lower() for gang in gangs)


def by_parent(queue: Queue) -> bool:
    """Return True if the queue was closed with its parent."""
    return queue.metadata.annotations.get(CLOSED_BY_PARENT) == "true"


def at_rest(queue: Queue, parent: Queue | None, *, busy: bool) -> WantedState:
    """Return the desired state of the queue without a Command."""
    state, marked = queue.status.state or "Open", by_parent(queue)
    shut_above = parent is not None and parent.status.state in SHUT
    if queue.metadata.name == names.ROOT_QUEUE:
        return WantedState("Open", by_parent=False)
    if shut_above and (state == "Open" or marked):
        return WantedState("Closing" if busy else "Closed", by_parent=True)
    if marked and not shut_above:
        return WantedState("Open", by_parent=False)
    return WantedState("Closed" if state == "Closing" and not busy else state, marked)


def asked(action: str, queue: Queue, parent: Queue | None, *, busy: bool) -> WantedState | str:
    """Return the desired state of the queue after a Command with this action, or the reason to reject the Command."""
    name = queue.metadata.name
    if action == names.CLOSE_QUEUE:
        if name == names.ROOT_QUEUE:
            return "the root queue cannot be closed: close the queues below it"
        return WantedState("Closing" if busy else "Closed", by_parent=False)
    if action != names.OPEN_QUEUE:
        return f"unknown action {action!r}; valid actions are {names.OPEN_QUEUE}, {names.CLOSE_QUEUE}"
    if parent is not None and parent.status.state in SHUT:
        return f"queue {name} cannot be opened while its parent {parent.metadata.name} is {parent.status.state}"
    return WantedState("Open", by_parent=False)


def status_of(queue: Queue, state: QueueState, load: Load) -> QueueStatus:
    """Return the queue's status with this state and load."""
    return structs.replace(
        queue.status,
        state=state,
        pending=load.gangs["pending"],
        running=load.gangs["running"],
        inqueue=load.gangs["inqueue"],
        completed=load.gangs["completed"],
        unknown=load.gangs["unknown"],
        allocated=dict(to_quantities({"cpu": 0, "memory": 0} | load.allocated)),
    )


class Counted(NamedTuple):
    """The charge of a pod: the charged queue and the charged amounts.

    `gang` is the key of the pod's gang; empty if the pod has no gang.
    """

    queue: str
    amounts: Vector
    gang: str
    node: str
    beyond: Pod | None
    """The pod, if it requests more than its node offers or the node is unknown; otherwise None. The charge of such a
    pod may change with its node."""


class RequestsByQueue:
    """The charged requests of each queue.

    `group` finds a PodGroup by key, and `offers` returns the amounts that a node offers. Thread-safe.
    """

    def __init__(
        self, group: Callable[[str], PodGroup | None], offers: Callable[[str], Vector | None] = lambda _: None
    ) -> None:
        self._group, self._offers = group, offers
        self._lock = threading.Lock()
        self._pods: dict[str, Counted] = {}
        """The charges of the counted pods, by UID."""
        self._members: dict[str, dict[str, None]] = {}
        """Maps the key of a gang to the UIDs of its counted pods."""
        self._queues: dict[str, Vector] = {}
        self._beyond: dict[str, dict[str, Pod]] = {}
        """Maps the name of a node to its pods whose charge may change with the node (`Counted.beyond`), by UID."""

    def pod_seen(self, pod: Pod, *, gone: bool) -> str | None:
        """Count a pod in its current state; return the queue whose sum has changed."""
        counts = bool(pod.spec.node_name) and not pod.finished and not gone
        uid = pod.metadata.uid
        with self._lock:
            if counts:
                return self._count_pod_of_queue(pod)
            return self._drop(uid) if uid in self._pods else None

    def node_seen(self, node: str) -> set[str]:
        """Recount pods that requested more than the node had offered; return the queues whose sums have changed."""
        with self._lock:
            pods = [*self._beyond.get(node, {}).values()]
            return {queue for pod in pods if (queue := self._count_pod_of_queue(pod)) is not None}

    def moved(self, gang: str, queue: str) -> set[str]:
        """Charge the pods of a gang to the gang's current queue; return the queues whose sums have changed."""
        changed = set[str]()
        with self._lock:
            for uid in [*self._members.get(gang, ())]:
                pod = self._pods[uid]
                if pod.queue != queue:
                    changed |= {self._drop(uid), queue}
                    self._put(uid, pod._replace(queue=queue))
        return changed

    def queue_of(self, pod: Pod) -> str | None:
        """Return the queue of the pod's gang; None if the pod is not charged."""
        queue, gang = charged_queue(pod), _gang(pod)
        if queue is None or not gang:
            return queue
        group = self._group(gang)
        return (group.spec.queue or names.DEFAULT_QUEUE) if group else queue

    def forget_others(self, present: Callable[[], set[str]]) -> None:
        """Drop counted pods that no longer exist; `present` returns the UIDs of existing pods."""
        with self._lock:
            known = set(self._pods)
        for uid in known - present():
            with self._lock:
                if uid in self._pods:
                    self._drop(uid)

    def _count_pod_of_queue(self, pod: Pod) -> str | None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        known = self._pods.get(uid)
        queue = known.queue if known else self.queue_of(pod)
        if queue is None:
            return None
        requests, offered = gpus.counted(pod), self._offers(node)
        amounts = charged_amounts(requests, offered)
        beyond = offered is None or amounts != requests
        if known is not None:  # it may have been resized, or its node may offer more
            self._drop(uid)
        self._put(uid, Counted(queue, amounts, _gang(pod), node, pod if beyond else None))
        return None if known is not None and known.amounts == amounts else queue

    def _put(self, uid: str, pod: Counted) -> None:
        self._pods[uid] = pod
        self._queues[pod.queue] = add(self._queues.get(pod.queue, {}), pod.amounts)
        if pod.gang:
            self._members.setdefault(pod.gang, {})[uid] = None
        if pod.beyond:
            self._beyond.setdefault(pod.node, {})[uid] = pod.beyond

    def _drop(self, uid: str) -> str:
        pod = self._pods.pop(uid)
        for table, key in ((self._members, pod.gang), (self._beyond, pod.node)):
            if uid in table.get(key, ()):
                del table[key][uid]
                if not table[key]:
                    del table[key]
        left = subtract(self._queues[pod.queue], pod.amounts)
        self._queues[pod.queue] = {name: amount for name, amount in left.items() if amount}
        return pod.queue

    def requests_in(self, queue: str) -> Vector:
        """Return the requests that are charged to this queue itself, without its descendants."""
        with self._lock:
            return dict(self._queues.get(queue, {}))


def _gang(pod: Pod) -> str:
    name = gang_of(pod)
    return f"{pod.metadata.namespace}/{name}" if name else ""
