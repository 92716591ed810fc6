"""What is allowed but has not the effect that its user expects is told when it is submitted."""

import copy
import json
from typing import Any

import pytest
from builders import manifests
from webhook_world import (
    FRAMEWORK,
    JSON,
    DownWorld,
    NamespaceWorld,
    QueueWorld,
    RuntimeWorld,
    lookups,
    request,
    task,
    vcjob,
)

from muster.api.volcano.scheduling import Queue
from muster.kube.errors import Unreachable
from webhook.mutate import pod as mutate_pod
from webhook.review import ReviewVerdict
from webhook.validate import namespace as validate_namespace
from webhook.validate import trainjob as validate_trainjob
from webhook.validate import workload
from webhook.validate.volcano_job import job as validate_job

QUEUE = {"muster.dev/queue": "default"}
TORCH = {"muster.dev/framework": "torch"}


class SizedQueues(QueueWorld):
    """Queues of a cluster whose largest node has 8 GPUs and 32 CPUs."""

    def get(self, name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        found = super().get(name)
        if found is not None and name == "root":
            found.status.largest_node = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
        return found


class ServiceWorld:
    """`Services` of a test: name → cluster IP."""

    def __init__(self, **addresses: str) -> None:
        self._addresses = addresses

    def cluster_ip(self, name: str, _namespace: str) -> str | None:
        """See webhook.apiserver.Services."""
        if name == "down":
            raise Unreachable("no answer")
        return self._addresses.get(name)


def job(whole: JSON | None = None, own: JSON | None = None, metadata: JSON | None = None, **spec: Any) -> JSON:
    """An Indexed Job with these labels on itself and its template."""
    containers = [{"name": "node", "image": "i", "resources": {"limits": spec.pop("limits", {})}}]
    made = manifests.batch_job(
        size=2, template={"metadata": {"labels": own or {}}, "spec": {"containers": containers, **spec}}
    )
    return {**made, "metadata": {"name": "train", "labels": whole or {}, **(metadata or {})}}


def ask(document: JSON, namespaces: Any = None, services: Any = None, old: JSON | None = None) -> ReviewVerdict:
    """The verdict on a workload."""
    asked = request(document, "UPDATE" if old else "CREATE", old)
    return workload.reviewer(lookups(SizedQueues(), namespaces=namespaces, services=services), FRAMEWORK)(asked)


def warnings(document: JSON, **world: Any) -> list[str]:
    """The warnings of a workload that is let in."""
    verdict = ask(document, **world)
    assert list(verdict.errors) == []
    return list(verdict.warnings)


def test_two_frameworks_that_differ_are_refused() -> None:
    """The template's was taken, and the Job's dropped without a word."""
    [error] = ask(job({**TORCH, **QUEUE}, {"muster.dev/framework": "jax", **QUEUE})).errors
    assert error.path == "spec.template.metadata.labels[muster.dev/framework]"
    assert "must be 'torch', as in metadata.labels[muster.dev/framework]" in error.cause


def test_a_framework_without_a_queue_is_warned_of() -> None:
    """Its pods are shaped, and placed by kube-scheduler as it likes."""
    [warning] = warnings(job(TORCH, TORCH))
    assert warning.startswith("spec.template.metadata.labels: the pods are set up for torch, but without the label")
    assert warnings(job(TORCH, {**TORCH, **QUEUE})) == []
    assert warnings(job(TORCH, TORCH, schedulerName="volcano")) == []
    assert warnings(job(TORCH, TORCH), namespaces=NamespaceWorld(team=QUEUE)) == []
    assert (
        len(warnings(job(TORCH, TORCH), namespaces=NamespaceWorld(team={**QUEUE, "muster.dev/managed": "false"}))) == 1
    )
    assert len(warnings(job(TORCH, TORCH), namespaces=DownWorld())) == 1


@pytest.mark.parametrize("key", ["muster.io/queue", "muster/queue", "muster.io/qeue", "muster.example.com/queue"])
def test_a_label_of_a_domain_like_musters_is_warned_of(key: str) -> None:
    """With the one that was meant; other keys under such a domain are someone else's."""
    [warning] = warnings(job({key: "default", "muster.io/team": "a", "mustermann/queue": "b"}))
    assert warning == f"metadata.labels[{key}]: Muster does not read this label; did you mean label muster.dev/queue?"


def test_a_foreign_scheduler_beside_a_queue_is_warned_of() -> None:
    """Nobody reads the warnings of a Job's pods."""
    [warning] = warnings(job(QUEUE, QUEUE, schedulerName="yunikorn"))
    assert warning == (
        "spec.template.spec.schedulerName: label muster.dev/queue has no effect, because 'yunikorn' is not a scheduler "
        "of Muster's; leave schedulerName out, or use 'muster'"
    )
    assert warnings(job(QUEUE, QUEUE, schedulerName="muster")) == []


def test_a_default_scheduler_that_is_replaced_is_told_to_who_wrote_it() -> None:
    """The API server fills it in for everybody else."""
    plain = job(QUEUE, QUEUE, schedulerName="default-scheduler")
    assert warnings(plain) == []
    applied = copy.deepcopy(plain)
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(plain)}
    applied["metadata"]["annotations"] = note
    served = copy.deepcopy(plain)
    fields: JSON = {"f:spec": {"f:template": {"f:spec": {"f:schedulerName": {}}}}}
    served["metadata"]["managedFields"] = [{"operation": "Apply", "fieldsV1": fields}]
    for each in (applied, served):
        [warning] = warnings(each)
        assert warning.startswith("spec.template.spec.schedulerName: the pods get 'muster' in place of 'default-sched")
    applied["metadata"]["annotations"] = {next(iter(note)): "{"}
    assert warnings(applied) == []


