"""The API client: typed calls on `Resource` descriptors.

Every call has a time limit and an explicit content type, raises an `APIError` (muster.kube.errors) when it does not
succeed, and is sent once. There is no "replace": the wire types are trimmed, and writing one back would drop what they
leave out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from muster.api.base import Resource
from muster.api.core import PODS
from muster.api.meta import ListMeta
from muster.kube.codec import content_of, decode_list, decoder
from muster.kube.config import Config, load_config
from muster.kube.errors import Undecodable
from muster.kube.transport import JSON, Transport
from muster.kube.watch import Watch

T = TypeVar("T")

Propagation = Literal["Foreground", "Background", "Orphan"]

APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"

# A quiet stream still carries a bookmark about every minute; longer silence means that the peer is gone.
_SILENCE_S = 150.0
# Longer than the API server tries an eviction by itself.
_EVICT_S = 15.0


class Client:
    """Typed access to one API server. Thread safe; make one per process, after forking.

    `timeout_s` is the limit of a call that names none of its own. `on_warning` is told the API server's warnings.
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str = "muster",
        pool_size: int = 32,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.server = config.server
        self._timeout_s = timeout_s
        self._transport = Transport(config, user_agent=user_agent, pool_size=pool_size, on_warning=on_warning)

    @classmethod
    def load(
        cls,
        kubeconfig: Path | str | None = None,
        *,
        user_agent: str = "muster",
        pool_size: int = 32,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> "Client":
        """A client for the given kubeconfig; "" means in-cluster, None in-cluster or else the user's default."""
        return cls(
            load_config(kubeconfig),
            user_agent=user_agent,
            pool_size=pool_size,
            timeout_s=timeout_s,
            on_warning=on_warning,
        )

    def close(self) -> None:
        """Closes idle connections; calls under way go on."""
        self._transport.close()

    def get(self, res: Resource[T], name: str, namespace: str | None = None, *, timeout_s: float | None = None) -> T:
        """One object."""
        return self._typed(res, "get", "GET", res.path(namespace, name), timeout_s=timeout_s)

    def pages(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        timeout_s: float | None = None,
    ) -> Iterator[tuple[list[T], ListMeta]]:
        """What `list` gives in pages of `limit` objects (0: one page); all pages show one resource version.

        Raises `Gone` when the version was compacted away between two pages.
        """
        query = _selectors(label_selector, field_selector)
        if limit:
            query["limit"] = str(limit)
        while True:
            body = self._send("list", res, "GET", res.path(namespace), query=query, timeout_s=timeout_s)
            items, meta = decode_list(res, body)
            yield items, meta
            if not meta.continue_:
                return
            query["continue"] = meta.continue_

    def list(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float | None = None,
    ) -> list[T]:
        """All objects (of one namespace, if given) that match."""
        pages = self.pages(
            res, namespace, label_selector=label_selector, field_selector=field_selector, timeout_s=timeout_s
        )
        return [item for items, _ in pages for item in items]

    def watch(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float = 300,
    ) -> Watch[T]:
        """Events after `resource_version`, bookmarks included; the server ends the stream after about `timeout_s`.

        The stream is open when this returns. `Watch.close` ends it from any thread. Raises `Gone`.
        """
        query = _selectors(label_selector, field_selector) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(timeout_s))),
        }
        answer = self._transport.stream(
            res.path(namespace),
            resource=res.plural,
            query=query,
            timeout_s=self._timeout_s,
            silence_s=min(_SILENCE_S, timeout_s + self._timeout_s),
        )
        return Watch(answer, res)

    def create(
        self,
        res: Resource[T],
        obj: Mapping[str, Any] | msgspec.Struct,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        timeout_s: float | None = None,
    ) -> T:
        """Creates an object, in `namespace` or else in the one that it names.

        `strict` refuses fields that the kind does not have; else the API server drops them with a warning.
        """
        content = content_of(res, obj)
        path = res.path(namespace or content["metadata"].get("namespace"))
        query = _given(dryRun="All" if dry_run else None, fieldValidation="Strict" if strict else None)
        return self._typed(res, "create", "POST", path, content, query=query, timeout_s=timeout_s)

    def apply(
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
        """Server-side apply: creates the object or changes the fields that `obj` names, and owns them from then on."""
        content = content_of(res, obj)
        meta = content["metadata"]
        path = res.path(namespace or meta.get("namespace"), meta["name"], subresource)
        query = {"fieldManager": field_manager, "force": str(force).lower()}
        return self._typed(res, "apply", "PATCH", path, content, APPLY_PATCH, query=query, timeout_s=timeout_s)

    def merge_patch(
        self,
        res: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
        timeout_s: float | None = None,
    ) -> T:
        """JSON merge patch; with metadata.resourceVersion in it, raises `Conflict` if the object has changed."""
        path = res.path(namespace, name, subresource)
        return self._typed(res, "patch", "PATCH", path, patch, MERGE_PATCH, timeout_s=timeout_s)

    def json_patch(
        self,
        res: Resource[T],
        name: str,
        operations: Sequence[Mapping[str, Any]],
        namespace: str | None = None,
        *,
        subresource: str = "",
        timeout_s: float | None = None,
    ) -> T:
        """JSON patch (RFC 6902); raises `Invalid` if a `test` operation fails."""
        path = res.path(namespace, name, subresource)
        return self._typed(res, "patch", "PATCH", path, list(operations), JSON_PATCH, timeout_s=timeout_s)

    def delete(
        self,
        res: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_s: int | None = None,
        propagation: Propagation | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Deletes an object; raises `Conflict` if it is not the one with this UID or resource version."""
        if not name:
            raise ValueError(f"a {res.kind} without a name cannot be deleted: that would address all of them")
        preconditions = _given(uid=uid, resourceVersion=resource_version)
        options = _given(
            apiVersion="v1",
            kind="DeleteOptions",
            preconditions=preconditions or None,
            gracePeriodSeconds=grace_period_s,
            propagationPolicy=propagation,
        )
        self._send("delete", res, "DELETE", res.path(namespace, name), options, timeout_s=timeout_s)

    def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str],
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Binds the pod with this UID to a node; the annotations are added to the pod in the same write."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "annotations": dict(annotations)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._send("bind", PODS, "POST", PODS.path(namespace, name, "binding"), binding, timeout_s=timeout_s)

    def evict(self, namespace: str, name: str, uid: str, *, timeout_s: float | None = None) -> None:
        """Evicts the pod with this UID; raises `TooManyRequests` while a disruption budget forbids it.

        The API server tries for ten seconds before it says that the UID is another (`Conflict`).
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        self._send(
            "evict", PODS, "POST", PODS.path(namespace, name, "eviction"), eviction, timeout_s=timeout_s or _EVICT_S
        )

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """Any request, for what has no method of its own."""
        return self._transport.exchange(
            method,
            path,
            verb=method.lower(),
            resource="raw",
            body=body,
            content_type=content_type,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )

    def _typed(
        self,
        res: Resource[T],
        verb: str,
        method: str,
        path: str,
        content: object = None,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> T:
        answer = self._send(verb, res, method, path, content, content_type, query=query, timeout_s=timeout_s)
        try:
            return decoder(res.type).decode(answer)
        except msgspec.DecodeError as error:
            message = f"not a {res.kind} as we know it: {error}"
            raise Undecodable(message, status=200, where=f"{method} {path}") from error

    def _send(
        self,
        verb: str,
        res: Resource[Any],
        method: str,
        path: str,
        content: object = None,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        return self._transport.exchange(
            method,
            path,
            verb=verb,
            resource=res.plural,
            body=None if content is None else msgspec.json.encode(content),
            content_type=content_type,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    return _given(labelSelector=label_selector or None, fieldSelector=field_selector or None)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
