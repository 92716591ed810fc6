"""Deletes one very object, and takes nothing for done that is not."""

from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound


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


def exists(client: Client, resource: Resource[Any], meta: ObjectMeta) -> bool:
    """Whether the API server still has the object with this UID."""
    try:
        found: Object = client.get(resource, meta.name, meta.namespace or None)
    except NotFound:
        return False
    return found.metadata.uid == meta.uid
