"""The extender's routes: bytes in, a verb's answer out, and an error that kube-scheduler reads if that fails.

Everything runs on the event loop: filter, prioritize and preempt are arithmetic over what memory holds and never wait;
bind is a coroutine, since it waits for the other members of a gang and for the API server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from inspect import isawaitable
from typing import NamedTuple

import msgspec
import structlog

from extender import callers
from extender.verbs.bind import DECODE_BINDING
from extender.verbs.filter import DECODE_ARGS
from extender.verbs.preempt import DECODE_PREEMPTION
from extender.verbs.reasons import Reason
from muster.api.kubernetes.extender import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from muster.process.calls import Answer, Request

log = structlog.get_logger()
Pages = Callable[[], Mapping[str, Callable[[], object]]]
_PAGES = "/plugins/"


class Verbs(NamedTuple):
    """What answers kube-scheduler, one function for each thing that it can ask an extender."""

    filter: Callable[[ExtenderArgs], ExtenderFilterResult]
    prioritize: Callable[[ExtenderArgs], list[HostPriority]]
    bind: Callable[[ExtenderBindingArgs], Awaitable[ExtenderBindingResult]]
    preempt: Callable[[ExtenderPreemptionArgs], ExtenderPreemptionResult]


class _Route(NamedTuple):
    """One verb: what decides, and what says that it failed."""

    decide: Callable[[bytes], object]
    failure: Callable[[Reason], object]


class App:
    """Answers requests: four verbs, and the pages of plugins.

    A verb's answer is always 200, as kube-scheduler reads no other body; what goes wrong is an error in it. Only who
    cannot be kube-scheduler gets another one. `authenticated`: all who get here have shown a client certificate.
    """

    def __init__(self, verbs: Verbs, pages: Pages, *, authenticated: bool = False) -> None:
        self._pages = pages
        self._authenticated = authenticated
        self._routes = {
            "/filter": _Route(
                lambda body: verbs.filter(DECODE_ARGS.decode(body)), lambda why: ExtenderFilterResult(error=why)
            ),
            "/prioritize": _Route(lambda body: verbs.prioritize(DECODE_ARGS.decode(body)), lambda _: []),
            "/preempt": _Route(
                lambda body: verbs.preempt(DECODE_PREEMPTION.decode(body)), lambda _: ExtenderPreemptionResult()
            ),
            "/bind": _Route(
                lambda body: verbs.bind(DECODE_BINDING.decode(body)), lambda why: ExtenderBindingResult(error=why)
            ),
        }

    async def __call__(self, request: Request) -> Answer:
        """Answers one request."""
        refusal = callers.refusal(
            request.method,
            request.host,
            request.headers.get("content-type", ""),
            request.headers,
            authenticated=self._authenticated,
        )
        if refusal:
            return _json({"error": refusal[1]}, refusal[0])
        route = self._routes.get(request.path)
        if route is not None:
            if request.method != "POST":
                return _json({"error": "send it as POST"}, HTTPStatus.METHOD_NOT_ALLOWED)
            return await _answer(request.path.removeprefix("/"), route, await request.body())
        if request.method == "GET" and request.path.startswith(_PAGES):
            return await self._page(request.path.removeprefix(_PAGES))
        return _json({"error": f"there is nothing at {request.path}"}, HTTPStatus.NOT_FOUND)

    async def _page(self, name: str) -> Answer:
        """A page of a plugin; it is made in a thread, as it may take its time."""
        known = self._pages()
        if name not in known:
            return _json({"error": f"there is no page {name!r}", "pages": sorted(known)}, HTTPStatus.NOT_FOUND)
        try:
            return await asyncio.to_thread(lambda: _json(known[name]()))
        except Exception:
            log.exception("page failed", page=name)
            return _json({"error": f"the page {name!r} failed; see the log"}, HTTPStatus.INTERNAL_SERVER_ERROR)


async def _answer(verb: str, route: _Route, body: bytes) -> Answer:
    try:
        answer = route.decide(body)
        return _json(await answer if isawaitable(answer) else answer)
    except msgspec.DecodeError as error:
        log.warning("malformed request", verb=verb, error=str(error))
        return _json(route.failure(Reason.MALFORMED))
    except Exception:
        log.exception("verb failed", verb=verb)
        return _json(route.failure(Reason.INTERNAL))


def _json(answer: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(status, msgspec.json.encode(answer))
