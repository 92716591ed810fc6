"""An API server in memory with workloads that are no Volcano Jobs, and the controller's workers over their pods."""

import random
from typing import Any

import msgspec
from builders import manifests
from simulated_api import Api
from simulated_faults import Faults

from controller.caches import SharedCaches
from controller.gangs.podgroups import PodGroups
from controller.gangs.rendezvous import Rendezvous
from controller.kit import Kit
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object, OwnerReference
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup

JSON = dict[str, Any]


class Events:
    """As much of a Recorder as is needed: what was said, by reason."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def event(self, obj: Object, _type: str, reason: str, message: str) -> None:
        """See Recorder."""
        self.said[reason] = f"{obj.kind} {obj.metadata.name}: {message}"


class World:
    """An API server, and the two workers over its pods."""

    def __init__(self) -> None:
        self.api = Api(Faults(random.Random(1), 0, 0), lambda: 0.0, lambda *_: None)  # noqa: S311 - nothing fails
        self.events = Events()
        client: Any = self.api
        recorder: Any = self.events
        self.now_s = 100.0
        kit, caches = Kit(client, recorder, lambda: self.now_s), SharedCaches(client)
        self.pods, self.groups = caches.pods.store, caches.groups.store
        self.pod_groups, self.rendezvous = PodGroups(kit, caches), Rendezvous(kit, caches)

    def owner(self, resource: Resource[Any], above: OwnerReference | None = None, **content: Any) -> OwnerReference:
        """Creates owner `train`, or one of another name, of this kind; a reference to it."""
        references = [msgspec.to_builtins(above)] if above else []
        metadata = {"name": "train", "ownerReferences": references, **content.pop("metadata", {})}
        made = self.api.add(resource, {"metadata": metadata, **content})
        reference = manifests.owner(made.metadata.name, resource.kind, resource.api_version, made.metadata.uid)
        return msgspec.convert(reference, OwnerReference)

    def pod(
        self,
        owner: OwnerReference,
        scheduler: str,
        labels: JSON | None = None,
        *,
        metadata: JSON | None = None,
        **spec: Any,
    ) -> Pod:
        """A shaped pod `x` of this owner, or one of another name."""
        labels = {"muster.dev/framework": "mpi", **(labels or {})}
        own = {"labels": labels, "ownerReferences": [msgspec.to_builtins(owner)]}
        metadata = {"name": "x", **(metadata or {}), **own}
        pod: Pod = self.api.add(PODS, {"metadata": metadata, "spec": {"schedulerName": scheduler, **spec}})
        self.pods.add_object(pod)
        return pod

    def meet(self, owner: OwnerReference, labels: JSON | None = None, **spec: Any) -> None:
        """Lets `Rendezvous` see to a pod that Muster does not place."""
        self.rendezvous.process(self.pod(owner, "default-scheduler", labels, **spec).metadata.key)

    def group(self, owner: OwnerReference) -> PodGroup | None:
        """The PodGroup of an owner's pods, after a look at them."""
        self.pod_groups.process(f"n/podgroup-{owner.uid}")
        groups: list[PodGroup] = self.api.all(POD_GROUPS)
        for group in groups:
            self.groups.add_object(group)
        return groups[0] if groups else None

    def made(self, resource: Resource[Any]) -> list[tuple[str, str]]:
        """Name and owner's kind of all objects of a kind."""
        return [(each.metadata.name, each.metadata.controller.kind) for each in self.api.all(resource)]
