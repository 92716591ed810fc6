"""Direct access to single objects in the API server: find, create or change an object, or delete it by UID."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import convert

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound

T = TypeVar("T")
Known = TypeVar("Known", bound=Object)


def get_or_none(client: Client, resource: Resource[T], name: str, namespace: str | None) -> T | None:
    """Return the object with this name, or None if it does not exist."""
    try:
        return client.get(resource, name, namespace or None)
    except NotFound:
        return None


def find_or_make(client: Client, resource: Resource[T], wanted: Any) -> tuple[T, bool]:
    """Create an object from JSON or a Struct; return the new or the existing object, and True if it is new."""
    meta = convert(wanted["metadata"], ObjectMeta) if isinstance(wanted, Mapping) else wanted.metadata
    try:
        return client.create(resource, wanted), True
    except AlreadyExists:
        return client.get(resource, meta.name, meta.namespace or None), False


def controller_of(client: Client, meta: ObjectMeta, resource: Resource[Any] | None) -> Object | None:
    """Return the controlling owner of an object if it has this kind; None if the owner was deleted or replaced."""
    ref = meta.controller
    found: Object | None = get_or_none(client, resource, ref.name, meta.namespace) if ref and resource else None
    return found if found and ref and found.metadata.uid == ref.uid else None


def exists(client: Client, resource: Resource[Any], meta: ObjectMeta) -> bool:
    """Return True if the object with this UID still exists in the API server."""
    found = get_or_none(client, resource, meta.name, meta.namespace)
    return found is not None and found.metadata.uid == meta.uid


def delete(client: Client, resource: Resource[Any], meta: ObjectMeta) -> bool:
    """Delete the object with this UID; return False if it was already deleted or replaced."""
    try:
        client.delete(resource, meta.name, meta.namespace or None, uid=meta.uid)
    except NotFound:
        return False
    except Conflict:
        if exists(client, resource, meta):  # a conflict alone does not distinguish the two cases
            raise
        return False
    return True


def patch_object(client: Client, resource: Resource[Known], meta: ObjectMeta, patch: Mapping[str, Any]) -> Known:
    """Merge a patch into the object with this UID; return the object.

    Raise NotFound if the object was deleted, Conflict if it was replaced.
    """
    body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": meta.uid}}
    return client.merge_patch(resource, meta.name, body, meta.namespace or None)


def write_status(client: Client, resource: Resource[Known], known: Known, patch: Mapping[str, Any]) -> Known:
    """Write this merge patch of the status; return the object.

    Raise Conflict if the object has changed or was replaced.
    """
    meta = known.metadata
    body = {"metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid}, "status": patch}
    return client.merge_patch(resource, meta.name, body, meta.namespace, subresource="status")


def controller_key(meta: ObjectMeta, resource: Resource[Any]) -> str | None:
    """Return the key of an object's controlling owner if the owner has this kind; otherwise None."""
    owner = meta.controller
    if owner is None or (owner.kind, owner.api_version) != (resource.kind, resource.api_version):
        return None
    return f"{meta.namespace}/{owner.name}"


def owned_by(meta: ObjectMeta, uid: str) -> bool:
    """Return True if the object with this UID is the controlling owner of the object with this metadata."""
    return meta.controller is not None and meta.controller.uid == uid


def owner_text(meta: ObjectMeta) -> str:
    """Return a phrase about the owner of an object, such as `belongs to Job train` or `has no owner`."""
    return f"belongs to {meta.controller.kind} {meta.controller.name}" if meta.controller else "has no owner"
