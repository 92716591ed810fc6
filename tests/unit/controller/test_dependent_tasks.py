"""Tasks that wait for others, with minimums of their own and restarts, on the simulated cluster."""

from typing import Any

import pytest
from builders import job as a_job
from builders import pod as a_pod
from builders.manifests import task as a_task
from simulated_cluster import Cluster
from simulated_jobs import add, fail, job, pods, settle, submit, task, turn

from controller.job.rules import status as statuses
from controller.job.rules.sync import not_counted_yet
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.volcano.podgroup import pod_group as group
from muster.volcano.podgroup import update

AFTER_A = {"dependsOn": {"name": ["a"]}}


def there(cluster: Cluster) -> list[str]:
    """The pods that are not on their way out."""
    return sorted(pod.metadata.name for pod in pods(cluster) if not pod.metadata.deletion_timestamp)


def run(cluster: Cluster, *names: str) -> None:
    """Kubelet starts these pods."""
    for name in names:
        cluster._phase(cluster.api.find(PODS, name, "n"), "Running")


def least(cluster: Cluster) -> list[int]:
    """The minimums of the gangs."""
    return [group.spec.min_member for group in cluster.api.all(POD_GROUPS)]


def test_a_task_follows_when_the_minimum_of_the_other_is_ready(cluster: Cluster) -> None:
    """Not one pod earlier, and not only with the last one; until it has started its gang does not count it."""
    add(cluster, "j", task("a", 3, minAvailable=2), task("b", 2, minAvailable=1, **AFTER_A), minAvailable=3)
    settle(cluster)
    run(cluster, "j-a-0")
    settle(cluster)
    assert (there(cluster), least(cluster)) == (["j-a-0", "j-a-1", "j-a-2"], [2])
    run(cluster, "j-a-2")
    settle(cluster)
    assert there(cluster) == ["j-a-0", "j-a-1", "j-a-2", "j-b-0", "j-b-1"]
    run(cluster, "j-b-1")
    settle(cluster)
    assert least(cluster) == [3]


@pytest.mark.parametrize(("action", "left", "minimum"), [
    ("RestartJob", ["j-a-0", "j-a-1"], 2),
    ("RestartTask", ["j-a-0", "j-a-1", "j-b-0"], 3),
    ("RestartPod", ["j-a-0", "j-a-1", "j-b-0"], 3),
])  # fmt: skip
@pytest.mark.parametrize("died", [False, True])
def test_after_a_restart(cluster: Cluster, action: str, left: list[str], minimum: int, *, died: bool) -> None:
    """Of the whole Job the order begins again; of what others waited for, those that have started stay, and count."""
    tasks = [task("a", 2), task("b", 1, **AFTER_A)]
    submit(cluster, "j", 0, {"event": "PodFailed", "action": action}, tasks=tasks, minAvailable=3)
    (uid,) = (pod.metadata.uid for pod in pods(cluster) if pod.metadata.name == "j-b-0")
    fail(cluster, "j-a-1")
    turn(cluster)
    if died:
        cluster.restart()
    settle(cluster)
    assert (there(cluster), least(cluster)) == (left, [minimum])
    assert all(pod.metadata.uid == uid for pod in pods(cluster) if pod.metadata.name == "j-b-0")
    assert cluster.converge()
    status = job(cluster, "j").status
    assert (status.state.phase, status.running, status.retry_count) == ("Running", 3, 1)
    assert least(cluster) == [3]


def test_a_dependent_that_is_lost_waits_for_what_it_depends_on(cluster: Cluster) -> None:
    """Evicted while the others are not ready, it comes when they are again; its gang misses it meanwhile."""
    submit(cluster, "j", 0, tasks=[task("a", 2), task("b", 1, **AFTER_A)], minAvailable=3)
    fail(cluster, "j-a-1")
    cluster.api.remove(PODS, cluster.api.find(PODS, "j-b-0", "n"), at_once=True)
    settle(cluster)
    assert (there(cluster), least(cluster)) == (["j-a-0", "j-a-1"], [3])
    run(cluster, "j-a-1")
    settle(cluster)
    assert (there(cluster), least(cluster)) == (["j-a-0", "j-a-1", "j-b-0"], [3])


