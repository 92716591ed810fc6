"""The list of routes, and the app that serves them."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from time import time

import flask

from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.runtime.framework import Framework
from muster.runtime.train_job import Target
from webhook import review
from webhook.config import ResourceGroup
from webhook.dispatch import Answer, Route
from webhook.lookup import Lookups
from webhook.mutate import job as mutate_job
from webhook.mutate import pod as mutate_pod
from webhook.mutate import podgroup as mutate_podgroup
from webhook.mutate import queue as mutate_queue
from webhook.mutate import trainjob as mutate_trainjob
from webhook.mutate import workload as mutate_workload
from webhook.review import Handler
from webhook.validate import command as validate_command
from webhook.validate import hypernode as validate_hyper_node
from webhook.validate import pod as validate_pod
from webhook.validate import podgroup as validate_podgroup
from webhook.validate import queue as validate_queue
from webhook.validate import trainingruntime as validate_runtime
from webhook.validate import trainjob as validate_trainjob
from webhook.validate import workload as validate_workload
from webhook.validate.volcano_job import job as validate_job

_TRAINER = "-trainer-kubeflow-org-v1alpha1"  # the paths of Kubeflow's own webhook


def routes(
    lookups: Lookups,
    framework: Framework,
    *,
    marks: bool = False,
    groups: Sequence[ResourceGroup] = (),
    target: Target = "Job",
) -> dict[str, Handler]:
    """What answers on each path: everything that the webhook does. To follow one kind of object, start here.

    `marks`: pods that Muster places get marker resources; `groups` are the resource groups that pods are taken to.
    `target` is what makes the pods of TrainJobs.
    """
    queues = lookups.queues
    return {
        "/mutate/job": mutate_job.reviewer(lookups.namespaces, marks=marks, groups=groups),
        "/mutate/workload": mutate_workload.reviewer(lookups.namespaces),
        "/mutate/podgroup": mutate_podgroup.reviewer(lookups.namespaces),
        "/mutate/queue": mutate_queue.review,
        "/mutate/pod": mutate_pod.reviewer(lookups, framework, marks=marks, groups=groups),
        f"/mutate{_TRAINER}-trainjob": mutate_trainjob.reviewer(lookups.namespaces, lookups.runtimes, time),
        f"/validate{_TRAINER}-trainjob": validate_trainjob.reviewer(lookups, framework, target),
        f"/validate{_TRAINER}-trainingruntime": validate_runtime.reviewer(TrainingRuntime, target),
        f"/validate{_TRAINER}-clustertrainingruntime": validate_runtime.reviewer(ClusterTrainingRuntime, target),
        "/validate/job": validate_job.reviewer(queues, framework, lookups.dry_runs, lookups.rights),
        "/validate/workload": validate_workload.reviewer(queues, framework),
        "/validate/command": validate_command.reviewer(lookups.rights),
        "/validate/pod": validate_pod.review,
        "/validate/podgroup": validate_podgroup.reviewer(queues, lookups.owners),
        "/validate/queue": validate_queue.reviewer(queues),
        "/validate/hypernode": validate_hyper_node.review,
    }


def create_app(handlers: Mapping[str, Handler]) -> flask.Flask:
    """The WSGI app that serves these routes."""
    app = flask.Flask("muster-webhook")
    app.config["MAX_CONTENT_LENGTH"] = review.MAX_BODY_BYTES
    known = {path: Route(path, handler) for path, handler in handlers.items()}
    for path, route in known.items():
        app.add_url_rule(path, endpoint=path, view_func=_view(route), methods=["POST"])
    return app


def _view(route: Route) -> flask.typing.RouteCallable:
    def view() -> flask.Response:
        request = flask.request
        # Strict, and not only by taste: no browser sends this type to another site without asking first.
        if request.mimetype != review.CONTENT_TYPE:
            text = f"send an AdmissionReview as {review.CONTENT_TYPE}"
            return _response(route.refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text))
        return _response(route.answer(request.get_data(cache=False), request.environ["QUERY_STRING"]))

    return view


def _response(answer: Answer) -> flask.Response:
    return flask.Response(answer.body, status=answer.status, content_type=answer.content_type)
