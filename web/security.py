"""Checks of the origin of every request, and response headers that restrict what the browser does with a page.

Pages load nothing from other hosts and contain no inline scripts, so no name that a user has chosen can run as a
script. The server accepts a change only as a POST request from one of its own pages.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.process.hosts import host_of, is_loopback

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_READING: Final = frozenset({"GET", "HEAD"})


class Guard:
    """Middleware that refuses requests from other sites, and adds headers to each response."""

    def __init__(self, app: ASGIApp, *, on_loopback: bool = False) -> None:
        self._app = app
        self._on_loopback = on_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        why = refusal(scope["method"], Headers(scope=scope), on_loopback=self._on_loopback)
        answering = PlainTextResponse(f"{why}\n", 403) if why else self._app
        await answering(scope, receive, with_headers)


def refusal(method: str, headers: Headers, *, on_loopback: bool) -> str:
    """Return the reason why a request is refused; empty if it is accepted.

    A page of another site can make a browser send a request. If the site has pointed its own name at this machine (DNS
    rebinding), the Host header contains that name. If the site sends a form, Sec-Fetch-Site or Origin shows the other
    site. A request with a token in the header Authorization was not forged, because another site cannot make a browser
    send this header.
    """
    host = headers.get("host", "")
    if on_loopback and not is_loopback(host_of(host)):
        return "this page is only for browsers on the same machine: open it as localhost"
    if method in _READING or headers.get("authorization"):
        return ""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site == "same-origin" or (site is None and origin and urlsplit(origin).netloc == host):
        return ""
    return "a page of another site has sent this request: open the page here, and send it from there"
