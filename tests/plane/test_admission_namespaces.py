"""A label on a namespace is enough: what is created there runs in a queue of Muster's, except for what opts out."""

from collections.abc import Callable
from typing import Any

import pytest
from manifests import create, dry_run, refusal_of

from muster.api import names
from muster.api.kubernetes.core import NAMESPACES, PODS, Pod
from muster.kube.client import Client

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
WaitFor = Callable[..., Any]
LEAVE = {"muster.dev/managed": "false"}


@pytest.fixture
def managed(client: Client, namespace: str, wait_for: WaitFor) -> str:
    """A namespace with the label, which the API server has taken in."""
    label(client, namespace, "default")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": pod_spec()}
    wait_for(lambda: dry_run(client, pod, namespace)["spec"]["schedulerName"] == "muster", what="the label to count")
    return namespace


def label(client: Client, namespace: str, queue: str) -> None:
    """Give a namespace the label of this queue."""
    client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": {names.QUEUE: queue}}})


def pod_spec() -> JSON:
    """A small pod."""
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause"}]}


def job(name: str, template: JSON | None = None) -> JSON:
    """A batch/v1 Job of two pods that says nothing of Muster."""
    body = {"parallelism": 2, "completions": 2, "template": {"metadata": template or {}, "spec": pod_spec()}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def pods_of(client: Client, namespace: str, selector: str, count: int) -> list[Pod]:
    """The pods that a selector finds, once all are there and bound."""
    bound = [pod for pod in client.list(PODS, namespace, label_selector=selector) if pod.spec.node_name]
    return bound if len(bound) == count else []


def test_a_job_without_labels_has_the_queue_of_its_namespace(client: Client, managed: str, wait_for: WaitFor) -> None:
    """Its pods carry the queue and their gang, and Muster's scheduler binds them."""
    uid = create(client, job("train"), managed)["metadata"]["uid"]
    for pod in wait_for(lambda: pods_of(client, managed, "job-name=train", 2), what="two bound pods"):
        assert pod.spec.scheduler_name == "muster"
        labels = pod.metadata.labels
        assert (labels["muster.dev/queue"], labels["muster.dev/gang"]) == ("default", f"podgroup-{uid}")


def test_a_deployment_too_and_pods_that_opt_out_do_not(client: Client, managed: str, wait_for: WaitFor) -> None:
    """Pods of any owner take the default; a template with the opt-out label goes to the cluster's own scheduler."""
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod_spec(), "restartPolicy": "Always"}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    create(client, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}, managed)
    create(client, job("alone", {"labels": LEAVE}), managed)
    [web] = wait_for(lambda: pods_of(client, managed, "app=web", 1), what="the Deployment's pod to be bound")
    assert web.spec.scheduler_name == "muster"
    for pod in wait_for(lambda: pods_of(client, managed, "job-name=alone", 2), what="the other Job's pods"):
        assert pod.spec.scheduler_name == "default-scheduler"
        assert "muster.dev/queue" not in pod.metadata.labels


def test_a_wrong_queue_of_a_namespace_is_refused_with_a_job(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """The user reads it at once, not in the events of the Job."""
    label(client, namespace, "nowhere")
    said = wait_for(lambda: refusal_of(client, job("train"), namespace), what="the label to count")
    assert "nowhere" in said
    assert "usable queues are: " in said
