"""Gangs whose nodes do not exist yet get them: autoscalers see who waits for nodes, and nobody else."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from gang_jobs import job, runs

from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.kubernetes.meta import format_time
from muster.api.names import SAFE_TO_EVICT, SCALE_UP, SCALE_UP_TIMEOUT
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroupCondition
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
Wait = Callable[..., Any]
JSON = dict[str, Any]
GPUS = 8
CRDS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", JSON, namespaced=False
)
WHOLE_PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", JSON)
TEMPLATES: Resource[JSON] = Resource("", "v1", "podtemplates", "PodTemplate", JSON)
CONSUMED = "autoscaling.x-k8s.io/consume-provisioning-request"
CRD = {
    "metadata": {
        "name": "provisioningrequests.autoscaling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/autoscaler"},
    },
    "spec": {
        "group": "autoscaling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "ProvisioningRequest",
            "listKind": "ProvisioningRequestList",
            "plural": "provisioningrequests",
            "singular": "provisioningrequest",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Nodes:
    """Nodes of 8 GPUs that are added, and taken away in the end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.made: list[str] = []

    def add(self, number: int) -> None:
        """So many more."""
        amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
        for _ in range(number):
            name = f"added-{len(self.made)}"
            self.made.append(name)
            meta = {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            }
            node = {"metadata": meta, "status": {"capacity": amounts, "allocatable": amounts}}
            self._client.create(NODES, {"apiVersion": "v1", "kind": "Node", **node})


