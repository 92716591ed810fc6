"""Queues that always exist, and the PodGroups of pods that are not a Volcano Job's."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jobs import Story, job, task
from planes import drop_queue, drop_workloads

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS
from muster.api.muster.gang import gated
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
RAW_SERVICES: Resource[dict[str, Any]] = Resource("", "v1", "services", "Service", dict[str, Any])
DEPLOYMENTS: Resource[dict[str, Any]] = Resource("apps", "v1", "deployments", "Deployment", dict[str, Any])


def indexed_job(name: str, pods: int, labels: dict[str, str], **annotations: str) -> dict[str, Any]:
    """An Indexed Job that plain kubectl users write, with Muster's labels."""
    template = {
        "metadata": {"labels": labels, "annotations": {"kwok.muster.dev/run-seconds": "1"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
    }
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template},
    }


def test_queues_that_always_exist(plane: Plane, wait_for: WaitFor) -> None:
    """Root is the parent of default and cannot be reclaimed from; a new queue gets a parent and is open."""
    client = plane.client()
    queues = {queue.metadata.name: queue for queue in client.list(QUEUES)}
    assert (queues["root"].spec.reclaimable, queues["default"].spec.parent) == (False, "root")
    assert queues["root"].status.state == queues["default"].status.state == "Open"
    mine = client.create(QUEUES, {"metadata": {"generateName": "q-"}, "spec": {"weight": 2}}).metadata.name
    wait_for(lambda: client.get(QUEUES, mine).status.state == "Open")
    assert client.get(QUEUES, mine).spec.parent == "root"
    client.delete(QUEUES, mine)


def test_a_single_pod_gets_a_group_and_runs(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A bare pod that names Volcano's scheduler is a gang of one."""
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "none"}]}
    pod = story.client.create(PODS, {"metadata": {"name": "single"}, "spec": spec}, namespace)
    wait_for(lambda: story.client.get(PODS, "single", namespace).status.phase == "Running")
    name = f"podgroup-{pod.metadata.uid}"

    def annotated() -> bool:  # kube-scheduler may be faster: the pod has no gate, as it waits for nobody
        return story.client.get(PODS, "single", namespace).metadata.annotations.get(names.GROUP_NAME) == name

    wait_for(annotated)
    group = story.client.get(POD_GROUPS, name, namespace)
    assert (group.spec.min_member, group.spec.queue) == (1, "default")
    assert group.metadata.owner_references[0].uid == pod.metadata.uid


def test_an_indexed_job_of_a_framework_is_one_gang(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Four pods start together, meet under a Service of the Job's name, and the Job completes."""
    labels = {names.QUEUE: "default", names.FRAMEWORK: "torch"}
    uid = story.client.create(INDEXED_JOBS, indexed_job("train", 4, labels), namespace).metadata.uid
    group = wait_for(lambda: (found := story.client.list(POD_GROUPS, namespace)) and found[0])
    assert (group.metadata.name, group.spec.min_member, group.spec.queue) == (f"podgroup-{uid}", 4, "default")
    assert group.metadata.owner_references[0].uid == uid
    service = wait_for(lambda: next(iter(story.client.list(RAW_SERVICES, namespace)), None))
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": "train"}
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    wait_for(lambda: story.client.get(INDEXED_JOBS, "train", namespace).status.get("succeeded") == 4)
    assert not any(gated(pod) for pod in story.alive())


def deployment(name: str, **annotations: str) -> dict[str, Any]:
    """A Deployment of one pod for Volcano's scheduler; `annotations` are its pods'."""
    labels = {"app": name}
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "none"}]}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def queue(plane: Plane, namespace: str) -> Iterator[str]:
    """The name of a queue that is made by the test."""
    name = f"q-{uuid.uuid4().hex[:8]}"
    yield name
    client = plane.client()
    if any(each.metadata.name == name for each in client.list(QUEUES)):
        drop_workloads(plane, namespace)
        drop_queue(client, name)


@pytest.fixture
def annotated(plane: Plane, namespace: str, queue: str, wait_for: WaitFor) -> str:
    """The queue, made and named by the namespace."""
    client = plane.client()
    client.create(QUEUES, {"metadata": {"name": queue}, "spec": {}})
    wait_for(lambda: client.get(QUEUES, queue).status.state == "Open")
    client.merge_patch(NAMESPACES, namespace, {"metadata": {"annotations": {names.VOLCANO_QUEUE: queue}}})
    dry = {**job("seen", namespace, task("w", 1))}
    wait_for(lambda: client.create(JOBS, dry, namespace, dry_run=True).spec.queue == queue, what="the annotation seen")
    return queue


