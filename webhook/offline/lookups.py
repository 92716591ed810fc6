"""Look-ups for handlers in given manifests, and then in the cluster, if one is given.

Without a cluster, every queue counts as open, and a runtime that is not in the manifests is looked up among Muster's
own runtimes.
"""

from collections.abc import Iterable
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec
import yaml

from muster.api.base import Resource
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.core import PodResourceClaim
from muster.api.kubernetes.devices import (
    CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimTemplate,
)
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.unchecked import mapping
from muster.api.volcano.scheduling import Queue, QueueSpec, QueueStatus
from muster.chart import CHART
from muster.workloads.sample import uid_of
from webhook.lookup import Lookups, Runtime

JSON = dict[str, Any]
SUPPLIED_KINDS = frozenset({"Namespace", "Queue", CLAIM_TEMPLATES.kind, RESOURCE_CLAIMS.kind})
"""Kinds of objects that handlers look up, in addition to owners and runtimes."""
SHIPPED = CHART / "runtimes"


class Documents:
    """The given manifests, by kind and name; objects without a namespace belong to `namespace`."""

    def __init__(self, documents: Iterable[JSON], namespace: str) -> None:
        self.namespace = namespace
        self._documents: list[JSON] = []
        for document in documents:
            self.add(document)

    def add(self, document: JSON) -> None:
        """Add a copy of an object, with a UID if it has none, so that look-ups find it, e.g. as an owner of pods."""
        metadata = document.get("metadata") or {}
        own = {"namespace": self.namespace, "uid": uid_of(metadata.get("name", ""))}
        self._documents.append({**deepcopy(document), "metadata": {**own, **metadata}})

    def find_document(self, kind: str, name: str, namespace: str = "", *, api_version: str = "") -> JSON | None:
        """Return the last added object with this kind and name, or None.

        An empty `namespace` or `api_version` matches any value.
        """
        for document in reversed(self._documents):
            metadata = document["metadata"]
            here = namespace in {"", metadata["namespace"]} and api_version in {"", document.get("apiVersion")}
            if here and (document.get("kind"), metadata.get("name")) == (kind, name):
                return document
        return None


def lookups(documents: Documents, cluster: Lookups | None = None) -> Lookups:
    """Return all look-ups for handlers, except dry runs and checks of rights, which need an API server."""
    return Lookups(
        _Queues(documents, cluster),
        _Owners(documents, cluster),
        _Namespaces(documents, cluster),
        _Runtimes(documents, cluster),
        claims=lambda namespace: partial(_Claims(documents, cluster).find, namespace),
    )


class _Source:
    """Base class of look-ups in the given manifests, and in the cluster if no manifest matches."""

    def __init__(self, documents: Documents, cluster: Lookups | None) -> None:
        self._documents = documents
        self._cluster = cluster


class _Queues(_Source):
    def get(self, name: str) -> Queue | None:
        """Return the queue. A queue in the manifests counts as open, and so does every queue without a cluster."""
        document = self._documents.find_document("Queue", name)
        if self._cluster and not document:
            return self._cluster.queues.get(name)
        labels = mapping(mapping(document or {}).get("metadata")).get("labels") or {}
        parent = mapping(mapping(document or {}).get("spec")).get("parent") or ""
        return Queue(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=QueueSpec(parent=parent),
            status=QueueStatus(state="Open"),
        )

    live = get
    """Return the same queue as `get`, because no queue is deleted while manifests are checked."""

    def children(self, name: str) -> list[str]:
        """Return the queue's children in the cluster; queues in the manifests count as leaves."""
        return self._cluster.queues.children(name) if self._cluster else []

    def names(self) -> list[str]:
        """Return the names of the cluster's queues, for messages.

        Without a cluster, the list is empty: every queue counts as existing, so no message contains the list.
        """
        return self._cluster.queues.names() if self._cluster else []


class _Owners(_Source):
    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """Return the owner with the name in the reference; UIDs are not compared, because manifests have none."""
        document = self._documents.find_document(owner.kind, owner.name, namespace, api_version=owner.api_version)
        if document:
            found: Object = msgspec.convert(document, source.type)
            return found
        return self._cluster.owners.find(source, namespace, owner) if self._cluster else None


class _Namespaces(_Source):
    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:  # noqa: ARG002 # no API server has sent it
        """Return the namespace's metadata from the manifests, or else from the cluster; empty if it is unknown."""
        if document := self._documents.find_document("Namespace", name):
            return msgspec.convert(document["metadata"], ObjectMeta)
        return self._cluster.namespaces.metadata(name) if self._cluster else ObjectMeta()


class _Claims(_Source):
    def find(self, namespace: str, entry: PodResourceClaim) -> DeviceClaim | None:
        """Return the device requests of a claim from the manifests, or else from the cluster.

        Without a cluster, assume that the claim requests one device.
        """
        template = entry.resource_claim_template_name
        kind, name = (CLAIM_TEMPLATES, template) if template else (RESOURCE_CLAIMS, entry.resource_claim_name or "")
        if document := self._documents.find_document(kind.kind, name, namespace):
            found = msgspec.convert(document, kind.type)
            return found.spec.spec.devices if isinstance(found, ResourceClaimTemplate) else found.spec.devices
        if self._cluster:
            return self._cluster.claims(namespace)(entry)
        return DeviceClaim(requests=[DeviceRequest(exactly=ExactDeviceRequest())])


class _Runtimes(_Source):
    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """Return the runtime from the manifests, or else from the cluster.

        Without a cluster, return Muster's own runtime of this name.
        """
        in_namespace = reference.kind == TRAINING_RUNTIMES.kind
        document = self._documents.find_document(reference.kind, reference.name, namespace if in_namespace else "")
        if document is None and self._cluster:
            return self._cluster.runtimes.find(reference, namespace)
        shipped = {path.stem: path for path in SHIPPED.glob("*.yaml")}
        if document is None and not in_namespace and reference.name in shipped:
            document = yaml.safe_load(shipped[reference.name].read_text(encoding="utf-8"))
        kind: type[Runtime] = TRAINING_RUNTIMES.type if in_namespace else CLUSTER_TRAINING_RUNTIMES.type
        return msgspec.convert(document, kind) if document else None