def test_either_of_two_is_enough_where_a_task_says_so(cluster: Cluster) -> None:
    """`any` waits for one of the tasks, and for the whole minimum of that one."""
    either = {"dependsOn": {"name": ["a", "b"], "iteration": "any"}}
    add(cluster, "j", task("a", 2), task("b", 2), task("c", 1, **either), minAvailable=5)
    settle(cluster)
    run(cluster, "j-a-0", "j-b-0")
    settle(cluster)
    assert "j-c-0" not in there(cluster)
    run(cluster, "j-b-1")
    settle(cluster)
    assert "j-c-0" in there(cluster)


TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


def member(task: str, index: int, phase: str = "Running", *, node: str = "n", going: bool = False) -> Pod:
    """A pod of Job `j`."""
    deleted = "2026-01-01T00:00:00Z" if going else ""
    return a_pod(f"j-{task}-{index}", task=task, phase=phase, node=node, deleted=deleted)


def chain(min_available: int, *tasks: tuple[str, int, int | None, str]) -> Job:
    """Job `n/j`; tasks are (name, replicas, minimum, the task it waits for)."""
    made = [
        a_task(name, replicas, min_available=least, template=TEMPLATE, depends_on={"name": [after]} if after else None)
        for name, replicas, least, after in tasks
    ]
    return a_job("j", made, "n", uid="u", min_available=min_available)


CHAIN = chain(4, ("a", 2, 2, ""), ("b", 1, 1, "a"), ("c", 1, 1, "b"))


@pytest.mark.parametrize(("of", "later", "least", "tasks"), [
    (CHAIN, ("b", "c"), 2, {"a": 2}),
    (CHAIN, ("c",), 3, {"a": 2, "b": 1}),
    (CHAIN, (), 4, {"a": 2, "b": 1, "c": 1}),
    (chain(3, ("worker", 10, 10, ""), ("master", 1, 1, "worker")), ("master",), 3, {"worker": 10}),
    (chain(6, ("a", 4, 2, ""), ("b", 2, 1, "a")), ("b",), 4, {"a": 2}),
])  # fmt: skip
def test_the_minimum_counts_what_can_exist(of: Job, later: tuple[str, ...], least: int, tasks: dict[str, int]) -> None:
    """Members, per task and in resources; never more than there can be pods."""
    made = group(of, {}, later)
    assert (made.spec.min_member, made.spec.min_task_member) == (least, tasks)
    assert made.spec.min_resources["cpu"] == str(least)
    assert made.metadata.annotations.get(names.LATER_TASKS, "") == ",".join(sorted(later))


@pytest.mark.parametrize(("pods", "later"), [
    ([], {"b", "c"}),
    ([member("a", 0), member("a", 1)], {"c"}),
    ([member("a", 0), member("a", 1), member("b", 0, "Pending", node="")], {"c"}),
    ([member("a", 0, "Succeeded"), member("a", 1), member("b", 0)], set()),
    ([member("b", 0)], set()),
])  # fmt: skip
def test_a_new_group_holds_back_what_is_not_ready(pods: list[Pod], later: set[str]) -> None:
    """As far as its pods, those of a resumed Job for example, do not say otherwise."""
    assert not_counted_yet(CHAIN, pods, None) == later


@pytest.mark.parametrize(("listed", "pods", "later"), [
    (("b", "c"), [member("a", 0), member("a", 1)], {"b", "c"}),
    (("b", "c"), [member("a", 0), member("a", 1), member("b", 0, "Pending", node="")], {"b", "c"}),
    (("b", "c"), [member("b", 0, "Pending")], {"c"}),
    (("b", "c"), [member("b", 0, going=True)], {"b", "c"}),
    (("c",), [], {"c"}),
    ((), [], set()),
    (("gone",), [], set()),
])  # fmt: skip
def test_a_task_is_counted_once_it_has_started(listed: tuple[str, ...], pods: list[Pod], later: set[str]) -> None:
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
    assert statuses.waiting(of, []) == ("WaitingForTasks", "these tasks wait until other tasks are ready: c")