class Autoscaler:
    """Adds a node for each pod that says Unschedulable, has no node, and does not fit onto what is free."""

    def __init__(self, client: Client, nodes: Nodes) -> None:
        self._client = client
        self._nodes = nodes
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seen: dict[str, bool] = {}
        """Name of each pod that it looked at → whether that waited behind a gate when it did so first."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(1.0):
            pods = self._client.list(PODS)
            pending = [pod for pod in pods if not pod.spec.node_name and scheduled(pod)[0] == "Unschedulable"]
            self.seen = {pod.metadata.name: bool(pod.spec.scheduling_gates) for pod in pending} | self.seen
            busy = {pod.spec.node_name for pod in pods if pod.spec.node_name and not pod.finished}
            free = sum(node.metadata.name not in busy for node in self._client.list(NODES))
            self._nodes.add(max(0, len(pending) - free))


def scheduled(pod: Pod) -> tuple[str, str]:
    """Reason and message of its condition PodScheduled."""
    return next(((c.reason, c.message) for c in pod.status.conditions if c.type == "PodScheduled"), ("", ""))


@pytest.fixture(scope="module")
def small(module_plane: Callable[..., Plane]) -> Plane:
    """One node of 8 GPUs."""
    return module_plane(nodes=1)


@pytest.fixture
def client(small: Plane) -> Client:
    """A client with all rights."""
    return small.client()


@pytest.fixture
def namespace(client: Client, wait_for: Wait) -> Iterator[str]:
    """A namespace of its own; in the end its Jobs are gone, and with them their pods."""
    name = f"scale-{time.monotonic_ns()}"
    client.request("POST", "/api/v1/namespaces", body=json.dumps({"metadata": {"name": name}}).encode())
    yield name
    _empty(client, name, wait_for)


def _empty(client: Client, namespace: str, wait_for: Wait) -> None:
    for one in client.list(JOBS, namespace):
        client.delete(JOBS, one.metadata.name, namespace, propagation="Background")
    for pod in client.list(PODS, namespace):
        with contextlib.suppress(NotFound):
            client.delete(PODS, pod.metadata.name, namespace, grace_period_s=0)
    wait_for(lambda: not client.list(PODS, namespace), 60, "the pods to be gone")


@pytest.fixture
def nodes(client: Client, namespace: str, wait_for: Wait) -> Iterator[Nodes]:
    """Nodes that are gone when the test is over, as are its pods."""
    made = Nodes(client)
    yield made
    _empty(client, namespace, wait_for)
    for name in made.made:
        client.delete(NODES, name)


@pytest.fixture
def queue(client: Client, namespace: str) -> Callable[..., str]:
    """`queue(annotations)` makes one and gives its name."""

    def make(annotations: dict[str, str], name: str = "", **spec: Any) -> str:
        full = f"{namespace}{name}"
        client.create(QUEUES, {"metadata": {"name": full, "annotations": annotations}, "spec": spec})
        return full

    return make


def submit(client: Client, namespace: str, name: str, replicas: int, queue: str = "default") -> None:
    """A gang whose members need a node each."""
    one = job(name, namespace, replicas=replicas)
    one["spec"]["queue"] = queue
    client.create(JOBS, one, namespace)


def pods(client: Client, namespace: str, name: str) -> list[Pod]:
    """The pods of a Job, by name."""
    found = [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{name}-")]
    return sorted(found, key=lambda pod: pod.metadata.name)


def waits(client: Client, namespace: str, name: str) -> PodGroupCondition:
    """Why a gang waits."""
    groups = [group for group in client.list(POD_GROUPS, namespace) if group.metadata.name.startswith(f"{name}-")]
    found = [each for group in groups for each in group.status.conditions if each.type == "Unschedulable"]
    return found[0] if found else PodGroupCondition(type="Unschedulable", status="False")


def test_a_gang_gets_nodes_for_its_gated_pods_and_the_one_without_the_wish_gets_none(
    client: Client, namespace: str, wait_for: Wait, nodes: Nodes, queue: Callable[..., str]
) -> None:
    """Larger than the cluster: its pods exist, gated, ask, are pinned in one patch, and run as the queue says."""
    asking = queue({SCALE_UP: "condition", SAFE_TO_EVICT: "false"})
    with Autoscaler(client, nodes) as autoscaler:
        submit(client, namespace, "silent", 9)
        submit(client, namespace, "asks", 3, asking)
        wait_for(lambda: runs(client, namespace, "asks", 3), 60, "the gang to run")
        assert {name for name in autoscaler.seen if "asks-" in name} == {f"asks-worker-{rank}" for rank in range(3)}
        assert not any("silent-" in name for name in autoscaler.seen)
        assert all(autoscaler.seen.values()), "a pod without a gate asked"
    assert len(nodes.made) == 2
    for pod in pods(client, namespace, "asks"):
        assert pod.metadata.annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert scheduled(pod)[0] == ""
    client.merge_patch(QUEUES, asking, {"metadata": {"annotations": {SAFE_TO_EVICT: "true"}}})

    def evictable() -> set[str | None]:
        key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
        return {pod.metadata.annotations.get(key) for pod in pods(client, namespace, "asks")}

    wait_for(lambda: evictable() == {"true"}, 30, "the pods to follow their queue")


def test_only_the_first_of_a_queue_asks_and_a_gang_that_loses_its_turn_is_gated_again(
    client: Client, namespace: str, wait_for: Wait, queue: Callable[..., str]
) -> None:
    """The second one's first pod says why it waits; when the queue changes its mind nobody asks any more."""
    asking = queue({SCALE_UP: "condition"})
    submit(client, namespace, "first", 2, asking)

    def reasons(name: str) -> list[str]:
        return [scheduled(pod)[0] for pod in pods(client, namespace, name)]

    wait_for(lambda: reasons("first") == ["Unschedulable"] * 2, 30, "the first gang to ask")
    submit(client, namespace, "second", 1, asking)
    wait_for(lambda: runs(client, namespace, "second", 1), 30, "a small gang to run beside")
    submit(client, namespace, "third", 1, asking)

    def speaks() -> bool:
        return any(scheduled(pod)[1].startswith("Muster: ") for pod in pods(client, namespace, "third"))

    wait_for(speaks, 30, "the third to speak")
    assert reasons("third") == ["SchedulingGated"]
    assert reasons("first") == ["Unschedulable"] * 2
    client.merge_patch(QUEUES, asking, {"metadata": {"annotations": {SCALE_UP: "none"}}})
    wait_for(lambda: reasons("first") == ["SchedulingGated"] * 2, 30, "the first gang to be gated again")


def test_the_first_pod_of_a_waiting_gang_says_why_by_each_mode(client: Client, namespace: str, wait_for: Wait) -> None:
    """The words of the PodGroup, behind Muster's name; the other pods keep the API server's words."""
    submit(client, namespace, "runs", 1)
    wait_for(lambda: runs(client, namespace, "runs", 1), 30, "a gang to run")
    submit(client, namespace, "waits", 1)
    wait_for(lambda: pods(client, namespace, "waits"), 30, "its pod")

    def spoken() -> bool:
        [pod] = pods(client, namespace, "waits")
        return scheduled(pod) == ("SchedulingGated", f"Muster: {waits(client, namespace, 'waits').message}")

    wait_for(spoken, 30, "the first pod to say why")


