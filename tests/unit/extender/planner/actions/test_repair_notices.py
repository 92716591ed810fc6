"""A restart for suspect nodes asks first: who runs has time to save, and loses none where that is of no use."""

from collections.abc import Callable

import pytest
from extender_world import of, only, slots
from repair_world import GPU8, XID, RepairWorld, evicted, placed

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.elsewhere import WithdrawNotices
from extender.planner.actions.repair import SETTLE_S
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.kubernetes.core import Taint
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.muster.placement import BorrowedSpares

NOTICE_S = 300.0


class World(RepairWorld):
    """A gang of three on four nodes that restarts, with a notice; what is decided is written."""

    def __init__(self, policy: str = "restart", *, guest: bool = False, **said: str) -> None:
        super().__init__()
        self.nodes(4)
        notice = {"on_node_fault": policy, "evict_notice": f"{NOTICE_S:.0f}s"}
        self.key = placed(self, "a", 3, keeps=("node-3",) if guest else (), **notice | said)
        if guest:
            placed(
                self,
                "guest",
                1,
                3,
                loans=(BorrowedSpares(self.state.groups[self.key].metadata.uid, "worker", "node-3", 1),),
            )

    def cycle(self, after: float = 0.0) -> Session:
        """A cycle of what follows placements, of repairs and of withdrawals, so many seconds later."""
        self.now += after
        session = self.session(self.progress, self.repair, WithdrawNotices())
        for place in of(session, decisions.Place):
            self.place(place)
        self.close(session)
        self.room_is_there(session)
        for tell in of(session, decisions.SendNotice):
            self.says(tell.pod.name, {names.EVICT_AT: tell.evict_at, names.EVICT_FOR: tell.queue})
        for stay in of(session, decisions.WithdrawNotice):
            self.says(stay.pod.name, {})
        return session

    def says(self, name: str, said: dict[str, str]) -> None:
        """A pod has these annotations."""
        self.change(self.state.pod_objects[f"uid-{name}"], annotations=said)

    def told(self) -> set[str]:
        """Until when the members have time, as they know it."""
        return {pod.metadata.annotations.get(names.EVICT_AT, "") for pod in self.state.pod_objects.values()} - {""}

    def hurt(self) -> None:
        """Node 1 is suspect, and the gang has been told."""
        self.node("node-1", conditions=XID)
        self.cycle()
        session = self.cycle(SETTLE_S)
        assert [place.gang.key for place in of(session, decisions.Place)] == [self.key]
        assert evicted(session) == []
        assert len(of(self.cycle(), decisions.SendNotice)) == 3
        assert of(self.cycle(), decisions.SendNotice) == []


EVERYBODY = ["a-worker-0", "a-worker-1", "a-worker-2"]


def test_a_gang_is_told_and_goes_when_its_time_is_over() -> None:
    """Its new nodes are kept meanwhile, and the reason names the fault."""
    world = World()
    world.hurt()
    (until,) = world.told()
    assert abs((parse_time(until) or 0) - world.now - NOTICE_S) <= 1
    assert evicted(world.cycle(NOTICE_S - 5)) == []
    session = world.cycle(6)
    assert evicted(session) == EVERYBODY
    [repair] = of(session, decisions.EvictForFaults)
    assert (repair.policy, repair.kind, repair.again, repair.outcome) == ("restart", "suspect", False, "silent")
    assert str(repair.reason).startswith("repairs: node node-1 is suspect (condition SysLogsXIDError=True)")
    assert repair.epoch == world.state.placements[world.key].spec.epoch


def test_nobody_gets_the_new_node_while_the_gang_saves() -> None:
    """Its queue counts its members once: with the nodes that they have."""
    world = World()
    before = world.state.ledger.queues.queues["default"].copy()
    world.hurt()
    assert world.state.ledger.queues.queues["default"] == before
    assert slots(world.state.placements[world.key]) == {"worker": ["node-0", "node-3", "node-2"]}
    world.gang("b", {"worker": (1, GPU8)})
    assert of(world.session(world.progress, world.repair, Allocate()), decisions.Place) == []
    world.node("node-1")
    world.cycle(10)
    [place] = of(world.session(world.progress, world.repair, Allocate()), decisions.Place)
    assert slots(place) == {"worker": ["node-3"]}


