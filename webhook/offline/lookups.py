"""What handlers look up, from documents: among these first, then in a cluster, if there is one.

Without a cluster every queue counts as open, and runtimes that nobody gives are those that Muster ships.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import msgspec
import yaml

from muster.api.base import Resource
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.volcano.scheduling import Queue, QueueStatus
from muster.chart import CHART
from muster.workloads.sample import uid_of
from webhook.lookup import Lookups, Runtime

JSON = dict[str, Any]
SHIPPED = CHART / "runtimes"


class Documents:
    """Objects that are not in a cluster yet, found by kind and name; those without a namespace are in `namespace`."""

    def __init__(self, documents: Iterable[JSON], namespace: str) -> None:
        self.namespace = namespace
        self._documents: list[JSON] = []
        for document in documents:
            self.add(document)

    def add(self, document: JSON) -> None:
        """Adds an object, so that others find it, e.g. pods their owner; a copy, with a UID if it has none."""
        metadata = document.get("metadata") or {}
        own = {"namespace": self.namespace, "uid": uid_of(metadata.get("name", ""))}
        self._documents.append({**deepcopy(document), "metadata": {**own, **metadata}})

    def find(self, kind: str, name: str, namespace: str = "", *, api_version: str = "") -> JSON | None:
        """The object that is meant; None without it. An empty `namespace` or `api_version` stands for any."""
        for document in self._documents:
            metadata = document["metadata"]
            here = namespace in {"", metadata["namespace"]} and api_version in {"", document.get("apiVersion")}
            if here and (document.get("kind"), metadata.get("name")) == (kind, name):
                return document
        return None


def lookups(documents: Documents, cluster: Lookups | None = None) -> Lookups:
    """Everything that handlers may ask for. Nothing tries pods: that takes an API server."""
    return Lookups(
        _Queues(documents, cluster),
        _Owners(documents, cluster),
        _Namespaces(documents, cluster),
        _Runtimes(documents, cluster),
    )


class _Source:
    """Where all of the look-ups below look: in the documents, then in the cluster."""

    def __init__(self, documents: Documents, cluster: Lookups | None) -> None:
        self._documents = documents
        self._cluster = cluster


class _Queues(_Source):
    def get(self, name: str) -> Queue | None:
        """The queue; among the documents, or without a cluster, every one counts as open: nobody can say otherwise."""
        if self._cluster and not self._documents.find("Queue", name):
            return self._cluster.queues.get(name)
        return Queue(metadata=ObjectMeta(name=name), status=QueueStatus(state="Open"))

    def children(self, name: str) -> list[str]:
        """As the cluster has them: queues of the documents count as leaves."""
        return self._cluster.queues.children(name) if self._cluster else []

    def names(self) -> list[str]:
        """As the cluster has them; without one no queue is ever missing, so that nobody asks."""
        return self._cluster.queues.names() if self._cluster else []


class _Owners(_Source):
    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """The owner by name: a document has no UID that anybody could have referred to."""
        document = self._documents.find(owner.kind, owner.name, namespace, api_version=owner.api_version)
        if document:
            found: Object = msgspec.convert(document, source.type)
            return found
        return self._cluster.owners.find(source, namespace, owner) if self._cluster else None


class _Namespaces(_Source):
    def labels(self, name: str, *, with_queue: bool) -> Mapping[str, str]:  # noqa: ARG002 # no API server has sent it
        """The labels of the document, else of the cluster's namespace; none of one that neither has."""
        document = self._documents.find("Namespace", name)
        if document:
            labels: Mapping[str, str] = document["metadata"].get("labels") or {}
            return labels
        return self._cluster.namespaces.labels(name, with_queue=False) if self._cluster else {}

    def annotations(self, name: str) -> Mapping[str, str]:
        """The annotations, in the same way."""
        document = self._documents.find("Namespace", name)
        if document:
            annotations: Mapping[str, str] = document["metadata"].get("annotations") or {}
            return annotations
        return self._cluster.namespaces.annotations(name) if self._cluster else {}


class _Runtimes(_Source):
    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """The runtime of the documents, else of the cluster; without a cluster, one that Muster ships."""
        if reference.kind == TRAINING_RUNTIMES.kind:
            document = self._documents.find(reference.kind, reference.name, namespace)
            kind: type[Runtime] = TRAINING_RUNTIMES.type
        else:
            document = self._documents.find(reference.kind, reference.name)
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
