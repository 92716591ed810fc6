"""Adapters of owners, which contain the ranks, number and host names of an owner's pods, and the owner itself."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubernetes.endpoints import Endpoints
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import whole_number

OWNER_PATH = "metadata.ownerReferences"
_FIELD = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>.+)'\]")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A value that the kubelet reads from a field of the variable's own pod."""

    path: str

    def value_in(self, pod: ObjectMeta) -> str | None:
        """Return the value of this field of the pod; None if the pod lacks it, or if it is no label or annotation."""
        found = _FIELD.fullmatch(self.path)
        values = pod.labels if found and found["map"] == "labels" else pod.annotations
        return values.get(found["key"]) if found else None


Value = str | FieldPath
"""Value of an environment variable: a text, or the path of a field of the pod."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The workload to which pods belong."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""

    @classmethod
    def from_meta(cls, resource: Resource[Any], meta: ObjectMeta) -> "Owner":
        """Return the owner of this kind with this metadata."""
        return cls(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def reference(self, *, blocking: bool = True) -> dict[str, Any]:
        """Return the owner reference for an object.

        With `blocking`, foreground deletion of the owner deletes the object first.
        """
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            **({"blockOwnerDeletion": True} if blocking else {}),
        }


class OwnerError(Exception):
    """Raised if pods of an owner cannot form a gang; `error` contains the path of the pod's owner."""

    def __init__(self, message: str, value: str | None = None) -> None:
        super().__init__(message)
        self.error = FieldError(OWNER_PATH, message, value)


class Adapter(ABC):
    """Interface to one owner, which plugins use through `Info`.

    `template` is the pod template as the user wrote it; webhooks may have added sidecars to the pods since.
    `annotations` are the annotations of the owner, which may contain settings.
    """

    def __init__(self, owner: Owner, template: Mapping[str, Any], annotations: Mapping[str, str]) -> None:
        self.owner = owner
        self.template = template
        self.annotations = annotations

    @abstractmethod
    def errors(self) -> list[FieldError]:
        """Return errors that prevent the owner's pods from forming a gang, with paths in the owner."""

    @abstractmethod
    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the source of a pod's rank, which counts from 0. Without a pod, return the source for most pods."""

    @abstractmethod
    def size(self) -> int:
        """Return the number of pods that form one world."""

    @abstractmethod
    def subdomain(self) -> str:
        """Return the name of the pods' headless Service."""

    @abstractmethod
    def endpoints(self) -> Endpoints:
        """Return the host name of each pod, in rank order; rank 0 is first."""


def label(key: str) -> FieldPath:
    """Return the path of a pod's label, as a value that the kubelet reads from the pod."""
    return FieldPath(f"metadata.labels['{key}']")


def annotation(key: str) -> FieldPath:
    """Return the path of a pod's annotation, as a value that the kubelet reads from the pod."""
    return FieldPath(f"metadata.annotations['{key}']")


def needed(size: int, elastic: str | None) -> int:
    """Return the number of ranks that must start together: all ranks, or the minimum of an elastic world."""
    least = whole_number((elastic or "").partition(":")[0].strip())
    return min(least, size) if least else size


def own_rank(rank: Value, pod: ObjectMeta) -> int | None:
    """Return the rank of this pod, read from `rank`; None if the rank is not known yet."""
    return whole_number(rank.value_in(pod) if isinstance(rank, FieldPath) else rank)
