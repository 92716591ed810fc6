"""The extender's HTTP routes, which decode a call, run its verb, and encode the answer or an error for kube-scheduler.

All verbs run on the event loop: filter, prioritize and preempt only read the state in memory and never wait. Bind is a
coroutine, because it waits for the other members of a gang and for the API server.

Calls over TLS need a client certificate. Plain HTTP is served on loopback only. Processes on the same machine may call
the extender without a certificate, but web pages in a local browser must not. A web page can send forms and plain text
to any address, and can reach loopback under the page's own host name (DNS rebinding). However, a web page cannot send
JSON to another site without a preflight request, and cannot set the headers `Host` and `Origin`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from inspect import isawaitable
from typing import Any, NamedTuple

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.planner.reasons.verbs import VerbReason
from extender.verbs.bind import DECODE_BINDING
from extender.verbs.filter import DECODE_ARGS
from extender.verbs.preempt import DECODE_PREEMPTION
from muster.api.kubernetes import core
from muster.api.kubernetes import extender as api
from muster.kube.trimming import LONG, trimmed
from muster.process.hosts import host_of, is_loopback

log = structlog.get_logger()
Pages = Callable[[], Mapping[str, Callable[[], object]]]
CONTENT_TYPE = "application/json"
MAX_BODY_BYTES = 16 * 1024 * 1024
"""Maximum size of a request body in bytes. In the largest cluster, a call that lists all nodes by name takes 2 MB."""


class ExtenderVerbs(NamedTuple):
    """Handlers of kube-scheduler's calls, one for each verb of an extender."""

    filter: Callable[[api.ExtenderArgs], api.ExtenderFilterResult]
    prioritize: Callable[[api.ExtenderArgs], list[api.HostPriority]]
    bind: Callable[[api.ExtenderBindingArgs], Awaitable[api.ExtenderBindingResult]]
    preempt: Callable[[api.ExtenderPreemptionArgs], api.ExtenderPreemptionResult]


def create_app(verbs: ExtenderVerbs, pages: Pages, *, authenticated: bool = False) -> ASGIApp:
    """Create the ASGI app with the four verbs and the pages of plugins; if `authenticated`, clients need a certificate.

    A verb always answers with HTTP status 200 and reports errors in the body, because kube-scheduler ignores the body
    of any other status.
    """
    answers = {
        "/filter": _verb("filter", DECODE_ARGS, verbs.filter, lambda why: api.ExtenderFilterResult(error=why)),
        "/prioritize": _verb("prioritize", DECODE_ARGS, verbs.prioritize, lambda _: []),
        "/bind": _verb("bind", DECODE_BINDING, verbs.bind, lambda why: api.ExtenderBindingResult(error=why)),
        "/preempt": _verb("preempt", DECODE_PREEMPTION, verbs.preempt, lambda _: api.ExtenderPreemptionResult()),
    }
    others = Starlette(routes=[Route("/plugins/{name}", _page(pages))], exception_handlers={HTTPException: _refused})
    return _Calls(answers, others, authenticated=authenticated)


Answer = Callable[[bytes], Awaitable[bytes]]


class _WithPod(api.ExtenderWire):
    """Arguments of a call of any verb, with the pod as undecoded JSON."""

    pod: msgspec.Raw = msgspec.Raw()


_with_pod = msgspec.json.Decoder(_WithPod)


def _verb(
    name: str, decoder: msgspec.json.Decoder[Any], decide: Callable[[Any], Any], failure: Callable[[VerbReason], object]
) -> Answer:
    async def answer(body: bytes) -> bytes:
        try:
            answer = decide(decoder.decode(await _short(body)))
            return msgspec.json.encode(await answer if isawaitable(answer) else answer)
        except msgspec.DecodeError as error:
            log.warning("malformed request", verb=name, error=str(error))
            return msgspec.json.encode(failure(VerbReason.MALFORMED))
        except Exception:
            log.exception("verb failed", verb=name)
            return msgspec.json.encode(failure(VerbReason.INTERNAL))

    return answer


async def _short(body: bytes) -> bytes:
    """Return the body of a call; remove the pod's unused fields from a long body, because their decoding is slow.

    Raises msgspec.DecodeError if the body is not a verb's call.
    """
    if len(body) <= LONG:
        return body
    pod = _with_pod.decode(body).pod
    await asyncio.sleep(0)
    short = trimmed(pod, core.PODS.plural)
    await asyncio.sleep(0)
    return body if short is pod else body.replace(bytes(pod), bytes(short))


class _Calls:
    """ASGI server of the verbs: passes requests for other paths to `others`, and rejects those not from kube-scheduler.

    The class serves the verbs without Starlette, whose layers would increase the extender's CPU time per pod by a
    tenth. If `authenticated` is true, callers may use any host name in the header `Host`.
    """

    def __init__(self, answers: Mapping[str, Answer], others: ASGIApp, *, authenticated: bool) -> None:
        self._answers = answers
        self._others = others
        self._authenticated = authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless the client disconnects before the request is complete."""
        if refusal := self._refusal(scope["method"], Headers(scope=scope)):
            await refusal(scope, receive, send)
            return
        answer = self._answers.get(scope["path"])
        if answer is None:
            await self._others(scope, receive, send)
            return
        if scope["method"] != "POST":
            await _refusal(scope, HTTPStatus.METHOD_NOT_ALLOWED)(scope, receive, send)
            return
        pieces, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            pieces.append(message["body"])
            size += len(pieces[-1])
            if size > MAX_BODY_BYTES:
                await _refusal(scope, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)(scope, receive, send)
                return
            more = message.get("more_body", False)
        body = await answer(b"".join(pieces))
        headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        if not self._authenticated and not is_loopback(host_of(headers.get("host", ""))):
            why = "call the extender by a loopback address, e.g. 127.0.0.1, and use that address in the header Host"
            return _json({"error": why}, HTTPStatus.FORBIDDEN)
        if "origin" in headers:
            why = "the extender serves kube-scheduler, not web pages: omit the header Origin"
            return _json({"error": why}, HTTPStatus.FORBIDDEN)
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT_TYPE:
            return _json({"error": f"send the body as {CONTENT_TYPE}"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        return None


def _page(pages: Pages) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:  # in a thread, because a page may take long
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
    """Return the error response for a request with an unknown path or method."""
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.BAD_REQUEST
    return _refusal(request.scope, status)


def _refusal(scope: Scope, status: HTTPStatus) -> Response:
    return _json({"error": f"{scope['method']} {scope['path']}: {status.phrase}"}, status)


def _json(answer: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type=CONTENT_TYPE)
