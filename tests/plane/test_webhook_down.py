"""While the webhook is down: few objects are refused, and the refusal names the webhook of their kind."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tenants import refusal

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane import install
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from webhook import registration

pytestmark = [pytest.mark.plane, pytest.mark.api]

JSON = dict[str, Any]
POD: JSON = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
TRAIN_JOB: JSON = {"metadata": {"generateName": "train-"}, "spec": {"runtimeRef": {"name": "torch-distributed"}}}
PLAIN, MANAGED = "no-webhook-plain", "no-webhook-managed"


@pytest.fixture(scope="module")
def client(api_plane: Plane, wait_for: Callable[..., Any]) -> Iterator[Client]:
    """A client of an API server with webhook configurations for two namespaces, and nobody who answers."""
    with closing(api_plane.client()) as made:
        for name, labels in ((PLAIN, {}), (MANAGED, {"muster.dev/queue": "default"})):
            made.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        url, ca_bundle = f"https://127.0.0.1:{free_ports(1)[0]}", (api_plane.root / "pki" / "ca.crt").read_bytes()
        install.apply(made, list(map(in_two_namespaces, registration.configurations(url=url, ca_bundle=ca_bundle))))
        asking = pod({"muster.dev/queue": "default"})
        wait_for(lambda: refusal(lambda: made.create(PODS, asking, PLAIN, dry_run=True)), what="the API server to ask")
        yield made
        install.remove_webhooks(made)


def in_two_namespaces(configuration: JSON) -> JSON:
    """The configuration without effect on other tests with this API server."""
    here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [PLAIN, MANAGED]}
    for webhook in configuration["webhooks"]:
        webhook["namespaceSelector"]["matchExpressions"].append(here)
        for rule in webhook["rules"]:
            rule["scope"] = "Namespaced"
    return configuration


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
    client.create(PODS, pod(), PLAIN)
    client.create(PODS, pod({"muster.dev/managed": "false", "muster.dev/queue": "default"}), PLAIN)
    client.create(PODS, pod({"muster.dev/managed": "false"}), MANAGED)


def test_pods_that_ask_are_refused_by_a_named_webhook(client: Client) -> None:
    """The message names Muster's webhook for pods, and that nobody answers."""
    for name, labels, namespace in (
        ("pods", {"muster.dev/queue": "default"}, PLAIN),
        ("shaped-pods", {"muster.dev/framework": "torch"}, PLAIN),
        ("namespaced-pods", {}, MANAGED),
    ):
        message = refused(client, PODS, pod(labels), namespace)
        assert f'failed calling webhook "{name}.muster.dev"' in message
        assert "connection refused" in message


def test_pods_that_belong_to_a_node_are_created_in_a_managed_namespace(client: Client) -> None:
    """The pods of a DaemonSet must not wait for Muster."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    client.create(PODS, pod(ownerReferences=[owner]), MANAGED)
    bound = pod()
    bound["spec"] = {**POD["spec"], "nodeName": "node-1"}
    client.create(PODS, bound, MANAGED)


def test_workloads_are_refused_alike(client: Client) -> None:
    """Jobs that ask, by themselves or by their namespace, and TrainJobs; not Jobs that don't."""
    job: JSON = {
        "metadata": {"generateName": "job-"},
        "spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}},
    }
    client.create(INDEXED_JOBS, job, PLAIN)
    asking = {**job, "metadata": {**job["metadata"], "labels": {"muster.dev/queue": "default"}}}
    assert 'webhook "jobs.batch.muster.dev"' in refused(client, INDEXED_JOBS, asking, PLAIN)
    assert 'webhook "namespaced-jobs.batch.muster.dev"' in refused(client, INDEXED_JOBS, job, MANAGED)
    assert 'webhook "trainjobs.muster.dev"' in refused(client, TRAIN_JOBS, TRAIN_JOB, PLAIN)
