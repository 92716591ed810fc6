"""There is one minimum of a task, and everybody goes by it."""

from typing import Any

import msgspec
import pytest
from webhook_world import apply, job_defaults, request, task, vcjob

from controller.job.rules.phases import Counts, next_phase
from controller.job.rules.sync import dependencies_ready
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.volcano.podgroup import pod_group
from muster.volcano.tasks import minimum, partition_of, total_minimum
from webhook.validate.volcano_job.job import check

TASKS = [
    ({"replicas": 4}, 4),
    ({"replicas": 0}, 0),
    ({"replicas": 4, "minAvailable": 3}, 3),
    ({"replicas": 4, "minAvailable": 0}, 0),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}, 4),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 0}}, 4),
    ({"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}}, 2),
    ({"replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 3}}, 6),
    (
        {
            "replicas": 4,
            "minAvailable": 2,
            "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
        },
        2,
    ),
]
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
    assert not check(of)
    assert (minimum(first), total_minimum(of.spec)) == (least, least + 1)
    group = pod_group(of, {})
    assert group.spec.min_task_member == {"a": least, "b": 1}
    assert dependencies_ready(of.spec, second, pods(least))
    assert not least or not dependencies_ready(of.spec, second, pods(least - 1))
    if admitted:
        assert (first.min_available, of.spec.min_available, group.spec.min_member) == (least, least + 1, least + 1)
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
