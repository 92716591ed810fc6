"""A controller that starts anew publishes what the one before it did: statuses, pods, gangs and queues are the same."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import structlog
from msgspec import to_builtins
from simulated_cluster import Cluster
from simulated_faults import Faults
from simulated_jobs import add, fail, job, order, settle, task, turn

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES

JSON = dict[str, Any]
Act = Callable[[Cluster], object]


@pytest.fixture(autouse=True)
def _no_logs() -> Any:
    """No logs."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()


def quiet() -> Cluster:
    """A cluster in which nothing fails."""
    chance = random.Random(1)  # noqa: S311 - not a secret
    cluster = Cluster(chance, Faults(chance, 0.0, 0.0), lambda *_: None)
    for queue in ("q", "r"):
        cluster.api.add(QUEUES, {"metadata": {"name": queue}, "spec": {"parent": "root"}})
    return cluster


def submit(name: str, *tasks: JSON, policies: Sequence[JSON] = (), annotations: JSON | None = None, **spec: Any) -> Act:
    """A Job; its annotations count for the controller."""

    def act(cluster: Cluster) -> None:
        add(cluster, name, *tasks, policies=policies, **spec)
        cluster.api.change(JOBS, name, {"metadata": {"annotations": annotations or {}}}, "n")

    return act


def start(cluster: Cluster) -> None:
    """Kubelet runs all pods that have a node, and removes those that were told to go."""
    cluster.run_pods(everything=True)


def fails(*names: str) -> Act:
    """These pods fail."""
    return lambda cluster: fail(cluster, *names)


def succeeds(name: str) -> Act:
    """This pod has done its work."""
    return lambda cluster: cluster._phase(cluster.api.find(PODS, name, "n"), "Succeeded", exit_code=0)


def evicted(name: str) -> Act:
    """This pod is gone."""
    return lambda cluster: cluster.api.remove(PODS, cluster.api.find(PODS, name, "n"), at_once=True)


def refused(name: str) -> Act:
    """Kubelet refuses this pod."""
    status = {"phase": "Failed", "reason": "SysctlForbidden", "message": "forbidden sysctl"}
    return lambda cluster: cluster.api.change(PODS, name, {"status": status}, "n", subresource="status")


def asked(action: str, name: str) -> Act:
    """Somebody sends a Command."""
    return lambda cluster: order(cluster, action, job(cluster, name), f"c-{action.lower()}")


def passes(seconds: float) -> Act:
    """Time goes on."""

    def act(cluster: Cluster) -> None:
        cluster.now_s += seconds

    return act


def restarts(event: str, action: str = "RestartJob", **more: Any) -> JSON:
    """A policy."""
    return {"event": event, "action": action, **more}


