"""Metrics of HTTP requests: the number of requests by page and status, and their duration.

No label names a user or a namespace.
"""

import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUESTS: Final = Counter("muster_web_requests_total", "Responses, by page and status", ["page", "status"])
SECONDS: Final = Histogram(
    "muster_web_request_seconds",
    "Time to answer a request, by page; requests for live updates are excluded",
    ["page"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
STREAMS: Final = Gauge("muster_web_streams", "Open pages with live updates")
ELSEWHERE: Final = "none"
"""Label for requests to unknown addresses, and for requests that are refused before a page is called."""
LIVE: Final = "/live"


def pages_of(routes: Iterable[BaseRoute]) -> Mapping[Any, str]:
    """Return the path of each endpoint, with placeholders for namespaces and names: /gangs/{namespace}/{name}."""
    found: dict[Any, str] = {}
    for route in routes:
        if isinstance(route, Route):
            found[route.endpoint] = route.path
        elif isinstance(route, Mount):
            found[route.app] = route.path
    return found


class CountedResponses:
    """Middleware that counts a response when it starts, and records its duration when it ends."""

    def __init__(self, app: ASGIApp, *, pages: Mapping[Any, str]) -> None:
        self._app = app
        self._pages = pages
        for page in {*pages.values()}:
            REQUESTS.labels(page, str(int(HTTPStatus.OK)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s = time.monotonic()

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                REQUESTS.labels(self._page(scope), str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counting)
        page = self._page(scope)
        if page != LIVE:
            SECONDS.labels(page).observe(time.monotonic() - began_s)

    def _page(self, scope: Scope) -> str:
        """Return the path template of the request's route; ELSEWHERE if no route matched."""
        return self._pages.get(scope.get("endpoint"), ELSEWHERE)
