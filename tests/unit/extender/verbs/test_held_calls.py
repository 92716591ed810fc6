"""Bind calls of large gangs: how many are held, and when they are let go."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, cast

import pytest
from extender_world import CPU, World
from verbs_world import Filled, error_of

from extender.barrier import Barrier
from extender.planner.reasons.verbs import VerbReason
from extender.verbs import bind
from extender.verbs.bind import LASTS, Bind
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import BorrowedSpares, node_of
from muster.api.names import EPOCH, GROUP_NAME, RUNS_ON_SPARE, VOLCANO_QUEUE

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0


class Bindings:
    """Takes bindings as the API server would."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.annotations: Mapping[str, str] = {}
        """Of the last one."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Confirm."""
        del namespace, uid
        self.annotations = annotations
        assert name not in self.nodes, "bound twice"
        self.nodes[name] = node


class Gang:
    """A gang of one-CPU pods, all pinned, and the calls that kube-scheduler makes for them."""

    def __init__(self, size: int, *, nodes: int) -> None:
        self.world = World()
        for index in range(nodes):
            self.world.node(f"node-{index:03}", cpu=100)
        self.key = self.world.gang("a", {"worker": (size, {"cpu": 1})})
        self.world.plan()
        self.bindings = Bindings()
        self.released: list[int] = []
        self.barrier = Barrier(timeout_s=DEADLINE_S, monotonic_s=time.monotonic)
        self.cluster = Filled(cast("Any", None), wake=lambda _: None)
        self.cluster.state = self.world.state
        self.bind = Bind(
            self.cluster, self.barrier, cast("Any", self.bindings),
            active=lambda: True, on_release=lambda _, bound: self.released.append(bound),
        )  # fmt: skip

    def node(self, rank: int) -> str:
        """Where the placement puts a member."""
        return node_of(self.world.state.placements[self.key], "worker", rank)

    def planned(self) -> set[int]:
        """The ranks that have a node by its placement."""
        return {slot.rank for slot, _ in slots_of(self.world.state.placements[self.key])}

    def pod(self, rank: int, epoch: int = 1, **more: Any) -> Pod:
        """A member, pinned."""
        return self.world.pod(self.key, "worker", rank, CPU, pin=self.node(rank), epoch=epoch, **more)

    def runs_once(self) -> list[Pod]:
        """All members run, and the placement is over."""
        size = self.world.job_of(self.key).spec.tasks[0].replicas
        pods = [self.world.pod(self.key, "worker", rank, CPU, node=self.node(rank), epoch=1) for rank in range(size)]
        self.world.close(self.world.plan())
        return pods

    def call(self, pod: Pod, rank: int) -> "asyncio.Task[str]":
        """kube-scheduler's bind call for it; the error, empty if it is bound."""
        return asyncio.create_task(error_of(self.bind, pod, self.node(rank)))

    async def held(self, count: int) -> None:
        """Until so many calls wait."""
        deadline = time.monotonic() + DEADLINE_S
        while self.barrier.waiting() < count:
            assert time.monotonic() < deadline, f"{self.barrier.waiting()} of {count} calls are held"
            await asyncio.sleep(0)


async def test_five_thousand_calls_are_held_until_the_last_member_comes() -> None:
    """Nobody is bound before, everybody to the node of the placement after."""
    gang = Gang(5000, nodes=50)
    pods = [gang.pod(rank) for rank in range(5000)]
    calls = [gang.call(pod, rank) for rank, pod in enumerate(pods[:-1])]
    await gang.held(4999)
    assert gang.bindings.nodes == {}
    calls.append(gang.call(pods[-1], 4999))
    assert set(await asyncio.gather(*calls)) == {""}
    assert gang.bindings.nodes == {pod.metadata.name: gang.node(rank) for rank, pod in enumerate(pods)}


async def test_a_member_that_is_done_and_gone_is_not_waited_for() -> None:
    """The gang of two starts with the remaining member."""
    gang = Gang(2, nodes=1)
    gang.world.done(gang.key, Slot("worker", 1))
    assert await gang.call(gang.pod(0), 0) == ""


@pytest.mark.parametrize(("size", "told"), [(LASTS - 1, []), (LASTS, [0])])
async def test_the_phase_binding_is_written_only_where_binding_lasts(size: int, told: list[int]) -> None:
    """Once for the gang, when it is let go; a small one is bound before anybody could read it."""
    gang = Gang(size, nodes=2)
    calls = [gang.call(gang.pod(rank), rank) for rank in range(size)]
    assert set(await asyncio.gather(*calls)) == {""}
    assert gang.released == told


async def test_a_call_waits_for_our_watch_to_show_the_pod() -> None:
    """kube-scheduler's watch may be ahead of ours; that costs no second attempt. Watches have threads of their own."""
    gang = Gang(1, nodes=1)
    pod = gang.pod(0)
    gang.world.state.on_pod(pod, None)
    call = gang.call(pod, 0)
    await asyncio.sleep(0)
    assert not gang.bindings.nodes
    gang.world.state.on_pod(None, pod)
    await asyncio.to_thread(gang.cluster.changed, "ns", None)
    assert await call == ""


async def test_a_pod_that_nobody_knows_is_refused_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone, or our watch is broken: kube-scheduler tries again."""
    monkeypatch.setattr(bind, "LAG_S", 0.05)
    gang = Gang(1, nodes=1)
    pod = gang.pod(0)
    gang.world.state.on_pod(pod, None)
    assert await gang.call(pod, 0) == VerbReason.NOT_SEEN


async def test_a_call_whose_placement_ends_while_it_is_held_is_not_bound() -> None:
    """Its gang's placement is over: it comes again."""
    gang = Gang(2, nodes=1)
    call = gang.call(gang.pod(0), 0)
    await gang.held(1)
    await asyncio.to_thread(gang.barrier.cancel_all)
    assert await call == VerbReason.PLACEMENT_OVER
    assert not gang.bindings.nodes


