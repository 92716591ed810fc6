"""A cache of somebody else's kind, which exists while its CRD is installed; nothing is asked for while it is not.

What is watched all the time is that one CRD, by its name: one object at most, so that a kind that is installed later,
or goes, or comes back in another version, is noticed at once and costs nothing before.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog

from muster.api.base import Resource
from muster.api.kubernetes.extensions import DEFINITIONS, CustomResourceDefinition
from muster.kube.client import Client
from muster.kube.reflector import Reflector

log = structlog.get_logger()
PATIENCE_S = 10.0
"""So long who starts waits for a kind that he can do without, e.g. while its owner's conversion webhook is down."""

Handler = Callable[[Any, Any], None]


class OptionalReflector:
    """A `Reflector` of one kind while there is that kind; `handler` is told as one of a reflector is.

    When the kind goes, the handler is told of each object that it is gone.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Any],
        handler: Handler,
        *,
        longest_delay_s: float = 30.0,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._resource = resource
        self._handler = handler
        self._longest_delay_s = longest_delay_s
        self._monotonic_s = monotonic_s
        self._definition = Reflector(
            client,
            DEFINITIONS,
            field_selector=f"metadata.name={resource.plural}.{resource.group}",
            longest_delay_s=longest_delay_s,
        )
        self._definition.add_handler(self._seen)
        self._version: str | None = None
        self._objects: Reflector[Any] | None = None
        self._since_s: float | None = None
        """When what is waited for was asked for."""

    @property
    def synced(self) -> bool:
        """Whether it is known if there is such a kind, and its objects are told; or that took too long to wait on."""
        if self._definition.synced and (self._objects is None or self._objects.synced):
            return True
        return self._since_s is not None and self._monotonic_s() - self._since_s > PATIENCE_S

    @property
    def size(self) -> int:
        """How many objects are known."""
        return len(self._objects.store) if self._objects else 0

    def start(self) -> None:
        """Starts to watch for the kind."""
        self._since_s = self._monotonic_s()
        self._definition.start()

    def stop(self) -> None:
        """Ends the watches; what was told stays told."""
        self._definition.stop()
        if self._objects is not None:
            self._objects.stop()

    def _seen(self, _old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        version = new.served(self._resource.version) if new else None
        if version == self._version:
            return
        log.info("optional kind", resource=self._resource.plural, group=self._resource.group, served=version or "not")
        self._end()
        self._version = version
        if version is not None:
            self._begin(replace(self._resource, version=version))

    def _begin(self, resource: Resource[Any]) -> None:
        objects: Reflector[Any] = Reflector(self._client, resource, longest_delay_s=self._longest_delay_s)

        def told(old: Any, new: Any) -> None:
            if self._objects is objects:  # what is still on its way from an earlier one comes too late
                self._handler(old, new)

        objects.add_handler(told)
        self._since_s = self._monotonic_s()
        self._objects = objects
        objects.start()

    def _end(self) -> None:
        objects, self._objects = self._objects, None
        if objects is not None:
            objects.stop()
            for each in objects.store.list():
                self._handler(each, None)
