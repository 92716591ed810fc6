"""Repairs carried out: through the Eviction API, by force where no kubelet is left, and told once."""

from typing import Any

import pytest
from extender_world import of
from guarded_api import Sent
from guarded_extender import Process
from repair_world import XID, RepairWorld

from extender.evictions import EVICT_AGAIN_S, EVICTED
from extender.planner.actions.repair import SETTLE_S
from extender.planner.framework import decisions
from extender.repairs import MOST_ASKED, REPAIRS, THERE_S
from muster.api.kubernetes.core import Taint
from muster.kube.errors import APIError, Conflict, NotFound, ServerError

DEAD = {"conditions": {"Ready": "Unknown"}, "since": 1_800_000_000.0 - 60}
OUT_OF_SERVICE = {"taints": [Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")]}


class Repairing:
    """A gang of two on four nodes, the second of which has a fault; the API server knows the names of some Nodes."""

    def __init__(self, *there: str, fault: Any = None) -> None:
        self.world = RepairWorld().nodes(4)
        self.world.runs("a", 2)
        if fault is None:
            self.world.state.on_node(self.world.state.nodes.nodes[self.world.state.nodes.index["node-1"]], None)
        else:
            self.world.node("node-1", **fault)
        self.there = there
        self.asked: list[str] = []
        self.error: APIError | None = None
        self.lost = 0
        """Evictions that find that the pod has just changed."""

    def list(self, _resource: Any, *, field_selector: str) -> list[str]:
        """As a list of Nodes of one name."""
        if self.error:
            raise self.error
        name = field_selector.removeprefix("metadata.name=")
        self.asked.append(name)
        return [name] if name in self.there else []

    def meddle(self, sent: Sent) -> None:
        """Evictions that come while the pod changes."""
        if self.lost and sent.site.endswith("evict"):
            self.lost -= 1
            raise Conflict("the pod has changed")

    def process(self) -> Process:
        """The writers."""
        process = Process(self.world)
        process.api.list = self.list  # type: ignore[method-assign,assignment]
        process.api.meddle = self.meddle
        return process

    def carried_out(self, *, written: bool = True, times: tuple[float, ...] = (0.0,), budget: bool = False) -> Process:
        """The repairs of the cycle after the faults have settled, at these times."""
        self.world.look()
        session = self.world.look(SETTLE_S)
        for place in of(session, decisions.Place) if written else ():
            self.world.place(place)
        session.decisions = of(session, decisions.EvictForFaults)
        process, began = self.process(), self.world.now
        process.api.budget = budget
        for after_s in times:
            self.world.now = began + after_s
            process.committer.repairs.carry_out(session)
        process.stop()
        return process


def done(process: Process) -> list[tuple[str, str, int | None]]:
    """What was evicted or deleted, and with which grace."""
    sent = [each for each in process.api.sent if not each.refused]
    return [(each.site.rpartition(" ")[2], each.key.partition("/")[2], each.grace_period_s) for each in sent]


def count() -> tuple[float, float]:
    """The repairs and evictions that the metrics have counted."""
    return REPAIRS.labels("replace", "suspect")._value.get(), EVICTED.labels("repair")._value.get()


@pytest.mark.parametrize(
    ("lost", "times", "asked"),
    [(0, (0.0, EVICT_AGAIN_S - 0.5), 1), (0, (0.0, EVICT_AGAIN_S), 2), (1, (0.0, 0.0), 2)],
    ids=["once", "again if no watch shows its end", "by the next cycle if it has just changed"],
)
def test_a_member_on_a_suspect_node_goes_and_all_hear_of_it(lost: int, times: tuple[float, ...], asked: int) -> None:
    """The kubelet or kube-scheduler may have written into its status; this costs the gang no time."""
    repairing, (repairs, evicted) = Repairing(fault={"conditions": XID}), count()
    repairing.lost = lost
    process = repairing.carried_out(times=times)
    assert done(process) == [("evict", "a-worker-1", None)]
    assert len(process.api.sent) == asked
    assert [event.split(": ")[:2] for event in process.events] == [["a NodeFault", "repairs"]] * 2
    assert count() == (repairs + 1, evicted + 1)


@pytest.mark.parametrize(("fault", "carried_out"), [
    pytest.param({"conditions": XID}, {"written": False}, id="whose new node is not kept"),
    pytest.param({"conditions": XID}, {"budget": True}, id="whom a budget keeps, as it runs"),
])  # fmt: skip
def test_nobody_goes(fault: Any, carried_out: dict[str, bool]) -> None:
    """The placement could not be written, or the next cycle decides again."""
    process = Repairing(fault=fault).carried_out(**carried_out)
    assert (done(process), process.events) == ([], [])


@pytest.mark.parametrize(("fault", "budget", "way", "asked"), [
    (DEAD, False, ("evict", "a-worker-1", None), []),
    (DEAD, True, ("delete", "a-worker-1", None), []),
    (OUT_OF_SERVICE, True, ("delete", "a-worker-1", 0), []),
    (None, True, ("delete", "a-worker-1", 0), ["node-1"]),
], ids=[
    "not ready", "not ready, with a budget: it is disrupted already", "out of service", "its node is gone",
])  # fmt: skip
def test_a_pod_is_deleted_by_force_only_where_no_kubelet_may_run_it(
    fault: Any, way: tuple[str, str, int | None], asked: list[str], *, budget: bool
) -> None:
    """That is where its node is gone or out of service."""
    repairing = Repairing(fault=fault)
    if fault is None:
        repairing.world.gone_nodes = frozenset({"node-1"})
    assert (done(repairing.carried_out(budget=budget)), repairing.asked) == ([way], asked)


@pytest.mark.parametrize(("gone", "known", "off"), [(True, False, True), (True, True, False), (False, False, False)])
def test_a_node_is_off_that_does_not_exist(*, gone: bool, known: bool, off: bool) -> None:
    """One that has come back under its name is not, and one that left the pool may run on."""
    one = Repairing(fault={} if known else None)
    process = one.process()
    process.committer.repairs.gone = frozenset({"node-1"} if gone else ())
    assert process.committer.repairs._is_off(one.world.look(), "node-1") is off
    process.stop()


def test_an_eviction_that_finds_no_pod_is_none() -> None:
    """The watch is late; nobody asks again at once, and nobody hears of it."""
    repairing = Repairing(fault={"conditions": XID})
    process = repairing.process()
    repairing.world.look()
    session = repairing.world.look(SETTLE_S)
    for place in of(session, decisions.Place):
        repairing.world.place(place)

    def gone(_: Sent) -> None:
        raise NotFound("no such pod")

    process.api.meddle = gone
    for _ in range(2):
        process.committer.repairs.carry_out(session)
    process.stop()
    assert ([each.refused for each in process.api.sent], process.events) == (["NotFound"], [])


def test_a_node_that_the_planner_does_not_know_is_asked_for_and_only_gone_if_it_does_not_exist() -> None:
    """One that got the label of another pool has left the watch, and runs on."""
    one = Repairing("node-1")
    session, process = one.world.look(), one.process()
    repairs = process.committer.repairs
    assert session.unsure_nodes == {"node-1"}
    one.error = ServerError("broken")
    repairs.ask(session)
    one.error = None
    for after_s, there, gone, asked in (
        (0.0, True, frozenset[str](), 1),
        (THERE_S - 1, False, frozenset[str](), 1),
        (1.0, False, {"node-1"}, 2),
        (0.0, True, {"node-1"}, 2),
    ):
        one.world.now += after_s
        one.there = ("node-1",) if there else ()
        repairs.ask(session)
        assert (repairs.gone, one.asked) == (gone, ["node-1"] * asked)
    session.unsure_nodes.clear()
    repairs.ask(session)
    assert repairs.gone == frozenset()
    session.unsure_nodes |= {f"n{number:02}" for number in range(MOST_ASKED + 1)}
    for nodes in (MOST_ASKED, MOST_ASKED + 1):
        repairs.ask(session)
        assert len(repairs.gone) == nodes
    process.stop()
