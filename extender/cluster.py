"""The watched cluster: reflectors that feed the live state, and wake the planner."""

from collections.abc import Callable
from sys import intern
from typing import Any

from msgspec.structs import replace

from extender.live import Live
from extender.planner.state.feed import FEED, Fed
from extender.planner.state.state import State
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.optional import OptionalReflector
from muster.kube.reflector import Reflector

MAX_DELAY_S = 5.0
"""Between two tries while the API server does not answer: gangs wait for it."""


_NO_META, _NO_SPEC, _NO_STATUS = ObjectMeta(), PodSpec(), PodStatus()


def name_only(pod: Pod) -> Pod:
    """What the cache keeps of a pod: the state knows the rest. A whole pod is some 15 KiB, and there may be 50,000.

    What is empty is the same for all of them.
    """
    meta = pod.metadata
    namespace, version = intern(meta.namespace), meta.resource_version
    name = replace(_NO_META, name=meta.name, namespace=namespace, uid=meta.uid, resource_version=version)
    return Pod(metadata=name, spec=_NO_SPEC, status=_NO_STATUS)


class Cluster(Live):
    """The live state and the reflectors that feed it. `wake` is called after every change that matters."""

    def __init__(self, client: Client, *, wake: Callable[[], None]) -> None:
        super().__init__(State(), wake=wake)
        self._reflectors = [self._watch(client, fed) for fed in FEED]
        self._synced = False

    @property
    def synced(self) -> bool:
        """Whether every cache has been filled once."""
        self._synced = self._synced or all(reflector.synced for reflector in self._reflectors)
        return self._synced

    def sizes(self) -> dict[str, int]:
        """How many objects each cache has, by kind."""
        return {fed.resource.plural: each.size for fed, each in zip(FEED, self._reflectors, strict=True)}

    def observe(self, resource: Resource[Any], handler: Callable[[Any, Any], None]) -> None:
        """Tells somebody else of each change of a kind too; before `start`."""
        for fed, reflector in zip(FEED, self._reflectors, strict=True):
            if fed.resource is resource and isinstance(reflector, Reflector):
                reflector.add_handler(handler)

    def start(self) -> None:
        """Starts the reflectors; `synced` tells when each has filled its cache. Runs on the loop."""
        self.run_here()
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
        """What is called with each change of a kind, on the loop."""
        tell, state = fed.tell, self.state
        return lambda old, new: self.changed(tell(state, old, new))
