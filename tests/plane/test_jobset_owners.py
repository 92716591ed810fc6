"""Jobs that a JobSet owns: without a framework each is a gang. The JobSet's own controller is not needed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from job_sets import CRDS, JOBSETS, NAME, controlled, install, make_jobs
from jobs import Story

from muster.api import names
from muster.api.kubernetes.core import INDEXED_JOBS
from muster.api.volcano.scheduling import POD_GROUPS, Queue
from muster.workloads.table import gang_of
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
"""It installs a kind, which the others do not know."""
WaitFor = Callable[..., Any]
JSON = dict[str, Any]


@pytest.fixture
def _jobsets(plane: Plane, wait_for: WaitFor) -> Iterator[None]:
    """The kind, with any content, for this test only."""
    client = plane.client()
    install(client, wait_for)
    yield
    client.delete(CRDS, NAME)


def child(owner: JSON, name: str, pods: int) -> JSON:
    """A Job as a JobSet's controller makes it: the labels and annotations of its template, and the owner."""
    template = {
        "metadata": {"annotations": {"kwok.muster.dev/run-seconds": "1"}},
        "spec": {
            "schedulerName": names.VOLCANO_SCHEDULER,
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    return {
        "metadata": {"name": name, "ownerReferences": [controlled(owner)]},
        "spec": {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template},
    }


@pytest.mark.usefixtures("_jobsets")
def test_each_job_of_a_jobset_is_a_gang(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Queue and minimum are the JobSet's, the minimum never above what the Job has; the gangs complete."""
    annotations = {names.VOLCANO_GROUP_MIN_MEMBER: "3", names.VOLCANO_QUEUE: "default"}
    owner = story.client.create(JOBSETS, {"metadata": {"name": "set", "annotations": annotations}}, namespace)
    for name, pods in (("set-large", 4), ("set-small", 2)):
        story.client.create(INDEXED_JOBS, child(owner, name, pods), namespace)
    groups = wait_for(lambda: len(found := story.client.list(POD_GROUPS, namespace)) == 2 and found)
    members = {group.metadata.owner_references[0].name: group.spec.min_member for group in groups}
    assert members == {"set-large": 3, "set-small": 2}
    uids = {job.metadata.name: job.metadata.uid for job in story.client.list(INDEXED_JOBS, namespace)}
    assert {group.metadata.name for group in groups} == {f"podgroup-{uid}" for uid in uids.values()}

    def joined() -> bool:
        return all(gang_of(pod) == f"podgroup-{pod.metadata.controller.uid}" for pod in story.alive())  # type: ignore[union-attr]  # a Job's pods have one

    wait_for(joined, what=lambda: f"all to join: {[(p.metadata.labels, p.status.phase) for p in story.alive()]}")
    wait_for(
        lambda: {group.status.phase for group in story.client.list(POD_GROUPS, namespace)} == {"Completed"},
        what="both gangs to complete",
    )


@pytest.mark.usefixtures("_jobsets")
def test_an_elastic_jobset_ends_without_pods_that_never_started(
    story: Story, namespace: str, wait_for: WaitFor, make_queue: Callable[..., Queue]
) -> None:
    """Two of its three pods fit in the queue. When both have succeeded, its Job is complete with two."""
    queue = make_queue("small", capability={"cpu": "200m"}).metadata.name
    labels = {names.QUEUE: queue, names.FRAMEWORK: "torch"}
    lasts = {names.ELASTIC: "2:3", "kwok.muster.dev/run-seconds": "3"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    pods = {"metadata": {"annotations": lasts}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    template = {"metadata": {}, "spec": {"completions": 3, "parallelism": 3, "template": pods}}
    spec = {"replicatedJobs": [{"name": "node", "replicas": 1, "template": template}]}
    make_jobs(
        story.client,
        story.client.create(JOBSETS, {"metadata": {"name": "set", "labels": labels}, "spec": spec}, namespace),
    )

    def complete() -> bool:
        conditions = story.client.get(INDEXED_JOBS, "set-node-0", namespace).status.get("conditions") or []
        return "Complete" in {each["type"] for each in conditions}

    wait_for(complete, what="the Job to be complete")
    job = story.client.get(INDEXED_JOBS, "set-node-0", namespace)
    assert (job.spec.completions, job.spec.parallelism, job.status["completedIndexes"]) == (2, 2, "0,1")
