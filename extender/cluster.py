"""The watched cluster: reflectors that feed the planner's state under one lock, and wake the planner."""

import threading
from collections.abc import Callable
from typing import Any

from extender.framework.feed import FEED, Fed
from extender.framework.state import State
from muster.api.core import PODS, Pod
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.store import Store


class Cluster:
    """State, its lock and its reflectors. `wake` is called after every change."""

    def __init__(self, client: Client, *, wake: Callable[[], None]) -> None:
        self.lock = threading.RLock()
        self.state = State()
        self._wake = wake
        self._pods: Store[Pod] = Store()
        self._reflectors = [self._watch(client, fed) for fed in FEED]

    @property
    def synced(self) -> bool:
        """Whether every cache has been filled once."""
        return all(reflector.synced for reflector in self._reflectors)

    def pods(self) -> list[Pod]:
        """Every pod as it came last."""
        return self._pods.list()

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

    def _watch(self, client: Client, fed: Fed) -> Reflector[Any]:
        reflector: Reflector[Any] = Reflector(client, fed.resource, store=self._pods if fed.resource is PODS else None)

        def changed(old: Any, new: Any) -> None:
            with self.lock:
                matters = fed.tell(self.state, old, new)
            if matters is not False:
                self._wake()

        reflector.add_handler(changed)
        return reflector
