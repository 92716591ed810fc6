"""What shaped pods need to meet is made when the first of them is seen: Services, and keys for MPI."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, PODS, SECRETS, SERVICES
from muster.kube.client import Client
from muster.kube.errors import NotFound

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
WaitFor = Callable[..., Any]
RAW_SECRETS: Resource[JSON] = Resource("", "v1", "secrets", "Secret", dict[str, Any])
RAW_SERVICES: Resource[JSON] = Resource("", "v1", "services", "Service", dict[str, Any])
RAW_PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", dict[str, Any])


def job(framework: str, **annotations: str) -> JSON:
    """An Indexed Job of two pods, placed by the cluster's own scheduler."""
    labels = {"muster.dev/framework": framework}
    pods = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "none", "command": ["sleep", "1000"]}]}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": pods}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template}
    return {"metadata": {"name": "train", "labels": labels}, "spec": spec}


def found(client: Client, resource: Resource[Any], name: str, namespace: str) -> Any:
    """The object, or None."""
    try:
        return client.get(resource, name, namespace)
    except NotFound:
        return None


def test_a_service_without_a_queue(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Pods of an Indexed Job meet under its name although Muster does not place them."""
    made = client.create(INDEXED_JOBS, job("torch"), namespace)
    service = wait_for(lambda: found(client, RAW_SERVICES, "train", namespace), what="the Service")
    assert service["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    assert found(client, SECRETS, "train-mpi-ssh-auth", namespace) is None


def test_keys_for_mpi(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """One immutable Secret of the Job, which its pods mount; a pod that comes later finds the same keys."""
    made = client.create(INDEXED_JOBS, job("mpi", **{"muster.dev/ssh-key": "ecdsa"}), namespace)
    name = "train-mpi-ssh-auth"
    secret = wait_for(lambda: found(client, RAW_SECRETS, name, namespace), what="the Secret")
    assert (secret["type"], secret["immutable"]) == ("kubernetes.io/ssh-auth", True)
    assert secret["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
    assert b64decode(secret["data"]["ssh-publickey"]).startswith(b"ecdsa-sha2-nistp521 ")
    [first, *_] = wait_for(lambda: client.list(RAW_PODS, namespace), what="pods")
    mounted = {each["name"]: each for each in first["spec"]["volumes"]}
    assert mounted["mpi-ssh-auth"]["secret"]["secretName"] == name
    before = {pod.metadata.uid for pod in client.list(PODS, namespace)}
    client.delete(PODS, first["metadata"]["name"], namespace, grace_period_s=0)
    wait_for(lambda: {pod.metadata.uid for pod in client.list(PODS, namespace)} - before, what="another pod")
    assert found(client, RAW_SECRETS, name, namespace)["data"] == secret["data"]


def test_keys_of_the_user(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Where the user names a Secret, none is made."""
    client.create(INDEXED_JOBS, job("mpi", **{"muster.dev/ssh-auth-secret": "mine"}), namespace)
    wait_for(lambda: found(client, SERVICES, "train", namespace), what="the Service, which comes first")
    wait_for(lambda: len(client.list(PODS, namespace)) == 2, what="pods")
    assert found(client, SECRETS, "train-mpi-ssh-auth", namespace) is None


def test_what_an_earlier_job_left(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Objects of an earlier Job of this name are waited for until they are gone, and an event says so."""
    old = client.create(INDEXED_JOBS, {**job("torch"), "metadata": {"name": "old"}}, namespace)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "old", "uid": old.metadata.uid, "controller": True}
    left = {"metadata": {"name": "train", "ownerReferences": [reference]}, "spec": {"clusterIP": "None"}}
    client.create(SERVICES, left, namespace)
    made = client.create(INDEXED_JOBS, job("mpi"), namespace)

    def said() -> bool:
        events = client.request("GET", f"/api/v1/namespaces/{namespace}/events").decode()
        return "Service train belongs to Job old; waiting until it is gone" in events

    wait_for(said, what="an event")
    client.delete(SERVICES, "train", namespace)
    service = wait_for(lambda: found(client, RAW_SERVICES, "train", namespace), 60, "the Service")
    assert service["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
    wait_for(lambda: found(client, SECRETS, "train-mpi-ssh-auth", namespace), 60, "the Secret")
