"""What `kubectl describe` of a workload says about its gang, without any tool of Muster's."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from planes import Muster
from priorities import make_classes

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import EVENTS, PODS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
Describe = Callable[[str, str], str]
PLAIN_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
DEPLOYMENTS: Resource[dict[str, Any]] = Resource("apps", "v1", "deployments", "Deployment", dict[str, Any])
STATEFUL_SETS: Resource[dict[str, Any]] = Resource("apps", "v1", "statefulsets", "StatefulSet", dict[str, Any])
STARTS_S = 60.0


@pytest.fixture
def client(plane: Plane, namespace: str, kubectl: Callable[..., str], wait_for: WaitFor) -> Iterator[Client]:
    """A client, with two priority classes; afterwards the namespace's Jobs are gone."""
    client = plane.client()
    make_classes(client)
    yield client
    kubectl("delete", "jobs,deployments,statefulsets", "--all", "-n", namespace)
    wait_for(lambda: not client.list(PODS, namespace), STARTS_S, "the pods to be gone")


@pytest.fixture
def describe(kubectl: Callable[..., str], namespace: str) -> Describe:
    """The Events that kubectl shows of an object, a line each."""
    return lambda kind, name: kubectl("describe", kind, name, "-n", namespace).partition("Events:")[2]


def pod(gpus: int, priority: str = "low", policy: str = "Never") -> dict[str, Any]:
    """A pod template."""
    main_ = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    labels = {"app": "a"}
    spec = {"restartPolicy": policy, "priorityClassName": priority, "containers": [main_]}
    return {"metadata": {"labels": labels}, "spec": spec}


def submit(client: Client, namespace: str, name: str, pods: int, priority: str = "low", policy: str = "Never") -> None:
    """A Job of Kubernetes' own whose pods start together, each on a node of its own."""
    labels, annotations = {names.QUEUE: "default"}, {names.MIN_MEMBER: str(pods)}
    spec = {"parallelism": pods, "completions": pods, "template": pod(8, priority, policy)}
    client.create(
        PLAIN_JOBS, {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}, namespace
    )


def explained(plane: Plane, namespace: str, name: str) -> str:
    """The words of `muster explain`."""
    return Muster(plane.kubeconfig)("explain", "job", name, "-n", namespace)


def test_a_job_says_why_it_waits_and_where_it_starts(
    client: Client, namespace: str, kubectl: Callable[..., str], describe: Describe, wait_for: WaitFor
) -> None:
    """In the words of the PodGroup; it may wait for another reason while the pods in its way are going."""
    submit(client, namespace, "first", 8)
    wait_for(lambda: re.search(r"Normal +Bound .*all 8 members are bound", describe("job", "first")), STARTS_S)
    assert re.search(r"Normal +Planned .*8 pods are planned on 8 nodes: ", describe("job", "first"))
    submit(client, namespace, "second", 2)
    wait_for(lambda: re.search(r"Warning +Unschedulable .*too little nvidia.com/gpu", describe("job", "second")))
    kubectl("delete", "job", "first", "-n", namespace)
    wait_for(lambda: "Bound" in describe("job", "second"), STARTS_S)
    mine = [event for event in client.list(EVENTS, namespace) if event.involved_object.get("name") == "second"]
    told = {event.reason for event in mine if event.reason not in {"SuccessfulCreate", "Reserved"}}
    assert told == {"Bound", "Planned", "Unschedulable"}


def test_a_stateful_set_says_why_it_waits(
    client: Client, namespace: str, describe: Describe, wait_for: WaitFor
) -> None:
    """Nine nodes would be needed."""
    template = pod(8, policy="Always")
    template["metadata"]["annotations"] = {names.MIN_MEMBER: "9"}
    spec = {"replicas": 9, "selector": {"matchLabels": {"app": "a"}}, "serviceName": "web", "template": template}
    body = {"metadata": {"name": "web", "labels": {names.QUEUE: "default"}}}
    client.create(STATEFUL_SETS, {**body, "spec": spec | {"podManagementPolicy": "Parallel"}}, namespace)
    wait_for(lambda: re.search(r"Warning +Unschedulable .*muster-extender", describe("statefulset", "web")))


def test_a_deployment_says_why_it_waits(client: Client, namespace: str, describe: Describe, wait_for: WaitFor) -> None:
    """The gang is its ReplicaSet's, which nobody looks at."""
    submit(client, namespace, "first", 8)
    wait_for(lambda: "Bound" in describe("job", "first"), STARTS_S)
    labels, template = {names.QUEUE: "default"}, pod(8, policy="Always")
    template["metadata"]["annotations"] = {names.MIN_MEMBER: "2"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    client.create(DEPLOYMENTS, {"metadata": {"name": "web", "labels": labels}, "spec": spec}, namespace)
    wait_for(lambda: re.search(r"Unschedulable .*ReplicaSet web-\w+: .*nvidia.com/gpu", describe("deployment", "web")))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_job_says_who_evicted_it(
    plane: Plane, client: Client, namespace: str, describe: Describe, wait_for: WaitFor, policy: str
) -> None:
    """One Event for all eight pods, which come back at once and count as no failure of the Job."""
    submit(client, namespace, "low", 8, policy=policy)
    wait_for(lambda: "Bound" in describe("job", "low"), STARTS_S)
    submit(client, namespace, "high", 8, "high")
    why = "8 pods were evicted: preempted by Job high of priority 1000 in queue default"
    wait_for(lambda: re.search(rf"Warning +Evicted .*{why}", describe("job", "low")), STARTS_S)
    wait_for(lambda: "Bound" in describe("job", "high"), STARTS_S)
    wait_for(lambda: "8 behind the gate" in explained(plane, namespace, "low"), STARTS_S)
    counts = "-o=jsonpath={.status.active}/{.status.failed}"
    status = plane.kubectl("get", "job", "low", f"--namespace={namespace}", counts)
    assert status.stdout in {"8/", "8/0"}, status.stderr
