"""Queues: `root` and `default` always exist, every queue has a parent and a state."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from controller.worker import Worker
from muster.api import names
from muster.api.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, NotFound
from muster.kube.store import Store

STANDING: Mapping[str, Mapping[str, Any]] = {
    names.ROOT_QUEUE: {"weight": 1, "reclaimable": False},
    names.DEFAULT_QUEUE: {"weight": 1, "reclaimable": True, "parent": names.ROOT_QUEUE},
}
"""spec of the queues that always exist, parents first."""


class Queues:
    """A worker over the names of queues."""

    def __init__(self, client: Client, queues: Store[Queue], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._queues = queues
        self.worker = Worker("queue", self.process, queue="queue", clock=clock)

    def queue_seen(self, old: Queue | None, new: Queue | None) -> None:
        """A queue has changed."""
        queue = new or old
        if queue:
            self.worker.queue.add(queue.metadata.name)

    def not_ready(self) -> str | None:
        """Which of the queues that always exist cannot be used yet; None when all can."""
        known = {name: self._queues.get(name) for name in STANDING}
        missing = [name for name, queue in known.items() if queue is None or not queue.status.state]
        return f"not open yet: {', '.join(missing)}" if missing else None

    def replay(self) -> None:
        """Looks after every queue, also those that should exist."""
        for name in (*STANDING, *self._queues.keys()):
            self.worker.queue.add(name)

    def process(self, name: str) -> None:
        """One pass over one queue."""
        queue = self._queues.get(name)
        if queue is None:
            if name in STANDING:
                with suppress(AlreadyExists):
                    self._client.create(QUEUES, {"metadata": {"name": name}, "spec": STANDING[name]})
            return
        if queue.metadata.deletion_timestamp:
            return
        version = queue.metadata.resource_version
        with suppress(NotFound):
            if not queue.spec.parent and name != names.ROOT_QUEUE:
                patch = {"metadata": {"resourceVersion": version}, "spec": {"parent": names.ROOT_QUEUE}}
                version = self._client.merge_patch(QUEUES, name, patch).metadata.resource_version
            if not queue.status.state:
                patch = {"metadata": {"resourceVersion": version}, "status": {"state": "Open"}}
                self._client.merge_patch(QUEUES, name, patch, subresource="status")
