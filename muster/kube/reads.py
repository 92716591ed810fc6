"""Read access to the API server: objects, lists, watches and logs.

Every call, including writes, has a timeout and an explicit content type. A call is sent only once, and raises an
`APIError` (muster.kube.errors) if it fails. The caller decides whether a retry is harmless.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object
from muster.kube.codec import UNREADABLE, Identity, ListPage, decoder, leave_out
from muster.kube.config import ClientConfig, ClientOptions
from muster.kube.errors import TooLarge, Undecodable, Unreachable
from muster.kube.loop import TimeSlice
from muster.kube.transport import BROKEN, Transport, sentence
from muster.kube.trimming import trimmed
from muster.kube.watch import Watch, lines_of

T = TypeVar("T")

FIRST_OBJECTS = 100
"""Maximum number of objects on the first page. The sizes of the objects are not known before the first page: a pod may
have a few kilobytes, or a megabyte."""
_PAGE_BYTES = 16 * 1024 * 1024
_MOST_OBJECTS = 5000
"""Maximum number of objects on a page. Small pages are expensive, because the API server collects all remaining objects
for each page. The API server uses 1.7 s of CPU time for 50,000 small pods in pages of 1,000, and 0.9 s in pages of
5,000."""
_MOST_TIMES = 10
"""Maximum factor by which a page may be larger than the previous one. The first hundred objects may be small, and each
of the next 5,000 may take a megabyte."""
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# a quiet stream still carries a bookmark about every minute; a longer silence means that the peer is gone
_SILENCE_S = 150.0


class Call(TypedDict, total=False):
    """The options of one request."""

    content_type: str
    accept: str
    query: Mapping[str, str] | None
    timeout_s: float | None


class Selectors(TypedDict, total=False):
    """Selection of objects for a list or watch; by default, all objects are selected."""

    label_selector: str
    field_selector: str


class Reads:
    """Read-only calls to one API server, on one event loop."""

    def __init__(self, config: ClientConfig, **options: Unpack[ClientOptions]) -> None:
        self._transport = Transport(config, **options)
        self.server_time_s = self._transport.server_time_s
        self.close = self._transport.close

    async def request(self, method: str, path: str, *, body: bytes | None = None, **call: Unpack[Call]) -> bytes:
        """Send any request; use this only for calls that have no method of their own."""
        return await self._transport.exchange(method, path, body=body, **call)

    async def get(
        self, res: Resource[T], name: str, namespace: str | None = None, *, timeout_s: float | None = None
    ) -> T:
        """Return the current object with this name; raises `NotFound` if it does not exist."""
        return await self._typed(res, "get", "GET", res.path(namespace, name), timeout_s=timeout_s)

    async def pages(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        first: int = FIRST_OBJECTS,
        timeout_s: float | None = None,
        **selectors: Unpack[Selectors],
    ) -> AsyncGenerator[ListPage[T]]:
        """List objects in pages, the first with at most `first` objects; all pages have the same resource version.

        The size of the previous page determines the limit of the next one: about 16 MiB, at most ten times the previous
        limit, and at most 5,000 objects. The next page is requested while the previous page is processed. A page of
        more than `MOST_BYTES` is dropped and requested again with fewer objects. Raises `Gone` if the API server no
        longer has the list's resource version.
        """
        path, selected = res.path(namespace), _selected(**selectors)

        async def page(more: str, limit: int) -> tuple[ListPage[T], int]:
            query = selected | {"limit": str(limit)} | ({"continue": more} if more else {})
            try:
                body = await self._send("list", res, "GET", path, query=query, timeout_s=timeout_s)
            except TooLarge as error:
                if limit > 1:
                    return await page(more, max(1, limit // _MOST_TIMES))
                return await self._passed_over(res, path, query, error, timeout_s), limit
            return await _page_of(res, body, f"GET {path}"), limit

        ahead: asyncio.Task[tuple[ListPage[T], int]] | None = asyncio.create_task(page("", first))
        try:
            while ahead is not None:
                now, limit = await ahead
                more = now.metadata.continue_
                ahead = asyncio.create_task(page(more, _objects_after(now, limit))) if more else None
                yield now
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)  # a page without a reader may fail

    async def list(
        self,
        res: Resource[T],
        namespace: str | None = None,
        *,
        timeout_s: float | None = None,
        **selectors: Unpack[Selectors],
    ) -> list[T]:
        """List all matching objects (of one namespace, if given); decoding yields to other tasks."""
        items: list[T] = []
        slice_of_time = TimeSlice()
        async for page in self.pages(res, namespace, timeout_s=timeout_s, **selectors):
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
        timeout_s: float = 300,
        **selectors: Unpack[Selectors],
    ) -> Watch[T]:
        """Open a stream of events after `resource_version`, with bookmarks; raises `Gone` for an expired version.

        The server ends the stream after about `timeout_s`; `Watch.close` ends it at once.
        """
        query = _selected(**selectors) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(timeout_s))),
        }
        answer = await self._transport.stream(
            res.path(namespace),
            resource=res.plural,
            query=query,
            silence_s=min(_SILENCE_S, timeout_s + self._transport.timeout_s),
        )
        return Watch(answer, res)

    async def log_lines(
        self,
        pod: str,
        namespace: str,
        container: str,
        *,
        follow: bool = True,
        last: int | None = None,
        most_bytes: int | None = None,
    ) -> AsyncGenerator[str]:
        """Yield the lines of a container's log, or only the `last` lines.

        With `follow`, lines are yielded until the log ends, even if no line is written for a long time. With
        `most_bytes`, the API server cuts the log at this length, because a program may print an endless line.
        """
        path = f"{PODS.path(namespace, pod)}/log"
        tail, most = (None if each is None else str(each) for each in (last, most_bytes))
        query = given(container=container, follow="true" if follow else None, tailLines=tail, limitBytes=most)
        answer = await self._transport.stream(path, resource="logs", query=query)
        try:
            async for line in lines_of(answer):
                yield line.decode(errors="replace")
        except BROKEN as error:
            why = f"the log ended unexpectedly: {sentence(error)}"
            raise Unreachable(why, reason=type(error).__name__, where=f"GET {path}") from error

    async def _passed_over(
        self, res: Resource[T], path: str, query: Mapping[str, str], error: TooLarge, timeout_s: float | None
    ) -> ListPage[T]:
        """Return an empty page in place of a page whose only object is too large."""
        body = await self._send("list", res, "GET", path, accept=_METADATA, query=query, timeout_s=timeout_s)
        try:
            any_kind: Resource[Any] = res
            found: ListPage[Object] = ListPage.read(replace(any_kind, type=Object), body)
        except UNREADABLE:
            raise error from None
        if len(found) > 1:  # the server does not support pages
            raise error
        metas = [each.metadata for each in found]
        left_out = [leave_out(res, Identity(meta.namespace, meta.name, meta.resource_version), error) for meta in metas]
        return ListPage(res, found.metadata, [], len(body), *left_out)

    async def _typed(
        self, res: Resource[T], verb: str, method: str, path: str, content: object = None, **call: Unpack[Call]
    ) -> T:
        """Send a request that returns one object of the kind."""
        answer = await self._send(verb, res, method, path, content, **call)
        try:
            return decoder(res.type).decode(trimmed(answer, res.plural))
        except UNREADABLE as error:
            raise _undecodable(f"a {res.kind}", error, f"{method} {path}") from error

    async def _send(
        self, verb: str, res: Resource[Any], method: str, path: str, content: object = None, **call: Unpack[Call]
    ) -> bytes:
        """Send a request and return the raw response; `verb` and the kind are the labels of the request's metrics."""
        body = None if content is None else msgspec.json.encode(content)
        return await self._transport.exchange(method, path, verb=verb, resource=res.plural, body=body, **call)


