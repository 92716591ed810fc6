"""Failed searches are repeated only after a change that concerns them; the decisions equal repeated searches'."""

from typing import Any

import pytest
from extender_world import CPU, GPU1, GPU8, World, of, slots, waiting, where
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.planner.actions import allocate, cyclework, failures
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.failures import Failures, Rotation
from extender.planner.actions.search import SlotSearch
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Reservations
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.api.muster.placement import Placement

ODD = 40


def on(*hosts: str) -> dict[str, Any]:
    """The spec of pods that run on these hosts only."""
    term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [*hosts]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


class Counting(World):
    """A cluster of four nodes whose searches for a gang's minimum are counted."""

    def __init__(self) -> None:
        super().__init__(checked=False)
        self.searched: list[str] = []
        for number in range(4):
            self.node(f"node-{number}", labels={"host": f"host-{number}"})
        kept = Allocate()
        self.allocate = lambda: kept  # type: ignore[assignment,return-value]

    def searches(self) -> list[str]:
        """Plan, and return the names of the gangs that a search was for."""
        self.searched.clear()
        self.plan()
        return sorted(self.searched)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The cluster, with gangs of many shapes that fit nowhere: no node has their labels."""
    world, minimum = Counting(), SlotSearch.minimum

    def counted(search: SlotSearch, *more: Any) -> Shortage | None:
        world.searched.append(search.ask.gang.group.metadata.name)
        return minimum(search, *more)

    monkeypatch.setattr(SlotSearch, "minimum", counted)
    for number in range(ODD):
        world.gang(f"odd{number:02}", {"w": (1, GPU8)}, spec=on(f"none-{number}"))
    assert len(world.searches()) == ODD
    return world


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of a namespace's known failures that each cycle evaluates."""
    monkeypatch.setattr(failures, "MANY", 8)
    return 8


def test_a_binding_that_frees_nothing_causes_no_search(world: Counting) -> None:
    """Neither does a pod that ends, on nodes that do not accept the gangs' pods."""
    key = world.gang("runs", {"w": (1, CPU)})
    assert world.searches() == ["runs"]
    world.pod(key, "w", 0, CPU, node="node-0", phase="Running", pin="node-0", epoch=1)
    assert world.searches() == []
    world.pod(key, "w", 0, CPU, node="node-0", phase="Succeeded", pin="node-0", epoch=1)
    assert world.searches() == []


def test_a_node_that_may_accept_them_causes_searches(world: Counting) -> None:
    """A new one or a changed one; the gang that fits is placed."""
    world.node("node-0", labels={"host": "none-7"})
    assert len(world.searches()) == ODD
    assert set(world.state.placements) == {"ns/odd07"}
    world.node("node-9", labels={"host": "none-8"})
    assert len(world.searches()) == ODD - 1
    assert set(world.state.placements) == {"ns/odd07", "ns/odd08"}


def test_another_amount_on_an_accepting_node_causes_a_search(world: Counting) -> None:
    """Of the gangs whose pods it accepts; a pod that ends there lets the first one start."""
    key = world.gang("runs", {"w": (1, GPU1)}, spec=on("host-3"))
    world.plan()
    for number in range(3):
        world.gang(f"full-{number}", {"w": (1, GPU8)}, spec=on("host-3", f"other-{number}"))
    assert world.searches() == ["full-0", "full-1", "full-2"]
    assert world.searches() == []
    world.pod(key, "w", 0, GPU1, node="node-3", phase="Running", pin="node-3", epoch=1)
    assert world.searches() == [], "the pod uses the placed slot"
    world.pod(key, "w", 0, GPU1, node="node-3", phase="Succeeded", pin="node-3", epoch=1)
    world.close(world.plan())
    assert "ns/full-0" in world.state.placements


def test_a_placement_that_is_not_written_leaves_its_nodes_free(world: Counting) -> None:
    """The gang behind it, which did not fit beside it, is searched for again."""
    world.gang("first", {"w": (1, GPU8)}, spec=on("host-2"))
    world.gang("second", {"w": (1, GPU8)}, spec=on("host-2", "nowhere"))
    session = world.session(world.allocate())
    assert where(session, "w") == {"first": ["node-2"]}
    world.state.on_pod_group(world.state.groups["ns/first"], None)
    assert "second" in world.searches()
    assert set(world.state.placements) == {"ns/second"}


def test_other_plugins_cause_searches(world: Counting) -> None:
    """Their rules may accept the pods."""
    world.plugins.append(Reservations({}))
    assert len(world.searches()) == ODD
    assert world.searches() == []


def test_an_ending_pod_causes_searches_only_for_gangs_that_its_node_accepts(world: Counting) -> None:
    """The search is for the capacity that the pod will free."""
    key = world.gang("ends", {"w": (1, GPU1)}, spec=on("host-3"))
    world.plan()
    deleted = format_time(world.now + 30)
    world.pod(key, "w", 0, GPU1, node="node-3", phase="Running", pin="node-3", epoch=1, deletion_timestamp=deleted)
    world.close(world.plan())
    world.queue("other")
    world.gang("waits", {"w": (1, GPU8)}, spec=on("host-3", "nowhere"), queue="other")
    world.plan()
    world.searched.clear()
    world.session(Enqueue(), world.allocate(), Preempt())
    assert set(world.searched) == {"waits"}


