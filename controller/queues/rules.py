"""The state of a queue, its status, and the requests of the pods in it. No I/O, no clock.

A queue that is to be closed while gangs are in it is Closing until they are gone. Closing a queue closes the queues
below it, and these open again with it; an annotation distinguishes them from those that were closed by a Command.

A pod counts while it has a node and has not finished, with its present amounts, for the queue of its gang. A pod
without a PodGroup counts for the queue that it named when it was first seen with its node.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec import structs

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.scheduling import PodGroup, PodGroupStatus, Queue, QueueState, QueueStatus
from muster.resources import gpus
from muster.resources.vector import Vector, add, subtract, to_quantities
from muster.workloads.charges import charged_queue
from muster.workloads.table import gang_of

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
SHUT = frozenset({"Closed", "Closing"})


@dataclass(slots=True)
class Load:
    """The load of a queue: gangs by phase, and the requests of pods in it and its descendants."""

    gangs: Counter[str] = field(default_factory=Counter)
    allocated: Vector = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """True if the queue contains an uncompleted gang."""
        return any(count for phase, count in self.gangs.items() if phase != "completed")


@dataclass(frozen=True, slots=True)
class WantedState:
    """The desired state of a queue; `by_parent` if its parent closes it."""

    state: QueueState
    by_parent: bool


def counted(gangs: Iterable[PodGroupStatus]) -> Counter[str]:
    """Return the number of gangs for each counter of the queue's status: Volcano's PodGroups and native ones alike."""
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
    """Return the desired state of the queue after a Command with this action, or why it is refused."""
    name = queue.metadata.name
    if action == names.CLOSE_QUEUE:
        if name == names.ROOT_QUEUE:
            return "the root queue cannot be closed: close the queues below it"
        return WantedState("Closing" if busy else "Closed", by_parent=False)
    if action != names.OPEN_QUEUE:
        return f"unknown action {action!r}; known are {names.OPEN_QUEUE}, {names.CLOSE_QUEUE}"
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


class RequestsByQueue:
    """Requests by queue; `group` finds a PodGroup by its key. Thread safe."""

    def __init__(self, group: Callable[[str], PodGroup | None]) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._pods: dict[str, tuple[str, Vector, str]] = {}
        """UID → queue, amounts, and key of the gang; empty without one."""
        self._members: dict[str, set[str]] = {}
        """Key of a gang → UIDs."""
        self._queues: dict[str, Vector] = {}

    def pod_seen(self, pod: Pod, *, gone: bool) -> str | None:
        """Count a pod in its current state; return the queue whose sum has changed."""
        counts = bool(pod.spec.node_name) and not pod.finished and not gone
        uid = pod.metadata.uid
        with self._lock:
            known = self._pods.get(uid)
            if not counts:
                return self._drop(uid) if known else None
        requests = gpus.counted(pod)
        if known is not None and known[1] == requests:
            return None
        with self._lock:  # the queue, too: its gang may move meanwhile
            queue = self._pods[uid][0] if uid in self._pods else self.queue_of(pod)
            if queue is None:
                return None
            if uid in self._pods:  # it has been resized
                self._drop(uid)
            self._put(uid, queue, requests, _gang(pod))
        return queue

    def moved(self, gang: str, queue: str) -> set[str]:
        """Count the pods of a gang for the queue that it is in now; return the queues whose sums have changed by it."""
        changed = set[str]()
        with self._lock:
            for uid in [*self._members.get(gang, ())]:
                left, requests, _ = self._pods[uid]
                if left != queue:
                    changed |= {self._drop(uid), queue}
                    self._put(uid, queue, requests, gang)
        return changed

    def queue_of(self, pod: Pod) -> str | None:
        """Return the queue of the pod's gang; None if the pod is not charged."""
        queue, gang = charged_queue(pod), _gang(pod)
        if queue is None or not gang:
            return queue
        group = self._group(gang)
        return (group.spec.queue or names.DEFAULT_QUEUE) if group else queue

    def forget_others(self, present: Callable[[], set[str]]) -> None:
        """Drop pods whose UIDs no longer exist; pods counted later are kept."""
        with self._lock:
            known = set(self._pods)
        for uid in known - present():
            with self._lock:
                if uid in self._pods:
                    self._drop(uid)

    def _put(self, uid: str, queue: str, requests: Vector, gang: str) -> None:
        self._pods[uid] = queue, requests, gang
        self._queues[queue] = add(self._queues.get(queue, {}), requests)
        if gang:
            self._members.setdefault(gang, set()).add(uid)

    def _drop(self, uid: str) -> str:
        queue, requests, gang = self._pods.pop(uid)
        if gang:
            self._members[gang].discard(uid)
            if not self._members[gang]:
                del self._members[gang]
        left = subtract(self._queues[queue], requests)
        self._queues[queue] = {name: amount for name, amount in left.items() if amount}
        return queue

    def requests_in(self, queue: str) -> Vector:
        """Return the requests of the queue's own pods."""
        with self._lock:
            return dict(self._queues.get(queue, {}))


def _gang(pod: Pod) -> str:
    name = gang_of(pod)
    return f"{pod.metadata.namespace}/{name}" if name else ""
