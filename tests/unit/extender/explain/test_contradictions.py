"""A report does not contradict itself, names the whole shortage, and offers nothing that cannot help."""

import pytest
from explain_world import Cases, ExplainWorld, placed
from extender_world import GPU1, GPU8

from extender.explain.text import lines_of
from extender.planner.reasons.placements import awaits_owner, reclaimed
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import PodGroupCondition

CASES = Cases()
LARGE = {"nvidia.com/gpu": 8, "cpu": 100}


@CASES(
    "no-room",
    words=("worker and master: room is missing for 4 pods of 8 nvidia.com/gpu each: 1 fits now",),
    nearest="3 more nodes with 8 free nvidia.com/gpu are needed",
)
def pod_sets_of_one_shape(world: ExplainWorld) -> None:
    """They count together, whichever of them is tried first."""
    world.nodes(4)
    world.runs("first", 3)
    world.gang("a", {"master": (1, GPU8), "worker": (3, GPU8)})


@CASES("no-room", words=("worker: room is missing for 2 pods of 8", "; 3 pods of master need room, too; "))
def pod_sets_of_other_shapes(world: ExplainWorld) -> None:
    """Those that were not tried are named."""
    world.nodes(3)
    world.runs("first", 2)
    world.gang("a", {"master": (3, GPU1), "worker": (2, GPU8)})


@CASES("no-room", words=("of 2 nodes: 2 too little nvidia.com/gpu; 1 lacks cpu, too; ",))
def two_resources(world: ExplainWorld) -> None:
    """A node counts once under its causes, for the first resource; the others that it lacks are named."""
    world.node("node-0", cpu=128)
    world.node("node-1", cpu=128)
    world.runs("first", 1, LARGE)
    world.runs("second", 1, GPU8, first_node=1)
    world.gang("a", {"worker": (1, LARGE)})


@CASES("never-fits", words=("queue small may use 4 nvidia.com/gpu (capability)", "which never fit; request less"))
def larger_than_its_queue(world: ExplainWorld) -> None:
    """The end of other gangs does not help."""
    world.nodes(4).queue("small", capability={"nvidia.com/gpu": "4"})
    world.gang("b", {"worker": (5, GPU8)}, queue="default")
    world.gang("a", {"worker": (1, GPU8)}, queue="small")


@CASES("no-room", words=("queue small may use 8 nvidia.com/gpu (capability) and uses 8 nvidia.com/gpu",))
def queue_full(world: ExplainWorld) -> None:
    """Gangs of other queues that come before it are no help either."""
    world.nodes(4).queue("small", capability={"nvidia.com/gpu": "8"})
    world.runs("first", 1, queue="small")
    world.gang("b", {"worker": (5, GPU8)}, queue="default")
    world.gang("a", {"worker": (1, GPU8)}, queue="small")


@pytest.mark.parametrize("name", CASES)
def test_shortage(name: str) -> None:
    """As the case says."""
    CASES.check(name)


@pytest.mark.parametrize("build", [larger_than_its_queue, queue_full])
def test_gangs_before_it_are_no_help_against_a_limit(build: object) -> None:
    """One waits before it, in the order of all queues."""
    world = ExplainWorld()
    assert callable(build)
    build(world)
    report = world.gang_report("a")
    assert [each.sentence for each in report.relief] == []


def test_an_evicted_gang_has_no_placement() -> None:
    """Its last one is Bound still, which says nothing about where it is."""
    world = ExplainWorld().nodes(2)
    key, placement = placed(world)
    world.change(placement, status={"phase": "Bound", "message": "all 2 members are bound"})
    evicted = awaits_owner(2, reclaimed(queue="speech"), "Job")
    said = PodGroupCondition(type="Unschedulable", status="True", reason="Evicted", message=str(evicted))
    world.change(world.state.groups[key], status={"conditions": [said]})
    lines = lines_of(world.gang_report("a"), world.now)
    assert [line.text for line in lines if line.label == "placement"] == ["none now"]
    assert not [line for line in lines if line.label == "on"]


def test_a_missing_podgroup_is_its_owners() -> None:
    """Its own name is generated, and means nothing to the user."""
    world = ExplainWorld().nodes(1)
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="fit", uid="u-fit", controller=True)
    world.pod("ns/podgroup-u-fit", "worker", 0, GPU8, owner_references=[owner])
    assert world.pod_report("podgroup-u-fit-worker-0").summary == "the pod's PodGroup of Job fit does not exist (yet)"
