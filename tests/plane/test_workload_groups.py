"""Queues that always exist, and the PodGroups of pods that are not a Volcano Job's."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story

from muster.api import names
from muster.api.base import Resource
from muster.api.core import INDEXED_JOBS, PODS, SERVICES
from muster.api.gang import gated
from muster.api.scheduling import POD_GROUPS, QUEUES
from muster.local.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
RAW_SERVICES: Resource[dict[str, Any]] = Resource("", "v1", "services", "Service", dict[str, Any])


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
    client.create(QUEUES, {"metadata": {"generateName": "q-"}, "spec": {"weight": 2}})
    mine = next(queue.metadata.name for queue in client.list(QUEUES) if queue.metadata.name.startswith("q-"))
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
        found = story.client.get(PODS, "single", namespace)
        return found.metadata.annotations.get(names.GROUP_NAME) == name

    wait_for(annotated)
    group = story.client.get(POD_GROUPS, name, namespace)
    assert (group.spec.min_member, group.spec.queue) == (1, "default")
    assert group.metadata.owner_references[0].uid == pod.metadata.uid


def test_an_indexed_job_of_a_framework_is_one_gang(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Four pods start together, meet under a Service of the Job's name, and the Job completes."""
    labels = {names.QUEUE: "default", names.FRAMEWORK: "torch"}
    made = story.client.create(INDEXED_JOBS, indexed_job("train", 4, labels), namespace)
    uid = made.metadata.uid
    group = wait_for(lambda: (found := story.client.list(POD_GROUPS, namespace)) and found[0])
    assert (group.metadata.name, group.spec.min_member, group.spec.queue) == (f"podgroup-{uid}", 4, "default")
    assert group.metadata.owner_references[0].uid == uid
    service = story.client.get(RAW_SERVICES, "train", namespace)
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": "train"}
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    wait_for(lambda: story.client.get(INDEXED_JOBS, "train", namespace).status.get("succeeded") == 4)
    assert not any(gated(pod) for pod in story.alive())


def test_min_member_is_as_annotated(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """An annotation says how many of the pods must start together; without one it is a single pod."""
    labels = {names.QUEUE: "default"}
    story.client.create(INDEXED_JOBS, indexed_job("two", 3, labels, **{names.MIN_MEMBER: "2"}), namespace)
    story.client.create(INDEXED_JOBS, indexed_job("one", 3, labels), namespace)
    groups = wait_for(lambda: len(found := story.client.list(POD_GROUPS, namespace)) == 2 and found)
    members = {group.metadata.owner_references[0].name: group.spec.min_member for group in groups}
    assert members == {"two": 2, "one": 1}


def test_a_service_in_the_way_is_said(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A foreign Service of the Job's name is left as it is, and the Job gets an event."""
    ports = [{"port": 80}]
    story.client.create(SERVICES, {"metadata": {"name": "train"}, "spec": {"ports": ports}}, namespace)
    labels = {names.QUEUE: "default", names.FRAMEWORK: "torch"}
    story.client.create(INDEXED_JOBS, indexed_job("train", 2, labels), namespace)
    words = wait_for(lambda: story.events("ServiceError"))
    assert "Service train exists already" in words[0]
    assert story.client.get(RAW_SERVICES, "train", namespace)["spec"]["ports"][0]["port"] == 80
