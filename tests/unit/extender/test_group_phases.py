"""The phase of a PodGroup follows its members, as Volcano's does; its conditions tell what is in the way now."""

import pytest
from extender_world import GPU8, World
from msgspec import structs

from extender.groupcontent import status_body, wanted_status
from extender.planner.framework.decisions import Unschedulable
from extender.planner.reasons.placements import awaits_owner, preempted
from extender.planner.state.gangs import GangView
from muster.api.muster.reason import reason_of
from muster.api.volcano.scheduling import PodGroupCondition, PodGroupPhase, PodGroupStatus

DELETED = {"deletion_timestamp": "2027-01-15T08:00:00Z"}


def gang(present: PodGroupPhase, *phases: str) -> GangView:
    """A gang of three that was whole, with this phase; its members that are left are in these, perhaps deleted."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, phase="Inqueue")
    world.plan()
    pods = [world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running") for rank in range(3)]
    world.close(world.plan())
    for rank, pod in enumerate(pods):
        if rank < len(phases):
            phase, _, deleted = phases[rank].partition(", ")
            world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase=phase, **(DELETED if deleted else {}))
        else:
            world.state.on_pod(pod, None)
    group = world.state.groups[key]
    world.state.on_pod_group(group, structs.replace(group, status=PodGroupStatus(phase=present)))
    return world.view(key)


@pytest.mark.parametrize(("view", "decided", "phase"), [
    (("Running", "Running", "Running", "Running"), "", "Running"),
    (("Running", "Running", "Running"), "", "Unknown"),
    (("Unknown", "Running", "Running", "Running"), "", "Running"),
    (("Unknown", "Running"), "", "Unknown"),
    (("Running",), "", "Pending"),
    (("Unknown",), "", "Pending"),
    (("Pending",), "enqueued", "Inqueue"),
    (("Inqueue",), "", "Inqueue"),
    (("Running", "Pending"), "", "Running"),
    (("Running", "Failed"), "", "Pending"),
    (("Running", "Failed", "Failed", "Failed"), "", "Completed"),
    (("Running", "Succeeded", "Succeeded", "Running"), "", "Running"),
    (("Completed",), "", "Completed"),
    (("Running", "Failed, deleted", "Failed, deleted", "Failed"), "", "Running"),
    (("Completed", "Failed, deleted", "Failed", "Failed"), "", "Completed"),
    (("Running", "Succeeded, deleted", "Succeeded", "Succeeded"), "", "Completed"),
])  # fmt: skip
def test_the_phase_follows_the_members(view: tuple[PodGroupPhase, ...], decided: str, phase: str) -> None:
    """Under its minimum a running gang is Unknown; with no member scheduled it is Pending, or Inqueue."""
    present, *phases = view
    status = wanted_status(gang(present, *phases), enqueued=bool(decided), placed=False, waits=None, now=0.0)
    assert status.phase == phase


def test_a_gang_whose_missing_member_is_on_its_way_is_running() -> None:
    """As in Volcano a member that was given a node in this cycle counts."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    world.plan()
    pods = [world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running") for rank in range(2)]
    world.close(world.plan())
    world.state.on_pod(pods[1], None)
    status = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now)
    assert status.phase == "Unknown"
    world.pod(key, "worker", 1, GPU8, gated=True)
    world.plan()
    status = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now)
    assert status.phase == "Running"


def test_a_gang_that_is_scaled_up_stays_running() -> None:
    """It has what it started with; a policy on Unknown would restart it."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    world.plan()
    world.members(key, 2, GPU8, node="node-{}", phase="Running")
    world.close(world.plan())
    world.scale(key, "worker", 4)
    assert wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now).phase == "Running"


def test_an_obstacle_is_over_when_the_gang_is_admitted_or_placed_and_stays_while_it_is_not_tried() -> None:
    """Events of the Job repeat what the condition says."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Pending")
    view = world.view(key)
    waits = Unschedulable(view, "NotEnoughResources", reason_of("no room"))
    told = wanted_status(view, enqueued=False, placed=False, waits=waits, now=0.0)
    assert [(each.type, each.status) for each in told.conditions] == [("Unschedulable", "True")]
    group = world.state.groups[key]
    world.state.on_pod_group(group, structs.replace(group, status=told))
    for enqueued, placed, expected in (
        (False, False, ("True", "NotEnoughResources")),
        (True, False, ("False", "Admitted")),
        (True, True, ("False", "Placed")),
    ):
        [condition] = wanted_status(world.view(key), enqueued=enqueued, placed=placed, waits=None, now=0.0).conditions
        assert (condition.status, condition.reason) == expected


