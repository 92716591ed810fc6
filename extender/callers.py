"""Who may call the extender: its kube-scheduler, and no browser that somebody leads there.

Over TLS, who has no client certificate does not get as far as this. Over plain HTTP, which is on loopback only, calls
are not authenticated: a process on the same machine can call. A web page that is open there must not: it can send forms
and plain text anywhere, and reach loopback under a name of its own (DNS rebinding), but it cannot send JSON elsewhere
without being asked about it first, nor choose the headers `Host` and `Origin`.
"""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.process.health import host_of, is_loopback

CONTENT_TYPE = "application/json"
Refusal = tuple[HTTPStatus, str]


class OnlyScheduler:
    """Middleware that passes on requests that kube-scheduler can have sent, and refuses others unread.

    A caller that is `authenticated`, by its client certificate, may call the extender by any name.
    """

    def __init__(self, app: ASGIApp, *, authenticated: bool) -> None:
        self._app = app
        self._authenticated = authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        answer = JSONResponse({"error": refusal[1]}, refusal[0]) if refusal else self._app
        await answer(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> Refusal | None:
        if not self._authenticated and not is_loopback(host_of(headers.get("host", ""))):
            return (
                HTTPStatus.FORBIDDEN,
                "call the extender by a loopback address, e.g. 127.0.0.1, as the header Host says it",
            )
        if "origin" in headers:
            return (
                HTTPStatus.FORBIDDEN,
                "the extender answers kube-scheduler, no web pages: leave out the header Origin",
            )
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT_TYPE:
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the body as {CONTENT_TYPE}"
        return None
