"""What an eviction costs each kind of owner, and whether it comes back whole: the table of docs/preemption.md."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, job, runs
from job_sets import JOBSETS, install, make_jobs
from train_jobs import patch, train_job

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
JSON = dict[str, Any]
CONFIG = """
actions: enqueue, allocate, preempt
tiers:
  - plugins: [{name: gang}, {name: priority}, {name: proportion}, {name: predicates}]
"""
PODS_EACH = 3
IN_QUEUE = {names.QUEUE: "default"}
GPU: JSON = {"limits": {"nvidia.com/gpu": 2}}


def kind(group: str, plural: str, name: str) -> Resource[JSON]:
    """A kind of Kubernetes' own, as plain data."""
    return Resource(group, "v1", plural, name, dict[str, Any])


PLAIN_JOBS, CRON_JOBS = kind("batch", "jobs", "Job"), kind("batch", "cronjobs", "CronJob")
STATEFUL_SETS, DEPLOYMENTS = kind("apps", "statefulsets", "StatefulSet"), kind("apps", "deployments", "Deployment")


def pods(restart: str, **labels: str) -> JSON:
    """A pod template."""
    containers = [{"name": "main", "image": "none", "resources": GPU}]
    return {"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": containers}}


def plain_job(name: str, restart: str = "Never", backoff: int = 2, **labels: str) -> JSON:
    """A batch Job, by default with fewer failures allowed than it has pods."""
    spec = {"parallelism": PODS_EACH, "completions": PODS_EACH, "backoffLimit": backoff, "template": pods(restart)}
    return {"metadata": {"name": name, "labels": {**IN_QUEUE, **labels}}, "spec": spec}


def served(name: str) -> JSON:
    """A StatefulSet or Deployment."""
    spec = {"replicas": PODS_EACH, "selector": {"matchLabels": {"app": name}}, "template": pods("Always", app=name)}
    return {"metadata": {"name": name, "labels": IN_QUEUE}, "spec": spec}


def of_cron_job(client: Client, namespace: str) -> None:
    """A Job as its CronJob would make it when it is time."""
    template = {"spec": plain_job("x")["spec"]}
    template["spec"]["template"]["metadata"]["labels"] = IN_QUEUE
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": template}
    made = client.create(CRON_JOBS, {"metadata": {"name": "cron", "labels": IN_QUEUE}, "spec": spec}, namespace)
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "cron", "uid": uid, "controller": True}
    manifest = {"metadata": {"name": "from-cron", "ownerReferences": [owner]}, "spec": template["spec"]}
    client.create(PLAIN_JOBS, manifest, namespace)


def of_job_set(client: Client, namespace: str) -> None:
    """A JobSet of one Job, which is made as its controller would."""
    job_spec = plain_job("x")["spec"]
    job_spec["template"]["metadata"]["labels"] = IN_QUEUE
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": job_spec}}]}
    make_jobs(client, client.create(JOBSETS, {"metadata": {"name": "set"}, "spec": spec}, namespace))


def of_leader(client: Client, namespace: str) -> None:
    """The workers of a LeaderWorkerSet's group, as its controller makes them: a StatefulSet with its labels."""
    manifest = served("workers")
    lws = "leaderworkerset.sigs.k8s.io"
    manifest["spec"]["template"]["metadata"]["labels"] |= {f"{lws}/name": "workers", f"{lws}/group-index": "0"}
    client.create(STATEFUL_SETS, manifest, namespace)


def train(client: Client, namespace: str) -> None:
    """A TrainJob for torch."""
    resources = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}
    manifest = train_job("train", nodes=PODS_EACH, trainer=resources, runtimePatches=[patch("tests.muster.dev/none")])
    manifest["metadata"]["labels"] = IN_QUEUE
    client.create(TRAIN_JOBS, manifest, namespace)


def volcano(client: Client, namespace: str, name: str, *policies: JSON) -> None:
    """A Volcano Job."""
    manifest = job(name, namespace, replicas=PODS_EACH, gpus=2)
    manifest["spec"]["policies"] = list(policies)
    client.create(JOBS, manifest, namespace)


def lone(client: Client, namespace: str) -> None:
    """A pod that nobody makes again."""
    client.create(PODS, {**pods("Never"), "metadata": {"name": "lone", "labels": IN_QUEUE}}, namespace)


