"""The list of routes, and what happens around each: limits, verdict, metrics, one line of log."""

import time
from collections.abc import Mapping
from http import HTTPStatus

import flask
import msgspec
import structlog
from prometheus_client import Counter, Histogram

from muster.api.admission import AdmissionRequest
from muster.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.kube.errors import APIError
from muster.runtime.framework import Framework
from webhook import deadline, review
from webhook.lookup import Lookups
from webhook.mutate import job as mutate_job
from webhook.mutate import pod as mutate_pod
from webhook.mutate import podgroup as mutate_podgroup
from webhook.mutate import queue as mutate_queue
from webhook.mutate import trainjob as mutate_trainjob
from webhook.mutate import workload as mutate_workload
from webhook.review import BadReviewError, Handler, MalformedError
from webhook.validate import batch_job as validate_batch_job
from webhook.validate import disruption as validate_disruption
from webhook.validate import job as validate_job
from webhook.validate import podgroup as validate_podgroup
from webhook.validate import queue as validate_queue
from webhook.validate import trainingruntime as validate_runtime
from webhook.validate import trainjob as validate_trainjob

log = structlog.get_logger()

_TRAINER = "-trainer-kubeflow-org-v1alpha1"  # the paths of Kubeflow's own webhook

REVIEWS = Counter("muster_webhook_reviews", "Reviews answered, by route and outcome.", ["route", "outcome"])
SECONDS = Histogram(
    "muster_webhook_review_seconds",
    "Time to answer a review.",
    ["route"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 10),
)


def routes(lookups: Lookups, framework: Framework, *, marks: bool = False) -> dict[str, Handler]:
    """Path → handler: everything that the webhook does. `marks`: pods that Muster places get marker resources."""
    queues = lookups.queues
    return {
        "/mutate/job": mutate_job.reviewer(marks=marks),
        "/mutate/workload": mutate_workload.reviewer(lookups.namespaces),
        "/mutate/podgroup": mutate_podgroup.reviewer(lookups.namespaces),
        "/mutate/queue": mutate_queue.review,
        "/mutate/pod": mutate_pod.reviewer(lookups, framework, marks=marks),
        f"/mutate{_TRAINER}-trainjob": mutate_trainjob.reviewer(lookups.namespaces, time.time),
        f"/validate{_TRAINER}-trainjob": validate_trainjob.reviewer(lookups, framework),
        f"/validate{_TRAINER}-trainingruntime": validate_runtime.reviewer(TrainingRuntime),
        f"/validate{_TRAINER}-clustertrainingruntime": validate_runtime.reviewer(ClusterTrainingRuntime),
        "/validate/job": validate_job.reviewer(queues, lookups.trials),
        "/validate/batch-job": validate_batch_job.reviewer(queues, framework),
        "/validate/pod": validate_disruption.review,
        "/validate/podgroup": validate_podgroup.reviewer(queues),
        "/validate/queue": validate_queue.reviewer(queues),
    }


def create_app(handlers: Mapping[str, Handler]) -> flask.Flask:
    """The WSGI app that serves these routes."""
    app = flask.Flask("muster-webhook")
    app.config["MAX_CONTENT_LENGTH"] = review.MAX_BODY_BYTES
    for path, handler in handlers.items():
        app.add_url_rule(path, endpoint=path, view_func=_view(path, handler), methods=["POST"])
    return app


def _view(route: str, handler: Handler) -> flask.typing.RouteCallable:
    seconds = SECONDS.labels(route)

    def view() -> flask.Response:
        started = time.perf_counter()
        deadline.start(flask.request.args.get("timeout"))
        # Strict, and not only by taste: no browser sends this type to another site without asking first.
        if flask.request.mimetype != review.CONTENT_TYPE:
            REVIEWS.labels(route, "malformed").inc()
            return _plain(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send an AdmissionReview as {review.CONTENT_TYPE}")
        try:
            request = review.read(flask.request.get_data(cache=False))
        except BadReviewError as error:
            REVIEWS.labels(route, "malformed").inc()
            log.warning("not a review", route=route, why=str(error))
            return _plain(HTTPStatus.BAD_REQUEST, str(error))
        body, outcome = _decide(route, handler, request)
        REVIEWS.labels(route, outcome).inc()
        seconds.observe(time.perf_counter() - started)
        return flask.Response(body, content_type=review.CONTENT_TYPE)

    return view


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


def _plain(status: HTTPStatus, text: str) -> flask.Response:
    """An answer to something that is not a review; the API server shows it as the reason of the failed call."""
    return flask.Response(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
