"""Look-ups of the webhook for manifests: among the manifests first, then in a cluster, if there is one.

Without a cluster every queue counts as open, and runtimes that nobody gives are those that Muster ships.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from muster.api.base import Resource
from muster.api.meta import Object, ObjectMeta, OwnerReference
from muster.api.scheduling import Queue, QueueStatus
from muster.api.trainer import RuntimeRef
from muster.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.workloads.sample import uid_of
from webhook.lookup import Lookups, Runtime

JSON = dict[str, Any]
SHIPPED = Path(__file__).parents[2] / "charts" / "muster" / "runtimes"


class Manifests:
    """The objects of some files, found by kind and name; those without a namespace are in `namespace`."""

    def __init__(self, documents: Sequence[JSON], namespace: str) -> None:
        self._namespace = namespace
        self._documents: list[JSON] = []
        for document in documents:
            self.add(document)

    def add(self, document: JSON) -> None:
        """One more object; it stays as it is."""
        metadata = document.get("metadata") or {}
        own = {"namespace": self._namespace, "uid": uid_of(metadata.get("name", ""))}
        self._documents.append({**deepcopy(document), "metadata": {**own, **metadata}})

    def find(self, kind: str, name: str, namespace: str = "", *, api_version: str = "") -> JSON | None:
        """The object; without `namespace` or `api_version`, whatever those are."""
        for document in self._documents:
            metadata = document["metadata"]
            here = namespace in {"", metadata["namespace"]} and api_version in {"", document.get("apiVersion")}
            if here and (document.get("kind"), metadata.get("name")) == (kind, name):
                return document
        return None


def lookups(manifests: Manifests, cluster: Lookups | None = None) -> Lookups:
    """Everything that handlers may ask for."""
    return Lookups(
        _Queues(manifests, cluster),
        _Owners(manifests, cluster),
        _Namespaces(manifests, cluster),
        _Runtimes(manifests, cluster),
    )


class _Nearby:
    def __init__(self, manifests: Manifests, cluster: Lookups | None) -> None:
        self._manifests = manifests
        self._cluster = cluster


class _Queues(_Nearby):
    def get(self, name: str) -> Queue | None:
        """See webhook.lookup.Queues."""
        if self._cluster and not self._manifests.find("Queue", name):
            return self._cluster.queues.get(name)
        return Queue(metadata=ObjectMeta(name=name), status=QueueStatus(state="Open"))

    def children(self, name: str) -> list[str]:
        """See webhook.lookup.Queues."""
        return self._cluster.queues.children(name) if self._cluster else []

    def names(self) -> list[str]:
        """See webhook.lookup.Queues."""
        return self._cluster.queues.names() if self._cluster else []


class _Owners(_Nearby):
    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """See webhook.lookup.Owners."""
        document = self._manifests.find(owner.kind, owner.name, namespace, api_version=owner.api_version)
        if document:
            found: Object = msgspec.convert(document, source.type)
            return found
        return self._cluster.owners.find(source, namespace, owner) if self._cluster else None


class _Namespaces(_Nearby):
    def labels(self, name: str, *, with_queue: bool) -> Mapping[str, str]:  # noqa: ARG002 # no API server has sent it
        """See webhook.lookup.Namespaces."""
        document = self._manifests.find("Namespace", name)
        if document:
            labels: Mapping[str, str] = document["metadata"].get("labels") or {}
            return labels
        return self._cluster.namespaces.labels(name, with_queue=False) if self._cluster else {}

    def annotations(self, name: str) -> Mapping[str, str]:
        """See webhook.lookup.Namespaces."""
        document = self._manifests.find("Namespace", name)
        if document:
            annotations: Mapping[str, str] = document["metadata"].get("annotations") or {}
            return annotations
        return self._cluster.namespaces.annotations(name) if self._cluster else {}


class _Runtimes(_Nearby):
    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """See webhook.lookup.Runtimes."""
        if reference.kind == TRAINING_RUNTIMES.kind:
            document = self._manifests.find(reference.kind, reference.name, namespace)
            kind: type[Runtime] = TRAINING_RUNTIMES.type
        else:
            document = self._manifests.find(reference.kind, reference.name)
            kind = CLUSTER_TRAINING_RUNTIMES.type
        if document is None and self._cluster:
            return self._cluster.runtimes.find(reference, namespace)
        if document is None and kind is CLUSTER_TRAINING_RUNTIMES.type:
            document = _shipped(reference.name)
        return msgspec.convert(document, kind) if document else None


def _shipped(name: str) -> JSON | None:
    for path in SHIPPED.glob("*.yaml"):
        if path.stem == name:
            document: JSON = yaml.safe_load(path.read_text(encoding="utf-8"))
            return document
    return None