def test_a_condition_has_beside_its_message_what_is_read_of_it() -> None:
    """What a gang lacks; who has its room, though others may not be told, and so once it has ended."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (2, {"nvidia.com/gpu": 80})}, phase="Pending")
    [lacks] = world.plan().decided(Unschedulable)
    why = awaits_owner(2, preempted(10, "q"), "Job")
    for waits, data in (
        (lacks, {"kind": "ever", "pods": 2, "resource": "nvidia.com/gpu", "amount": 80_000}),
        (Unschedulable(world.view(key), "Evicted", why), why.params),
        (None, why.params),
        (Unschedulable(world.view(key), "Evicted", reason_of("it went")), None),
    ):
        told = wanted_status(world.view(key), enqueued=False, placed=False, waits=waits, now=0.0)
        [condition] = told.conditions
        assert (condition.why.params if condition.why else None) == data
        group = world.state.groups[key]
        world.state.on_pod_group(group, structs.replace(group, status=told))


@pytest.mark.parametrize("ended", ["Failed", "Succeeded"])
def test_an_evicted_gang_has_not_ended(ended: str) -> None:
    """Its pods end before they are gone, however they exit, and none is left afterwards: it waits."""
    world, key = evicted("Running")
    for left in True, False:
        pod = world.pod(key, "worker", 0, GPU8, node="node-0", phase=ended, **DELETED)
        if not left:
            world.state.on_pod(pod, None)
        status = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now)
        world.change(world.state.groups[key], status={"phase": status.phase})
        assert status.phase == ("Running" if left else "Pending")


def evicted(phase: PodGroupPhase) -> tuple[World, str]:
    """A gang of one pod, which was told a moment ago that it is evicted."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (1, GPU8)}, phase=phase)
    said = PodGroupCondition(type="Unschedulable", status="True", reason="Evicted", message="its pod was evicted")
    world.change(world.state.groups[key], status={"conditions": [said]})
    return world, key


@pytest.mark.parametrize(("phase", "status"), [("Inqueue", "True"), ("Completed", "False")])
def test_who_evicted_a_gang_stays_known_until_there_are_new_pods(phase: PodGroupPhase, status: str) -> None:
    """Its owner may need a while for them, or make none any more."""
    world, key = evicted(phase)
    told = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now + 3600)
    [condition] = told.conditions
    assert (told.phase, condition.status, condition.message) == (phase, status, "its pod was evicted")
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    again = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now)
    assert {(each.type, each.status, each.reason) for each in again.conditions} == {
        ("Unschedulable", "False", "Scheduled"), ("Scheduled", "True", "Scheduled")
    }  # fmt: skip


def test_a_status_is_written_with_what_its_wire_type_leaves_out() -> None:
    """A merge patch would keep old counts and the old place."""
    gone = {"running": 0, "succeeded": 0, "failed": 0, "place": None, "expectedStart": None}
    assert status_body(PodGroupStatus(phase="Inqueue")) == {"phase": "Inqueue", **gone}
    assert status_body(PodGroupStatus(phase="Running", running=2, place=3)) == {
        "phase": "Running", **gone, "running": 2, "place": 3
    }  # fmt: skip


@pytest.mark.parametrize("started", [False, True])
def test_members_that_wait_again_are_not_scheduled_any_more(*, started: bool) -> None:
    """Of a gang that runs and lacks growth they are."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    if started:
        world.start(key, GPU8)
    said = PodGroupCondition(type="Scheduled", status="True", reason="Scheduled", message="all")
    said.last_transition_time = "2026-01-01T00:00:00Z"
    world.change(world.state.groups[key], status={"conditions": [said]})
    waits = Unschedulable(world.view(key), "NotEnoughResources", reason_of("no room"))
    told = wanted_status(world.view(key), enqueued=False, placed=False, waits=waits, now=world.now)
    found = {each.type: (each.status, each.reason, each.message) for each in told.conditions}
    assert found["Unschedulable"] == ("True", "NotEnoughResources", "no room")
    assert found["Scheduled"] == (("True", "Scheduled", "all") if started else ("False", *found["Unschedulable"][1:]))
    at = {each.type: each.last_transition_time for each in told.conditions}
    assert at["Scheduled"] == ("2026-01-01T00:00:00Z" if started else at["Unschedulable"])
