"""The planner's cycles: when there is one, what it reads and writes, and what it shows."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from extender_world import World
from guarded_extender import Process
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from extender.cycles import BURST_S, EQUAL_WAITING, MAX_REST_S, REST, Pauses, Planner
from extender.planner.framework import config
from extender.planner.framework.config import SchedulerConfig
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.core import Node, NodeStatus
from muster.api.muster.placement import PLACEMENTS

GPU8 = {"nvidia.com/gpu": 8}


def used_up(pauses: Pauses, namespace: str, now_s: float) -> int:
    """Charge cycles of 40 ms to a namespace until its changes no longer end a pause; return their number."""
    pauses.after(0.0, now_s)
    number = 0
    while pauses.changed(namespace):
        number += 1
        pauses.after(0.04, now_s)
    return number


def test_a_namespace_uses_up_its_own_burst() -> None:
    """Changes of a namespace end pauses for so much CPU time, and changes of others still do after that."""
    pauses = Pauses()
    assert used_up(pauses, "busy", 1000.0) == math.ceil(BURST_S / 0.04)
    assert pauses.changed("quiet")
    assert used_up(pauses, "busy", 1000.0 + (1 + REST) * BURST_S) == math.ceil(BURST_S / 0.04)


def test_a_cycle_is_charged_by_changes() -> None:
    """A namespace with one change in a hundred uses a hundredth of the cycle."""
    pauses = Pauses()
    for _ in range(10):
        assert pauses.changed("quiet")
        for _ in range(99):
            pauses.changed("busy")
        pauses.after(0.3, 1000.0)
    assert not pauses.changed("busy")


@pytest.mark.parametrize(("waiting", "part"), [(1, 1 / 2), (EQUAL_WAITING, 1 / 2), (9 * EQUAL_WAITING, 9 / 10)])
def test_waiting_gangs_are_charged_half_of_a_cycle_or_more(waiting: int, part: float) -> None:
    """A gang of a quiet namespace is not charged for what the waiting gangs of another one cost."""
    pauses = Pauses()
    for _ in range(6):
        assert pauses.changed("quiet")
        pauses.after(0.05, 1000.0, {"busy": waiting})
    assert pauses._used_s == pytest.approx({"quiet": 0.3 * (1 - part), "busy": 0.3 * part})
    for _ in range(9):
        pauses.after(0.05, 1000.0, {"busy": waiting})
    assert not pauses.changed("busy")


def test_many_namespaces_share_what_pauses_leave() -> None:
    """A hundred busy namespaces get no more cycles without a pause than one."""
    pauses, names = Pauses(), [f"busy-{number}" for number in range(100)]
    for name in names:
        used_up(pauses, name, 1000.0)
    again = sum(used_up(pauses, name, 1000.0 + (1 + REST) * BURST_S) for name in names)
    assert again <= len(names), "each may begin one more"
    pauses.after(0.0, 1000.0 + 200 * (1 + REST) * BURST_S)
    assert not pauses._used_s, "the table shrinks"


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.005, 0.05), (0.04, MAX_REST_S), (0.3, 0.3)])
def test_cycles_of_a_burst_have_pauses(took_s: float, pause_s: float) -> None:
    """While changes arrive steadily, pauses leave most of a core to others."""
    assert Pauses().after(took_s, 1000.0) == pause_s


class Planning(Process):
    """A planner over two nodes, a gang for both, and a gang that does not fit."""

    def __init__(self, configuration: SchedulerConfig | None = None) -> None:
        world = World().nodes(2)
        for name, pods in (("fits", 2), ("large", 3)):
            key = world.gang(name, {"worker": (pods, GPU8)})
            world.members(key, pods, GPU8, gated=True)
        super().__init__(world)
        self.leads = True
        self.checks = 0
        self.budgets: list[Any] = []
        self.planner = Planner(
            self.committer._cluster,
            self.committer,
            configuration or SchedulerConfig(),
            active=self._active,
            arrived=dict,
            wall_s=lambda: world.now,
            monotonic_s=time.monotonic,
            report_budgets=self.budgets.append,
        )

    def _active(self) -> bool:
        self.checks += 1
        return self.leads

    def placed(self) -> list[str]:
        """The gangs of which the API server has a placement, when all writes are answered."""
        assert self.committer.writes.settled(10)
        return [each.metadata.name for each in self.api.all(PLACEMENTS)]


@pytest.fixture
def planning() -> Iterator[Planning]:
    """One, whose threads end with the test."""
    one = Planning()
    yield one
    one.planner.stop() if one.planner._thread.ident else None
    one.stop()


def metric(name: str) -> float | None:
    """The value of a metric."""
    return REGISTRY.get_sample_value(f"muster_{name}")


def comes(happened: Callable[[], Any]) -> Any:
    """What comes within a minute."""
    end_s = time.monotonic() + 60
    while not happened() and time.monotonic() < end_s:
        time.sleep(0.01)
    return happened()


def test_a_cycle(planning: Planning) -> None:
    """Decides, writes what it has decided, and shows it."""
    planning.leads = False
    planning.planner.cycle()
    assert planning.world.state.ledger.reserved._since is not None, "changes since the snapshot are noted"
    planning.leads = True
    planning.planner.cycle()
    assert planning.placed() == ["fits"]
    session = planning.planner.session
    assert planning.budgets == [session]
    assert [gang.key for gang in session.snapshot.gangs] == ["ns/fits", "ns/large"]
    assert (metric("gangs_waiting"), metric("suspect_nodes")) == (1, 0)
    assert REGISTRY.get_sample_value("muster_queue_gangs_waiting", {"queue": "default"}) == 1


def test_a_replica_that_has_lost_its_lead_writes_nothing(planning: Planning) -> None:
    """It has planned, and another one may be planning by now."""
    planning.leads = False
    planning.planner.cycle()
    assert planning.planner.session is not None
    assert (planning.placed(), planning.budgets) == ([], [])


def test_another_configuration(planning: Planning) -> None:
    """Is that of the next cycle."""
    planning.planner.reconfigure(config.parse("actions: enqueue"))
    planning.planner.cycle()
    assert planning.placed() == []
    planning.planner.reconfigure(SchedulerConfig())
    planning.planner.cycle()
    assert planning.placed() == ["fits"]


def test_cycles_while_it_leads(planning: Planning) -> None:
    """None before; one when it begins to, and one whenever it is woken; an error ends none of the later ones."""
    planning.leads = False
    planning.planner.start()
    planning.planner.wake()
    assert comes(lambda: planning.checks > 1), "the first one is over"
    assert planning.planner.session is None
    planning.leads = True
    planning.planner.wake()
    first = comes(lambda: planning.planner.session)
    assert first is not None
    assert comes(planning.placed) == ["fits"]
    failed = metric("cycles_failed_total") or 0.0
    planning.planner._usage = lambda *_: 1 / 0
    planning.planner.wake()
    assert comes(lambda: (metric("cycles_failed_total") or 0.0) > failed)
    planning.planner._usage = lambda *_: None
    planning.planner.wake()
    assert comes(lambda: planning.planner.session is not first)
    planning.planner.stop()
    assert not planning.planner._thread.is_alive()


@pytest.mark.parametrize(
    ("took_s", "idle_s", "rest_s"),
    [(0.0001, 1.0, 0.001), (0.002, 1.0, 0.02), (0.05, 1.0, 0.1), (0.3, 3.0, 0.3)],
    ids=["no cycle follows at once", "ten times a cycle", "a tenth of a second", "as long as a long cycle"],
)
def test_the_planner_rests_after_a_cycle(
    planning: Planning, monkeypatch: pytest.MonkeyPatch, took_s: float, idle_s: float, rest_s: float
) -> None:
    """While events pour in, the time belongs to verbs and watches; without any it looks for deadlines."""
    planner, waits, cpu_s = planning.planner, [], [0.0]
    planner._monotonic_s = lambda: 0.0
    planner._ready = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(time, "thread_time", lambda: cpu_s[0])

    def cycle() -> None:
        cpu_s[0] += took_s

    monkeypatch.setattr(planner, "cycle", cycle)
    woken = SimpleNamespace(wait=waits.append, clear=lambda: None, set=lambda: None)
    stopped = SimpleNamespace(wait=waits.append, is_set=lambda: len(waits) >= 9, set=lambda: None)
    monkeypatch.setattr(planner, "_woken", woken)
    monkeypatch.setattr(planner, "_stopped", stopped)
    monkeypatch.setattr(planner, "_hurried", woken)
    planner._run()
    assert waits == pytest.approx([1.0, 0.005, 0.0, idle_s, 0.005, rest_s, idle_s, 0.005, rest_s])


def test_who_begins_to_lead_recalls_what_was_kept(planning: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and looks at all gangs; who ends notes no changes of reserved room any more."""
    planner, recalled = planning.planner, []
    planning.committer.recall_failures = lambda: recalled.append(1)
    reserved, touched = planning.world.state.ledger.reserved, []
    monkeypatch.setattr(PlannerState, "touch_all", touched.append)
    for planning.leads, ready, times in (
        (False, False, 0), (True, True, 1), (True, True, 1), (False, False, 1), (True, True, 2)
    ):  # fmt: skip
        reserved.snapshot_taken()
        assert planner._ready() is ready
        assert len(recalled) == len(touched) == times
    assert reserved._since is not None
    planning.leads = False
    planner._ready()
    assert reserved._since is None


