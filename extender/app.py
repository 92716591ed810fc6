"""The extender's routes."""

import msgspec
import structlog
from flask import Flask, Response, request

from extender.verbs import DECODE_ARGS, DECODE_BINDING, Verbs
from muster.api.extender import ExtenderBindingResult, ExtenderFilterResult

log = structlog.get_logger()
MALFORMED = "Muster could not read the request; see the extender's log"
INTERNAL = "Muster's extender failed; see its log; trying again"


def create_app(verbs: Verbs) -> Flask:
    """The Flask app: three verbs. An answer is always 200, as kube-scheduler reads no other body."""
    app = Flask("extender")

    @app.post("/filter")
    def filter_() -> Response:
        try:
            return _json(verbs.filter(DECODE_ARGS.decode(request.get_data(cache=False))))
        except msgspec.DecodeError as error:
            return _json(ExtenderFilterResult(error=_malformed("filter", error)))
        except Exception:
            log.exception("filter failed")
            return _json(ExtenderFilterResult(error=INTERNAL))

    @app.post("/prioritize")
    def prioritize() -> Response:
        try:
            return _json(verbs.prioritize(DECODE_ARGS.decode(request.get_data(cache=False))))
        except Exception:
            log.exception("prioritize failed")
            return _json([])

    @app.post("/bind")
    def bind() -> Response:
        try:
            return _json(verbs.bind(DECODE_BINDING.decode(request.get_data(cache=False))))
        except msgspec.DecodeError as error:
            return _json(ExtenderBindingResult(error=_malformed("bind", error)))
        except Exception:
            log.exception("bind failed")
            return _json(ExtenderBindingResult(error=INTERNAL))

    return app


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), content_type="application/json")


def _malformed(verb: str, error: Exception) -> str:
    log.warning("malformed request", verb=verb, error=str(error))
    return MALFORMED
