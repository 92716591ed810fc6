"""A gang that was evicted says so, and for whom, until its owner has made new pods."""

from extender_world import World, of
from msgspec import structs
from victims_world import Cluster

from extender.planner.framework.decisions import Unschedulable
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupSpec, PodGroupStatus

EVICTED = "its 2 pods were evicted: preempted by Job high of priority 10 in queue default; it waits until the Job makes"


def test_the_whole_gang_is_told_who_took_its_room() -> None:
    """In its own namespace by name."""
    world = Cluster(2)
    world.runs("low", 2)
    world.asks("high", 2)
    [why] = [each for each in of(world.cycle(), Unschedulable) if each.gang.key == "ns/low"]
    assert (why.reason, why.message) == ("Evicted", f"{EVICTED} new ones")


def test_that_stays_the_reason_while_no_pod_is_there() -> None:
    """That 0 of 2 pods exist would not say what has happened; that 1 of 2 does is news."""
    world = World().nodes(1)
    said = PodGroupCondition(type="Unschedulable", status="True", reason="Evicted", message=EVICTED)
    status = PodGroupStatus(phase="Inqueue", conditions=[said])
    spec = PodGroupSpec(min_member=2, queue="default")
    group = PodGroup(metadata=world.meta("a", owner_references=[]), spec=spec, status=status)
    world.state.on_pod_group(None, group)
    [why] = of(world.plan(), Unschedulable)
    assert (why.reason, why.message) == ("Evicted", EVICTED)
    world.pod(group.metadata.key, "pods", 0, {"cpu": 1}, gated=True)
    [why] = of(world.plan(), Unschedulable)
    assert why.reason == "NotEnoughPods"
    none_yet = structs.replace(group, status=PodGroupStatus(phase="Inqueue"), metadata=world.meta("b"))
    world.state.on_pod_group(None, none_yet)
    assert {each.reason for each in of(world.plan(), Unschedulable)} == {"NotEnoughPods"}
