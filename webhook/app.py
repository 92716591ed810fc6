"""The web application of the webhook: the list of routes; each review gets a response, metrics and one log line."""

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import flask
import msgspec
import structlog
from prometheus_client import Counter, Histogram

from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.api.kubernetes import admission, meta
from muster.kube.codec import decoder
from muster.kube.errors import APIError, TooManyRequests
from muster.process.counters import from_zero
from muster.process.tracing import SPANS, workload_of
from muster.runtime.framework import Framework
from muster.runtime.train_job import Target
from webhook import mutate, review, validate
from webhook.config import ResourceGroup
from webhook.lookup import Lookups
from webhook.mutate.creator import note_user, signed
from webhook.review import BadReviewError, Handler, MalformedError, ReviewVerdict
from webhook.senders import Senders
from webhook.validate.edits import scale_reviewer
from webhook.validate.volcano_job import job as validate_job

_TRAINER = "-trainer-kubeflow-org-v1alpha1"  # the paths of Kubeflow's own webhook
log = structlog.get_logger()
REVIEWS = Counter("muster_webhook_reviews", "Reviews answered, by route and outcome.", ["route", "outcome"])
_OUTCOMES = ("allowed", "patched", "denied", "limited", "error", "malformed")
SECONDS = Histogram(
    "muster_webhook_review_seconds",
    "Time to answer a review, by route.",
    ["route"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 10),
)
_PARTS = frozenset({"Pod", "PodGroup"})
"""Kinds of objects that are parts of a workload, such as pods."""


def routes(
    lookups: Lookups,
    framework: Framework,
    *,
    marks: bool = False,
    groups: Sequence[ResourceGroup] = (),
    target: Target = "Job",
    durable_history: bool = True,
) -> dict[str, Handler]:
    """Return a map from each URL path to its handler.

    With `marks`, pods get marker resources. `target` is the kind of object that the controller creates for a TrainJob.

    Without `durable_history`, usage budgets in Queues cause warnings.
    """
    return {
        "/mutate/job": signed(mutate.job.reviewer(lookups, marks=marks, groups=groups)),
        "/mutate/workload": signed(mutate.workload.reviewer(lookups.namespaces)),
        "/mutate/podgroup": signed(mutate.queues.reviewer(lookups)),
        "/mutate/creator": signed(lambda _request: ReviewVerdict()),  # nothing else is filled in
        "/mutate/changed": note_user,
        "/mutate/queue": mutate.queues.review_queue,
        "/mutate/pod": signed(mutate.pod.reviewer(lookups, framework, marks=marks, groups=groups)),
        f"/mutate{_TRAINER}-trainjob": signed(
            mutate.trainjob.reviewer(lookups.namespaces, lookups.runtimes, time.time)
        ),
        f"/validate{_TRAINER}-trainjob": validate.trainjob.reviewer(lookups, framework, target),
        f"/validate{_TRAINER}-trainingruntime": validate.trainjob.runtime_reviewer(TrainingRuntime, target),
        f"/validate{_TRAINER}-clustertrainingruntime": validate.trainjob.runtime_reviewer(
            ClusterTrainingRuntime, target
        ),
        "/validate/job": validate_job.reviewer(lookups, framework),
        "/validate/workload": validate.workload.reviewer(lookups, framework),
        "/validate/scale": scale_reviewer(lookups),
        "/validate/namespace": validate.namespace.reviewer(lookups.queues),
        "/validate/command": validate.command.reviewer(lookups.rights),
        "/validate/pod": validate.pod.review,
        "/validate/podgroup": validate.podgroup.reviewer(lookups),
        "/validate/queue": validate.queue.reviewer(lookups.queues, durable_history=durable_history),
        "/validate/hypernode": validate.hypernode.review,
        "/validate/cronjob": validate.jobtemplates.cron_reviewer(framework),
        "/validate/jobflow": validate.jobtemplates.review_flow,
        "/validate/jobtemplate": validate.jobtemplates.template_reviewer(framework),
    }


