"""Protocols of look-ups, by which handlers read objects other than the reviewed object.

A failed look-up raises APIError. The reviewed object is then refused, unless its handler does not depend on the
look-up. `caches.ClusterLookups` implements the protocols for a cluster, and `offline.lookups` implements them for given
manifests.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import Queue
from muster.kube.errors import APIError
from muster.resources.accelerators import Claims, no_claims
from muster.volcano.access import NamespaceObstacle, barrier
from muster.workloads.adapter import OwnerError
from muster.workloads.table import source_of
from webhook.apiserver import DryRuns, Rights, Services

Runtime = TrainingRuntime | ClusterTrainingRuntime


class QueueTreeView(Protocol):
    """Look-up of the cluster's queues, which form a tree."""

    def get(self, name: str) -> Queue | None:
        """Return a queue, or None if it does not exist; raise APIError if the look-up fails."""

    def live(self, name: str) -> Queue | None:
        """Return the current queue from the API server, for decisions where a stale cache is not enough.

        Raise APIError if the look-up fails.
        """

    def children(self, name: str) -> list[str]:
        """Return the names of the queue's children."""

    def names(self) -> list[str]:
        """Return the names of all queues that accept jobs, for messages."""


class NamespaceQueues:
    """A `QueueTreeView` that lists only the queues which one namespace is allowed to use.

    The namespace's labels are read when they are first needed.
    """

    def __init__(self, queues: QueueTreeView, namespaces: "Namespaces", namespace: str) -> None:
        self._queues = queues
        self._namespaces = namespaces
        self._namespace = namespace
        self._labels: Mapping[str, str] | None = None
        self.get = queues.get
        self.live = queues.live
        self.children = queues.children

    def names(self) -> list[str]:
        """Return the names of the queues that accept jobs from the namespace, for messages."""
        return [name for name in self._queues.names() if self.barrier(name) is None]

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """The labels of the namespace; raise APIError if the look-up fails."""
        if self._labels is None:
            self._labels = self._namespaces.metadata(self._namespace).labels
        return self._labels

    def barrier(self, name: str) -> NamespaceObstacle | None:
        """Return the reason why the namespace is not allowed to use a queue, or None if it is allowed.

        Raise APIError if the look-up fails.
        """
        return barrier(name, self._namespace, self.namespace_labels, self._queues.get)

    def refusal(self, path: str, name: str) -> list[FieldError]:
        """Return an error, with the usable queues, if the namespace is not allowed to use this queue."""
        found = self.barrier(name)
        if found is None:
            return []
        usable = ", ".join(self.names()) or "none yet"
        what = f"namespace {self._namespace} is not allowed to use queue {name!r}: {found}"
        message = f"{what}; usable queues are: {usable}"
        return [FieldError(path, message, name, "Forbidden")]


class Owners(Protocol):
    """Look-up of the owners of pods; the owner of a pod determines how many ranks its gang has."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """Return the owner with the UID in the reference, or None if the owner was deleted.

        Raise APIError if the look-up fails.
        """


class Namespaces(Protocol):
    """Look-up of the cluster's namespaces."""

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """Return the metadata of a namespace; empty if the namespace was deleted.

        With `with_queue`, the namespace must have a queue label, so a cached namespace without the label is stale.
        """


class TrainingRuntimes(Protocol):
    """Look-up of the Kubeflow Trainer runtimes to which TrainJobs refer."""

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """Return the referenced runtime, or None if it does not exist. Raise APIError if the look-up fails."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """All look-ups that handlers can use."""

    queues: QueueTreeView
    owners: Owners
    namespaces: Namespaces
    runtimes: TrainingRuntimes
    dry_runs: DryRuns | None = None
    """Dry runs of pods; None without an API server."""
    rights: Rights | None = None
    """Checks of users' rights; None without an API server."""
    services: Services | None = None
    """Look-ups of Services; None without an API server."""
    claims: Callable[[str], Claims] = lambda _namespace: no_claims
    """Function that returns the device requests of claims in a namespace."""
    placements: Callable[[str, str], Placement | None] | None = None
    """Function that reads a Placement from the API server, by name and namespace; None without an API server."""
    native_groups: Callable[[], bool] | None = None
    """Function that returns True while gangs are published as native PodGroups; None if gangs are never published."""

    def queues_for(self, namespace: str) -> NamespaceQueues:
        """Return a view of the queues for this namespace."""
        return NamespaceQueues(self.queues, self.namespaces, namespace)


def controller_of(meta: ObjectMeta, namespace: str, owners: Owners) -> Object | None:
    """Return the controller of a pod, or None if the pod has no controller or the controller was deleted.

    Raise OwnerError if pods of this kind of controller have no ranks.
    """
    source, reference = source_of(meta), meta.controller
    return owners.find(source, namespace, reference) if source and reference else None


def known_controller(meta: ObjectMeta, namespace: str, owners: Owners) -> Object | None:
    """Return the controller of a pod. Return None if the controller cannot be read, or if its pods have no ranks."""
    with suppress(APIError, OwnerError):
        return controller_of(meta, namespace, owners)
    return None
