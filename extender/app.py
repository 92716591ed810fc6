"""The extender's routes: bytes in, a verb's answer out, and an error that kube-scheduler reads if that fails.

Everything runs on the event loop: filter, prioritize and preempt compute on the state in memory and never wait; bind is
a coroutine, since it waits for the other members of a gang and for the API server.

Calls over TLS need a client certificate. Over plain HTTP, which is on loopback only, a process on the same machine can
call without one, but a web page that is open there must not: it can send forms and plain text anywhere, and reach
loopback under a name of its own (DNS rebinding), but it cannot send JSON elsewhere without being asked about it first,
nor choose the headers `Host` and `Origin`.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from inspect import isawaitable
from typing import Any, NamedTuple

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.planner.reasons.verbs import Reason
from extender.verbs.bind import DECODE_BINDING
from extender.verbs.filter import DECODE_ARGS
from extender.verbs.preempt import DECODE_PREEMPTION
from muster.api.kubernetes import extender as api
from muster.process.health import host_of, is_loopback

log = structlog.get_logger()
Pages = Callable[[], Mapping[str, Callable[[], object]]]
MAX_BODY_BYTES = 16 * 1024 * 1024
"""More than kube-scheduler can send: the names of all nodes of the largest cluster are 2 MB."""


class Verbs(NamedTuple):
    """Handlers of kube-scheduler's calls, one for each verb of an extender."""

    filter: Callable[[api.ExtenderArgs], api.ExtenderFilterResult]
    prioritize: Callable[[api.ExtenderArgs], list[api.HostPriority]]
    bind: Callable[[api.ExtenderBindingArgs], Awaitable[api.ExtenderBindingResult]]
    preempt: Callable[[api.ExtenderPreemptionArgs], api.ExtenderPreemptionResult]


def create_app(verbs: Verbs, pages: Pages, *, authenticated: bool = False) -> Starlette:
    """Create the ASGI app with the four verbs and the pages of plugins; `authenticated`: by client certificates.

    A verb's answer is always 200 with any error in its body, as kube-scheduler reads no other one.
    """
    return Starlette(
        routes=[
            _verb("filter", DECODE_ARGS, verbs.filter, lambda why: api.ExtenderFilterResult(error=why)),
            _verb("prioritize", DECODE_ARGS, verbs.prioritize, lambda _: []),
            _verb("bind", DECODE_BINDING, verbs.bind, lambda why: api.ExtenderBindingResult(error=why)),
            _verb("preempt", DECODE_PREEMPTION, verbs.preempt, lambda _: api.ExtenderPreemptionResult()),
            Route("/plugins/{name}", _page(pages)),
        ],
        middleware=[Middleware(OnlyScheduler, authenticated=authenticated)],
        exception_handlers={HTTPException: _refused, ClientDisconnect: _gone},
        max_body_size=MAX_BODY_BYTES,
    )


def _verb(
    name: str, decoder: msgspec.json.Decoder[Any], decide: Callable[[Any], Any], failure: Callable[[Reason], object]
) -> Route:
    async def answer(request: Request) -> Response:
        body = await request.body()
        try:
            answer = decide(decoder.decode(body))
            return _json(await answer if isawaitable(answer) else answer)
        except msgspec.DecodeError as error:
            log.warning("malformed request", verb=name, error=str(error))
            return _json(failure(Reason.MALFORMED))
        except Exception:
            log.exception("verb failed", verb=name)
            return _json(failure(Reason.INTERNAL))

    return Route(f"/{name}", answer, methods=["POST"])


def _page(pages: Pages) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:  # in a thread, as a page may take its time
        known, name = pages(), request.path_params["name"]
        if name not in known:
            return _json({"error": f"there is no page {name!r}", "pages": sorted(known)}, HTTPStatus.NOT_FOUND)
        try:
            return _json(known[name]())
        except Exception:
            log.exception("page failed", page=name)
            return _json({"error": f"the page {name!r} failed; see the log"}, HTTPStatus.INTERNAL_SERVER_ERROR)

    return answer


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that is none of these."""
    status = HTTPStatus(error.status_code if isinstance(error, HTTPException) else HTTPStatus.BAD_REQUEST)
    return _json({"error": f"{request.method} {request.scope['path']}: {status.phrase}"}, status)


async def _gone(_request: Request, _error: Exception) -> Response:
    """End a request whose client has gone before all of it came; the answer reaches no client."""
    return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)


def _json(answer: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


CONTENT_TYPE = "application/json"
Refusal = tuple[HTTPStatus, str]


class OnlyScheduler:
    """Middleware that refuses requests which cannot be kube-scheduler's; `authenticated` callers use any host."""

    def __init__(self, app: ASGIApp, *, authenticated: bool) -> None:
        self._app = app
        self._authenticated = authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        answer = JSONResponse({"error": refusal[1]}, refusal[0]) if refusal else self._app
        await answer(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> Refusal | None:
        if not self._authenticated and not is_loopback(host_of(headers.get("host", ""))):
            why = "call the extender by a loopback address, e.g. 127.0.0.1, as the header Host says it"
            return HTTPStatus.FORBIDDEN, why
        if "origin" in headers:
            why = "the extender answers kube-scheduler, no web pages: leave out the header Origin"
            return HTTPStatus.FORBIDDEN, why
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT_TYPE:
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the body as {CONTENT_TYPE}"
        return None
