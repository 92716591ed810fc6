"""Everything the planner reads, at one moment, as plain objects."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from extender.planner.state.feed import FEED
from extender.planner.state.state import State
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object
from muster.api.volcano.scheduling import POD_GROUPS

T = TypeVar("T")
READ: tuple[Resource[Any], ...] = (*(fed.resource for fed in FEED), PROVISIONING_REQUESTS)
"""Every kind that is read; the last one is there only where an autoscaler brings it, and is not watched."""


def kind_name(resource: Resource[Any]) -> str:
    """The kind as kubectl calls it: `pods`, `jobs.batch.volcano.sh`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


@dataclass(slots=True)
class ClusterDump:
    """The objects of one moment, by kind: what a file of `muster snapshot` holds, or a cluster that was just read."""

    taken_at: float
    """Seconds since the epoch; every age is counted from here."""
    scheduler_config: str = ""
    """The planner's configuration, as its file has it; empty means the defaults."""
    objects: dict[str, list[Any]] = field(default_factory=dict)

    def of(self, resource: Resource[T]) -> list[T]:
        """The objects of one kind."""
        return self.objects.setdefault(kind_name(resource), [])

    def put(self, resource: Resource[T], items: Iterable[T]) -> None:
        """Adds objects of one kind, after those that are there."""
        self.of(resource).extend(items)

    def has(self, resource: Resource[Any]) -> bool:
        """Whether the kind was read; a cluster may not have it, and an older file neither."""
        return kind_name(resource) in self.objects

    def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of this name, as the API server had it; the state keeps less of it."""
        return next(
            (pod for pod in self.of(PODS) if pod.metadata.name == name and pod.metadata.namespace == namespace), None
        )


def state_of(dump: ClusterDump) -> State:
    """The planner's state, fed as the watches would feed it; gangs arrive in the order of their creation."""
    state = State()
    for fed in FEED:
        items: list[Object] = dump.of(fed.resource)
        if fed.resource is POD_GROUPS:
            items = sorted(items, key=lambda item: item.metadata.creation_timestamp or "")
        for item in items:
            fed.tell(state, None, item)
    return state
