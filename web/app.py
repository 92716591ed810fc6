"""The web application: the table of pages, the identification of callers, errors, and the headers of every response."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from history.store import StoreError
from muster.kube.errors import APIError, Conflict, Forbidden, Invalid, NotFound, Unauthorized
from muster.process.hosts import host_of, is_loopback
from web import actions
from web.context import RequestContext
from web.counters import LIVE, CountedResponses, pages_of
from web.pages import gang, past, queues, records, topology, whatif
from web.site import SigningIn, Site, account_of
from web.slow import Threads
from web.streams import Streams, live
from web.view import Caller

log = structlog.get_logger()
FORM_BYTES = 256 * 1024
"""Maximum size of a form in bytes; a form may contain a manifest to simulate."""
_FIELDS = 50
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
    """Middleware that refuses requests from other sites, and adds headers to each response.

    Pages load nothing from other hosts and contain no inline scripts, so no name that a user has chosen can run as a
    script. The server accepts a change only as a POST request from one of its own pages.
    """

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


class Page(NamedTuple):
    """A page: its path, and the function that renders the page. The function runs in a thread and may block."""

    path: str
    answer: Callable[[RequestContext], Response]
    title: str = ""
    """The page's name in the navigation; empty if the navigation does not list it."""
    method: str = "GET"
    """The HTTP method of the page; POST for a page that changes objects. The origin of a POST request is checked."""


def _home(_: RequestContext) -> Response:
    return RedirectResponse("/queues", status_code=303)


ROUTES: Final = (
    Page("/", _home),
    Page("/queues", queues.show, "Queues"),
    Page("/gangs", gang.listed, "Gangs"),
    Page("/gangs/{namespace}/{name}", gang.show),
    Page("/gangs/{namespace}/{name}/explain", gang.why),
    Page("/gangs/{namespace}/{name}/logs/{rank}", gang.log),
    Page("/topology", topology.show, "Topology"),
    Page("/history", past.show, "History"),
    Page("/history/{namespace}/{name}", past.one),
    Page("/usage", past.used, "Usage"),
    Page("/usage.csv", past.used),
    Page("/whatif", whatif.show, "What if"),
    Page("/whatif", whatif.answer, method="POST"),
    Page("/api/explain/{namespace}/{name}", records.explained),
    Page("/api/history", records.show),
    Page("/api/history/{namespace}/{name}", records.show),
    Page("/api/usage", records.show),
    Page("/api/recorder", records.show),
    Page("/act/{action}/{kind}/{namespace}/{name}", actions.confirm),
    Page("/act/{action}/{kind}/{namespace}/{name}", actions.act, method="POST"),
)


def make_app(site: Site, *, on_loopback: bool = False) -> Starlette:
    """Return the ASGI app of a site; if `on_loopback` is true, accept only requests to host names of this machine."""
    site.add_globals(pages=[page for page in ROUTES if page.title])
    threads = Threads()
    routes: list[BaseRoute] = [
        *(Route(page.path, _endpoint(site, page, threads), methods=[page.method]) for page in ROUTES),
        *(sign_in(site, site.callers) if isinstance(site.callers, SigningIn) else ()),
        Route(LIVE, live(site, Streams(), threads)),
        Mount("/static", StaticFiles(directory=site.assets.folder)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(CountedResponses, pages=pages_of(routes)), Middleware(Guard, on_loopback=on_loopback)],
        exception_handlers=dict.fromkeys((HTTPException, APIError, StoreError), _error_page(site)),
    )


def _endpoint(site: Site, page: Page, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if (signed_in := site.callers.with_key(request)) is not None:
            return signed_in
        form = await form_of(request) if page.method == "POST" else {}
        account = await account_of(site.callers, request, threads)

        def answer() -> Response:
            site.require_ready()
            return page.answer(RequestContext(site, request, site.callers.caller_of(request), form))

        return await threads.run(account, answer)

    return endpoint


def sign_in(site: Site, callers: SigningIn) -> list[Route]:
    """Return the routes for signing in and out, which need no token."""

    async def show(request: Request) -> Response:
        return _signing_in(site, request, 200, "")

    async def take(request: Request) -> Response:
        form = await form_of(request)
        return await run_in_threadpool(callers.signed_in, form.get("token", ""))

    async def forget(_: Request) -> Response:
        return callers.signed_out()

    return [
        Route("/signin", show, methods=["GET"]),
        Route("/signin", take, methods=["POST"]),
        Route("/signout", forget, methods=["POST"]),
    ]


def _signing_in(site: Site, request: Request, status: int, message: str) -> Response:
    return RequestContext(site, request, Caller()).page("signin.html", status=status, message=message)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; if a name occurs several times, the last value counts.

    Raises HTTPException for a form that is too long.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > FORM_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a form has at most {FORM_BYTES} bytes")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS))
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "this is not a form of these pages") from error


_STATUS: Final[dict[type[APIError], HTTPStatus]] = {
    Forbidden: HTTPStatus.FORBIDDEN,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
}


def _error_page(site: Site) -> Callable[[Request, Exception], Response]:
    """Show an error as a page, or as JSON below /api."""

    def show_error(request: Request, error: Exception) -> Response:
        headers = None
        if isinstance(error, HTTPException):
            status, message, headers = HTTPStatus(error.status_code), error.detail, error.headers
        else:
            status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), HTTPStatus.BAD_GATEWAY)
            message = error.message if isinstance(error, APIError) else str(error)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"message": message}, status, headers)
        if status is HTTPStatus.UNAUTHORIZED and isinstance(site.callers, SigningIn):
            answer = _signing_in(site, request, status, message)
        else:
            context = RequestContext(site, request, Caller())
            answer = context.page("error.html", status=status, message=message, title=status.phrase)
        answer.headers.update(headers or {})
        return answer

    return show_error