def test_the_queue_of_a_namespace(
    story: Story, kubectl: Any, namespace: str, annotated: str, wait_for: WaitFor
) -> None:
    """The user sees it in the Job, its PodGroup has it, and the manifest can be applied again."""
    manifest = json.dumps(job("train", namespace, task("w", 1)))
    kubectl("apply", "--filename=-", stdin=manifest)
    assert story.client.get(JOBS, "train", namespace).spec.queue == annotated
    [group] = wait_for(lambda: story.client.list(POD_GROUPS, namespace))
    assert group.spec.queue == annotated
    kubectl("apply", "--filename=-", stdin=manifest)
    wait_for(lambda: story.client.get(JOBS, "train", namespace).status.state.phase == "Running")
    wait_for(lambda: kubectl("replace", "--filename=-", stdin=manifest, check=False).endswith("replaced\n"))
    assert story.client.get(JOBS, "train", namespace).spec.queue == annotated


def test_so_do_other_workloads(story: Story, namespace: str, annotated: str, wait_for: WaitFor) -> None:
    """Groups of a Deployment and of a bare pod are in the namespace's queue, and stay there when pods come and go."""
    client = story.client
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "none"}]}
    client.create(PODS, {"metadata": {"name": "single"}, "spec": spec}, namespace)
    client.create(DEPLOYMENTS, deployment("web"), namespace)
    client.create(DEPLOYMENTS, deployment("other", **{names.VOLCANO_QUEUE: "default"}), namespace)
    wait_for(lambda: [pod.status.phase for pod in client.list(PODS, namespace)] == ["Running"] * 3)
    client.merge_patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, namespace)
    wait_for(lambda: [pod.status.phase for pod in client.list(PODS, namespace)] == ["Running"] * 5)
    wait_for(lambda: all(names.GROUP_NAME in pod.metadata.annotations for pod in client.list(PODS, namespace)))
    assert [group.spec.queue for group in client.list(POD_GROUPS, namespace)] == [annotated] * 3


@pytest.mark.slow
def test_an_update_while_the_queue_closes(story: Story, namespace: str, annotated: str, wait_for: WaitFor) -> None:
    """Its new pods count in the queue, which is Closed only when they have gone; then it takes no new ones."""
    client = story.client
    client.create(DEPLOYMENTS, deployment("web"), namespace)
    wait_for(lambda: client.get(QUEUES, annotated).status.running == 1)
    [before] = client.list(POD_GROUPS, namespace)
    target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": annotated}
    target["uid"] = client.get(QUEUES, annotated).metadata.uid
    client.create(COMMANDS, {"metadata": {"name": "close"}, "action": "CloseQueue", "target": target}, namespace)
    wait_for(lambda: client.get(QUEUES, annotated).status.state == "Closing")
    update = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    client.merge_patch(DEPLOYMENTS, "web", update, namespace)

    def groups() -> list[str]:
        return [group.metadata.name for group in client.list(POD_GROUPS, namespace)]

    wait_for(lambda: (found := groups()) and before.metadata.name not in found)
    wait_for(lambda: client.get(QUEUES, annotated).status.running == 1)
    assert client.get(QUEUES, annotated).status.state == "Closing"
    assert not story.events("PodGroupError")
    client.merge_patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}}, namespace)
    wait_for(lambda: client.get(QUEUES, annotated).status.state == "Closed")
    client.merge_patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, namespace)
    [words] = wait_for(lambda: story.events("PodGroupError"))
    assert f"queue `{annotated}` status is `Closed`" in words
    assert "pods without a gate run anyway and are not charged to any queue" in words


def test_a_workload_in_an_unknown_queue_is_told_so(story: Story, namespace: str, queue: str, wait_for: WaitFor) -> None:
    """An event at the pods' owner names the queue and those that there are; with the queue comes the group."""
    client = story.client
    client.create(DEPLOYMENTS, deployment("web", **{names.VOLCANO_QUEUE: queue}), namespace)
    words = wait_for(lambda: story.events("PodGroupError"))
    assert f'is refused: spec.queue: Not found: "{queue}"' in words[0]
    assert "usable queues are: default" in words[0]
    client.create(QUEUES, {"metadata": {"name": queue}, "spec": {}})
    wait_for(lambda: [group.spec.queue for group in client.list(POD_GROUPS, namespace)] == [queue])
    wait_for(lambda: [names.GROUP_NAME in pod.metadata.annotations for pod in client.list(PODS, namespace)] == [True])
