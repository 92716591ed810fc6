"""What every adapter answers, and how ranks, owners and errors are told."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubernetes.endpoints import Endpoints
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import whole_number

OWNER_PATH = "metadata.ownerReferences"
_FIELD = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>.+)'\]")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A value that the kubelet reads from the pod itself."""

    path: str

    def of(self, pod: ObjectMeta) -> str | None:
        """What the field of this pod holds; None where it is missing, or no label or annotation."""
        found = _FIELD.fullmatch(self.path)
        values = pod.labels if found and found["map"] == "labels" else pod.annotations
        return values.get(found["key"]) if found else None


Value = str | FieldPath
"""What a variable of a pod holds: a text, or a field of the pod."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The workload that pods belong to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource[Any], meta: ObjectMeta) -> "Owner":
        """The object of this kind with this metadata."""
        return cls(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def reference(self) -> dict[str, Any]:
        """The owner reference of an object that goes away with the workload."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


class OwnerError(Exception):
    """Pods of this owner cannot form a group; `error` has the pod's field."""

    def __init__(self, message: str, value: str | None = None) -> None:
        super().__init__(message)
        self.error = FieldError(OWNER_PATH, message, value)


class Adapter(Protocol):
    """One owner, asked by plugins through `Info`."""

    @property
    def owner(self) -> Owner:
        """Which workload it is."""

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template as the user wrote it: the pod itself may have got sidecars since."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """The owner's own annotations; settings may stand there."""

    def errors(self) -> list[FieldError]:
        """Why the owner's pods cannot form a group, with paths in the owner; empty when they can."""

    def rank(self, pod: ObjectMeta | None) -> Value:
        """How a pod learns its rank, 0-based; without a pod, how most pods of the owner do."""

    def size(self) -> int:
        """How many pods there are."""

    def subdomain(self) -> str:
        """The headless Service under which the pods are found."""

    def endpoints(self) -> Endpoints:
        """The host name of each pod, in rank order; rank 0 comes first."""


def label(key: str) -> FieldPath:
    """The value of a label."""
    return FieldPath(f"metadata.labels['{key}']")


def annotation(key: str) -> FieldPath:
    """The value of an annotation."""
    return FieldPath(f"metadata.annotations['{key}']")


def number(text: str | None) -> int | None:
    """A count or index of decimal digits; None for anything else."""
    return whole_number(text)


def own_rank(rank: Value, pod: ObjectMeta) -> int | None:
    """The rank of this very pod, where `rank` is how it learns it; None where that is not known yet."""
    return number(rank.of(pod) if isinstance(rank, FieldPath) else rank)


def ordinal(meta: ObjectMeta, prefix: str) -> int | None:
    """The number behind `<prefix>-` in a pod's name."""
    head, _, tail = meta.name.rpartition("-")
    return number(tail) if head == prefix else None
