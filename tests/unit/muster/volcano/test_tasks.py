"""There is one minimum of a task, and everybody goes by it; pods and objects belong to the Job that controls them."""

from typing import Any

import msgspec
import pytest
from webhook_world import apply, job_defaults, request, task, vcjob

from controller.job.rules.phases import Counts, next_phase
from controller.job.rules.sync import dependencies_ready
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.volcano.podgroup import pod_group
from muster.volcano.tasks import job_of, job_of_pod, minimum, owner_of, partition_of, reference, total_minimum
from webhook.validate.volcano_job.job import check_job

TASKS = [
    ({"replicas": 4}, 4),
    ({"replicas": 0}, 0),
    ({"replicas": 4, "minAvailable": 3}, 3),
    ({"replicas": 4, "minAvailable": 0}, 0),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}, 4),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 0}}, 4),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}}, 2),
    ({"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 3}}, 6),
    ({"replicas": 4, "minAvailable": 2, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2,
        "minPartitions": 1}}, 2),
]  # fmt: skip
"""A task as it is sent, and its minimum."""


def job(sent: dict[str, Any], *, admitted: bool) -> Job:
    """A Job of this task `a` and of task `b`, which waits for it; as sent, or as admission completes it."""
    document = vcjob(task(name="a", **sent), task(name="b", replicas=1, dependsOn={"name": ["a"]}))
    return msgspec.convert(
        apply(document, job_defaults()(request(document)).patch) if admitted else document, Job, strict=False
    )


def pods(count: int) -> list[Pod]:
    """So many pods of task `a` that run."""
    meta = {"annotations": {names.TASK_SPEC: "a"}}
    return [msgspec.convert({"metadata": meta, "status": {"phase": "Running"}}, Pod) for _ in range(count)]


@pytest.mark.parametrize("admitted", [True, False])
@pytest.mark.parametrize(("sent", "least"), TASKS)
def test_the_minimum_of_a_task(sent: dict[str, Any], least: int, *, admitted: bool) -> None:
    """Admission, the gang, the tasks that wait for this one: all have the same, whether admission was asked or not."""
    of = job(sent, admitted=admitted)
    first, second = of.spec.tasks
    assert not check_job(of)
    assert (minimum(first), total_minimum(of.spec)) == (least, least + 1)
    group = pod_group(of, {})
    assert group.spec.min_task_member == {"a": least, "b": 1}
    assert dependencies_ready(of.spec, second, pods(least))
    assert not least or not dependencies_ready(of.spec, second, pods(least - 1))
    if admitted:
        assert (of.spec.min_available, group.spec.min_member) == (least + 1, least + 1)
        assert sum(group.spec.min_task_member.values()) == group.spec.min_member


@pytest.mark.parametrize("admitted", [True, False])
@pytest.mark.parametrize(("sent", "least"), TASKS)
def test_a_gang_without_the_tasks_that_wait(sent: dict[str, Any], least: int, *, admitted: bool) -> None:
    """The Job's minimum loses just the minimum of a task that is left out for now."""
    of = job(sent, admitted=admitted)
    of.spec.min_available = least + 1
    group = pod_group(of, {}, ["b"])
    assert (group.spec.min_member, group.spec.min_task_member) == (least, {"a": least})
    assert group.spec.min_resources is not None
    assert group.spec.min_resources["pods"] == str(least)


@pytest.mark.parametrize(("sent", "least"), [(sent, least) for sent, least in TASKS if 0 < least < sent["replicas"]])
def test_the_end_of_a_job(sent: dict[str, Any], least: int) -> None:
    """It is judged by the minimum that admission has written down: with one success less the task has failed."""
    of = job(sent, admitted=True)
    replicas = of.spec.tasks[0].replicas
    for succeeded, phase in ((least, "Completed"), (least - 1, "Failed")):
        tasks = {"a": {"Succeeded": succeeded}, "b": {"Succeeded": 1}}
        counts = Counts(succeeded=succeeded + 1, failed=replicas - succeeded, tasks=tasks)
        transition = next_phase(of.spec, "Running", counts, 0)
        assert transition is not None
        assert transition.phase == phase


def test_a_partition_without_pods_says_nothing() -> None:
    """A size that admission refuses is no minimum of 0."""
    broken = TaskSpec(name="a", replicas=3, partition_policy=PartitionPolicy(min_partitions=1))
    assert (minimum(broken), partition_of(broken, 2)) == (3, "")


def test_owner() -> None:
    """An object belongs to the Volcano Job that controls it, and to no other kind of Job."""
    job = Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"))
    meta = ObjectMeta(name="j-w-0", namespace="n", owner_references=[owner_of(job)])
    assert job_of(meta) == ("n/j", "u")
    meta.owner_references[0].api_version = "batch/v1"
    assert job_of(meta) is None
    assert job_of(ObjectMeta()) is None


JOB = Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"))


def pod_meta(name: str = "j-w-0", namespace: str = "n", task: str = "w", index: str = "0") -> ObjectMeta:
    """The metadata of a pod that the Job controls, as far as its owner reference says."""
    slot = {names.TASK_SPEC: task, names.TASK_INDEX: index}
    return ObjectMeta(name=name, namespace=namespace, annotations=slot, owner_references=[owner_of(JOB)])


def test_a_pod_of_the_job() -> None:
    """It is called as the Job calls the pod of its task and index; also one that the Job does not want any more."""
    assert job_of_pod(pod_meta()) == reference(JOB)
    assert job_of_pod(pod_meta("j-w-700", index="700")) == reference(JOB)


@pytest.mark.parametrize("meta", [
    pod_meta("mine"),
    pod_meta("j-w-1"),
    pod_meta(task=""),
    pod_meta("j--", task="", index="0"),
    ObjectMeta(name="--"),
])  # fmt: skip
def test_a_pod_that_only_says_so(meta: ObjectMeta) -> None:
    """Anybody can write an owner reference; the name and what the pod says of its place must agree."""
    assert job_of_pod(meta) is None


def test_a_pod_of_another_namespace() -> None:
    """It refers to a Job of its own namespace, also where the UID is that of one elsewhere."""
    assert job_of_pod(pod_meta(namespace="other")) == ("other/j", "u")
    assert job_of_pod(pod_meta(namespace="other")) != reference(JOB)
