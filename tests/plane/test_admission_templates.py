"""Pod templates of Volcano Jobs: the API server's own verdict, at the path that the user wrote."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story
from manifests import SHARED_NAMESPACE, refusal_of

from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import Invalid

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
QUOTAS: Resource[JSON] = Resource("", "v1", "resourcequotas", "ResourceQuota", dict[str, Any])


def vcjob(*templates: JSON, **more: Any) -> JSON:
    """A Job whose tasks have these templates' pod specs."""
    tasks = [{"name": f"t{i}", "replicas": 1, "template": {"spec": spec, **more}} for i, spec in enumerate(templates)]
    return {"metadata": {"name": "j"}, "spec": {"tasks": tasks}}


def refusal(shared_client: Client, namespace: str, job: JSON) -> str:
    """What is said to the Job."""
    with pytest.raises(Invalid) as found:
        shared_client.create(JOBS, job, namespace, dry_run=True)
    return str(found.value)


def good(**more: Any) -> JSON:
    """A pod spec that is fine."""
    return {"containers": [{"name": "main", "image": "none", **more}]}


def test_every_mistake_of_every_template(shared_client: Client) -> None:
    """Several fields of several tasks in one answer."""
    greedy = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    bad = {
        "containers": [{"name": "Main", "image": "none"}, {"name": "x", "image": "none", "resources": greedy}],
        "hostname": "UP",
    }
    mounted = good(volumeMounts=[{"name": "nothing", "mountPath": "/data"}])
    said = refusal(shared_client, SHARED_NAMESPACE, vcjob(bad, good(), mounted))
    for words in (
        'spec.tasks[0].template.spec.containers[0].name: Invalid value: "Main": a lowercase RFC 1123 label',
        "spec.tasks[0].template.spec.containers[1].resources.requests: Invalid value",
        'spec.tasks[0].template.spec.hostname: Invalid value: "UP"',
        'spec.tasks[2].template.spec.containers[0].volumeMounts[0].name: Not found: "nothing"',
    ):
        assert words in said
    assert "tasks[1]" not in said


def test_pods_are_tried_as_plugins_shape_them(shared_client: Client) -> None:
    """An image of the flags of a plugin that is none is told at the plugins."""
    job = vcjob(good(), good(env=[{"name": "A", "valueFrom": {}}]))
    job["spec"]["plugins"] = {
        "pytorch": ["--master=t0", "--worker=t1", "--wait-master-enabled", "--wait-master-image= x"]
    }
    said = refusal(shared_client, SHARED_NAMESPACE, job)
    assert "spec.plugins: spec.initContainers[0].image of its pods: Invalid value" in said
    assert "spec.tasks[1].template.spec.containers[0].env[0].valueFrom: Invalid value" in said


def test_policies_of_the_namespace_are_heard(shared_client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Pod Security refuses such pods, so the Job is refused before it waits for them."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    shared_client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": labels}})
    job = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **vcjob(good())}
    wait_for(lambda: refusal_of(shared_client, job, namespace), what="the label to count")
    said = refusal(shared_client, namespace, job)
    assert "spec.tasks[0].template" in said
    assert 'violates PodSecurity "restricted:latest"' in said


def test_a_quota_that_is_used_up_is_no_mistake(shared_client: Client, namespace: str, wait_for: WaitFor) -> None:
    """The Job is taken, as its pods may wait; but a quota that such pods can never meet refuses."""
    shared_client.create(QUOTAS, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "0"}}}, namespace)
    wait_for(lambda: shared_client.get(QUOTAS, "pods", namespace).get("status", {}).get("hard"))
    shared_client.create(JOBS, vcjob(good()), namespace)
    shared_client.create(QUOTAS, {"metadata": {"name": "cpu"}, "spec": {"hard": {"limits.cpu": "4"}}}, namespace)
    wait_for(lambda: shared_client.get(QUOTAS, "cpu", namespace).get("status", {}).get("hard"))
    other = {**vcjob(good(command=["x"])), "metadata": {"name": "k"}}
    assert "must specify limits.cpu" in refusal(shared_client, namespace, other)


def test_a_priority_that_does_not_exist(shared_client: Client, namespace: str, story: Story, wait_for: WaitFor) -> None:
    """A change to it is refused; one to a class that exists is not."""
    shared_client.create(JOBS, vcjob(good()), namespace)
    with pytest.raises(Invalid) as found:
        shared_client.merge_patch(JOBS, "j", {"spec": {"priorityClassName": "nowhere"}}, namespace)
    assert "spec.priorityClassName: Not found" in str(found.value)
    assert "no PriorityClass with name nowhere was found, so no pod could be created" in str(found.value)
    shared_client.merge_patch(JOBS, "j", {"spec": {"priorityClassName": "system-node-critical"}}, namespace)
    wait_for(lambda: shared_client.get(JOBS, "j", namespace).status.state.phase == "Running")
    assert not story.events("FailedCreate")


def test_steered_templates_do_not_come_back_to_the_webhook(shared_client: Client, namespace: str) -> None:
    """Twenty Jobs at once with our labels on their templates, in a namespace that asks for Muster: none waits."""
    shared_client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": {"muster.dev/queue": "default"}}})
    started = time.monotonic()
    for number in range(20):
        spec = good(command=[str(number)])
        job = {**vcjob(spec, metadata={"labels": {"muster.dev/queue": "default"}}), "metadata": {"name": f"j{number}"}}
        shared_client.create(JOBS, job, namespace, dry_run=True)
    assert time.monotonic() - started < 20
    assert not shared_client.list(PODS, namespace), "trying keeps nothing"
