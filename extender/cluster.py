"""The watched cluster: reflectors that feed the planner's state under one lock, and wake the planner."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

from extender.state.feed import FEED, Fed
from extender.state.state import State
from muster.api.base import Resource
from muster.api.core import PODS, Pod, PodSpec, PodStatus
from muster.api.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.optional import OptionalReflector
from muster.kube.reflector import Reflector

MAX_DELAY_S = 5.0
"""Between two tries while the API server does not answer: gangs wait for it."""


_NO_SPEC, _NO_STATUS = PodSpec(), PodStatus()


def name_only(pod: Pod) -> Pod:
    """What the cache keeps of a pod: the state knows the rest. A whole pod is some 15 KiB, and there may be 50,000."""
    meta = pod.metadata
    name = ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
    return Pod(metadata=name, spec=_NO_SPEC, status=_NO_STATUS)


class Cluster:
    """State, its lock and its reflectors. `wake` is called after every change."""

    def __init__(self, client: Client, *, wake: Callable[[], None]) -> None:
        self.lock = threading.RLock()
        self.state = State()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        """Who waits for a change, on the loop; it is told of the first one."""
        self._wake = wake
        self._client = client
        self._reflectors = [self._watch(client, fed) for fed in FEED]

    @property
    def synced(self) -> bool:
        """Whether every cache has been filled once."""
        return all(reflector.synced for reflector in self._reflectors)

    def sizes(self) -> dict[str, int]:
        """How many objects each cache has, by kind."""
        return {fed.resource.plural: each.size for fed, each in zip(FEED, self._reflectors, strict=True)}

    def observe(self, resource: Resource[Any], handler: Callable[[Any, Any], None]) -> None:
        """Tells somebody else of each change of a kind too, without the lock; before `start`."""
        for fed, reflector in zip(FEED, self._reflectors, strict=True):
            if fed.resource is resource and isinstance(reflector, Reflector):
                reflector.add_handler(handler)

    def pods(self) -> Iterator[Pod]:
        """Every pod, read from the API server now, page by page."""
        for page, _ in self._client.pages(PODS):
            yield from page

    def changed(self) -> None:
        """Tells those who wait, and the planner, of a change that came in another way than through a watch."""
        with self.lock:
            self._tell_waiting()
        self._wake()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until the state fulfils a condition, which is asked under the lock; False if it did not in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            changed = asyncio.Event()
            with self.lock:
                if condition():
                    return True
                self._waiting[changed] = loop
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                with self.lock:
                    return condition()
            finally:
                with self.lock:
                    self._waiting.pop(changed, None)

    def start(self) -> None:
        """Starts the reflectors; `synced` tells when each has filled its cache."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """Stops the reflectors; the state stays as it is."""
        for reflector in self._reflectors:
            reflector.stop()

    def _watch(self, client: Client, fed: Fed) -> Reflector[Any] | OptionalReflector:
        if fed.optional:
            return OptionalReflector(client, fed.resource, self._teller(fed), longest_delay_s=MAX_DELAY_S)
        keep = name_only if fed.resource is PODS else None
        reflector: Reflector[Any] = Reflector(
            client, fed.resource, keep=keep, longest_delay_s=MAX_DELAY_S, may_be_absent=fed.newer
        )
        reflector.add_handler(self._teller(fed))
        return reflector

    def _teller(self, fed: Fed) -> Callable[[Any, Any], None]:
        """What is called with each change of a kind."""

        def changed(old: Any, new: Any) -> None:
            with self.lock:
                matters = fed.tell(self.state, old, new)
                self._tell_waiting()
            if matters is not False:
                self._wake()

        return changed

    def _tell_waiting(self) -> None:
        """Has those who wait look again; the lock is held. Mostly nobody does, and a change costs the loop nothing."""
        for changed, loop in self._waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)
        self._waiting.clear()
