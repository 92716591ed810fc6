"""Single objects at the API server itself, past the caches: find one, or delete exactly one, by its UID."""

from typing import Any, TypeVar

from muster.api.base import Resource
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound

T = TypeVar("T")


def find(client: Client, resource: Resource[T], name: str, namespace: str | None) -> T | None:
    """The object of this name, or None if there is none."""
    try:
        return client.get(resource, name, namespace or None)
    except NotFound:
        return None


def exists(client: Client, resource: Resource[Any], meta: ObjectMeta) -> bool:
    """True if the API server still has the object with this UID."""
    found = find(client, resource, meta.name, meta.namespace)
    return found is not None and found.metadata.uid == meta.uid


def delete(client: Client, resource: Resource[Any], meta: ObjectMeta) -> bool:
    """Deletes the object with this UID; False if it was gone already, or another one has its name.

    A conflict alone does not say which: the object is read to find out, and the error raised if it still stands.
    """
    try:
        client.delete(resource, meta.name, meta.namespace or None, uid=meta.uid)
    except NotFound:
        return False
    except Conflict:
        if exists(client, resource, meta):
            raise
        return False
    return True


def owned_by(meta: ObjectMeta, uid: str) -> bool:
    """True if the object with this UID controls the one with this metadata."""
    return meta.controller is not None and meta.controller.uid == uid


def owner_words(meta: ObjectMeta) -> str:
    """The controller of an object, for a sentence about the object: `belongs to Job train`, or `has no owner`."""
    return f"belongs to {meta.controller.kind} {meta.controller.name}" if meta.controller else "has no owner"
