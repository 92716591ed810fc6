"""A cache for the objects of a third-party kind, which is active only while the kind's CRD is installed.

The CRD itself is watched all the time, by name. Therefore the cache notices at once when the kind is installed or
removed, or changes its version. A kind that is not installed causes no other requests.
"""

import time
from dataclasses import replace
from typing import Any

import structlog

from muster.api.base import Resource
from muster.api.kubernetes.extensions import DEFINITIONS, CustomResourceDefinition
from muster.kube.client import Client
from muster.kube.memorylimit import MemoryLimit
from muster.kube.reflector import Reflector
from muster.kube.store import Handler, ObjectStore

log = structlog.get_logger()
PATIENCE_S = 10.0
"""Maximum time to wait for an optional kind at startup, for example if the kind's conversion webhook does not
respond."""


class OptionalReflector:
    """A cache that runs a `Reflector` while the kind exists, and calls `handler` like the handler of a reflector.

    When the kind is removed, the handler gets a deletion of each object.
    """

    def __init__(
        self, client: Client, resource: Resource[Any], handler: Handler[Any], *, longest_delay_s: float = 30.0
    ) -> None:
        self._client = client
        self._resource = resource
        self._handler = handler
        self._longest_delay_s = longest_delay_s
        self._definition = Reflector(
            client, DEFINITIONS, field_selector=f"metadata.name={resource.full_name}", longest_delay_s=longest_delay_s
        )
        self._definition.add_handler(self._seen)
        self._version: str | None = None
        self._objects: Reflector[Any] | None = None
        self._since_s: float | None = None
        """Start of the wait for the CRD or, once the CRD exists, for the objects of the kind."""

    @property
    def synced(self) -> bool:
        """True once all objects have been reported, the kind is known not to exist, or the wait has taken too long."""
        if self._definition.synced and (self._objects is None or self._objects.synced):
            return True
        return self._since_s is not None and time.monotonic() - self._since_s > PATIENCE_S

    @property
    def trouble(self) -> str | None:
        """A sentence about the failure if the CRD cannot be read.

        Unreadable objects of the third-party kind are not reported.
        """
        return self._definition.trouble

    @property
    def size(self) -> int:
        """Number of known objects."""
        return len(self._objects.store) if self._objects else 0

    def start(self) -> None:
        """Start to watch the CRD of the kind."""
        self._since_s = time.monotonic()
        self._definition.start()

    def stop(self) -> None:
        """End the watches. The handler gets no deletions of the objects that were reported."""
        self._definition.stop()
        if self._objects is not None:
            self._objects.stop()

    def _seen(self, _old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        version = new.served(self._resource.version) if new else None
        if version == self._version:
            return
        log.info("optional kind", resource=self._resource.plural, group=self._resource.group, served=version or "not")
        self._version = version
        before, self._objects = self._objects, None
        if before is not None:
            before.stop()
            for each in before.store.list():
                self._handler(each, None)
        if version is not None:
            self._begin(replace(self._resource, version=version))

    def _begin(self, resource: Resource[Any]) -> None:
        objects: Reflector[Any] = Reflector(
            self._client,
            resource,
            store=ObjectStore(packed=resource.type),
            budget=MemoryLimit(resource),
            longest_delay_s=self._longest_delay_s,
        )

        def handle(old: Any, new: Any) -> None:
            if self._objects is objects:  # ignore a late change from an earlier reflector
                self._handler(old, new)

        objects.add_handler(handle)
        self._since_s = time.monotonic()
        self._objects = objects
        objects.start()
