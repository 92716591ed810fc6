"""A pod that never ran is evicted without grace, unless a binding that was under way comes first."""

from collections.abc import Callable
from typing import Any

import pytest
from extender_world import World
from guarded_extender import Process, process_of
from msgspec import structs

from extender.planner.framework import decisions
from muster.api.kubernetes.core import PODS
from muster.api.muster.reason import reason_of

Before = Callable[[Process, str], None]
"""Called before each read and each eviction of the pod."""
POD, RUNNING = "a-worker-0", "a-worker-1"


def change(process: Process, **fields: Any) -> None:
    """Somebody writes into the pod."""
    process.api.change(PODS, POD, fields or {"metadata": {"labels": {str(process.api.writes): ""}}}, "ns")


def bind_before(call: str) -> Before:
    """The binding comes just before the first call of this kind."""
    done: list[str] = []

    def before(process: Process, what: str) -> None:
        if what == call and not done:
            done.append(what)
            change(process, spec={"nodeName": "node-0"})

    return before


def evict(before: Before, cycles: int = 1) -> Process:
    """Carries the evictions of a gang out that is bound in part: one member has a node, the other is pinned to one.

    So do more cycles, in the same moment.
    """
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, {"cpu": 1})})
    world.pod(key, "worker", 1, {"cpu": 1}, node="node-1", epoch=1)
    world.pod(key, "worker", 0, {"cpu": 1}, pin="node-0", epoch=1)
    gang = world.view(key)
    session = world.session()
    session.decisions = [decisions.Evict(gang, pod, reason_of("a test"), started=bool(pod.node)) for pod in gang.pods]
    with process_of(world) as process:
        read = process.api.get

        def get(*args: Any) -> Any:
            before(process, "get")
            return read(*args)

        process.api.get = get  # type: ignore[method-assign]
        process.api.meddle = lambda sent: before(process, "evict") if sent.key == f"ns/{POD}" else None
        for _ in range(cycles):
            process.committer._evictions.delete_all(session)
    return process


def test_a_pod_without_a_node_goes_at_once() -> None:
    """Nothing of it runs; the member that does goes after it, and has its time."""
    process = evict(lambda *_: None)
    assert [(each.key, each.grace_period_s) for each in process.api.sent] == [(f"ns/{POD}", 0), (f"ns/{RUNNING}", None)]
    assert process.events == [f"a Evict: {RUNNING}: a test", "a Evicted: 1 pod was evicted: a test"]


@pytest.mark.parametrize("call", ["get", "evict"])
def test_a_pod_that_is_bound_meanwhile_stays_and_is_known_as_bound(call: str) -> None:
    """Its kubelet may have started it, and a later cycle decides about it anew; nothing was written into it."""
    process = evict(bind_before(call))
    assert sorted(record.node for record in process.world.state.pods.values()) == ["node-0", "node-1"]
    assert process.done("evict") == [], "the gang is whole now"


@pytest.mark.parametrize("changes", [1, 2])
def test_a_pod_whose_status_changes_meanwhile_goes_with_the_next_cycle(changes: int) -> None:
    """kube-scheduler has just said that it finds no node for it; this costs the gang no time."""
    left = [changes]

    def said(process: Process, call: str) -> None:
        if call == "evict" and left[0]:
            left[0] -= 1
            change(process)

    assert evict(said, cycles=changes).done("evict") == []
    left[0] = changes
    assert evict(said, cycles=changes + 1).done("evict") == [POD, RUNNING]


def test_another_pod_of_that_name_stays() -> None:
    """It is the successor of one that is gone."""

    def replaced(process: Process, call: str) -> None:
        assert call == "get"
        found = process.api.kind(PODS)[f"ns/{POD}"]
        metadata = structs.replace(found.metadata, uid="another")
        process.api.kind(PODS)[f"ns/{POD}"] = structs.replace(found, metadata=metadata)

    process = evict(replaced)
    assert process.done("evict") == []
    assert "another" not in process.world.state.pods, "only the watch tells of it"


def test_a_pod_that_is_gone_is_not_asked_for_again() -> None:
    """The watch is late; the one that runs goes with the first of the cycles."""
    asked = []

    def gone(process: Process, call: str) -> None:
        asked.append(call)
        process.api.kind(PODS).pop(f"ns/{POD}", None)

    process = evict(gone, cycles=2)
    assert (asked, process.done("evict")) == (["get"], [RUNNING])
