"""While the webhook is down: small and closed, and the refusal says what to do."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane.state import API_SERVER, ETCD

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
POD: JSON = {"spec": {"containers": [{"name": "main", "image": "none"}]}}


@pytest.fixture(scope="module")
def client(module_plane: Callable[..., Any]) -> Client:
    """A client of a plane with webhook configurations, and nobody who answers."""
    plane = module_plane({ETCD, API_SERVER, "webhook"})
    plane.part("webhook").stop()
    made: Client = plane.client()
    for name, labels in (("plain", {}), ("managed", {"muster.dev/queue": "default"})):
        made.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    for name in ("plain", "managed"):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        made.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", body=json.dumps(account).encode())
    return made


def pod(labels: JSON | None = None, **metadata: Any) -> JSON:
    """A pod."""
    return {"metadata": {"generateName": "pod-", "labels": labels or {}, **metadata}, **POD}


def refused(client: Client, resource: Any, obj: JSON, namespace: str) -> str:
    """What is said against an object."""
    with pytest.raises(APIError) as error:
        client.create(resource, obj, namespace)
    return str(error.value)


def test_pods_that_do_not_ask_are_created(client: Client) -> None:
    """Without a label of Muster's, or with the one that says so, a pod is created as always."""
    client.create(PODS, pod(), "plain")
    client.create(PODS, pod({"muster.dev/managed": "false", "muster.dev/queue": "default"}), "plain")
    client.create(PODS, pod({"muster.dev/managed": "false"}), "managed")


def test_pods_that_ask_are_refused_with_what_to_do(client: Client) -> None:
    """The message names the webhook, that it has to be started, and how to do without."""
    for labels, namespace in (
        ({"muster.dev/queue": "default"}, "plain"),
        ({"muster.dev/framework": "torch"}, "plain"),
        ({}, "managed"),
    ):
        said = refused(client, PODS, pod(labels), namespace)
        assert "start-the-muster-webhook-or-label-the-pod-managed-false" in said
        assert "connection refused" in said


def test_pods_that_belong_to_a_node_are_created_in_a_managed_namespace(client: Client) -> None:
    """The pods of a DaemonSet must not wait for Muster."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    client.create(PODS, pod(ownerReferences=[owner]), "managed")
    bound = pod()
    bound["spec"] = {**POD["spec"], "nodeName": "node-1"}
    client.create(PODS, bound, "managed")


def test_workloads_are_refused_alike(client: Client) -> None:
    """Jobs that ask, by themselves or by their namespace, and TrainJobs; not Jobs that don't."""
    job: JSON = {
        "metadata": {"generateName": "job-"},
        "spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}},
    }
    client.create(INDEXED_JOBS, job, "plain")
    asking = {**job, "metadata": {**job["metadata"], "labels": {"muster.dev/queue": "default"}}}
    train_job = {"metadata": {"generateName": "train-"}, "spec": {"runtimeRef": {"name": "torch-distributed"}}}
    assert "start-the-muster-webhook" in refused(client, INDEXED_JOBS, asking, "plain")
    assert "start-the-muster-webhook" in refused(client, INDEXED_JOBS, job, "managed")
    assert "start-the-muster-webhook" in refused(client, TRAIN_JOBS, train_job, "plain")
