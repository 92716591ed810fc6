"""A label on a namespace is enough: what is created there runs in a queue of Muster's, except for what opts out."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
LEAVE = {"muster.dev/managed": "false"}


@pytest.fixture
def managed(kubectl: Any, namespace: str) -> str:
    """A namespace with the label."""
    kubectl("label", "namespace", namespace, "muster.dev/queue=default")
    return namespace


def pod_spec() -> JSON:
    """A small pod."""
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause"}]}


def job(name: str, template: JSON | None = None) -> JSON:
    """A batch/v1 Job of two pods that says nothing of Muster."""
    body = {"parallelism": 2, "completions": 2, "template": {"metadata": template or {}, "spec": pod_spec()}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def pods_of(kubectl: Any, namespace: str, selector: str, count: int) -> list[JSON]:
    """The pods that a selector finds, once all are there and bound."""
    items: list[JSON] = kubectl.json("get", "pods", f"--namespace={namespace}", f"--selector={selector}")["items"]
    bound = [pod for pod in items if pod["spec"].get("nodeName")]
    return bound if len(bound) == count else []


def test_a_job_without_labels_runs_in_the_queue_of_its_namespace(
    kubectl: Any, managed: str, wait_for: Callable[..., Any]
) -> None:
    """Its pods carry the queue and their gang, and Muster's scheduler binds them."""
    kubectl.create(managed, job("train"))
    pods = wait_for(lambda: pods_of(kubectl, managed, "job-name=train", 2), what="two bound pods")
    uid = kubectl.json("get", "job", "train", f"--namespace={managed}")["metadata"]["uid"]
    for pod in pods:
        assert pod["spec"]["schedulerName"] == "muster"
        labels = pod["metadata"]["labels"]
        assert (labels["muster.dev/queue"], labels["muster.dev/gang"]) == ("default", f"podgroup-{uid}")


def test_a_deployment_too_and_pods_that_opt_out_do_not(
    kubectl: Any, managed: str, wait_for: Callable[..., Any]
) -> None:
    """Pods of any owner take the default; a template with the opt-out label goes to the cluster's own scheduler."""
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod_spec(), "restartPolicy": "Always"}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    kubectl.create(
        managed,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
        job("alone", {"labels": LEAVE}),
    )
    [web] = wait_for(lambda: pods_of(kubectl, managed, "app=web", 1), what="the Deployment's pod to be bound")
    assert web["spec"]["schedulerName"] == "muster"
    for pod in wait_for(lambda: pods_of(kubectl, managed, "job-name=alone", 2), what="the other Job's pods"):
        assert pod["spec"]["schedulerName"] == "default-scheduler"
        assert "muster.dev/queue" not in pod["metadata"]["labels"]


def test_a_wrong_queue_of_the_namespace_is_refused_with_the_job(kubectl: Any, namespace: str) -> None:
    """The user reads it at once, not in the events of the Job."""
    kubectl("label", "namespace", namespace, "muster.dev/queue=nowhere")
    said = kubectl("create", f"--namespace={namespace}", "--filename=-", stdin=job("train"), check=False)
    assert "nowhere" in said
    assert "usable queues are: " in said
