"""Random pods of real Jobs: our operations make a pod that the API server accepts, once and for all."""

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest
from frameworks_world import INDEX
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from webhook_world import OwnerWorld, lookups

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.runtime import registry
from musterctl.plane.plane import Plane
from webhook.mutate.pod import mutate

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
FRAMEWORK = registry.framework()
FRAMEWORKS = ("torch", "jax", "xgboost", "tensorflow", "mpi", "plain")
NAMESPACE = "random-pods"
SIZE = 4
PODS = Resource("", "v1", "pods", "Pod", Object)

NAMES = st.sampled_from(["a", "b-2", "main", "istio-proxy"])
VALUES = st.sampled_from(["", "1", "x y", "$(A)", "é\n", "a" * 300])
ENV = st.lists(st.one_of(
    st.builds(lambda name, value: {"name": name, "value": value}, st.sampled_from(["A", "B", "NCCL_DEBUG"]), VALUES),
    st.just({"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
    st.just({"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}),
), max_size=4)  # fmt: skip
PORTS = st.lists(
    st.sampled_from(
        [{"containerPort": 29500}, {"containerPort": 8080, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}]
    ),
    max_size=3,
    unique_by=lambda port: port["containerPort"],
)
RESOURCES = st.sampled_from([
    {}, {"requests": {"cpu": "2500m"}}, {"limits": {"nvidia.com/gpu": "8", "cpu": "64"}},
    {"limits": {"memory": "1Gi"}, "requests": {"memory": "64Mi"}},
])  # fmt: skip
MOUNTS = st.sampled_from([[], [{"name": "data", "mountPath": "/data"}], [{"name": "data", "mountPath": "/root/.ssh"}]])


def container(name: st.SearchStrategy[str]) -> st.SearchStrategy[JSON]:
    """A container as users and injectors write it."""
    optional = {"env": ENV, "ports": PORTS, "resources": RESOURCES, "volumeMounts": MOUNTS, "command": st.just(["run"])}
    return st.fixed_dictionaries({"name": name, "image": st.just("image")}, optional=optional)


@st.composite
def pods(draw: st.DrawFn) -> JSON:
    """A pod as the Job controller submits it, with sidecars and more of other webhooks, before or behind its own."""
    framework = draw(st.sampled_from(FRAMEWORKS))
    others = draw(st.lists(container(NAMES), max_size=2, unique_by=lambda each: each["name"]))
    inits = draw(st.lists(container(NAMES.map("init-{}".format)), max_size=2, unique_by=lambda each: each["name"]))
    place = draw(st.integers(0, len(others)))
    index = str(draw(st.integers(0, SIZE - 1)))
    labels = {"muster.dev/framework": framework, INDEX: index}
    if draw(st.booleans()):
        labels["muster.dev/queue"] = "default"
    annotations = draw(st.dictionaries(st.sampled_from(["note", "sidecar.istio.io/inject"]), VALUES))
    spec: JSON = {
        "hostname": f"{framework}-{index}",
        "restartPolicy": "Never",
        "containers": [*others[:place], draw(container(st.just("node"))), *others[place:]],
        "volumes": [{"name": "data", "emptyDir": {}}],
        **draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "initContainers": st.just(inits),
                    "subdomain": st.just("peers"),
                    "dnsConfig": st.just({"searches": ["example.com"]}),
                    "schedulerName": st.sampled_from(["default-scheduler", "muster", "volcano", "other"]),
                    "schedulingGates": st.just([{"name": "example.com/quota"}]),
                },
            )
        ),
    }
    if framework == "mpi":
        annotations["muster.dev/ssh-auth-secret"] = "keys"
    metadata = {"generateName": f"{framework}-{index}-", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def jobs(shared_plane: Plane) -> Iterator[tuple[Client, dict[str, JSON]]]:
    """A suspended Job for each framework, as it is stored."""
    with contextlib.closing(shared_plane.client()) as client:
        client.request("POST", "/api/v1/namespaces", body=json.dumps({"metadata": {"name": NAMESPACE}}).encode())
        found = {}
        for framework in FRAMEWORKS:
            template = {
                "metadata": {"labels": {"muster.dev/framework": framework}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "image"}]},
            }
            if framework == "mpi":
                template["metadata"]["annotations"] = {"muster.dev/ssh-auth-secret": "keys"}
            spec = {
                "completionMode": "Indexed", "completions": SIZE, "parallelism": SIZE, "suspend": True,
                "template": template,
            }  # fmt: skip
            client.create(INDEXED_JOBS, {"metadata": {"name": framework}, "spec": spec}, NAMESPACE)
            path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{framework}"
            found[framework] = json.loads(client.request("GET", path))
        yield client, found
        client.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def dry_run(client: Client, pod: JSON) -> JSON:
    """The pod as the API server would store it, without what it makes up anew each time."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    stored: JSON = json.loads(client.request("POST", path, body=json.dumps(pod).encode(), query=query))
    del stored["status"]
    for key in ("uid", "creationTimestamp", "name", "managedFields"):
        stored["metadata"].pop(key, None)
    return stored


def kept(before: Any, after: Any) -> bool:
    """Whether all of `before` is in `after`: members of maps with their values, elements of lists in their order.

    What is empty may be left out.
    """
    if isinstance(before, dict):
        there = isinstance(after, dict)
        return there and all(kept(value, after.get(key, type(value)())) for key, value in before.items())
    if isinstance(before, list):
        rest = iter(after)
        return all(any(kept(each, other) for other in rest) for each in before)
    return bool(before == after)


def without_steering(pod: JSON) -> JSON:
    """The pod without the one value that may be replaced: the cluster's own scheduler's name."""
    spec = {key: value for key, value in pod["spec"].items() if (key, value) != ("schedulerName", "default-scheduler")}
    return {**pod, "spec": spec}


@settings(max_examples=settings().max_examples * 3 // 5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pod=pods())
def test_random_pods(jobs: tuple[Client, dict[str, JSON]], pod: JSON) -> None:
    """Accepted with every field valid; the webhook changes nothing more; all of the user's is there in its order."""
    pod = json.loads(json.dumps(pod))  # no two places of it are the same object, which a patch would change together
    client, owners = jobs
    owner = owners[pod["metadata"]["labels"]["muster.dev/framework"]]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner["metadata"]["name"]}
    pod["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    verdict = mutate(pod, NAMESPACE, lookups(owners=OwnerWorld(owner)), FRAMEWORK)
    assert not verdict.errors
    patched = jsonpatch.apply_patch(copy.deepcopy(pod), verdict.patch)
    assert kept(without_steering(pod), patched)
    assert not mutate(patched, NAMESPACE, lookups(owners=OwnerWorld(owner)), FRAMEWORK).patch
    stored = dry_run(client, patched)
    assert kept(patched, stored)
    assert stored == dry_run(client, pod)