def test_conditions_about_other_pods_cause_searches_after_any_change(world: Counting) -> None:
    """A pod anywhere may matter to them."""
    alone = {"topologyKey": "host", "labelSelector": {"matchLabels": {"a": "b"}}}
    rule = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}}
    world.gang("near", {"w": (1, CPU)}, spec=rule)
    world.plan()
    assert world.searches() == []
    world.gang("runs", {"w": (1, CPU)})
    world.plan()
    assert world.searches() == ["near"]


def test_odd_shapes_leave_the_cycle_to_other_namespaces(world: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their searches are bounded, and the gang of another namespace in the same queue is placed in the first cycle."""
    monkeypatch.setattr(cyclework, "MOST", 10 * cyclework._SEARCH)
    key = world.pod_group("other", namespace="there")
    world.pod(key, "w", 0, CPU, namespace="there")
    world.node("node-9")  # all shapes are to be searched for again
    world.searched.clear()
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == ["there/other"]
    assert len([name for name in world.searched if name.startswith("odd")]) == 10


def test_known_failures_of_a_namespace_are_evaluated_in_rotation(world: Counting, few: int) -> None:
    """The first ones in each cycle, and all within a round; each gang has its reason in each cycle, in their order."""
    world.plan()
    evaluated = []
    for _ in range(1 + ODD // (few // 2)):
        session = world.plan()
        assert [*waiting(session)] == [f"odd{number:02}" for number in range(ODD)]
        assert set(waiting(session).values()) == {waiting(session)["odd00"]}
        evaluated.append({gang.key for gang in session.snapshot.gangs} - session.postponed)
    assert max(map(len, evaluated)) <= few
    assert set.union(*evaluated) == set(world.state.groups)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("annotation", [{names.BORROWS: "true"}, {names.SPARES: "1"}])
def test_gangs_that_ask_for_spares_are_evaluated_in_each_cycle(world: Counting, annotation: dict[str, str]) -> None:
    """Whether spares can be lent or kept depends on more than the nodes that their pods fit on."""
    for group in [*world.state.groups.values()]:
        world.change(group, annotations={**group.metadata.annotations, **annotation})
    assert [len(world.plan().postponed) for _ in range(4)] == [0] * 4


def test_a_gang_that_fits_is_placed_at_once_beside_known_failures(world: Counting, few: int) -> None:
    """A new one, and one for which a node is added although the cycle would not evaluate it."""
    world.plan()
    assert len(world.plan().postponed) == ODD - few // 2 - (ODD - few // 2) // (1 + ODD // (few // 2))
    world.gang("new", {"w": (1, CPU)})
    assert where(world.plan(), "w") == {"new": ["node-0"]}
    world.node("node-9", labels={"host": "none-39"})
    assert where(world.plan(), "w") == {"odd39": ["node-9"]}


@pytest.mark.usefixtures("few")
def test_victims_are_found_for_a_gang_within_a_round() -> None:
    """Among many gangs of its namespace that are known not to fit, and for which there are no victims."""
    world, preempt = Counting(), Preempt()
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name=name, uid=name), value=value))
    low = world.gang("low", {"w": (1, GPU8)}, spec=on("host-0"), priority_class="low", phase="Running")
    world.pod(low, "w", 0, GPU8, node="node-0", phase="Running")
    for number in range(ODD):
        world.gang(f"odd{number:02}", {"w": (1, GPU8)}, spec=on(f"none-{number}"), priority_class="high")
    world.gang("high", {"w": (1, GPU8)}, spec=on("host-0"), priority_class="high")
    for _ in range(2 * ODD):
        if found := world.session(Enqueue(), world.allocate(), preempt).decided(decisions.MakeRoom):
            assert [decision.gang.key for decision in found] == ["ns/high"]
            return
    pytest.fail("no victims were found")


def test_a_cycle_that_fails_leaves_no_failure_known(world: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not note the capacity at its end, so no later cycle could detect what has changed since."""
    with monkeypatch.context() as broken:
        broken.setattr(allocate, "grow", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.plan()
    assert len(world.searches()) == ODD
    assert world.searches() == []


class Forgetful(Failures):
    """Remembers no failure beyond its cycle."""

    def begin(self, session: Session, gangs: int) -> None:
        """Forget all."""
        self._known.clear()
        super().begin(session, gangs)


SHAPES: tuple[dict[str, Any], ...] = (
    {"tasks": {"w": (1, GPU8)}},
    {"tasks": {"w": (2, GPU8)}, "spec": on("host-0", "host-1")},
    {"tasks": {"w": (3, {"cpu": 12})}, "spec": on("host-2", "host-4")},
    {"tasks": {"w": (1, GPU1)}, "spec": on("host-3")},
    {"tasks": {"a": (2, {"cpu": 9}), "b": (1, GPU8)}, "spec": on("host-1", "host-2")},
    {"tasks": {"w": (2, CPU)}, "notes": {"muster.dev/gpu-fraction": "0.5"}},
    {"tasks": {"w": (9, {"cpu": 16})}, "min_member": 7},
    {"tasks": {"w": (2, GPU8)}, "queue": "first", "runtime": "1h"},
    {"tasks": {"w": (1, {"cpu": 32})}, "queue": "first"},
)
STEPS = ("create", "create", "create", "run", "end", "label", "node", "cordon", "time", "delete")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 8), st.integers(0, 8)), min_size=8, max_size=40))
def test_remembered_failures_change_no_decision(steps: list[tuple[str, int, int]]) -> None:
    """The same gangs get the same nodes as with searches in each cycle, and the others wait with the same message."""
    world, remembered, forgetful = Counting(), Allocate(), Allocate()
    forgetful._failures = Forgetful()
    world.queue("first", reservations="reserve")
    world.plugins.append(Reservations({}))
    world.allocate = lambda: remembered  # type: ignore[assignment,return-value]
    created = 0
    for what, number, choice in steps:
        key = f"ns/g{number}"
        placement = world.state.placements.get(key)
        if what == "create":
            world.gang(f"g{created}", **SHAPES[choice])
            created += 1
        elif what in {"run", "end"} and placement is not None and key in world.state.groups:
            _members(world, key, placement, "Running" if what == "run" else "Succeeded")
        elif what == "label":
            world.node(f"node-{number % 4}", labels={"host": f"host-{choice}"})
        elif what == "node":
            world.node(f"node-{4 + number}", labels={"host": f"host-{choice}"}, gpus=choice)
        elif what == "cordon":
            world.node(f"node-{number % 4}", labels={"host": f"host-{number % 4}"}, unschedulable=choice % 2 == 0)
        elif what == "time":
            world.now += 60.0
        elif what == "delete" and key in world.state.groups:
            world.state.on_pod_group(world.state.groups[key], None)
        again = world.session(Enqueue(), forgetful)
        session = world.plan()
        assert where_all(session) == where_all(again)
        if not of(
            session, decisions.Place
        ):  # a gang that is placed takes nodes from those behind it, in this cycle only
            assert waiting(session) == waiting(again)