@pytest.mark.parametrize("answer", [{names.EVICT_READY: "true"}, {names.CHECKPOINT: "step=7,at={now}"}])
def test_a_gang_that_answers_goes_at_once(answer: dict[str, str]) -> None:
    """By the annotation of one member."""
    world = World()
    world.hurt()
    (until,) = world.told()
    world.now += 20
    said = {key: text.format(now=format_time(world.now)) for key, text in answer.items()}
    world.says("a-worker-0", {names.EVICT_AT: until, **said})
    session = world.cycle()
    assert evicted(session) == EVERYBODY
    assert [repair.outcome for repair in of(session, decisions.EvictForFaults)] == ["answered"]


def test_a_gang_whose_nodes_are_healthy_again_stays() -> None:
    """It is told so, and has its placement as before."""
    world = World()
    world.hurt()
    world.node("node-1")
    session = world.cycle(10)
    close = only(session, decisions.ClosePlacement)
    assert (close.phase, close.message) == ("Bound", "the gang stays, because its nodes are healthy again")
    assert evicted(session) == []
    assert len(of(world.cycle(), decisions.WithdrawNotice)) == 3
    assert world.told() == set()
    for _ in range(3):
        assert world.cycle(NOTICE_S).decisions == []


def not_ready(world: World) -> None:
    """The kubelet of another node does not answer."""
    world.node("node-0", conditions={"Ready": "Unknown"})


def off(world: World) -> None:
    """An administrator says that the suspect node is off."""
    world.node("node-1", taints=[Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")])


def gone(world: World) -> None:
    """The suspect node is deleted, which is certain once it has been asked for."""
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-1"]], None)
    session = world.cycle(1)
    assert (evicted(session), of(session, decisions.ClosePlacement)) == ([], [])
    world.gone_nodes = frozenset({"node-1"})


@pytest.mark.parametrize("dies", [not_ready, off, gone])
def test_a_gang_that_loses_a_node_meanwhile_goes_at_once(dies: Callable[[World], None]) -> None:
    """The others run in vain then, whatever they would save."""
    world = World()
    world.hurt()
    dies(world)
    assert evicted(world.cycle(1)) == EVERYBODY


@pytest.mark.parametrize(
    ("policy", "conditions"), [("replace", XID), ("restart", {"Ready": "False"})], ids=["replaced", "not ready"]
)
def test_nobody_is_told_where_nothing_is_to_be_saved(policy: str, conditions: dict[str, str]) -> None:
    """One member goes and the others run on; or its node does not answer, and the grace of the node was the time."""
    world = World(policy, node_fault_grace="5s")
    world.node("node-1", conditions=conditions, since=world.now)
    world.cycle()
    session = world.cycle(10)
    session = session if evicted(session) else world.cycle(SETTLE_S)
    assert "a-worker-1" in evicted(session)
    assert all(not place.notices for place in of(session, decisions.Place))


def test_nobody_goes_any_more_once_its_placement_is_given_up() -> None:
    """A planner that was away for long; it begins again, as the node is still suspect."""
    world = World()
    world.hurt()
    session = world.cycle(NOTICE_S + 1_000)
    message = only(session, decisions.ClosePlacement).message
    assert message == "3 pods that had to leave the gang's nodes were not evicted in time"
    assert evicted(session) == []


def test_borrowers_of_its_spares_leave_after_it_has_saved() -> None:
    """Their seats would wait in vain before."""
    world = World(guest=True)
    world.hurt()
    (until,) = world.told()
    assert of(world.cycle(1), decisions.MakeRoom) == []
    world.says("a-worker-0", {names.EVICT_AT: until, names.EVICT_READY: "true"})
    session = world.cycle(1)
    assert evicted(session) == EVERYBODY
    assert [pod.name for room in of(session, decisions.MakeRoom) for _, pod in room.victims] == ["guest-worker-0"]