class Route:
    """A URL path, with its handler and its metrics."""

    def __init__(self, path: str, handler: Handler, senders: Senders) -> None:
        self._path = path
        self._senders = senders
        self._handler = handler
        self._seconds = SECONDS.labels(path)
        from_zero(REVIEWS, _OUTCOMES, path)

    def answer(self) -> flask.Response:
        """Answer the review in the body of Flask's request."""
        started, sent = time.perf_counter(), flask.request
        # A browser sends this content type to another site only if that site permits it.
        if sent.mimetype != review.CONTENT_TYPE:
            return self._no_review(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send an AdmissionReview as {review.CONTENT_TYPE}"
            )
        try:
            request = review.read(sent.get_data(cache=False))
        except BadReviewError as error:
            log.warning("not a review", route=self._path, why=str(error))
            return self._no_review(HTTPStatus.BAD_REQUEST, str(error))
        sender = self._senders.review(sent.remote_addr or "", request)
        with review.deadline(sent.environ["QUERY_STRING"]), sender:
            result, outcome = _decide(self._path, self._handler, request)
        REVIEWS.labels(self._path, outcome).inc()
        took_s = time.perf_counter() - started
        self._seconds.observe(took_s)
        if SPANS.on:
            _trace(self._path, request, outcome, took_s)
        return flask.Response(result, content_type=review.CONTENT_TYPE)

    def _no_review(self, status: HTTPStatus, text: str) -> flask.Response:
        """Return the response to a body that is not a review.

        The API server shows `text` as the reason for the failed call.
        """
        REVIEWS.labels(self._path, "malformed").inc()
        return flask.Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")


class _Head(msgspec.Struct):
    """An object reduced to its metadata, which identifies the workload."""

    metadata: meta.ObjectMeta = msgspec.field(default_factory=meta.ObjectMeta)


def _trace(route: str, request: admission.AdmissionRequest, outcome: str, took_s: float) -> None:
    """Record the review in the trace of the object's workload.

    A new object has no UID during its mutation. The mutation is therefore recorded only for parts of a workload, such
    as pods, whose owner has a UID.
    """
    try:
        metadata = decoder(_Head).decode(request.object).metadata
    except review.UNREADABLE:
        return  # the review was refused because of this
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


def _decide(route: str, handler: Handler, request: admission.AdmissionRequest) -> tuple[bytes, str]:
    """Return the response, and the outcome of the review as one word.

    If the handler fails, the object is rejected, because no object is admitted unchecked.
    """
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
    except (MalformedError, ValueError) as error:  # ValueError: an unreadable quantity or time
        bound.warning("malformed object", why=str(error), exc_info=type(error) is ValueError)
        return review.failure(request, HTTPStatus.BAD_REQUEST, f"the object cannot be read: {error}"), "denied"
    except TooManyRequests as error:
        bound.info("limited", why=str(error))
        message = f"Muster cannot make the look-ups for this review now (review {request.uid}): {error.message}"
        return review.failure(request, HTTPStatus.TOO_MANY_REQUESTS, message), "limited"
    except APIError as error:
        bound.warning("look-up failed", why=str(error))
        message = f"Muster could not make the look-ups for this review (review {request.uid}); try again"
        return review.failure(request, HTTPStatus.SERVICE_UNAVAILABLE, message), "error"
    except Exception:  # noqa: BLE001 - logged, and answered by a refusal: a stack trace is not for the client
        bound.exception("handler failed")
        message = f"Muster's webhook failed on this request; see its log (review {request.uid})"
        return review.failure(request, HTTPStatus.INTERNAL_SERVER_ERROR, message), "error"
    if verdict.errors:
        bound.info("denied", errors=[str(error) for error in verdict.errors])
    else:
        bound.debug(verdict.outcome, operations=len(verdict.patch), warnings=list(verdict.warnings))
    return review.answer(request, verdict), verdict.outcome


def create_app(handlers: Mapping[str, Handler], senders: Senders) -> flask.Flask:
    """Return the WSGI app that serves `handlers`, keyed by URL path; `senders` limits the requests of each sender."""
    app = flask.Flask("muster-webhook")
    app.config["MAX_CONTENT_LENGTH"] = review.MAX_BODY_BYTES
    for path, handler in handlers.items():
        app.add_url_rule(path, endpoint=path, view_func=Route(path, handler, senders).answer, methods=["POST"])
    return app
