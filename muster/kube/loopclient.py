"""The API client of an event loop: typed calls on `Resource` descriptors.

`reads` contains the read-only calls and the guarantees of all calls; this module adds the writes. The client has no
method to replace an object, because writing back a trimmed wire type would drop fields.

`muster.kube.client` is the same client for threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.codec import content_of
from muster.kube.reads import Reads, given

T = TypeVar("T")

APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# longer than the API server's own retries of an eviction
_EVICT_S = 15.0


class LoopClient(Reads):
    """Typed access to one API server: the calls of `Reads`, and calls that write.

    A client is used on one event loop.
    """

    async def create(
        self,
        res: Resource[T],
        obj: Mapping[str, Any] | msgspec.Struct,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        timeout_s: float | None = None,
    ) -> T:
        """Create an object in `namespace`, or by default in the namespace in its metadata.

        With `strict`, the API server rejects unknown fields; otherwise it drops them with a warning.
        """
        content = content_of(res, obj)
        path = res.path(namespace or content["metadata"].get("namespace"))
        query = given(dryRun="All" if dry_run else None, fieldValidation="Strict" if strict else None)
        return await self._typed(res, "create", "POST", path, content, query=query, timeout_s=timeout_s)

    async def apply(
        self,
        res: Resource[T],
        obj: Mapping[str, Any] | msgspec.Struct,
        *,
        namespace: str | None = None,
        field_manager: str = "muster",
        force: bool = True,
        subresource: str = "",
        timeout_s: float | None = None,
    ) -> T:
        """Create or update the object by server-side apply; Muster then owns the fields in `obj`."""
        content = content_of(res, obj)
        meta = content["metadata"]
        path = res.path(namespace or meta.get("namespace"), meta["name"], subresource)
        query = {"fieldManager": field_manager, "force": str(force).lower()}
        return await self._typed(
            res, "apply", "PATCH", path, content, content_type=APPLY_PATCH, query=query, timeout_s=timeout_s
        )

    async def merge_patch(
        self,
        res: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
        timeout_s: float | None = None,
    ) -> T:
        """Send a JSON merge patch; if it contains metadata.resourceVersion, raises `Conflict` for a changed object."""
        path, query = res.path(namespace, name, subresource), given(dryRun="All" if dry_run else None)
        return await self._typed(
            res, "patch", "PATCH", path, patch, content_type=MERGE_PATCH, query=query, timeout_s=timeout_s
        )

    async def strategic_patch(
        self,
        res: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> T:
        """Send a strategic merge patch, which merges lists by key; possible only for Kubernetes' own kinds."""
        path = res.path(namespace, name, subresource)
        return await self._typed(res, "patch", "PATCH", path, patch, content_type=STRATEGIC_PATCH)

    async def json_patch(
        self, res: Resource[T], name: str, operations: Sequence[Mapping[str, Any]], namespace: str | None = None
    ) -> T:
        """Send a JSON patch (RFC 6902); raises `Invalid` if a `test` operation fails."""
        return await self._typed(
            res, "patch", "PATCH", res.path(namespace, name), list(operations), content_type=JSON_PATCH
        )

    async def delete(
        self,
        res: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_s: int | None = None,
        propagation: Literal["Foreground", "Background", "Orphan"] | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object; raises `Conflict` if its UID or resource version differs from the given one."""
        if not name:
            raise ValueError(f"a {res.kind} without a name cannot be deleted: the request would delete all objects")
        options = given(
            apiVersion="v1",
            kind="DeleteOptions",
            preconditions=given(uid=uid, resourceVersion=resource_version) or None,
            gracePeriodSeconds=grace_period_s,
            propagationPolicy=propagation,
            dryRun=["All"] if dry_run else None,
        )
        await self._send("delete", res, "DELETE", res.path(namespace, name), options)

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind the pod with this UID to a node; the annotations are added to the pod in the same write."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "annotations": dict(annotations)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._send("bind", PODS, "POST", PODS.path(namespace, name, "binding"), binding)

    async def evict(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        resource_version: str | None = None,
        grace_period_s: int | None = None,
        timeout_s: float = _EVICT_S,
    ) -> None:
        """Evict the pod with this UID; raises `TooManyRequests` while a disruption budget forbids it.

        Disruption budgets do not apply to a pod that has no node. By default, the pod's own grace period is used.

        If a resource version is given and the pod has changed since then, the API server reports a `Conflict` at once.
        For a pod with another UID, the API server reports an error only after ten seconds of retries.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {
                "preconditions": given(uid=uid, resourceVersion=resource_version),
                **given(gracePeriodSeconds=grace_period_s),
            },
        }
        path = PODS.path(namespace, name, "eviction")
        await self._send("evict", PODS, "POST", path, eviction, timeout_s=timeout_s)
