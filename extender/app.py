"""The extender's routes: bytes in, a verb's answer out, and an error that kube-scheduler reads if that fails."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import structlog
from flask import Flask, Response, request

from extender import callers
from extender.verbs.bind import DECODE_BINDING
from extender.verbs.filter import DECODE_ARGS
from extender.verbs.preempt import DECODE_PREEMPTION
from extender.verbs.reasons import Reason
from muster.api.extender import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)

log = structlog.get_logger()
Pages = Callable[[], Mapping[str, Callable[[], object]]]


class Verbs(NamedTuple):
    """What answers kube-scheduler, one function for each thing that it can ask an extender."""

    filter: Callable[[ExtenderArgs], ExtenderFilterResult]
    prioritize: Callable[[ExtenderArgs], list[HostPriority]]
    bind: Callable[[ExtenderBindingArgs], ExtenderBindingResult]
    preempt: Callable[[ExtenderPreemptionArgs], ExtenderPreemptionResult]


def create_app(verbs: Verbs, pages: Pages) -> Flask:
    """The Flask app: four verbs, and the pages of plugins.

    A verb's answer is always 200, as kube-scheduler reads no other body; what goes wrong is an error in it. Only who
    cannot be kube-scheduler gets another one.
    """
    app = Flask("extender")

    @app.before_request
    def refuse_strangers() -> Response | None:
        refusal = callers.refusal(request.method, request.mimetype, request.headers)
        return _json({"error": refusal[1]}, refusal[0]) if refusal else None

    @app.post("/filter")
    def filter_() -> Response:
        return _answer(
            "filter", lambda body: verbs.filter(DECODE_ARGS.decode(body)), lambda why: ExtenderFilterResult(error=why)
        )

    @app.post("/prioritize")
    def prioritize() -> Response:
        return _answer("prioritize", lambda body: verbs.prioritize(DECODE_ARGS.decode(body)), lambda _: [])

    @app.post("/preempt")
    def preempt_() -> Response:
        return _answer(
            "preempt",
            lambda body: verbs.preempt(DECODE_PREEMPTION.decode(body)),
            lambda _: ExtenderPreemptionResult(),
        )

    @app.post("/bind")
    def bind() -> Response:
        return _answer(
            "bind", lambda body: verbs.bind(DECODE_BINDING.decode(body)), lambda why: ExtenderBindingResult(error=why)
        )

    @app.get("/plugins/<name>")
    def page(name: str) -> Response:
        known = pages()
        if name not in known:
            return _json({"error": f"there is no page {name!r}", "pages": sorted(known)}, HTTPStatus.NOT_FOUND)
        return _json(known[name]())

    return app


def _answer(verb: str, decide: Callable[[bytes], object], failure: Callable[[Reason], object]) -> Response:
    try:
        return _json(decide(request.get_data(cache=False)))
    except msgspec.DecodeError as error:
        log.warning("malformed request", verb=verb, error=str(error))
        return _json(failure(Reason.MALFORMED))
    except Exception:
        log.exception("verb failed", verb=verb)
        return _json(failure(Reason.INTERNAL))


def _json(answer: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(answer), status, content_type="application/json")
