"""Reading from the API server: one object, all objects, and what becomes of them."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.calls import Calls, given
from muster.kube.codec import Page
from muster.kube.errors import Unreachable
from muster.kube.loop import TimeSlice
from muster.kube.watch import Watch, lines_of

T = TypeVar("T")

FIRST_OBJECTS = 100
"""Of the first page, of which nobody knows how large its objects are: a pod is some kilobytes, or a megabyte."""
_PAGE_BYTES = 16 * 1024 * 1024
_MOST_OBJECTS = 5000
"""A page costs the API server a look at all that come after it, and memory for it: 50,000 pods of a kilobyte in pages
of 1,000 cost it 1.7 s CPU with its garbage collections, in pages of 5,000 it is 0.9."""
_MOST_TIMES = 10
"""As many objects as the page before may have: the first hundred may be small, and the next 5,000 a megabyte each."""
# A quiet stream still carries a bookmark about every minute; longer silence means that the peer is gone.
_SILENCE_S = 150.0


class Reads(Calls):
    """The calls that change nothing."""

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
        """What `list` gives in pages, the first of `first` objects (0: one page); all show one resource version.

        A page has as many objects as come to some 16 MiB, going by the page before it, but at most ten times as many as
        that one might have, and 5,000. It is asked for while that one is looked at. Raises `Gone` when the version was
        compacted away meanwhile.
        """
        query = _selectors(label_selector, field_selector)
        limit = first
        if limit:
            query["limit"] = str(limit)

        async def page(query: dict[str, str]) -> Page[T]:
            return Page(
                res, await self._send("list", res, "GET", res.path(namespace), query=query, timeout_s=timeout_s)
            )

        ahead: asyncio.Task[Page[T]] | None = asyncio.create_task(page(query))
        try:
            while ahead is not None:
                now = await ahead
                if more := now.metadata.continue_:
                    limit = _objects_after(now, limit)
                    query |= {"limit": str(limit), "continue": more}
                ahead = asyncio.create_task(page(dict(query))) if more else None
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
        )
        return Watch(answer, res, min(_SILENCE_S, timeout_s + self._timeout_s))

    async def log_lines(self, pod: str, namespace: str, container: str, *, follow: bool = True) -> AsyncGenerator[str]:
        """What a container has printed so far, and what it prints until it ends, however long it is silent."""
        path = f"{PODS.path(namespace, pod)}/log"
        query = {"container": container, "follow": str(follow).lower()}
        answer = await self._transport.stream(path, resource="logs", query=query, timeout_s=self._timeout_s)
        try:
            async for line in lines_of(answer):
                yield line.decode(errors="replace")
        except OSError as error:
            raise Unreachable(
                f"the log broke off: {error}", reason=type(error).__name__, where=f"GET {path}"
            ) from error
        finally:
            answer.close()


def _objects_after(page: Page[Any], limit: int) -> int:
    """How many objects the next page is to have, after one that had at most `limit`."""
    if not len(page):
        return limit
    return max(1, min(_PAGE_BYTES * len(page) // page.size_bytes, limit * _MOST_TIMES, _MOST_OBJECTS))


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    return given(labelSelector=label_selector or None, fieldSelector=field_selector or None)