class Restless(Rotation):
    """Lets no gang rest."""

    def awake(self, _session: Session, gangs: list[GangView], _failures: Failures) -> list[GangView]:
        """Evaluate all."""
        return gangs


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 60), st.integers(0, 8)), min_size=8, max_size=30))
def test_resting_gangs_change_no_decision(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int, int]]) -> None:
    """The same gangs get the same nodes as if each cycle evaluated all, and the others wait with the same message."""
    monkeypatch.setattr(failures, "MANY", 4)
    world, rests, restless = Counting(), Allocate(), Allocate()
    restless._rotation = Restless()
    world.queue("first", reservations="strict")
    world.plugins.append(Reservations({}))
    world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name="high", uid="high"), value=9))
    world.allocate = lambda: rests  # type: ignore[assignment,return-value]
    for number in range(40):
        queue = "first" if number % 2 else "default"
        world.gang(f"g{number}", {"w": (1, GPU8)}, spec=on(f"host-{number % 7}", "host-0"), queue=queue)
    for what, number, choice in steps:
        key = f"ns/g{number}"
        group, placement = world.state.groups.get(key), world.state.placements.get(key)
        if what == "create" and group is None:
            world.gang(f"g{number}", **SHAPES[choice])
        elif what == "create" and group is not None:
            world.change(group, spec={"priority_class_name": "high" if choice % 2 else ""})
        elif what in {"run", "end"} and placement is not None and group is not None:
            _members(world, key, placement, "Running" if what == "run" else "Succeeded")
        elif what in {"label", "node", "cordon"}:
            column = number % 4 if what == "cordon" else number % 7
            world.node(
                f"node-{column}", labels={"host": f"host-{choice}"}, unschedulable=what == "cordon" and choice > 4
            )
        elif what == "time":
            world.now += choice / 4
        elif what == "delete" and group is not None:
            world.state.on_pod_group(group, None)
        again = world.session(Enqueue(), restless)
        session = world.plan()
        assert where_all(session) == where_all(again)
        if not of(session, decisions.Place):
            assert waiting(session) == waiting(again)


def where_all(session: Session) -> dict[str, object]:
    """Gang → its nodes."""
    return {place.gang.key: place.pod_sets for place in of(session, decisions.Place)}


def _members(world: World, key: str, placement: Placement, phase: str) -> None:
    tasks = {task.name: task.template["spec"]["containers"][0]["resources"] for task in world.job_of(key).spec.tasks}
    pinned: dict[str, Any] = {"epoch": placement.spec.epoch, "phase": phase}
    for task, nodes in slots(placement).items():
        for rank, node in enumerate(nodes):
            world.pod(key, task, rank, tasks[task]["requests"], node=node, pin=node, **pinned)
