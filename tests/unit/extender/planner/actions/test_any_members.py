"""A gang whose minimum may be any of its members starts with those that fit; a pod that fits nowhere waits alone."""

from collections.abc import Sequence

import pytest
from extender_world import World, of, slots
from hypothesis import example, given
from hypothesis import strategies as st
from victims_world import Cluster, victims

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.proportion import Proportion
from muster.api import names
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

GPU8 = {"nvidia.com/gpu": 8}


def small(nodes: int = 2) -> World:
    """Nodes of 2 CPUs."""
    world = World()
    for number in range(nodes):
        world.node(f"node-{number}", cpu=2, gpus=0)
    return world


def group(world: World, *, independent: bool = False, phase: str = "Inqueue", **spec: object) -> str:
    """A PodGroup that the controller makes for a workload `g`."""
    owner = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="g", uid="uid-owner", controller=True)
    annotations = {names.INDEPENDENT: "true"} if independent else {}
    made = PodGroup(
        metadata=world.meta("g", owner_references=[owner], annotations=annotations),
        spec=PodGroupSpec(queue="default", **spec),  # type: ignore[arg-type]
        status=PodGroupStatus(phase=phase),  # type: ignore[arg-type]
    )
    world.state.on_pod_group(None, made)
    return made.metadata.key


def wait(world: World, key: str, cpus: Sequence[int], first: int = 0, labels: dict[str, str] | None = None) -> None:
    """Gated pods with so many CPUs each."""
    for rank, cpu in enumerate(cpus, first):
        world.pod(key, "pods", rank, {"cpu": cpu}, gated=True, labels=labels or {})


def ranks(session: Session) -> dict[str, list[int]]:
    """The ranks that got a node in this cycle, by pod set."""
    return {
        name: [rank for rank, node in enumerate(nodes) if node]
        for place in of(session, decisions.Place)
        for name, nodes in slots(place).items()
    }


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
@pytest.mark.parametrize(
    ("cpus", "minimum", "independent", "placed"),
    [((3, 1), 1, True, [1]), ((3, 1), 1, False, [1]), ((3, 1, 1), 2, False, [1, 2]), ((1, 3, 1), 1, True, [0, 2])],
    ids=["independent", "minimum of one", "minimum of two", "the second fits nowhere"],
)
def test_a_pod_that_fits_nowhere_keeps_back_no_other(
    cpus: tuple[int, ...], minimum: int, placed: list[int], phase: str, *, independent: bool
) -> None:
    """Nodes have 2 CPUs: the pod with 3 waits, those with 1 run."""
    world = small()
    wait(world, group(world, min_member=minimum, independent=independent, phase=phase), cpus)
    assert ranks(world.plan()) == {"pods": placed}


def test_a_member_that_fits_nowhere_keeps_back_no_growth() -> None:
    """One runs, the second fits nowhere, the third comes."""
    world = small()
    key = group(world, min_member=1, phase="Running")
    world.pod(key, "pods", 0, {"cpu": 1}, node="node-0", phase="Running")
    wait(world, key, (3, 1), first=1)
    assert ranks(world.plan()) == {"pods": [0, 2]}


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_minimum_below_the_sum_may_be_of_any_task(phase: str) -> None:
    """Task `a` fits nowhere, `b` runs; where the minimum names both, neither does."""
    world = small()
    world.gang("j", {"a": (1, {"cpu": 3}), "b": (1, {"cpu": 1})}, min_member=1, min_task_member={}, phase=phase)
    assert [place.new_slots for place in of(world.plan(), decisions.Place)] == [1]
    world = small()
    world.gang("j", {"a": (1, {"cpu": 3}), "b": (1, {"cpu": 1})}, phase=phase)
    assert not of(world.plan(), decisions.Place)


def test_the_world_of_a_framework_begins_with_its_first_ranks() -> None:
    """Its ranks are numbered: rank 0 is not left out."""
    world = small()
    wait(world, group(world, min_member=2), (3, 1, 1), labels={names.FRAMEWORK: "torch"})
    assert not of(world.plan(), decisions.Place)


def test_a_queue_that_has_too_little_for_one_pod_takes_another() -> None:
    """Capability 1: the pod with 2 CPUs waits."""
    world = small().queue("default", capability={"cpu": 1})
    world.plugins.append(Proportion({}))
    wait(world, group(world, independent=True, min_member=1, phase="Pending"), (2, 1))
    assert ranks(world.plan()) == {"pods": [1]}


@example(cpus=[2, 1, 1], least=2, nodes=1)
@given(cpus=st.lists(st.integers(1, 4), min_size=1, max_size=6), least=st.integers(1, 6), nodes=st.integers(1, 3))
def test_a_gang_starts_if_enough_of_its_pods_fit_one_on_a_node(cpus: list[int], least: int, nodes: int) -> None:
    """Pods with 2 CPUs take a node, those with 1 half of one, larger ones none."""
    world = small(nodes)
    least = min(least, len(cpus))
    wait(world, group(world, min_member=least), cpus)
    halves, best = sorted(cpu for cpu in cpus if cpu <= 2), 0
    while best < len(halves) and sum(halves[: best + 1]) <= 2 * nodes:
        best += 1
    assert bool(of(world.plan(), decisions.Place)) == (best >= least)


@pytest.mark.parametrize(("independent", "labels", "gone"), [
    pytest.param(True, {}, 1, id="independent"), pytest.param(False, {}, 1, id="any"),
    pytest.param(False, {names.FRAMEWORK: "torch"}, 4, id="the world of a framework, which shrinks from its end"),
])  # fmt: skip
def test_any_member_above_the_minimum_may_be_the_victim(
    labels: dict[str, str], gone: int, *, independent: bool
) -> None:
    """Four members on a node each; an urgent pod wants the node of the first: that one is evicted, and no other."""
    world = Cluster(4)
    key = group(world, independent=independent, min_member=1, phase="Running", priority_class_name="low")
    world.members(key, 4, GPU8, task="pods", node="node-{}", phase="Running", labels=labels)
    world.node("node-0", labels={"disk": "fast"})
    urgent = world.gang("urgent", {"worker": (1, GPU8)}, priority_class="high", spec={"nodeSelector": {"disk": "fast"}})
    session = world.cycle()
    assert [place.gang.key for place in of(session, decisions.Place)] == [urgent]
    assert victims(session) == {f"g-pods-{rank}" for rank in range(gone)}


def test_a_waiting_independent_pod_keeps_its_place_among_younger_gangs() -> None:
    """web-1 of a StatefulSet whose web-0 runs; then nodes come one by one."""
    world = small(1)
    key = group(world, independent=True, min_member=1, phase="Running")
    world.pod(key, "pods", 0, {"cpu": 2}, node="node-0", phase="Running")
    world.close(world.session(world.progress))
    wait(world, key, (2,), first=1)
    for name in "abc":
        world.pod(world.pod_group(name), "pods", 0, {"cpu": 2}, gated=True)
    starts = []
    for number in range(1, 5):
        world.node(f"node-{number}", cpu=2, gpus=0)
        starts += [place.gang.key for place in of(world.plan(), decisions.Place)]
    assert starts == [key, "ns/a", "ns/b", "ns/c"]