# -- ProvisioningRequests -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kind(small: Plane) -> None:
    """The kind ProvisioningRequest, without a schema of its own."""
    client = small.client()
    client.create(CRDS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **CRD})
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            client.list(PROVISIONING_REQUESTS)
        except APIError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the kind is not served")


def answer(client: Client, namespace: str, **conditions: tuple[str, str]) -> str:
    """Writes conditions (type → status and reason) into the only request; its name."""
    [request] = client.list(PROVISIONING_REQUESTS, namespace)
    said = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"{reason}!",
            "lastTransitionTime": format_time(time.time()),
        }
        for kind, (status, reason) in conditions.items()
    ]
    name = request.metadata.name
    client.merge_patch(PROVISIONING_REQUESTS, name, {"status": {"conditions": said}}, namespace, subresource="status")
    return name


def test_without_the_kind(client: Client, namespace: str, wait_for: Wait, queue: Callable[..., str]) -> None:
    """Nothing else can tell why no nodes come."""
    submit(client, namespace, "asks", 2, queue({SCALE_UP: "provisioning-request"}))
    wait_for(lambda: waits(client, namespace, "asks").reason == "ProvisioningNotServed", 30, "the gang to say so")


@pytest.mark.usefixtures("kind")
def test_a_request_that_is_provisioned_starts_the_gang_and_is_withdrawn(
    client: Client, namespace: str, wait_for: Wait, nodes: Nodes, queue: Callable[..., str]
) -> None:
    """It is for the whole gang and its real pods, which consume it and never ask themselves."""
    submit(client, namespace, "asks", 3, queue({SCALE_UP: "provisioning-request"}))
    wait_for(lambda: client.list(PROVISIONING_REQUESTS, namespace), 30, "the request")
    [request] = client.list(PROVISIONING_REQUESTS, namespace)
    assert [each.count for each in request.spec.pod_sets] == [3]
    [owner] = request.metadata.owner_references
    assert owner.kind == "PodGroup"
    template = client.get(TEMPLATES, request.spec.pod_sets[0].pod_template_ref.name, namespace)["template"]
    assert "schedulingGates" not in template["spec"]
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": str(GPUS)}
    assert all(scheduled(pod)[0] == "SchedulingGated" for pod in pods(client, namespace, "asks"))
    answer(client, namespace, Accepted=("True", "Accepted"), Provisioned=("True", "CapacityIsProvisioned"))
    wait_for(lambda: "is provisioned" in waits(client, namespace, "asks").message, 30, "the gang to have heard")
    nodes.add(2)
    wait_for(lambda: runs(client, namespace, "asks", 3), 60, "the gang to run")
    assert {pod.metadata.annotations.get(CONSUMED) for pod in pods(client, namespace, "asks")} == {
        request.metadata.name
    }
    wait_for(lambda: not client.list(PROVISIONING_REQUESTS, namespace), 30, "the request to be gone")
    assert not [each for each in client.list(TEMPLATES, namespace) if "worker" in each["metadata"]["name"]]


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(("conditions", "reason"), [
    ({"Provisioned": ("False", "CapacityIsNotFound")}, "ProvisioningRefused"),
    ({"Accepted": ("True", "Accepted"), "Failed": ("True", "NoSuchClass")}, "ProvisioningFailed"),
])  # fmt: skip
def test_what_the_autoscaler_refuses_its_gang_says(
    client: Client,
    namespace: str,
    wait_for: Wait,
    queue: Callable[..., str],
    conditions: dict[str, tuple[str, str]],
    reason: str,
) -> None:
    """The reason for tools, and the autoscaler's own words for people."""
    submit(client, namespace, "asks", 2, queue({SCALE_UP: "provisioning-request"}))
    wait_for(lambda: client.list(PROVISIONING_REQUESTS, namespace), 30, "the request")
    answer(client, namespace, **conditions)
    wait_for(lambda: waits(client, namespace, "asks").reason == reason, 30, "the reason")
    words = next(iter(conditions[list(conditions)[-1]][1:]))
    assert f"{words}!" in waits(client, namespace, "asks").message


@pytest.mark.usefixtures("kind")
def test_an_unanswered_request_ends(client: Client, namespace: str, wait_for: Wait, queue: Callable[..., str]) -> None:
    """After the time that the queue gives."""
    submit(client, namespace, "asks", 2, queue({SCALE_UP: "provisioning-request", SCALE_UP_TIMEOUT: "3s"}))
    wait_for(lambda: waits(client, namespace, "asks").reason == "ProvisioningTimedOut", 30, "the reason")
    assert "no autoscaler has processed it" in waits(client, namespace, "asks").message
