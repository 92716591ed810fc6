"""The requests of the pods in each queue, kept up to date pod by pod. No I/O.

A pod counts from the moment it has a node until it has finished; after a resize it counts with its new amounts. It
counts for the queue that its gang was in when the pod was bound.
"""

import threading
from collections.abc import Callable

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import gang_of
from muster.api.volcano.scheduling import PodGroup
from muster.resources.gpus import counted
from muster.resources.vector import Vector, add, subtract


class Usage:
    """Requests by queue; `group` finds a PodGroup by its key. Thread safe."""

    def __init__(self, group: Callable[[str], PodGroup | None]) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._pods: dict[str, tuple[str, Vector]] = {}
        self._queues: dict[str, Vector] = {}

    def pod_seen(self, pod: Pod, *, gone: bool) -> str | None:
        """Counts a pod as it is now; returns the queue whose sum has changed by it."""
        counts = bool(pod.spec.node_name) and not pod.finished and not gone
        uid = pod.metadata.uid
        with self._lock:
            known = self._pods.get(uid)
            if not counts:
                return self._drop(uid) if known else None
        queue = known[0] if known else self.queue_of(pod)
        if queue is None:
            return None
        requests = counted(pod)
        if known is not None and known[1] == requests:
            return None
        with self._lock:
            if uid in self._pods:  # it has been resized
                self._drop(uid)
            self._pods[uid] = queue, requests
            self._queues[queue] = add(self._queues.get(queue, {}), requests)
        return queue

    def queue_of(self, pod: Pod) -> str | None:
        """The queue of the pod's gang; None if another scheduler places the pod."""
        if pod.spec.scheduler_name not in names.SCHEDULERS:
            return None
        gang = gang_of(pod.metadata)
        group = self._group(f"{pod.metadata.namespace}/{gang}") if gang else None
        labels = pod.metadata.labels
        said = group.spec.queue if group else labels.get(names.QUEUE_NAME) or labels.get(names.QUEUE)
        return said or names.DEFAULT_QUEUE

    def forget_others(self, present: Callable[[], set[str]]) -> None:
        """Drops pods whose UID is not among those present; what is counted later stays."""
        with self._lock:
            known = set(self._pods)
        for uid in known - present():
            with self._lock:
                if uid in self._pods:
                    self._drop(uid)

    def _drop(self, uid: str) -> str:
        queue, requests = self._pods.pop(uid)
        left = subtract(self._queues[queue], requests)
        self._queues[queue] = {name: amount for name, amount in left.items() if amount}
        return queue

    def of(self, queue: str) -> Vector:
        """The requests of the queue's own pods."""
        with self._lock:
            return dict(self._queues.get(queue, {}))
