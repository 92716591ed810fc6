"""Tasks that wait for others, with minimums of their own and restarts, on the simulated cluster."""

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, fail, job, pods, settle, submit, task, turn

from muster.api.kubernetes.core import PODS
from muster.api.volcano.scheduling import POD_GROUPS

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


@pytest.mark.parametrize(
    ("action", "left", "minimum"),
    [
        ("RestartJob", ["j-a-0", "j-a-1"], 2),
        ("RestartTask", ["j-a-0", "j-a-1", "j-b-0"], 3),
        ("RestartPod", ["j-a-0", "j-a-1", "j-b-0"], 3),
    ],
)
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
    tasks = [task("a", 2), task("b", 1, **AFTER_A)]
    submit(cluster, "j", 0, tasks=tasks, minAvailable=3)
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
