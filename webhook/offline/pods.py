"""The pods of a workload, as its controller submits them: they are what Muster shapes.

Rank 0 stands for all pods of its shape, so a sample has one pod for each pod template. Here are Kubernetes' own kinds
and those of its SIGs; whoever knows the controller of another kind brings a maker for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.api import names
from muster.runtime.adapters import job as jobsets
from muster.runtime.adapters import stateful as sets
from webhook.offline.lookups import JSON, uid_of


@dataclass(frozen=True, slots=True)
class SamplePod:
    """A pod before admission, and its owner where that is an object which nobody has written down."""

    pod: JSON
    about: str
    owner: JSON | None = None
    always: bool = False
    """Whether it is worth showing although admission leaves it as it is."""


Makers = Mapping[tuple[str, str], Callable[[JSON], Iterator[SamplePod]]]
"""(apiVersion, kind) of a workload → what makes its sample; ValueError says why its pods cannot be made."""


def sample_pods(workload: JSON, makers: Makers) -> Iterator[SamplePod]:
    """The first pod of each shape; none for kinds that have no pods, or that nobody has a maker for."""
    made = makers.get((str(workload.get("apiVersion", "")), str(workload.get("kind", ""))))
    return made(workload) if made else iter(())


def job_pods(job: JSON, indexes: Iterable[int]) -> Iterator[JSON]:
    """The pods of a batch/v1 Job with these indexes, as the Job controller of Kubernetes 1.28 and later makes them."""
    name, spec = _name(job), _map(job.get("spec"))
    indexed = spec.get("completionMode") == "Indexed"
    for index in indexes:
        pod_name = f"{name}-{index}"
        labels = {names.BATCH_JOB_NAME: name, **({names.COMPLETION_INDEX: str(index)} if indexed else {})}
        place = {"hostname": pod_name} if indexed else {}
        yield _pod(job, _map(spec.get("template")), pod_name, labels, place)


def _of_job(job: JSON) -> Iterator[SamplePod]:
    for pod in job_pods(job, [0]):
        yield SamplePod(pod, f"the first pod of Job {_name(job)}")


def _of_cron_job(cron_job: JSON) -> Iterator[SamplePod]:
    template = _map(_map(cron_job.get("spec")).get("jobTemplate"))
    job = _owned(cron_job, "batch/v1", "Job", f"{_name(cron_job)}-1", _map(template.get("spec")))
    job["metadata"]["labels"] = _map(_map(template.get("metadata")).get("labels"))
    for first in _of_job(job):
        yield SamplePod(first.pod, f"the first pod of each Job of CronJob {_name(cron_job)}", job)


def _of_deployment(deployment: JSON) -> Iterator[SamplePod]:
    replica_set = _owned(deployment, "apps/v1", "ReplicaSet", f"{_name(deployment)}-1", _map(deployment.get("spec")))
    template = _map(replica_set["spec"].get("template"))
    about = f"a pod of Deployment {_name(deployment)}"
    yield SamplePod(_pod(replica_set, template, f"{_name(replica_set)}-1", {}, {}), about, replica_set)


def _of_stateful_set(owner: JSON) -> Iterator[SamplePod]:
    spec = _map(owner.get("spec"))
    start = str(_map(spec.get("ordinals")).get("start", 0))
    name = f"{_name(owner)}-{start}"
    place = {"hostname": name, "subdomain": spec.get("serviceName", "")}
    pod = _pod(owner, _map(spec.get("template")), name, {names.POD_INDEX: start}, place)
    yield SamplePod(pod, f"the first pod of StatefulSet {_name(owner)}")


def _of_jobset(jobset: JSON) -> Iterator[SamplePod]:
    """As its controller makes the Jobs: labelled, with a subdomain unless names are switched off."""
    spec = _map(jobset.get("spec"))
    network = _map(spec.get("network"))
    for replicated in msgspec.convert(spec.get("replicatedJobs") or [], list[JSON]):
        template = deepcopy(_map(_map(replicated.get("template")).get("spec")))
        labels = {
            jobsets.JOBSET_NAME: _name(jobset),
            jobsets.REPLICATED_JOB: str(replicated.get("name", "")),
            jobsets.REPLICAS: str(replicated.get("replicas", 1)),
            jobsets.JOB_INDEX: "0",
        }
        pods = _map(template.get("template"))
        metadata, pod_spec = _map(pods.get("metadata")), _map(pods.get("spec"))
        if network.get("enableDNSHostnames") is not False:
            pod_spec = {"subdomain": network.get("subdomain") or _name(jobset), **pod_spec}
        metadata = {**metadata, "labels": {**_map(metadata.get("labels")), **labels}}
        template["template"] = {**pods, "metadata": metadata, "spec": pod_spec}
        job = _owned(jobset, "batch/v1", "Job", f"{_name(jobset)}-{replicated.get('name', '')}-0", template)
        job["spec"].setdefault("completionMode", "Indexed")
        job["metadata"]["labels"] = labels
        for first in _of_job(job):
            yield SamplePod(first.pod, f"the first pod of {replicated.get('name')} of JobSet {_name(jobset)}", job)


def _of_leader_worker_set(workload: JSON) -> Iterator[SamplePod]:
    """The leader of the first group, and a worker where that has a template of its own."""
    template = _map(_map(workload.get("spec")).get("leaderWorkerTemplate"))
    size = msgspec.convert(template.get("size", 1), int)
    worker = _map(template.get("workerTemplate"))
    leader = _map(template.get("leaderTemplate")) or worker
    name = _name(workload)
    for index, pods in enumerate((leader, worker)[: min(size, 2)]):
        if index and not template.get("leaderTemplate"):
            return
        owner = _owned(workload, "apps/v1", "StatefulSet", f"{name}-0" if index else name, {"template": pods})
        owner["spec"]["serviceName"] = name
        labels = {sets.LWS_NAME: name, sets.LWS_GROUP: "0", sets.LWS_WORKER: str(index)}
        host = f"{name}-0-1" if index else f"{name}-0"
        pod = _pod(owner, pods, host, labels, {"hostname": host, "subdomain": name})
        pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), sets.LWS_SIZE: str(size)}
        what = "first worker" if index else "leader"
        yield SamplePod(pod, f"the {what} of the first group of LeaderWorkerSet {name}", owner)


MAKERS: Makers = {
    ("batch/v1", "Job"): _of_job,
    ("batch/v1", "CronJob"): _of_cron_job,
    ("apps/v1", "Deployment"): _of_deployment,
    ("apps/v1", "StatefulSet"): _of_stateful_set,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _of_jobset,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _of_leader_worker_set,
}


def _name(document: JSON) -> str:
    metadata = document["metadata"]
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _owned(owner: JSON, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> JSON:
    """An object between the workload and its pods, as the workload's controller makes it."""
    metadata = {"name": name, "ownerReferences": [_reference(owner)], "uid": uid_of(name)}
    if owner["metadata"].get("namespace"):
        metadata["namespace"] = owner["metadata"]["namespace"]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": deepcopy(dict(spec))}


def _pod(owner: JSON, template: JSON, name: str, labels: Mapping[str, str], place: JSON) -> JSON:
    metadata = _map(template.get("metadata"))
    namespace = owner["metadata"].get("namespace")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "labels": {**_map(metadata.get("labels")), **labels},
            **({"annotations": metadata["annotations"]} if metadata.get("annotations") else {}),
            "ownerReferences": [_reference(owner)],
        },
        "spec": {**place, **deepcopy(_map(template.get("spec")))},
    }


def _reference(owner: JSON) -> JSON:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": _name(owner),
        "uid": owner["metadata"].get("uid") or uid_of(_name(owner)),
        "controller": True,
    }


def _map(value: Any) -> JSON:
    """A map, empty where there is none; msgspec.ValidationError where it is something else."""
    return msgspec.convert(value or {}, JSON)
