"""Reading from the API server: one object, all objects, and what becomes of them; and what every call promises.

Every call has a time limit and an explicit content type, raises an `APIError` (muster.kube.errors) when it does not
succeed, and is sent once: whoever asks knows whether asking twice is harmless.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import ListMeta, Object
from muster.kube.codec import UNREADABLE, Page, decoder, leave_out
from muster.kube.config import Config
from muster.kube.errors import TooLarge, Undecodable, Unreachable
from muster.kube.loop import TimeSlice
from muster.kube.split import Identity
from muster.kube.transport import BROKEN, JSON, Transport, sentence
from muster.kube.watch import Watch, lines_of

T = TypeVar("T")

CONNECTIONS = 64
"""How many connections a client has at most, unless it is told."""
FIRST_OBJECTS = 100
"""Of the first page, of which nobody knows how large its objects are: a pod is some kilobytes, or a megabyte."""
_PAGE_BYTES = 16 * 1024 * 1024
_MOST_OBJECTS = 5000
"""A page costs the API server a look at all that come after it, and memory for it: 50,000 pods of a kilobyte in pages
of 1,000 cost it 1.7 s CPU with its garbage collections, in pages of 5,000 it is 0.9."""
_MOST_TIMES = 10
"""As many objects as the page before may have: the first hundred may be small, and the next 5,000 a megabyte each."""
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# A quiet stream still carries a bookmark about every minute; longer silence means that the peer is gone.
_SILENCE_S = 150.0


class _MetadataList(msgspec.Struct, gc=False):
    """Objects of which only the metadata were asked for."""

    metadata: ListMeta
    items: list[Object]


class Reads:
    """Calls to one API server, on one event loop, that change nothing.

    At most `connections` are sent at once, the others wait for their turn. `timeout_s` is the limit of a call that
    names none of its own, from when it is its turn. `on_warning` is told the API server's warnings.
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str = "muster",
        connections: int = CONNECTIONS,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.server = config.server
        self._timeout_s = timeout_s
        self._transport = Transport(config, user_agent=user_agent, connections=connections, on_warning=on_warning)

    def server_time_s(self) -> float | None:
        """What the API server's clock says, in seconds since the epoch, give or take one; None before any answer."""
        return self._transport.server_time_s()

    def close(self) -> None:
        """Ends all connections; a call under way fails as `Unreachable`. Runs on the loop."""
        self._transport.close()

    async def request(
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
        return await self._transport.exchange(
            method,
            path,
            verb=method.lower(),
            resource="raw",
            body=body,
            content_type=content_type,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )

    async def get(
        self, res: Resource[T], name: str, namespace: str | None = None, *, timeout_s: float | None = None
    ) -> T:
        """The object of this name, as it is now; raises `NotFound` where there is none."""
        return await self._typed(res, "get", "GET", res.path(namespace, name), timeout_s=timeout_s)

    async def pages(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        first: int = FIRST_OBJECTS,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[Page[T]]:
        """What `list` gives in pages, the first of at most `first` objects; all show one resource version.

        A page has as many objects as come to some 16 MiB, going by the page before it, but at most ten times as many as
        that one might have, and 5,000. It is asked for while that one is looked at. One of more than `MOST_BYTES` is
        dropped, and asked for with fewer objects. Raises `Gone` when the version was compacted away meanwhile.
        """
        path, selectors = res.path(namespace), _selectors(label_selector, field_selector)

        async def page(more: str, limit: int) -> tuple[Page[T], int]:
            query = selectors | {"limit": str(limit)} | ({"continue": more} if more else {})
            try:
                body = await self._send("list", res, "GET", path, query=query, timeout_s=timeout_s)
            except TooLarge as error:
                if limit > 1:
                    return await page(more, max(1, limit // _MOST_TIMES))
                return await self._passed_over(res, path, query, error, timeout_s), limit
            return await _page_of(res, body, f"GET {path}"), limit

        ahead: asyncio.Task[tuple[Page[T], int]] | None = asyncio.create_task(page("", first))
        try:
            while ahead is not None:
                now, limit = await ahead
                more = now.metadata.continue_
                ahead = asyncio.create_task(page(more, _objects_after(now, limit))) if more else None
                yield now
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)  # what it failed with concerns nobody any more

    async def list(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float | None = None,
    ) -> list[T]:
        """All objects (of one namespace, if given) that match; the loop has time for others while they are decoded."""
        pages = self.pages(
            res, namespace, label_selector=label_selector, field_selector=field_selector, timeout_s=timeout_s
        )
        items: list[T] = []
        slice_of_time = TimeSlice()
        async for page in pages:
            for item in page:
                items.append(item)
                await slice_of_time.share()
        return items

    async def watch(
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

        The stream is open when this returns. `Watch.close` ends it. Raises `Gone`.
        """
        query = _selectors(label_selector, field_selector) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(timeout_s))),
        }
        answer = await self._transport.stream(
            res.path(namespace),
            resource=res.plural,
            query=query,
            timeout_s=self._timeout_s,
            silence_s=min(_SILENCE_S, timeout_s + self._timeout_s),
        )
        return Watch(answer, res)

    async def log_lines(self, pod: str, namespace: str, container: str, *, follow: bool = True) -> AsyncGenerator[str]:
        """What a container has printed so far, and what it prints until it ends, however long it is silent."""
        path = f"{PODS.path(namespace, pod)}/log"
        query = {"container": container, "follow": str(follow).lower()}
        answer = await self._transport.stream(path, resource="logs", query=query, timeout_s=self._timeout_s)
        try:
            async for line in lines_of(answer):
                yield line.decode(errors="replace")
        except BROKEN as error:
            why = f"the log broke off: {sentence(error)}"
            raise Unreachable(why, reason=type(error).__name__, where=f"GET {path}") from error

    async def _passed_over(
        self, res: Resource[T], path: str, query: Mapping[str, str], error: TooLarge, timeout_s: float | None
    ) -> Page[T]:
        """In place of a page whose only object is too large, an empty one that says where the list goes on."""
        body = await self._send("list", res, "GET", path, accept=_METADATA, query=query, timeout_s=timeout_s)
        try:
            found = decoder(_MetadataList).decode(body)
        except UNREADABLE:
            raise error from None
        if len(found.items) > 1:  # a server that knows no pages
            raise error
        left_out = []
        for each in found.items:
            meta = each.metadata
            left_out.append(leave_out(res, Identity(meta.namespace, meta.name, meta.resource_version), error))
        return Page(res, found.metadata, [], len(body), *left_out)

    async def _typed(
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
        """Sends a request whose answer is one object of the kind."""
        answer = await self._send(verb, res, method, path, content, content_type, query=query, timeout_s=timeout_s)
        try:
            return decoder(res.type).decode(answer)
        except UNREADABLE as error:
            raise _undecodable(f"a {res.kind}", error, f"{method} {path}") from error

    async def _send(
        self,
        verb: str,
        res: Resource[Any],
        method: str,
        path: str,
        content: object = None,
        content_type: str = JSON,
        *,
        accept: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """Sends a request and gives its answer as it came; `verb` and the kind are the labels of its metrics."""
        return await self._transport.exchange(
            method,
            path,
            verb=verb,
            resource=res.plural,
            body=None if content is None else msgspec.json.encode(content),
            content_type=content_type,
            accept=accept,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )


def given(**values: Any) -> dict[str, Any]:
    """The options that are set: what is None is left to the API server."""
    return {name: value for name, value in values.items() if value is not None}


async def _page_of(res: Resource[T], body: bytes, where: str) -> Page[T]:
    """The page of an answer; one with an object that is nested too deeply is cut in a thread, as that takes long."""
    try:
        try:
            return Page.read(res, body)
        except RecursionError:
            return await asyncio.to_thread(Page.cut, res, body)
    except msgspec.DecodeError as error:
        raise _undecodable(f"a list of {res.plural}", error, where) from error


def _undecodable(what: str, error: Exception, where: str) -> Undecodable:
    return Undecodable(f"not {what} as we know it: {error}", status=200, where=where)


def _objects_after(page: Page[Any], limit: int) -> int:
    """How many objects the next page is to have, after one that had at most `limit`."""
    if not len(page):
        return limit
    return max(1, min(_PAGE_BYTES * len(page) // page.size_bytes, limit * _MOST_TIMES, _MOST_OBJECTS))


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    return given(labelSelector=label_selector or None, fieldSelector=field_selector or None)
