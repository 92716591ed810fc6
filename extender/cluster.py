"""The watched cluster: reflectors that feed the planner's state under one lock, and wake the planner."""

import threading
from collections.abc import Callable
from typing import Any

from extender.framework.state import State
from muster.api.base import Resource
from muster.api.batch import JOBS
from muster.api.core import NODES, PODS, PRIORITY_CLASSES
from muster.api.placement import PLACEMENTS
from muster.api.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.reflector import Reflector


class Cluster:
    """State, its lock and its reflectors. `wake` is called after every change."""

    def __init__(self, client: Client, *, wake: Callable[[], None]) -> None:
        self.lock = threading.RLock()
        self.state = State()
        self._wake = wake
        self._reflectors = [
            self._watch(client, NODES, self.state.on_node),
            self._watch(client, PRIORITY_CLASSES, self.state.on_priority_class),
            self._watch(client, QUEUES, self.state.on_queue),
            self._watch(client, JOBS, self.state.on_job),
            self._watch(client, POD_GROUPS, self.state.on_pod_group),
            self._watch(client, PLACEMENTS, self.state.on_placement),
            self._watch(client, PODS, self.state.on_pod),
        ]

    @property
    def synced(self) -> bool:
        """Whether every cache has been filled once."""
        return all(reflector.synced for reflector in self._reflectors)

    def changed(self) -> None:
        """Somebody changed the state in another way than through a watch."""
        self._wake()

    def start(self) -> None:
        """Start watching."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """Stop watching."""
        for reflector in self._reflectors:
            reflector.stop()

    def _watch(self, client: Client, resource: Resource[Any], fn: Callable[[Any, Any], bool | None]) -> Reflector[Any]:
        reflector = Reflector(client, resource)

        def changed(old: Any, new: Any) -> None:
            with self.lock:
                matters = fn(old, new)
            if matters is not False:
                self._wake()

        reflector.add_handler(changed)
        return reflector
