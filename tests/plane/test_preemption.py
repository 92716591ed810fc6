"""Room that is made: by preemption and by moves, within disruption budgets, and with a planner that is killed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, History, runs
from lives import Recorder
from priorities import client_of, gang, placement_of

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.quota import BUDGETS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from musterctl.plane.plane import Plane

WaitFor = Callable[..., Any]
CONFIG = """
actions: enqueue, allocate, consolidate, reclaim, preempt
tiers:
  - plugins: [{name: gang}, {name: priority}, {name: proportion}, {name: predicates}, {name: minruntime}]
"""
NOT_YET_S = 4.0
PLAIN_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
FORBIDDEN = "keep-everybody"
_ADMISSION = "admissionregistration.k8s.io"
POLICIES: Resource[Object] = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", Object, namespaced=False
)
BINDINGS: Resource[Object] = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", Object, namespaced=False
)
pytestmark = [pytest.mark.plane, pytest.mark.alone(planning_config=CONFIG)]


@pytest.fixture
def client(plane: Plane, namespace: str) -> Iterator[Client]:
    """A client, with two priority classes."""
    yield from client_of(plane, namespace)


def submit(
    client: Client,
    namespace: str,
    name: str,
    replicas: int,
    priority: str,
    gpus: int = 8,
    queue: str = "default",
    *,
    restarts: bool = True,
) -> None:
    """A gang of one pod per node (of 8 GPUs), which starts again when it loses pods, or has only these made anew."""
    manifest = gang(name, namespace, priority, replicas=replicas, gpus=gpus, queue=queue, restarts=restarts)
    manifest["spec"]["tasks"][0]["template"]["metadata"]["labels"] = {"gang": name}
    client.create(JOBS, manifest, namespace)


def make_queues(client: Client) -> None:
    """Two queues, each of which deserves half of the plane."""
    kind = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}
    for name in ("borrower", "lender"):
        spec = {"weight": 1, "deserved": {"nvidia.com/gpu": 32}}
        client.apply(QUEUES, {**kind, "metadata": {"name": name}, "spec": spec})


def running(client: Client, namespace: str, name: str) -> int:
    """Pods of a Job of Kubernetes' own that run and are to stay."""
    pods = (one for one in client.list(PODS, namespace) if one.metadata.name.startswith(f"{name}-"))
    return sum(one.status.phase == "Running" and not one.metadata.deletion_timestamp for one in pods)


def lost(history: History, gang: str) -> int:
    """Pods of a gang that held a node and are gone."""
    return sum(life.bound is not None and life.gone is not None for life in history.of(f"{gang}-"))


def test_a_gang_of_high_priority_has_one_victim(
    plane: Plane, client: Client, namespace: str, wait_for: WaitFor
) -> None:
    """Four gangs of two nodes run; one of them goes as a whole, the others see nothing of it."""
    assert plane
    with History(client, namespace) as history:
        for number in range(4):
            submit(client, namespace, f"low{number}", 2, "low")
        for number in range(4):
            wait_for(lambda number=number: runs(client, namespace, f"low{number}", 2), 60, f"low{number}")
        submit(client, namespace, "high", 2, "high")
        wait_for(lambda: runs(client, namespace, "high", 2), RECOVERY_S, "the gang of high priority")
        assert sorted(lost(history, f"low{number}") for number in range(4)) == [0, 0, 0, 2]
        assert history.half_placed_s("high-", 2) < 10


