"""Streams that notify open pages of changes, so that pages reload themselves (server-sent events).

An event does not contain the change itself, so it reveals nothing that is hidden from the caller. An idle stream costs
one comparison of a number per second. The caller's rights are checked again each minute, and the stream ends once the
caller is no longer allowed to see the page.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from muster.kube.errors import APIError
from web.counters import STREAMS
from web.rights import BELIEVED_S
from web.site import Site, account_of
from web.slow import Threads
from web.view import View

POLL_S: Final = 1.0
"""Interval in seconds between two checks for changes, and thus the minimum between two events."""
HEARTBEAT_S: Final = 30.0
"""Interval in seconds between keep-alive messages on an idle stream, because proxies close silent connections."""
MOST: Final = 500
"""Maximum number of streams of all callers."""
EACH: Final = 20
"""Maximum number of streams of one user, or of all service accounts of a namespace."""
_SHARE: Final = 10
"""Factor by which the pause after a check exceeds the duration of the check, so that checks use a tenth of the time."""
CHANGED: Final = "event: changed\ndata: \n\n"
ALIVE: Final = ": alive\n\n"


class Streams:
    """Counter of the open streams, in total and per account."""

    def __init__(self, most: int = MOST, each: int = EACH) -> None:
        self._most = most
        self._each = each
        self._open: Counter[str] = Counter()

    def refuse(self, name: str) -> None:
        """Raise HTTPException 429 if an account has reached its maximum number of streams.

        All methods of this class run on the event loop.
        """
        if self._open[name] >= self._each:
            why = f"you have {self._each} open pages with live updates, the maximum: close some of them"
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, why)
        if self._open.total() >= self._most:
            why = f"{self._most} open pages have live updates, the maximum: reload this page yourself"
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, why)

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Count a stream as open within the `with` block."""
        self._open[name] += 1
        STREAMS.inc()
        try:
            yield
        finally:
            STREAMS.dec()
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]

    @property
    def open(self) -> int:
        """Number of open streams."""
        return self._open.total()


def live(
    site: Site, streams: Streams, threads: Threads, clock: Callable[[], float] = time.monotonic
) -> Callable[[Request], object]:
    """Return the endpoint of the streams: `/live?page=NAME`, or `NAME/NAMESPACE` for a page about one namespace."""

    async def endpoint(request: Request) -> StreamingResponse:
        account = await account_of(site.callers, request, threads)
        site.require_ready()
        await threads.run(account, partial(site.callers.caller_of, request))
        streams.refuse(account)
        events = _events(site, streams, threads, request, account, clock)
        return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    return endpoint


async def _events(
    site: Site, streams: Streams, threads: Threads, request: Request, account: str, clock: Callable[[], float]
) -> AsyncIterator[str]:
    page = request.query_params.get("page", "")

    def mark() -> object:
        return View(site.caches, site.callers.caller_of(request)).mark(page)

    with streams.counted(account):
        yield ALIVE
        seen = site.caches.total  # read first: a change during the computation of the mark is then noticed
        shown = await threads.run(account, mark)
        spoke = asked = clock()
        pause_s = POLL_S
        while not site.closing:
            await asyncio.sleep(pause_s)
            now = clock()
            if now - spoke >= HEARTBEAT_S:
                spoke = now
                yield ALIVE
            if site.caches.total == seen and now - asked < BELIEVED_S:
                continue
            asked, seen = now, site.caches.total
            try:
                found = await threads.run(account, mark)
            except (HTTPException, APIError):
                yield CHANGED  # the page then requests its content
                return
            pause_s = max(POLL_S, _SHARE * (clock() - now))
            if found != shown:
                shown, spoke = found, now
                yield CHANGED