def given(**values: Any) -> dict[str, Any]:
    """Return the options that are not None, because the API server has defaults for all other options."""
    return {name: value for name, value in values.items() if value is not None}


async def _page_of(res: Resource[T], body: bytes, where: str) -> ListPage[T]:
    """Decode the page of a list in a response.

    If an object is nested too deeply, the slow `ListPage.cut` runs in a thread.
    """
    try:
        try:
            return ListPage.read(res, body)
        except RecursionError:
            return await asyncio.to_thread(ListPage.cut, res, body)
    except msgspec.DecodeError as error:
        raise _undecodable(f"a list of {res.plural}", error, where) from error


def _undecodable(what: str, error: Exception, where: str) -> Undecodable:
    return Undecodable(f"the response cannot be read as {what}: {error}", status=200, where=where)


def _objects_after(page: ListPage[Any], limit: int) -> int:
    """Return the limit of the page that follows a given page, which had at most `limit` objects."""
    if not len(page):
        return limit
    return max(1, min(_PAGE_BYTES * len(page) // page.size_bytes, limit * _MOST_TIMES, _MOST_OBJECTS))


def _selected(label_selector: str = "", field_selector: str = "") -> dict[str, str]:
    return given(labelSelector=label_selector or None, fieldSelector=field_selector or None)
