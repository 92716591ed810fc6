"""Workloads of each kind with ranks, whose pods ask for torch and a queue, as admission gets them."""

from collections.abc import Callable
from typing import Any

from webhook_world import FRAMEWORK, JSON, lookups, request

from webhook.review import ReviewVerdict
from webhook.validate import workload

Change = Callable[[JSON], None]
"""The change of a pod template, in place."""


def template(**spec: Any) -> JSON:
    """A pod template that asks for torch, in a queue."""
    labels = {"muster.dev/framework": "torch", "muster.dev/queue": "default"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "node", "image": "i"}], **spec}}


def made(api_version: str, kind: str, spec: JSON) -> JSON:
    """Workload `train`; its own labels are those that admission has brought to the templates."""
    labels = {"muster.dev/framework": "torch", "muster.dev/queue": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "train", "labels": labels}, "spec": spec}


def with_annotation(document: JSON, key: str, value: str) -> JSON:
    """The object with one annotation more."""
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), key: value}}}


def job_spec(pods: JSON) -> JSON:
    """Spec of an Indexed Job of four."""
    return {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": pods}


def stateful(pods: JSON) -> JSON:
    """A StatefulSet of four."""
    spec = {"replicas": 4, "serviceName": "peers", "podManagementPolicy": "Parallel", "template": pods}
    return made("apps/v1", "StatefulSet", spec)


def jobset(pods: JSON) -> JSON:
    """A JobSet of two Jobs."""
    jobs = [{"name": "node", "replicas": 2, "template": {"spec": job_spec(pods)}}]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def leader_worker(pods: JSON) -> JSON:
    """A LeaderWorkerSet of groups of four."""
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": pods}}
    return made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


def cron_job(pods: JSON) -> JSON:
    """A CronJob of an Indexed Job."""
    return made("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": job_spec(pods)}})


KINDS: dict[str, tuple[Callable[[JSON], JSON], str]] = {
    "Job": (lambda pods: made("batch/v1", "Job", job_spec(pods)), "spec.template"),
    "CronJob": (cron_job, "spec.jobTemplate.spec.template"),
    "StatefulSet": (stateful, "spec.template"),
    "JobSet": (jobset, "spec.replicatedJobs[0].template.spec.template"),
    "LeaderWorkerSet": (leader_worker, "spec.leaderWorkerTemplate.workerTemplate"),
}
"""Kind → what makes a workload of a pod template, and the path of that template."""


def labelled(key: str, value: str) -> Change:
    """Another label of Muster's."""
    return lambda pods: pods["metadata"]["labels"].update({f"muster.dev/{key}": value})


def annotated(key: str, value: str) -> Change:
    """An annotation of Muster's."""
    return lambda pods: pods["metadata"].setdefault("annotations", {}).update({f"muster.dev/{key}": value})


def env(*names: str) -> Change:
    """Variables of the container."""
    return lambda pods: pods["spec"]["containers"][0].update(env=[{"name": name, "value": "1"} for name in names])


def ask(document: JSON, old: JSON | None = None, **worlds: Any) -> ReviewVerdict:
    """The verdict on a new workload, or on an update."""
    asked = request(document, "UPDATE" if old else "CREATE", old)
    return workload.reviewer(lookups(**worlds), FRAMEWORK)(asked)
