"""Gangs that keep spares, and gangs that run on them, while nodes die and come back: what holds at every moment."""

from typing import Any

from extender_world import World, of
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Recall
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.ledgerentry import EntryKind
from muster.api import names
from muster.api.muster.noderuns import slots_of
from muster.resources.vector import GPU

GPU4 = {GPU: 4}
NODES = 7
STEPS = st.lists(st.one_of(st.tuples(st.just("gang"), st.integers(1, 4), st.integers(0, 2), st.booleans()),
                           st.tuples(st.just("die"), st.integers(0, NODES - 1)),
                           st.tuples(st.just("return"), st.integers(0, NODES - 1)),
                           st.tuples(st.just("end"), st.integers(0, 5))), max_size=20)  # fmt: skip


class Cluster:
    """A world whose pods are made, bound and evicted as soon as that is decided."""

    def __init__(self) -> None:
        self.world = World()
        self.actions: list[Any] = [self.world.progress, Enqueue(), Allocate(), Recall()]
        for number in range(NODES):
            self.world.node(f"node-{number}")
        self.gangs: list[str] = []
        self.pods: dict[tuple[str, int], str] = {}
        """Gang and rank → UID of the pod that is there."""
        self.made = 0
        self.moved = 0
        """Evictions for spares."""

    def step(self, what: tuple[Any, ...]) -> None:
        """One event."""
        world = self.world
        if what[0] == "gang":
            _, size, spares, borrows = what
            key = world.gang(f"g{len(self.gangs)}", {"worker": (size, GPU4)})
            said = {names.SPARES: str(spares), names.BORROWS: "true" if borrows else "false"}
            world.change(world.state.groups[key], annotations=said)
            self.gangs.append(key)
            for rank in range(size):
                self.make(key, rank)
        elif what[0] == "die":
            self.die(f"node-{what[1]}")
        elif what[0] == "return" and f"node-{what[1]}" not in world.state.nodes.index:
            world.node(f"node-{what[1]}")
        elif what[0] == "end" and what[1] < len(self.gangs):
            self.end(self.gangs[what[1]])

    def make(self, key: str, rank: int) -> None:
        """The owner makes a pod."""
        self.made += 1
        uid = self.pods[key, rank] = f"pod-{self.made}"
        self.world.pod(key, "worker", rank, GPU4, gated=True, uid=uid, name=uid)

    def lose(self, key: str, rank: int) -> None:
        """A pod goes, and its owner makes another one."""
        self.world.state.on_pod(self.world.state.pod_objects[self.pods[key, rank]], None)
        self.make(key, rank)

    def die(self, node: str) -> None:
        """A node goes with all its pods."""
        column = self.world.state.nodes.index.get(node)
        if column is None:
            return
        self.world.state.on_node(self.world.state.nodes.nodes[column], None)
        for (key, rank), uid in list(self.pods.items()):
            if self.world.state.pods[uid].node == node:
                self.lose(key, rank)

    def end(self, key: str) -> None:
        """All members have ended, and the PodGroup goes."""
        group = self.world.state.groups.get(key)
        for of_gang, rank in list(self.pods):
            if of_gang == key:
                self.world.state.on_pod(self.world.state.pod_objects[self.pods.pop((key, rank))], None)
        if group is not None:
            self.world.state.on_pod_group(group, None)

    def cycle(self) -> None:
        """The planner decides, and all of that is done."""
        world = self.world
        session = world.session(*self.actions)
        world.close(session)
        for place in of(session, decisions.Place):
            world.place(place)
        world.keep_spares(session)
        world.room_is_there(session)
        for evict in of(session, decisions.Evict):
            self.gone(evict.pod.uid)
        for room in of(session, decisions.MakeRoom):
            self.moved += 1
            for _, pod in room.victims:
                self.gone(pod.uid)
        self.bind()
        world.now += 1

    def gone(self, uid: str) -> None:
        """A pod was evicted."""
        for (key, rank), known in list(self.pods.items()):
            if known == uid:
                self.lose(key, rank)

    def bind(self) -> None:
        """Members come to the nodes of their placements, unless others have to go first."""
        world = self.world
        for key, placement in list(world.state.placements.items()):
            if world.state.placement_of(key) is None or placement.spec.victims:
                continue
            if placement.status.phase != "Planned":
                continue
            for slot, node in slots_of(placement):
                uid = self.pods.get((key, slot.rank))
                if uid and not world.state.pods[uid].node and node in world.state.nodes.index:
                    epoch = placement.spec.epoch
                    world.pod(
                        key, "worker", slot.rank, GPU4, node=node, pin=node, epoch=epoch, phase="Running",
                        uid=uid, name=uid, since=world.now, bound=world.now,
                    )  # fmt: skip

    def check(self) -> None:
        """No node is overfull; what is kept counts in its queue whether it is lent or not, and nothing else does."""
        state = self.world.state
        state.refresh()
        waits = {key for key, placement in state.placements.items() if placement.spec.victims}
        over = (state.nodes.used > state.nodes.allocatable).any(axis=0)
        full = {name for name, column in state.nodes.index.items() if over[column]}
        promised = {node for key in waits for _, node in slots_of(state.placements[key])}
        assert full <= promised, f"{full} are overfull, and nobody leaves {promised}"
        seats = sum(
            each.count
            for key, placement in state.placements.items()
            if ((gang := state.gang(key)) and state.placement_of(key) and gang.started) or (gang and gang.active)
            for each in placement.spec.spares
        )
        entries = [entry for entry in state.ledger.entries.values() if entry.kind is EntryKind.SPARE]
        assert sum(entry.cls.requests[GPU] for entry in entries) // 4_000 <= seats


@settings(max_examples=settings().max_examples * 3 // 2)
@given(STEPS)
def test_nothing_is_promised_twice(steps: list[tuple[Any, ...]]) -> None:
    """Whatever dies, comes back, starts and ends."""
    cluster = Cluster()
    for step in steps:
        cluster.step(step)
        for _ in range(3):
            cluster.cycle()
            cluster.check()


@given(STEPS)
def test_all_comes_to_rest(steps: list[tuple[Any, ...]]) -> None:
    """Nothing is decided over and over when nothing changes any more."""
    cluster = Cluster()
    for step in steps:
        cluster.step(step)
        cluster.cycle()
    for _ in range(12):
        cluster.cycle()
    cluster.world.now += 10
    session = cluster.world.session(*cluster.actions)
    assert not {type(each) for each in session.decisions} - {decisions.Unschedulable, decisions.AdmitGang}