def test_an_update_repeats_no_warning() -> None:
    """As with everything that was there before."""
    document = job(TORCH, TORCH)
    assert list(ask(document, old=copy.deepcopy(document)).warnings) == []


def stateful_set(service: str) -> JSON:
    """A StatefulSet of two ranks."""
    made = job({**TORCH, **QUEUE}, {**TORCH, **QUEUE})
    spec = {"replicas": 2, "serviceName": service, "podManagementPolicy": "Parallel"}
    return {
        **made,
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {**spec, "template": made["spec"]["template"]},
    }


def test_a_stateful_set_without_its_service_is_warned_of() -> None:
    """Its ranks would wait for each other for ever; one that cannot be asked for says nothing."""
    services = ServiceWorld(peers="None", web="10.0.0.1")
    assert warnings(stateful_set("peers"), services=services) == []
    assert warnings(stateful_set("down"), services=services) == []
    [missing] = warnings(stateful_set("gone"), services=services)
    assert missing.startswith(
        "spec.serviceName: there is no Service gone in namespace team yet; the pods find each other"
    )
    [plain] = warnings(stateful_set("web"), services=services)
    assert plain.startswith("spec.serviceName: Service web is not headless; the pods find each other")


UNKNOWN = "no node has the resource nvidia.com/gpus, so these pods cannot start; did you mean nvidia.com/gpu?"


def test_a_request_that_no_node_has_is_said_at_submit() -> None:
    """With the resource that was meant, or what the largest node has."""
    assert warnings(job(QUEUE, QUEUE, limits={"nvidia.com/gpu": "8", "cpu": "32"})) == []
    assert warnings(job(QUEUE, QUEUE, limits={"nvidia.com/gpus": "8"})) == [f"spec.template.spec: {UNKNOWN}"]
    [much] = warnings(job(QUEUE, QUEUE, limits={"nvidia.com/gpu": "16"}))
    message = "a pod requests 16 nvidia.com/gpu, but the largest node has only 8; the pod cannot start"
    assert much == f"spec.template.spec: {message}"
    assert warnings(job({}, {}, limits={"nvidia.com/gpus": "8"})) == []
    assert warnings(job(QUEUE, QUEUE, limits={"deviceclass.resource.kubernetes.io/gpu": "1"})) == []


def test_it_is_said_of_volcano_jobs_and_plain_pods_too() -> None:
    """Not of the pods of a workload, which was told already."""
    containers = [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpus": "8"}}}]
    asked = request(vcjob({**task(), "template": {"spec": {"containers": containers}}}))
    told = validate_job.reviewer(lookups(SizedQueues()), FRAMEWORK)(asked)
    assert list(told.warnings) == [f"spec.tasks[0].template.spec: {UNKNOWN}"]
    world = lookups(SizedQueues())
    pod: JSON = {"metadata": {"name": "one", "labels": QUEUE}, "spec": {"containers": containers}}
    assert mutate_pod.mutate(pod, "team", world, FRAMEWORK).warnings == [f"spec: {UNKNOWN}"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    assert list(mutate_pod.mutate(pod, "team", world, FRAMEWORK).warnings) == []


def test_it_is_said_of_train_jobs() -> None:
    """As far as they say it themselves."""
    runtime = {"kind": "ClusterTrainingRuntime", "metadata": {"name": "r"}, "spec": {}}
    reference = {"name": "r", "kind": "ClusterTrainingRuntime"}
    trainer = {"resourcesPerNode": {"limits": {"nvidia.com/gpus": "8"}}}
    document: JSON = {"kind": "TrainJob", "metadata": {"name": "t"}, "spec": {"runtimeRef": reference}}
    document["spec"]["trainer"] = trainer
    world = lookups(SizedQueues(), runtimes=RuntimeWorld(runtime))
    told = validate_trainjob.reviewer(world, FRAMEWORK)(request(document)).warnings
    assert f"spec.trainer.resourcesPerNode: {UNKNOWN}" in told


def labelled(**labels: str) -> list[str]:
    """The warnings for a namespace with these labels (`queue` stands for `muster.dev/queue`)."""
    given = {f"muster.dev/{key}": value for key, value in labels.items()}
    asked = request({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": given}})
    verdict = validate_namespace.reviewer(QueueWorld({"a": "team=a"}, a=("root", "Open"), old=("root", "Closed")))(
        asked
    )
    assert list(verdict.errors) == []
    return list(verdict.warnings)


def test_a_namespace_that_names_no_queue_is_warned_of() -> None:
    """It may be made before its queue; until then its pods are refused one by one."""
    assert labelled(queue="default") == []
    [missing] = labelled(queue="nope")
    assert missing.startswith("metadata.labels[muster.dev/queue]: unable to find job queue: 'nope'; usable queues are:")
    assert missing.endswith("; until then pods of this namespace are refused")
    for other in ("old", "root", "a"):
        assert len(labelled(queue=other)) == 1
    assert labelled(queue="nope", managed="false") == []
    [unknown] = labelled(qeue="default")
    assert unknown.endswith("Muster does not know this label; did you mean label muster.dev/queue?")