RESTART = {"event": "PodEvicted", "action": "RestartJob"}
KINDS: Mapping[str, Callable[[Client, str], Any]] = {
    "plain": lambda client, namespace: client.create(PLAIN_JOBS, plain_job("plain"), namespace),
    "in-place": lambda client, namespace: client.create(
        PLAIN_JOBS, plain_job("in-place", "OnFailure", backoff=6), namespace
    ),
    "from-cron": of_cron_job,
    "set": of_job_set,
    "workers": of_leader,
    "stateful": lambda client, namespace: client.create(STATEFUL_SETS, served("stateful"), namespace),
    "deployed": lambda client, namespace: client.create(DEPLOYMENTS, served("deployed"), namespace),
    "volcano": lambda client, namespace: volcano(client, namespace, "volcano"),
    "restarting": lambda client, namespace: volcano(client, namespace, "restarting", RESTART),
    "train": train,
    "lone": lone,
}
"""How the names of its pods begin → how a workload of each kind is made."""


def running(client: Client, namespace: str) -> dict[str, int]:
    """Pods of each workload that run and are to stay."""
    there = [
        one.metadata.name
        for one in client.list(PODS, namespace)
        if one.status.phase == "Running" and not one.metadata.deletion_timestamp
    ]
    return {name: sum(each == name or each.startswith(f"{name}-") for each in there) for name in KINDS}


class Told:
    """The workloads' pods before the eviction and after it, and the names of the evicted ones."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}


@pytest.fixture(scope="module")
def told(module_plane: Callable[..., Plane], wait_for: Callable[..., Any]) -> Iterator[Told]:
    """The scenario, once."""
    client, namespace = module_plane(planning_config=CONFIG).client(), "default"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    client.apply(PRIORITY_CLASSES, body | {"value": 1000})
    install(client, wait_for)
    told = Told(client, namespace)
    for make in KINDS.values():
        make(client, namespace)
    expected = {name: 1 if name == "lone" else PODS_EACH for name in KINDS}
    told.before = wait_for(lambda: (seen := running(client, namespace)) == expected and seen, 90, "all workloads")
    high = job("high", namespace, replicas=8)
    high["spec"]["priorityClassName"] = "high"
    client.create(JOBS, high, namespace)
    wait_for(lambda: runs(client, namespace, "high", 8), 2 * RECOVERY_S, "the gang of high priority")
    assert not any(running(client, namespace).values())
    client.delete(JOBS, "high", namespace)
    back = expected | {"lone": 0}
    wait_for(lambda: running(client, namespace) == back, 150, "all that come back")
    told.after = running(client, namespace)
    yield told
    client.close()


@pytest.mark.parametrize("name", [name for name in KINDS if name != "lone"])
def test_it_comes_back_whole(told: Told, name: str) -> None:
    """By its own controller, or by Muster's."""
    assert told.after[name] == told.before[name] == PODS_EACH


def test_a_pod_without_an_owner_does_not(told: Told) -> None:
    """Nobody makes it again."""
    assert (told.before["lone"], told.after["lone"]) == (1, 0)


@pytest.mark.parametrize("name", ["plain", "from-cron", "set-node-0", "in-place"])
def test_no_failure_counts_towards_the_backoff_limit(told: Told, name: str) -> None:
    """Also where Kubernetes allows no podFailurePolicy."""
    status = told.client.get(PLAIN_JOBS, name, told.namespace)["status"]
    assert not status.get("failed")
    assert not [one for one in status.get("conditions", []) if one["type"] in {"Failed", "FailureTarget"}]


def test_retries_of_volcano_jobs(told: Told) -> None:
    """Pods that are made again are no retry; a restart of the Job is one."""
    assert told.client.get(JOBS, "volcano", told.namespace).status.retry_count == 0
    assert told.client.get(JOBS, "restarting", told.namespace).status.retry_count == 1


def test_a_train_job_goes_on(told: Told) -> None:
    """It has not failed."""
    conditions = told.client.get(TRAIN_JOBS, "train", told.namespace).status.conditions
    assert not [each for each in conditions if each.type == "Failed" and each.status == "True"]