@pytest.mark.slow
def test_a_job_of_kubernetes_comes_back_whole(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """More of its pods are evicted than its backoffLimit allows to fail.

    The Job controller waits 10 s before it makes pods again, twice as long for each further one: for 3 pods 40 s.
    """
    pod = {
        "restartPolicy": "Never",
        "priorityClassName": "low",
        "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}],
    }
    labels = {names.QUEUE: "default"}
    spec = {"parallelism": 3, "completions": 3, "backoffLimit": 2, "template": {"spec": pod}}
    client.create(PLAIN_JOBS, {"metadata": {"name": "plain", "labels": labels}, "spec": spec}, namespace)
    wait_for(lambda: running(client, namespace, "plain") == 3, 60, "the Job")
    submit(client, namespace, "high", 8, "high")
    wait_for(lambda: runs(client, namespace, "high", 8), RECOVERY_S, "the gang of high priority")
    client.delete(JOBS, "high", namespace)
    wait_for(lambda: running(client, namespace, "plain") == 3, 120, "the Job again")
    status = client.get(PLAIN_JOBS, "plain", namespace)["status"]
    assert not [one for one in status.get("conditions", []) if one["type"] in {"Failed", "FailureTarget"}]
    assert not status.get("failed")


@pytest.mark.slow
def test_small_gangs_move_for_a_large_one(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """A small gang is on every node; four whole nodes are there once four of them have moved to the others."""
    assert plane
    with History(client, namespace) as history:
        submit(client, namespace, "wide", 8, "low", gpus=5)
        wait_for(lambda: runs(client, namespace, "wide", 8), 60, "wide")
        for number in range(8):
            submit(client, namespace, f"small{number}", 1, "low", gpus=3, restarts=False)  # a move must use up no retry
        for number in range(8):
            wait_for(lambda number=number: runs(client, namespace, f"small{number}", 1), 60, f"small{number}")
        client.delete(JOBS, "wide", namespace)
        wait_for(lambda: not pods_of(client, namespace, "wide"), 60, "room on every node")
        submit(client, namespace, "whole", 4, "low")
        wait_for(lambda: runs(client, namespace, "whole", 4), RECOVERY_S, "whole")
        for number in range(8):
            wait_for(lambda number=number: runs(client, namespace, f"small{number}", 1), 60, f"small{number} again")
        assert sum(lost(history, f"small{number}") for number in range(8)) == 4


def test_a_disruption_budget_is_respected(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Nobody goes while the budget forbids it; the gang starts as soon as the budget is gone."""
    assert plane
    with History(client, namespace) as history:
        submit(client, namespace, "low", 8, "low")
        wait_for(lambda: runs(client, namespace, "low", 8), 60, "low")
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": namespace},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"gang": "low"}}},
        }
        client.create(BUDGETS, budget, namespace)
        submit(client, namespace, "high", 2, "high")
        time.sleep(NOT_YET_S)
        assert lost(history, "low") == 0
        client.delete(BUDGETS, "all", namespace)
        wait_for(lambda: runs(client, namespace, "high", 2), RECOVERY_S, "high")
        assert lost(history, "low") == 8


def test_a_queue_takes_back_what_it_lent(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """One queue uses the whole cluster, and another deserves half of it: whole gangs go, and the asker is whole."""
    assert plane
    make_queues(client)
    with History(client, namespace) as history:
        for number in range(4):
            submit(client, namespace, f"lent{number}", 2, "low", queue="borrower")
        for number in range(4):
            wait_for(lambda number=number: runs(client, namespace, f"lent{number}", 2), 60, f"lent{number}")
        submit(client, namespace, "mine", 4, "low", queue="lender")
        wait_for(lambda: runs(client, namespace, "mine", 4), RECOVERY_S, "mine")
        assert sorted(lost(history, f"lent{number}") for number in range(4)) == [0, 0, 2, 2]
        assert history.half_placed_s("mine-", 4) < 10
        submit(client, namespace, "more", 1, "low", queue="lender")
        time.sleep(NOT_YET_S)
        assert sorted(lost(history, f"lent{number}") for number in range(4)) == [0, 0, 2, 2], "it has its share"


@contextmanager
def refused_evictions(client: Client, wait_for: WaitFor, of: str = "true") -> Iterator[Callable[[], None]]:
    """The API server refuses evictions of some pods until the function is called; `of` is a condition in CEL."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"!({of})", "message": "not now"}],
    }
    binding = {"policyName": FORBIDDEN, "validationActions": ["Deny"]}

    def refused() -> bool:
        """The policy is asked before the pod is looked for."""
        try:
            client.evict("default", "nobody-1", "nobody")
        except NotFound:
            return False
        except APIError:
            return True
        return False

    def allow() -> None:
        for res in (BINDINGS, POLICIES):
            with suppress(NotFound):
                client.delete(res, FORBIDDEN)

    try:
        for res, spec in ((POLICIES, policy), (BINDINGS, binding)):
            body = {"apiVersion": f"{_ADMISSION}/v1", "kind": res.kind, "metadata": {"name": FORBIDDEN}, "spec": spec}
            client.create(res, body)
        wait_for(refused, 30, "the policy to be in force")
        yield allow
    finally:
        allow()


@pytest.fixture
def nobody_is_evicted(plane: Plane, wait_for: WaitFor) -> Iterator[Callable[[], None]]:
    """The API server refuses evictions until the function is called."""
    with refused_evictions(plane.client(), wait_for) as allow:
        yield allow


def _full(client: Client, namespace: str, wait_for: WaitFor, queue: str = "default") -> list[str]:
    """Four gangs of two nodes run; their names."""
    names = [f"low{number}" for number in range(4)]
    for name in names:
        submit(client, namespace, name, 2, "low", queue=queue)
    for name in names:
        wait_for(lambda name=name: runs(client, namespace, name, 2), 60, name)
    return names


def to_preempt(client: Client, namespace: str, wait_for: WaitFor) -> tuple[list[str], int]:
    """A gang of high priority asks; who runs, and how many pods have to go."""
    names = _full(client, namespace, wait_for)
    submit(client, namespace, "asker", 2, "high")
    return names, 2


def to_reclaim(client: Client, namespace: str, wait_for: WaitFor) -> tuple[list[str], int]:
    """A gang of a queue that deserves half of the plane asks, which another queue uses."""
    make_queues(client)
    names = _full(client, namespace, wait_for, "borrower")
    submit(client, namespace, "asker", 4, "low", queue="lender")
    return names, 4


def to_consolidate(client: Client, namespace: str, wait_for: WaitFor) -> tuple[list[str], int]:
    """A gang asks for four whole nodes, and on each node there is a small gang."""
    submit(client, namespace, "wide", 8, "low", gpus=5)
    wait_for(lambda: runs(client, namespace, "wide", 8), 60, "wide")
    names = [f"small{number}" for number in range(8)]
    for name in names:
        submit(client, namespace, name, 1, "low", gpus=3)
    for name in names:
        wait_for(lambda name=name: runs(client, namespace, name, 1), 60, name)
    client.delete(JOBS, "wide", namespace)
    wait_for(lambda: not pods_of(client, namespace, "wide"), 60, "room on every node")
    submit(client, namespace, "asker", 4, "low")
    return names, 4


@pytest.mark.long
@pytest.mark.parametrize("ask", [to_preempt, to_reclaim, to_consolidate])
def test_a_planner_that_is_killed_before_the_evictions_goes_on_with_them(
    plane: Plane,
    client: Client,
    namespace: str,
    wait_for: WaitFor,
    nobody_is_evicted: Callable[[], None],
    ask: Callable[..., tuple[list[str], int]],
) -> None:
    """The placement stands and keeps its room; after the restart the same victims go, and nobody else."""
    with History(client, namespace) as history:
        others, pods = ask(client, namespace, wait_for)
        wait_for(lambda: (seen := placement_of(client, namespace, "asker")) and seen.spec.victims, 30, "a placement")
        before = placement_of(client, namespace, "asker")
        assert before is not None
        plane.part("extender").kill()
        assert not any(lost(history, name) for name in others)
        nobody_is_evicted()
        plane.part("extender").start()
        size = sum(run.count for pod_set in before.spec.pod_sets for run in pod_set.runs)
        wait_for(lambda: runs(client, namespace, "asker", size), RECOVERY_S, "asker")
        after = placement_of(client, namespace, "asker")
        assert after is not None
        assert after.spec.epoch == before.spec.epoch
        assert sum(lost(history, name) for name in others) == pods


@pytest.mark.long
@pytest.mark.parametrize("owner", ["restarts its gang", "makes lost pods anew"])
def test_a_planner_that_is_killed_between_two_evictions_goes_on_with_the_second(
    plane: Plane, client: Client, namespace: str, wait_for: WaitFor, owner: str
) -> None:
    """One member of a victim has gone when it dies: after the restart the same gang gives the rest, and nobody else."""
    names = [f"low{number}" for number in range(4)]
    for name in names:
        submit(client, namespace, name, 2, "low", restarts=owner == "restarts its gang")
    for name in names:
        wait_for(lambda name=name: runs(client, namespace, name, 2), 60, name)
    with (
        History(client, namespace) as history,
        Recorder(client, namespace) as recorder,
        refused_evictions(client, wait_for, "object.metadata.name.endsWith('-1')") as allow,
    ):
        submit(client, namespace, "asker", 2, "high")
        wait_for(lambda: sum(lost(history, name) for name in names), 30, "the first eviction")
        plane.part("extender").kill()
        before = placement_of(client, namespace, "asker")
        assert before is not None
        assert len(before.spec.victims) == 2
        assert len(recorder.story().evicted) == 1
        allow()
        plane.part("extender").start()
        wait_for(lambda: runs(client, namespace, "asker", 2), RECOVERY_S, "asker")
        after = placement_of(client, namespace, "asker")
        assert after is not None
        assert after.spec.epoch == before.spec.epoch
        assert sorted(lost(history, name) for name in names) == [0, 0, 0, 2]
        assert recorder.story().evicted <= {victim.uid for victim in before.spec.victims}
        assert recorder.story().in_vain() == {}
        assert history.half_placed_s("asker-", 2) < 10


@pytest.mark.long
def test_a_planner_killed_as_victims_end_keeps_room(
    plane: Plane, client: Client, namespace: str, wait_for: WaitFor
) -> None:
    """Victims end slowly; whoever plans next waits for them, evicts nobody else, and the gang starts in one piece."""
    with History(client, namespace) as history:
        submit(client, namespace, "low", 8, "low")
        wait_for(lambda: runs(client, namespace, "low", 8), 60, "low")
        pods = client.list(PODS, namespace)
        for pod in pods:
            client.merge_patch(PODS, pod.metadata.name, {"metadata": {"finalizers": ["example.com/slow"]}}, namespace)
        submit(client, namespace, "high", 8, "high")
        wait_for(lambda: all(pod.metadata.deletion_timestamp for pod in pods_of(client, namespace, "low")), 30, "marks")
        plane.part("extender").kill()
        plane.part("extender").start()
        for pod in pods:
            client.merge_patch(PODS, pod.metadata.name, {"metadata": {"finalizers": None}}, namespace)
        wait_for(lambda: runs(client, namespace, "high", 8), RECOVERY_S, "high")
        assert lost(history, "low") == 8
        assert history.half_placed_s("high-", 8) < 10


def pods_of(client: Client, namespace: str, gang: str) -> list[Any]:
    """The pods of a Job."""
    return [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{gang}-")]