async def test_a_copy_of_a_member_does_not_get_the_slot_too() -> None:
    """It would take room that others hold. Of two that are held for one slot one is bound, and none later."""
    gang = Gang(2, nodes=1)
    first, other = gang.pod(0), gang.pod(1)
    copy = gang.pod(0, uid="uid-copy", name="copy")
    held = [gang.call(first, 0)]
    await gang.held(1)
    held.append(gang.call(copy, 0))
    await gang.held(2)
    held.append(gang.call(other, 1))
    assert sorted(await asyncio.gather(*held)) == ["", "", VerbReason.PLACEMENT_OVER]
    assert gang.bindings.nodes.keys() == {"copy", other.metadata.name}
    assert await gang.call(first, 0) == VerbReason.SLOT_TAKEN


async def test_a_lost_member_comes_again_though_all_others_are_lost_meanwhile() -> None:
    """Its placement has too few nodes for a start, and was made for a gang that runs: it does not wait in vain."""
    gang = Gang(3, nodes=1)
    world, pods = gang.world, gang.runs_once()
    for lost in (0, 2):
        world.notify(pods[lost], None)
    again = {"uid": "uid-again", "name": "again"}
    world.pod(gang.key, "worker", 0, CPU, gated=True, **again)
    world.plan()
    assert gang.planned() == {0, 1}
    world.notify(pods[1], None)
    assert await gang.call(gang.pod(0, epoch=2, **again), 0) == ""
    assert gang.bindings.nodes == {"again": gang.node(0)}


async def test_lost_members_wait_for_each_other_where_all_have_their_nodes() -> None:
    """A gang that has lost all its members starts whole, by the placement that has all its nodes."""
    gang = Gang(2, nodes=1)
    world, pods = gang.world, gang.runs_once()
    world.notify(pods[0], None)
    world.pod(gang.key, "worker", 0, CPU, gated=True, uid="uid-again", name="again")
    world.plan()
    world.notify(pods[1], None)
    calls = []
    for rank in range(2):
        pod = gang.pod(rank, epoch=2, uid=f"uid-again-{rank}", name=f"again-{rank}")
        calls.append(gang.call(pod, rank))
        if not rank:
            await gang.held(1)
            assert not gang.bindings.nodes
    assert await asyncio.gather(*calls) == ["", ""]


@pytest.mark.parametrize("spare", ["", "node-000", "elsewhere"])
async def test_a_binding_says_whose_member_it_is_and_if_it_runs_on_a_spare(spare: str) -> None:
    """By which placement; others who count what is bound do not have the extender's state."""
    gang = Gang(1, nodes=1)
    known = gang.world.state.placements[gang.key]
    gang.world.change(known, spec={"borrows": [BorrowedSpares("uid", "worker", spare)] if spare else []})
    assert await gang.call(gang.pod(0), 0) == ""
    marks = {GROUP_NAME: "a", EPOCH: "1"} | ({RUNS_ON_SPARE: "true"} if spare == "node-000" else {})
    assert gang.bindings.annotations == marks


async def test_a_binding_notes_the_queue_that_the_pod_does_not_name() -> None:
    """The pod is charged to it once its PodGroup is deleted, also by an extender that has started since."""
    gang = Gang(1, nodes=1)
    gang.world.change(gang.world.queue("team").state.groups[gang.key], spec={"queue": "team"})
    pod = gang.pod(0, annotations={**gang.pod(0).metadata.annotations, VOLCANO_QUEUE: "theirs"})
    assert await gang.call(pod, 0) == ""
    assert gang.bindings.annotations == {GROUP_NAME: "a", EPOCH: "1", VOLCANO_QUEUE: "team"}


async def test_plugins_and_the_queue_add_to_a_binding() -> None:
    """As of the last cycle; a queue whose pods may be evicted says so to autoscalers."""
    gang = Gang(1, nodes=1)
    session = gang.world.session()
    session.hooks.bind_request_mutate.add(lambda record, node: {"by-plugin": f"{record.name} on {node}"})
    gang.bind._session = lambda: session
    gang.world.queue("default", **{"evictable-by-autoscaler": "true"})
    pod = gang.pod(0)
    assert await gang.call(pod, 0) == ""
    assert gang.bindings.annotations["by-plugin"] == f"{pod.metadata.name} on node-000"


async def test_a_member_that_shares_a_gpu_since_it_was_planned_is_planned_again() -> None:
    """Its placement has no devices for it."""
    gang = Gang(1, nodes=1)
    pod = gang.pod(0, annotations={**gang.pod(0).metadata.annotations, "gpu-fraction": "0.5"})
    assert (await gang.call(pod, 0), gang.bindings.nodes) == (VerbReason.PLACEMENT_OVER, {})


async def test_a_member_whose_placement_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch may be late; so it is where the placement ends between two checks."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)
    gang = Gang(1, nodes=1)
    pod, node = gang.pod(0), gang.node(0)
    gang.world.state.on_placement(gang.world.state.placements[gang.key], None)
    monkeypatch.setattr(gang, "node", lambda _: node)
    assert await gang.call(pod, 0) == VerbReason.NOT_SEEN
    monkeypatch.setattr(gang.bind, "_objection", lambda _: None)
    assert await gang.call(pod, 0) == VerbReason.NOT_SEEN