def test_what_is_set_aside_is_counted_and_logged_once(planning: Planning) -> None:
    """With its reason; again only after it was right for a while."""
    world = planning.world
    broken = Node(metadata=world.meta("node-0", uid="uid-node-0"), status=NodeStatus(allocatable={"cpu": "many"}))
    good = world.state.nodes.nodes[world.state.nodes.index["node-0"]]

    def cycle() -> list[tuple[str, str]]:
        with capture_logs() as lines:
            planning.planner.cycle()
        return [(line["kind"], line["name"]) for line in lines if line["event"].startswith("excluded")]

    def counted() -> dict[str, float | None]:
        return {kind: REGISTRY.get_sample_value("muster_set_aside", {"kind": kind}) for kind in ("node", "pod", "gang")}

    world.node("node-1", conditions={"KernelDeadlock": "True"})
    assert (cycle(), metric("suspect_nodes")) == ([], 1)
    world.state.on_node(good, broken)
    assert cycle() == [("node", "node-0")]
    assert cycle() == []
    assert counted() == {"node": 1, "pod": 0, "gang": 0}
    world.state.on_node(broken, good)
    assert cycle() == []
    assert counted() == {"node": 0, "pod": 0, "gang": 0}
    world.state.on_node(good, broken)
    assert cycle() == [("node", "node-0")]


def test_the_last_cycle_but_one_is_forgotten_when_the_next_one_begins(planning: Planning) -> None:
    """A verb on the loop may use the one before; a recording notes each look and each decision."""
    notes: list[Any] = []
    planner = planning.planner
    planner._hook = SimpleNamespace(snapshot_taken=lambda: notes.append("look"), decided=notes.append)  # type: ignore[assignment]
    forgotten: list[Any] = []
    sessions = []
    for _ in range(3):
        planner.cycle()
        sessions.append(planner.session)
        planner.session.forget = partial(forgotten.append, planner.session)  # type: ignore[union-attr,method-assign]
    assert forgotten == sessions[:1]
    assert notes == ["look", sessions[0], "look", sessions[1], "look", sessions[2]]
