"""ProvisioningRequests as Muster makes them, on an API server with the definition that autoscaler publishes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside import manifests, programs
from gang_jobs import job, metric

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane import install
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
Wait = Callable[..., Any]
_MODULE = "k8s.io/autoscaler/cluster-autoscaler/apis"
WHOLE_REQUESTS: Resource[dict[str, Any]] = Resource(
    *(PROVISIONING_REQUESTS.group, "v1", PROVISIONING_REQUESTS.plural, "ProvisioningRequest"), dict[str, Any]
)
WAIT_S = 60.0


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane]) -> Plane:
    """One node of 8 GPUs, and the kind as autoscaler defines it."""
    plane = module_plane(nodes=1)
    install.apply(plane.client(), manifests.read(programs.published("provisioning", _MODULE) / "config" / "crd"))
    plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    return plane


@pytest.fixture
def client(plane: Plane, namespace: str) -> Iterator[Client]:
    """A client; the Jobs of the test are gone afterwards."""
    client = plane.client()
    yield client
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)


def queue(client: Client, namespace: str, **annotations: str) -> str:
    """A queue of the test's own that makes ProvisioningRequests."""
    said = {names.SCALE_UP: "provisioning-request", **annotations}
    client.create(QUEUES, {"metadata": {"name": namespace, "annotations": said}, "spec": {}})
    return namespace


def words_of(client: Client, namespace: str) -> str:
    """Why the only gang of the namespace waits."""
    return next((each.message for group in client.list(POD_GROUPS, namespace) for each in group.status.conditions), "")


def test_a_request_of_several_pod_sets_is_taken_as_it_is(client: Client, namespace: str, wait_for: Wait) -> None:
    """Nothing that Muster writes is dropped or refused; each pod set has its count and a template."""
    parameters = {names.SCALE_UP_PARAMETERS: "ValidUntilSeconds=600,noRetry=true"}
    one = job("asks", namespace, replicas=3)
    [worker] = one["spec"]["tasks"]
    tasks = [{**worker, "name": "master", "replicas": 1}, worker]
    one["spec"] |= {"queue": queue(client, namespace, **parameters), "minAvailable": 4, "tasks": tasks}
    client.create(JOBS, one, namespace)
    wait_for(lambda: client.list(PROVISIONING_REQUESTS, namespace), WAIT_S, "the request")
    [request] = client.list(WHOLE_REQUESTS, namespace)
    spec = request["spec"]
    assert sorted(each["count"] for each in spec["podSets"]) == [1, 3]
    assert spec["parameters"] == {"ValidUntilSeconds": "600", "noRetry": "true"}
    assert spec["provisioningClassName"] == "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def test_a_class_that_is_refused_is_told(plane: Plane, client: Client, namespace: str, wait_for: Wait) -> None:
    """The gang's owner reads which annotation is wrong; no write is wasted on it."""
    one = job("asks", namespace, replicas=3)
    one["spec"]["queue"] = queue(client, namespace, **{names.SCALE_UP_CLASS: "Best Effort"})
    client.create(JOBS, one, namespace)
    wait_for(lambda: f"{names.SCALE_UP_CLASS} is 'Best Effort'" in words_of(client, namespace), WAIT_S, "the reason")
    assert metric(plane, "extender", 'muster_planner_writes_total{result="failed",what="provisioning-request"}') == 0
