"""Gangs are let in by amounts; what can change on nodes is told of pods that exist."""

from collections.abc import Mapping
from typing import Any

import pytest
from extender_world import GPU8, World, of, only, slots

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api.kubernetes.core import Taint

PORT = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


def entered(session: Session) -> bool:
    """Whether the only gang was let in."""
    return bool(of(session, decisions.AdmitGang))


def test_minimums_per_task_that_min_member_does_not_cover_keep_nobody_out() -> None:
    """MinAvailable 4 of one task of 8 with a host port: four nodes are enough."""
    world = World().nodes(4)
    world.gang("a", {"worker": (8, {})}, min_member=4, phase="Pending", spec=PORT)
    session = world.plan()
    assert entered(session)
    assert len(slots(only(session, decisions.Place))["worker"]) == 4


def test_minimums_per_task_that_min_member_does_not_cover_are_not_counted_for_amounts_either() -> None:
    """One of the two tasks could never run whole."""
    world = World().nodes(2)
    world.gang("a", {"master": (1, {"cpu": 1}), "worker": (8, GPU8)}, min_member=2, phase="Pending")
    assert entered(world.plan())


@pytest.mark.parametrize(("node", "words"), [
    ({"unschedulable": True}, "2 cordoned"),
    ({"taints": [Taint(key="own", value="x", effect="NoSchedule")]}, "2 have the taint own=x"),
    ({"labels": {"pool": "other"}}, "2 do not match the node selector"),
])  # fmt: skip
def test_a_gang_that_no_node_takes_now_gets_its_pods_and_the_reason(node: Mapping[str, Any], words: str) -> None:
    """Somebody sees that it waits, and can uncordon a node or add one."""
    world = World().nodes(2, **node)
    spec = {"nodeSelector": {"pool": "mine"}} if "labels" in node else {}
    world.gang("a", {"worker": (2, GPU8)}, phase="Pending", spec=spec)
    session = world.plan()
    assert entered(session)
    assert words in only(session, decisions.Unschedulable).message
    assert not of(session, decisions.Place)


def test_a_gang_that_is_larger_than_the_cluster_is_kept_out_whatever_its_nodes_say() -> None:
    """Cordoned nodes count: they may come back."""
    world = World().nodes(2, unschedulable=True)
    world.gang("a", {"worker": (3, GPU8)}, phase="Pending")
    session = world.plan()
    assert not entered(session)
    [waits] = of(session, decisions.Unschedulable)
    assert waits.message == (
        "worker: 3 pods must start together, but even an empty cluster has room for 2 of them; "
        "1 more node with 8 free nvidia.com/gpu is needed"
    )


@pytest.mark.parametrize(("state", "uid", "entering"), [("Closing", "u", 1), ("Closing", "v", 0), ("Closed", "u", 0)])
def test_a_workload_that_is_updated_goes_on_in_a_queue_that_is_closing(state: str, uid: str, entering: int) -> None:
    """Its new pods are let in where its former ones still run; those of another workload are not."""
    world = World().nodes(2).queue("shut", state)
    old = world.gang("old", {"worker": (1, GPU8)}, queue="shut", phase="Running")
    world.pod(old, "worker", 0, GPU8, node="node-0", phase="Running")
    new = world.gang("new", {"worker": (1, GPU8)}, queue="shut", phase="Pending")
    for key, above in ((old, "u"), (new, uid)):
        world.change(world.state.groups[key], annotations={"muster.dev/workload": f"apps/v1/Deployment/web/{above}"})
    assert [each.gang.key for each in of(world.plan(), decisions.AdmitGang)] == [new] * entering
