"""`dependsOn` with gangs: what a PodGroup counts while tasks wait for others."""

from typing import Any

import pytest
from builders import job as a_job
from builders import pod as a_pod
from builders.manifests import task

from controller.job.rules import status as statuses
from controller.job.rules.sync import not_counted_yet
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.volcano.podgroup import pod_group as group
from muster.volcano.podgroup import update

TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


def pod(task: str, index: int, phase: str = "Running", *, node: str = "n", going: bool = False) -> Pod:
    """A pod of Job `j`."""
    deleted = "2026-01-01T00:00:00Z" if going else ""
    return a_pod(f"j-{task}-{index}", task=task, phase=phase, node=node, deleted=deleted)


def job(min_available: int, *tasks: tuple[str, int, int | None, str]) -> Job:
    """Job `n/j`; tasks are (name, replicas, minimum, the task it waits for)."""
    made = [
        task(name, replicas, min_available=least, template=TEMPLATE, depends_on={"name": [after]} if after else None)
        for name, replicas, least, after in tasks
    ]
    return a_job("j", made, "n", uid="u", min_available=min_available)


CHAIN = job(4, ("a", 2, 2, ""), ("b", 1, 1, "a"), ("c", 1, 1, "b"))


@pytest.mark.parametrize(
    ("of", "later", "least", "tasks"),
    [
        (CHAIN, ("b", "c"), 2, {"a": 2}),
        (CHAIN, ("c",), 3, {"a": 2, "b": 1}),
        (CHAIN, (), 4, {"a": 2, "b": 1, "c": 1}),
        (job(3, ("worker", 10, 10, ""), ("master", 1, 1, "worker")), ("master",), 3, {"worker": 10}),
        (job(6, ("a", 4, 2, ""), ("b", 2, 1, "a")), ("b",), 4, {"a": 2}),
    ],
)
def test_the_minimum_counts_what_can_exist(of: Job, later: tuple[str, ...], least: int, tasks: dict[str, int]) -> None:
    """Members, per task and in resources; never more than there can be pods."""
    made = group(of, {}, later)
    assert (made.spec.min_member, made.spec.min_task_member) == (least, tasks)
    assert made.spec.min_resources["cpu"] == str(least)
    assert made.metadata.annotations.get(names.LATER_TASKS, "") == ",".join(sorted(later))


@pytest.mark.parametrize(
    ("pods", "later"),
    [
        ([], {"b", "c"}),
        ([pod("a", 0), pod("a", 1)], {"c"}),
        ([pod("a", 0), pod("a", 1), pod("b", 0, "Pending", node="")], {"c"}),
        ([pod("a", 0, "Succeeded"), pod("a", 1), pod("b", 0)], set()),
        ([pod("b", 0)], set()),
    ],
)
def test_a_new_group_holds_back_what_is_not_ready(pods: list[Pod], later: set[str]) -> None:
    """As far as its pods, those of a resumed Job for example, do not say otherwise."""
    assert not_counted_yet(CHAIN, pods, None) == later


@pytest.mark.parametrize(
    ("listed", "pods", "later"),
    [
        (("b", "c"), [pod("a", 0), pod("a", 1)], {"b", "c"}),
        (("b", "c"), [pod("a", 0), pod("a", 1), pod("b", 0, "Pending", node="")], {"b", "c"}),
        (("b", "c"), [pod("b", 0, "Pending")], {"c"}),
        (("b", "c"), [pod("b", 0, going=True)], {"b", "c"}),
        (("c",), [], {"c"}),
        ((), [], set()),
        (("gone",), [], set()),
    ],
)
def test_a_task_is_counted_when_it_has_started_and_from_then_on(
    listed: tuple[str, ...], pods: list[Pod], later: set[str]
) -> None:
    """A task that waits for a place is not missed by those that run; one that ran once is."""
    of = group(CHAIN, {}, ())
    if listed:
        of.metadata.annotations[names.LATER_TASKS] = ",".join(listed)
    assert not_counted_yet(CHAIN, pods, of) == later


def test_update_of_what_is_counted() -> None:
    """One patch brings minimums and list up to date, and removes the list in the end."""
    patch = update(group(CHAIN, {}, ("b", "c")), group(CHAIN, {}, ("c",)))
    assert patch["metadata"] == {"annotations": {names.LATER_TASKS: "c"}}
    assert (patch["spec"]["minMember"], patch["spec"]["minTaskMember"]) == (3, {"b": 1})
    assert update(group(CHAIN, {}, ("c",)), group(CHAIN, {}, ()))["metadata"] == {
        "annotations": {names.LATER_TASKS: None}
    }
    assert update(group(CHAIN, {}, ("c",)), group(CHAIN, {}, ("c",))) == {}


def test_the_status_names_the_tasks_that_wait() -> None:
    """Once the gang is let in."""
    of = group(CHAIN, {}, ("c",))
    of.status.phase = "Running"
    assert statuses.waiting(of, []) == ("WaitingForTasks", "tasks that others must be ready for: c")
