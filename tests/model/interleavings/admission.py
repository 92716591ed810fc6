"""Muster's webhook inside the model's API server: its own mutators and validators, over the objects of the world."""

from typing import Any

import msgspec

from interleavings.api import Api
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Queue
from muster.kube.errors import Invalid
from muster.runtime import registry
from webhook.lookup import Lookups
from webhook.offline.admission import OfflineAdmission
from webhook.offline.lookups import Documents

REVIEWED = (JOBS, PODS, POD_GROUPS)


class _Objects:
    """The look-ups of handlers in an API server of the model, the one that a review comes from."""

    def __init__(self) -> None:
        self.api = Api({}, {})

    def get(self, name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        found = self.api.find(QUEUES, "", name)
        return found.as_(Queue) if found else None

    def live(self, name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        return self.get(name)

    def children(self, name: str) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        return [one.meta["name"] for one in self.api.all(QUEUES) if one.spec.get("parent") == name]

    def names(self) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        return [one.meta["name"] for one in self.api.all(QUEUES)]

    def find(self, source: Any, namespace: str, owner: OwnerReference) -> Object | None:
        """See webhook.lookup.Owners."""
        found = self.api.find(source, namespace, owner.name)
        return found.as_(source.type) if found and found.meta["uid"] == owner.uid else None

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """See webhook.lookup.Namespaces."""
        del with_queue
        return ObjectMeta(name=name)


class Admission:
    """What the API server asks of Muster about each new object; decisions are remembered, as they are pure."""

    def __init__(self) -> None:
        self._objects: Any = _Objects()
        cluster = Lookups(self._objects, self._objects, self._objects, self._objects)
        self._webhook = OfflineAdmission(Documents([], "ns"), registry.framework(), cluster)
        self._known: dict[Any, bytes | str] = {}

    def __call__(self, api: Api, resource: Resource[Any], content: dict[str, Any]) -> dict[str, Any]:
        """The object as it is stored; Invalid if the webhook refuses it."""
        if not _is_sent(resource, content):
            return content
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **content}
        around = tuple(one.digest for kind in (QUEUES, JOBS, POD_GROUPS) for one in api.all(kind))
        key = (msgspec.json.encode(whole, order="deterministic"), around)
        if key not in self._known:
            self._objects.api = api
            admitted = self._webhook.admit(whole)
            self._known[key] = "; ".join(map(str, admitted.errors)) or msgspec.json.encode(admitted.after)
        known = self._known[key]
        if isinstance(known, str):
            raise Invalid(f"admission webhook denied the request: {known}")
        return msgspec.json.decode(known)  # type: ignore[no-any-return]


def _is_sent(resource: Resource[Any], content: dict[str, Any]) -> bool:
    """Whether the API server sends an object to the webhook: see the selectors and conditions in webhook.registration.

    A pod was reviewed with its Job, and so was a PodGroup, which Muster's own controller makes.
    """
    meta = content["metadata"]
    of_job = any(owner["kind"] == JOBS.kind and owner.get("controller") for owner in meta.get("ownerReferences", ()))
    if resource is PODS:
        return meta.get("labels", {}).get(names.REVIEWED) != "true"
    return resource in REVIEWED and not (resource is POD_GROUPS and of_job)
