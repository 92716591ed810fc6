"""Bind calls of large gangs: how many are held, and when they are let go."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import pytest
from extender_world import World

from extender.actions.inflight import MAX_SEATS, RESERVE
from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.main import THREADS
from extender.verbs import bind
from extender.verbs.bind import MAX_CALLS, MAX_HELD, Bind
from extender.verbs.reasons import Reason
from muster.api.core import Pod
from muster.api.extender import ExtenderBindingArgs
from muster.api.placement import node_of

DEADLINE_S = 60.0


class Bindings:
    """Takes bindings as the API server would."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self._lock = threading.Lock()

    def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Confirm."""
        del namespace, uid, annotations
        with self._lock:
            assert name not in self.nodes, "bound twice"
            self.nodes[name] = node


class Filled(Cluster):
    """A cluster whose caches are filled by hand."""

    synced = True  # type: ignore[assignment]


class Gang:
    """A gang of one-CPU pods, all pinned, and the calls that kube-scheduler makes for them."""

    def __init__(self, size: int, *, nodes: int, most_held: int = 1000, most_calls: int = 2300) -> None:
        self.world = World()
        for index in range(nodes):
            self.world.node(f"node-{index:03}", cpu=100)
        self.key = self.world.gang("a", {"worker": (size, {"cpu": 1})})
        self.world.plan()
        self.bindings = Bindings()
        self.barrier = Barrier(timeout_s=DEADLINE_S, monotonic_s=time.monotonic)
        self.cluster = Filled(cast("Any", None), wake=lambda: None)
        self.cluster.state = self.world.state
        self.bind = Bind(
            self.cluster, self.barrier, cast("Any", self.bindings),
            active=lambda: True, on_release=lambda *_: None, most_held=most_held,
            most_calls=most_calls,
        )  # fmt: skip
        self.pool = ThreadPoolExecutor(size + 1)

    def node(self, rank: int) -> str:
        """Where the placement puts a member."""
        node = node_of(self.world.state.placements[self.key], "worker", rank)
        assert node
        return node

    def pod(self, rank: int) -> Pod:
        """A member, pinned."""
        return self.world.pod(self.key, "worker", rank, {"cpu": 1}, pin=self.node(rank), epoch=1)

    def call(self, pod: Pod, rank: int) -> "Future[str]":
        """kube-scheduler's bind call for it; the error, empty if it is bound."""
        meta = pod.metadata
        args = ExtenderBindingArgs(
            pod_name=meta.name, pod_namespace=meta.namespace, pod_uid=meta.uid, node=self.node(rank)
        )
        return self.pool.submit(lambda: self.bind(args).error)

    def wait_until_held(self, count: int) -> None:
        """Until so many calls wait."""
        deadline = time.monotonic() + DEADLINE_S
        uid = self.world.state.groups[self.key].metadata.uid
        while self.barrier.held(uid) < count:
            assert time.monotonic() < deadline, f"{self.barrier.held(uid)} of {count} calls are held"
            threading.Event().wait(0.005)


@pytest.fixture
def gang_of() -> Any:
    """Gangs whose threads end with the test."""
    gangs: list[Gang] = []

    def make(size: int, **more: Any) -> Gang:
        gangs.append(Gang(size, **more))
        return gangs[-1]

    yield make
    for gang in gangs:
        gang.barrier.cancel_all()
        gang.pool.shutdown()


def test_a_thousand_calls_are_held_until_the_last_member_comes(gang_of: Callable[..., Gang]) -> None:
    """Nobody is bound before, everybody to the node of the placement after."""
    gang = gang_of(1000, nodes=10)
    pods = [gang.pod(rank) for rank in range(1000)]
    calls = [gang.call(pod, rank) for rank, pod in enumerate(pods[:999])]
    gang.wait_until_held(999)
    assert gang.bindings.nodes == {}
    calls.append(gang.call(pods[999], 999))
    assert {call.result(DEADLINE_S) for call in calls} == {""}
    assert gang.bindings.nodes == {pod.metadata.name: gang.node(rank) for rank, pod in enumerate(pods)}


def test_a_gang_larger_than_can_be_held_is_let_through_in_parts(gang_of: Callable[..., Gang]) -> None:
    """Four may be held, six must start: four together, then the other two together."""
    gang = gang_of(6, nodes=1, most_held=4)
    pods = [gang.pod(rank) for rank in range(6)]
    first = [gang.call(pod, rank) for rank, pod in enumerate(pods[:4])]
    assert {call.result(DEADLINE_S) for call in first} == {""}
    fifth = gang.call(pods[4], 4)
    gang.wait_until_held(1)
    assert len(gang.bindings.nodes) == 4
    sixth = gang.call(pods[5], 5)
    assert {fifth.result(DEADLINE_S), sixth.result(DEADLINE_S)} == {""}


def test_a_call_waits_for_our_watch_to_show_the_pod(gang_of: Callable[..., Gang]) -> None:
    """kube-scheduler's watch may be ahead of ours; that costs no second attempt."""
    gang = gang_of(1, nodes=1)
    pod = gang.pod(0)
    gang.world.state.on_pod(pod, None)
    call = gang.call(pod, 0)
    assert not gang.bindings.nodes
    gang.world.state.on_pod(None, pod)
    gang.cluster.changed()
    assert call.result(DEADLINE_S) == ""


def test_a_pod_that_nobody_knows_is_refused_in_the_end(
    gang_of: Callable[..., Gang], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone, or our watch is broken: kube-scheduler tries again."""
    monkeypatch.setattr(bind, "LAG_S", 0.05)
    gang = gang_of(1, nodes=1)
    pod = gang.pod(0)
    gang.world.state.on_pod(pod, None)
    assert gang.call(pod, 0).result(DEADLINE_S) == Reason.NOT_SEEN


def test_bind_calls_never_take_all_threads(gang_of: Callable[..., Gang]) -> None:
    """Two may be worked on and are held; the third is told to come again at once, and does so when they are gone."""
    assert MAX_CALLS + 100 <= THREADS
    assert MAX_CALLS >= 2 * MAX_HELD + MAX_SEATS + RESERVE
    gang = gang_of(3, nodes=1, most_calls=2)
    pods = [gang.pod(rank) for rank in range(3)]
    held = [gang.call(pod, rank) for rank, pod in enumerate(pods[:2])]
    gang.wait_until_held(2)
    assert gang.call(pods[2], 2).result(DEADLINE_S) == Reason.TOO_MANY_CALLS
    gang.barrier.cancel_all()
    assert {call.result(DEADLINE_S) for call in held} == {Reason.PLACEMENT_OVER}
    again = gang.call(pods[2], 2)
    gang.wait_until_held(1)
    assert not again.done()


def test_a_copy_of_a_member_does_not_get_the_seat_too(gang_of: Callable[..., Gang]) -> None:
    """It would take room that others hold. Of two that are held for one seat one is bound, and none later."""
    gang = gang_of(2, nodes=1)
    first, other = gang.pod(0), gang.pod(1)
    copy = gang.world.pod(gang.key, "worker", 0, {"cpu": 1}, pin=gang.node(0), epoch=1, uid="uid-copy", name="copy")
    held = [gang.call(first, 0)]
    gang.wait_until_held(1)
    held.append(gang.call(copy, 0))
    gang.wait_until_held(2)
    held.append(gang.call(other, 1))
    assert sorted(call.result(DEADLINE_S) for call in held) == ["", "", Reason.PLACEMENT_OVER]
    assert gang.bindings.nodes.keys() == {"copy", other.metadata.name}
    assert gang.call(first, 0).result(DEADLINE_S) == Reason.SEAT_TAKEN
