"""Strict order, and nodes that are kept after a long wait although nobody knows when they come free; on a plane."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, History, job, runs
from planes import drop_queue

from muster.api.kubernetes.core import NODES
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

PATIENCE_S = 15
CONFIG = f"""
actions: enqueue, allocate
tiers:
  - plugins:
      - {{name: gang}}
      - {{name: priority}}
      - {{name: proportion}}
      - {{name: predicates}}
      - name: reservations
        arguments: {{patience: {PATIENCE_S}s}}
"""
pytestmark = [pytest.mark.plane, pytest.mark.long, pytest.mark.alone(planning_config=CONFIG)]


def submit(
    client: Client, namespace: str, name: str, replicas: int, *, run_s: float | None = None, queue: str = "default"
) -> None:
    """A Job whose pods take a whole node each, and do not say how long they run."""
    manifest = job(name, namespace, replicas=replicas, run_s=run_s)
    manifest["spec"]["queue"] = queue
    client.create(JOBS, manifest, namespace)


def placement(client: Client, namespace: str, name: str) -> Placement | None:
    """The placement of a Job's gang."""
    found = client.list(PLACEMENTS, namespace)
    return next((each for each in found if each.metadata.name.startswith(f"{name}-")), None)


def waits_for(client: Client, namespace: str, name: str) -> str:
    """The reason with which a Job's gang waits, as its PodGroup says."""
    groups = client.list(POD_GROUPS, namespace)
    group = next((each for each in groups if each.metadata.name.startswith(f"{name}-")), None)
    told = [each.reason for each in group.status.conditions if each.type == "Unschedulable"] if group else []
    return told[0] if told else ""


def came(client: Client, namespace: str, name: str) -> float:
    """When a Job's PodGroup was made, which the API server tells to the second."""
    group = next(each for each in client.list(POD_GROUPS, namespace) if each.metadata.name.startswith(f"{name}-"))
    return parse_time(group.metadata.creation_timestamp) or 0.0


def test_nobody_of_a_strict_queue_overtakes_its_head(
    plane: Plane, idle_client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Nor after the planner was killed; who is in another queue starts, and at last head and followers do in order."""
    client = idle_client
    everything = len(client.list(NODES))
    meta = {"name": f"{namespace}-strict", "annotations": {"muster.dev/reservations": "strict"}}
    client.create(QUEUES, {"metadata": meta, "spec": {"weight": 1}})
    queue = meta["name"]
    with History(client, namespace) as history:
        submit(client, namespace, "old", everything - 2)
        wait_for(lambda: runs(client, namespace, "old", everything - 2), RECOVERY_S, "the first gang to run")
        submit(client, namespace, "head", everything, run_s=2, queue=str(queue))
        wait_for(lambda: waits_for(client, namespace, "head") == "NotEnoughResources", 30, "the head to wait")
        wait_for(lambda: time.time() > came(client, namespace, "head") + 1, 5, "a later second than the head's")
        submit(client, namespace, "follower", 1, run_s=2, queue=str(queue))
        wait_for(lambda: waits_for(client, namespace, "follower") == "StrictOrder", 30, "the follower to wait")
        plane.part("extender").kill()
        plane.part("extender").start()
        submit(client, namespace, "other", 1, run_s=2)
        wait_for(lambda: any(life.bound for life in history.of("other-")), RECOVERY_S, "the other queue's gang")
        assert not any(life.bound for life in history.of("follower-"))
        client.delete(JOBS, "old", namespace)
        wait_for(lambda: any(life.bound for life in history.of("follower-")), RECOVERY_S, "the follower")
        assert history.end_of("head-") < history.start_of("follower-")
    client.delete(JOBS, "head", namespace)
    client.delete(JOBS, "follower", namespace)
    drop_queue(client, str(queue))


def test_a_large_gang_that_has_waited_for_long_has_nodes_kept_for_it_although_no_end_is_known(
    plane: Plane, idle_client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Small gangs come without end, and would take each node as it comes free; the planner is killed once."""
    client = idle_client
    everything = len(client.list(NODES))
    submitted = 0

    def more_wait() -> None:
        """At any time four small gangs are waiting."""
        nonlocal submitted
        waiting = [each for each in client.list(JOBS, namespace) if each.status.state.phase in {"", "Pending"}]
        for _ in range(len(waiting), 5):
            submit(client, namespace, f"small{submitted}", 1, run_s=10 + submitted % 5)
            submitted += 1

    def reserved() -> bool:
        more_wait()
        found = placement(client, namespace, "big")
        return found is not None and found.status.phase == "Reserved"

    def started() -> bool:
        more_wait()
        return all(life.bound for life in history.of("big-")) and len(history.of("big-")) == everything

    with History(client, namespace) as history:
        for number in range(everything):
            submit(client, namespace, f"first{number}", 1, run_s=10 + number)
        wait_for(lambda: all(runs_now(history, f"first{number}-") for number in range(everything)), 60, "full nodes")
        submit(client, namespace, "big", everything, run_s=1)
        wait_for(reserved, PATIENCE_S + 60, "nodes to be kept")
        overtook = sum(life.bound is not None for life in history.of("small"))
        kept = placement(client, namespace, "big")
        assert kept is not None
        assert not kept.status.expected_at
        plane.part("extender").kill()
        plane.part("extender").start()
        wait_for(started, RECOVERY_S, "the large gang to start")
        begun = history.start_of("big-")
        late = [life for life in history.of("small") if life.bound is not None and life.bound < begun]
        assert overtook
        assert len(late) <= overtook + everything, "only so many may have been placed when nodes were reserved"


def runs_now(history: History, gang: str) -> bool:
    """Whether a pod of the gang has a node, or had one."""
    return any(life.bound for life in history.of(gang))