TWO = {"queue": "q"}
STORIES: Mapping[str, Sequence[Act]] = {
    "failures use up retries": [submit("j", task("w", 2), policies=[restarts("PodFailed")], **TWO), start,
        fails("j-w-0"), start, fails("j-w-1"), start, fails("j-w-0"), start],
    "tasks, pods and partitions restart alone": [submit("j",
        task("a", 2, policies=[restarts("PodFailed", "RestartTask")]), task("b", 2),
        task("c", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
        policies=[restarts("PodFailed", "RestartPartition"), restarts("PodEvicted", "RestartPod")], maxRetry=9, **TWO),
        start, fails("j-a-0"), start, fails("j-c-3"), start, evicted("j-b-1"), start],
    "a timer of an eviction is due": [submit("j", task("w", 2),
        policies=[restarts("PodEvicted", "TerminateJob", timeout="60s")], minAvailable=1, **TWO), start,
        evicted("j-w-1"), passes(30), passes(29), passes(2), start],
    "a pod is pending for too long": [
        submit("j", task("w", 2), policies=[restarts("PodPending", "AbortJob", timeout="60s")], minAvailable=1, **TWO),
        passes(30), passes(29), passes(3), start,
    ],
    "pods that are refused come later each time": [submit("j", task("w", 1), policies=[restarts("PodFailed")],
        maxRetry=5, **TWO), refused("j-w-0"), passes(5), passes(6), refused("j-w-0"), passes(15), passes(6), start],
    "a budget of restarts is spent": [submit("j", task("w", 1), policies=[restarts("PodFailed")], maxRetry=9,
        annotations={"muster.dev/restart-budget": "2 in 1h"}, **TWO), start, fails("j-w-0"), start, passes(100),
        fails("j-w-0"), start, passes(100), fails("j-w-0"), start],
    "suspended, resumed and done": [submit("j", task("w", 2), ttlSecondsAfterFinished=50, **TWO), start,
        succeeds("j-w-0"), asked("AbortJob", "j"), start, passes(20), asked("ResumeJob", "j"), start, succeeds("j-w-1"),
        passes(49), passes(2), Cluster.deliver],
    "tasks that wait for others": [
        submit("j", task("a", 2), task("b", 1, dependsOn={"name": ["a"]}), policies=[restarts("PodFailed")],
               minAvailable=3, **TWO),
        start, start, fails("j-a-1"), start, start, asked("CompleteJob", "j"), start,
    ],
    "two Jobs of two queues": [submit("j", task("w", 2), policies=[restarts("PodFailed")], **TWO),
        submit("k", task("w", 1), policies=[restarts("PodFailed", "AbortJob")], queue="r"), start, fails("j-w-0"),
        start, fails("k-w-0"), start, asked("ResumeJob", "k"), start, asked("TerminateJob", "j"), start],
}  # fmt: skip
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def published(cluster: Cluster) -> dict[str, Any]:
    """All objects, as everybody reads them; UIDs and versions tell only how many writes there were."""
    found = {}
    for kind, objects in sorted(cluster.api.objects.items()):
        for key, obj in sorted(objects.items()):
            found[f"{kind} {key}"] = to_builtins(obj)
    return found


def rest(cluster: Cluster) -> None:
    """Everything that follows happens, with words and counters that are written when they have not changed a while."""
    for _ in range(3):
        settle(cluster)
        turn(cluster, 6, pause_s=0.5)


def lived(story: str, *, restart: Callable[[Cluster], object] = lambda _: None, first: bool = False) -> list[Any]:
    """What is published after each step of a story; a controller that starts anew does so `first`, or at rest."""
    cluster, found = quiet(), []
    settle(cluster)
    for act in STORIES[story]:
        act(cluster)
        if first:
            restart(cluster)
        rest(cluster)
        found.append(published(cluster))
        if not first:
            restart(cluster)
            writes = cluster.api.writes
            settle(cluster)
            turn(cluster, 2)
            assert cluster.api.writes == writes, "there was nothing to write"
    assert not cluster.defects
    return found


def bare(states: list[dict[str, Any]]) -> Any:
    """Without what counts the writes."""

    def without(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: without(value) for key, value in node.items() if key not in _OWN}
        return [without(each) for each in node] if isinstance(node, list) else node

    return [[(key.partition("-uid-")[0], without(value)) for key, value in state.items()] for state in states]


@pytest.mark.parametrize("story", STORIES)
def test_a_new_controller_at_rest_writes_nothing_and_goes_on(story: str) -> None:
    """After each step, and with each delay, count and budget as they were."""
    assert bare(lived(story, restart=Cluster.restart)) == bare(lived(story))


@pytest.mark.parametrize("story", STORIES)
def test_a_new_controller_does_what_the_one_before_had_not_seen(story: str) -> None:
    """Whatever has happened in between, statuses, pods and gangs come to the same."""
    again, ever = lived(story, restart=Cluster.restart, first=True), lived(story)
    for mine, other in zip(bare(again), bare(ever), strict=True):
        assert facts(mine) == facts(other)


def facts(state: list[tuple[str, Any]]) -> list[Any]:
    """Phases, counts and what is noted of Jobs, pods and gangs; times may be those of the new controller."""
    found: list[Any] = []
    for key, each in state:
        status = each.get("status", {})
        if key.startswith(f"{JOBS.group}/{JOBS.plural} "):
            phase, notes = status.get("state", {}), status.get("controlledResources", {})
            counts = {name: status.get(name, 0) for name in ("running", "pending", "succeeded", "failed", "retryCount")}
            found.append((key, phase.get("phase"), phase.get("reason"), counts, sorted(notes)))
        elif key.startswith(f"{PODS.group}/{PODS.plural} "):
            found.append((key, status.get("phase"), each["spec"].get("nodeName"), each["metadata"]["annotations"]))
        else:
            found.append((key, each.get("spec"), status.get("phase"), status.get("state")))
    return found
