"""From the body of a call to the body of its answer: limits, verdict, metrics, one line of log."""

import time
from http import HTTPStatus
from typing import NamedTuple

import msgspec
import structlog
from prometheus_client import Counter, Histogram

from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.errors import APIError
from muster.process.tracing import SPANS, workload_of
from webhook import deadline, review
from webhook.review import BadReviewError, Handler, MalformedError

log = structlog.get_logger()

REVIEWS = Counter("muster_webhook_reviews", "Reviews answered, by route and outcome.", ["route", "outcome"])
SECONDS = Histogram(
    "muster_webhook_review_seconds",
    "Time to answer a review.",
    ["route"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 10),
)


class Answer(NamedTuple):
    """What is sent back over HTTP: a review with its verdict, or a sentence about what was no review."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = review.CONTENT_TYPE


class Route:
    """One route: its path, the handler that decides there, and its metrics."""

    def __init__(self, path: str, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self._seconds = SECONDS.labels(path)

    def answer(self, body: bytes, query: str) -> Answer:
        """The answer to a review; `query` is that of the URL, where the API server says how long it waits."""
        started = time.perf_counter()
        try:
            request = review.read(body)
        except BadReviewError as error:
            log.warning("not a review", route=self._path, why=str(error))
            return self.refusal(HTTPStatus.BAD_REQUEST, str(error))
        with deadline.of(query):
            result, outcome = _decide(self._path, self._handler, request)
        REVIEWS.labels(self._path, outcome).inc()
        took_s = time.perf_counter() - started
        self._seconds.observe(took_s)
        if SPANS.on:
            _trace(self._path, request, outcome, took_s)
        return Answer(result)

    def refusal(self, status: HTTPStatus, text: str) -> Answer:
        """An answer to something that is not a review; the API server shows it as the reason of the failed call."""
        REVIEWS.labels(self._path, "malformed").inc()
        return Answer(f"{text}\n".encode(), status, "text/plain; charset=utf-8")


class _Head(msgspec.Struct):
    """What of an object says to which workload it belongs."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


_PARTS = frozenset({"Pod", "PodGroup"})
"""Kinds that are parts of a workload."""
_HEAD = msgspec.json.Decoder(_Head)


def _trace(route: str, request: AdmissionRequest, outcome: str, took_s: float) -> None:
    """Records the review in the trace of the object's workload, if it has a UID yet (when validated, and in pods)."""
    try:
        metadata = _HEAD.decode(request.object).metadata
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return  # refused, for that very reason
    now_s = time.time()
    SPANS.record(
        workload_of(metadata) if request.kind.kind in _PARTS else metadata.uid,
        f"review {route}",
        now_s - took_s,
        now_s,
        operation=request.operation,
        kind=request.kind.kind,
        outcome=outcome,
    )


def _decide(route: str, handler: Handler, request: AdmissionRequest) -> tuple[bytes, str]:
    """The answer, and one word for it. Whatever goes wrong here refuses: an unchecked object must not get through."""
    bound = log.bind(
        uid=request.uid,
        route=route,
        operation=request.operation,
        namespace=request.namespace,
        name=request.name,
        user=request.user_info.username,
    )
    try:
        verdict = handler(request)
    except (MalformedError, msgspec.ValidationError) as error:
        bound.warning("malformed object", why=str(error))
        return review.failure(request, HTTPStatus.BAD_REQUEST, f"the object can not be read: {error}"), "denied"
    except ValueError as error:  # a quantity or time that cannot be read, wherever in the object
        bound.warning("malformed value", exc_info=True)
        return review.failure(request, HTTPStatus.BAD_REQUEST, f"the object can not be read: {error}"), "denied"
    except APIError as error:
        bound.warning("look-up failed", why=str(error))
        message = f"Muster could not look up what it needs to decide (review {request.uid}); try again"
        return review.failure(request, HTTPStatus.SERVICE_UNAVAILABLE, message), "error"
    except Exception:  # noqa: BLE001 - logged, and answered by a refusal: a stack trace is not for the client
        bound.exception("handler failed")
        message = f"Muster's webhook failed on this request; its log says why (review {request.uid})"
        return review.failure(request, HTTPStatus.INTERNAL_SERVER_ERROR, message), "error"
    if verdict.errors:
        bound.info("denied", errors=[str(error) for error in verdict.errors])
    else:
        bound.debug(verdict.outcome, operations=len(verdict.patch), warnings=list(verdict.warnings))
    return review.answer(request, verdict), verdict.outcome
