"""A queue's capability holds also while a gang is placed and pods without a gang are bound at the same moment."""

from contextlib import nullcontext
from typing import Any

import pytest
from extender_world import NOW, World, of
from guarded_api import Sent
from guarded_extender import Process, process_of
from msgspec.structs import replace

from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.timing import DEADLINE_PER_SLOT_S, DEADLINE_S
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import PLACEMENTS, Placement, PlacementSpec, PlacementStatus
from muster.api.muster.reason import reason_of
from muster.kube.errors import Conflict, NotFound

CPU1, CPU2 = {"cpu": 1}, {"cpu": 2}


def placed(world: World, process: Process, user: str = "") -> None:
    """One cycle places the gang, while a pod of its queue is being bound, and its placement is written."""
    session = world.session(Allocate())
    [place] = of(session, decisions.Place)
    world.state.ledger.assume("uid-p", "small", world.state.classes.of_amounts({"cpu": 1000}), user=user)
    process.committer._placements.place(session, place)


@pytest.mark.parametrize(("limit", "user", "written"), [
    ({"capability": {"cpu": 4}}, "alice", []),
    ({"capability": {"cpu": 5}}, "alice", ["a"]),
    ({"max-per-user": "cpu=4"}, "alice", []),
    ({"max-per-user": "cpu=4"}, "bob", ["a"]),
])  # fmt: skip
def test_no_gang_is_placed_beside_pods_that_fill_a_queue(limit: dict[str, Any], user: str, written: list[str]) -> None:
    """The pod is being bound, and the planner has not seen it: the next cycle decides anew.

    Nor beside one that takes what its user may have, by a limit that counts for nobody else.
    """
    world = World().nodes(1).queue("small", **limit)
    world.gang("a", {"worker": (2, CPU2)}, queue="small", user=user)
    with process_of(world) as process:
        placed(world, process, "alice")
        assert process.done("create") == written


def test_the_deadline_leaves_time_for_all_pods_that_are_being_made() -> None:
    """The pods of this gang, and of the gangs that were placed before."""
    world = World().nodes(4).queue("small")
    world.gang("before", {"worker": (5, CPU1)}, queue="small")
    world.plan()
    assert world.session().snapshot.placed_slots == 5
    world.gang("a", {"worker": (10, {"cpu": 0})}, queue="small")
    with process_of(world) as process:
        placed(world, process)
        deadline_s = parse_time(process.api.kind(PLACEMENTS)["ns/a"].spec.deadline)
    assert deadline_s == pytest.approx(NOW + DEADLINE_S + 15 * DEADLINE_PER_SLOT_S, abs=1)


LIMITS = [{"capability": {"cpu": 5}}, {"max-per-user": "cpu=9"}, {"limit-windows": "Mon-Sun 00:00-24:00 UTC cpu=9"}]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: next(iter(limit)))
@pytest.mark.parametrize("fails", [0, 1])
def test_what_is_being_placed_counts_for_pods_until_it_is_written_or_failed(limit: dict[str, Any], fails: int) -> None:
    """Bind sees it in the same place; pods of its user that are bound meanwhile count together with it."""
    world = World().nodes(1).queue("small", **limit)
    world.gang("a", {"worker": (2, CPU2)}, queue="small", user="alice")
    queues, seen = world.state.ledger.queues, []

    def meddle(_: Sent) -> None:
        users = {key: dict(use.staying) for key, use in queues.users.items()}
        seen.append((dict(queues.queues["small"].staying), users))
        if fails:
            raise Conflict("not now")

    with process_of(world) as process:
        process.api.meddle = meddle
        with pytest.raises(Conflict) if fails else nullcontext():
            placed(world, process)
    assert seen[0][0] == {"cpu": 5000, "pods": 2}
    if "capability" not in limit:
        assert seen[0][1] == {("small", "alice"): {"cpu": 4000, "pods": 2}, ("small", ""): {"cpu": 1000}}
    assert queues.queues["small"].staying["cpu"] == (1000 if fails else 5000)
    assert (("small", "alice") in queues.users) is (not fails)


def of_an_earlier_gang(world: World, pod_group_uid: str) -> Placement:
    """A placement whose end was watched before the answer to our write of it came: only we still know it."""
    stale = Placement(metadata=world.meta("a"), spec=PlacementSpec(pod_group_uid=pod_group_uid, epoch=1))
    world.state.on_placement(None, stale)
    return stale


def small(cpus: int) -> World:
    """A node, and a gang of two pods in a queue of so many CPUs."""
    world = World().nodes(1).queue("small", capability={"cpu": cpus})
    world.gang("a", {"worker": (2, CPU2)}, queue="small")
    return world


def test_a_placement_that_only_we_know_is_in_nobodys_way() -> None:
    """A gang of the same name is placed, though what is known of the earlier one cannot be deleted."""
    world = small(8)
    with process_of(world) as process:
        stale = of_an_earlier_gang(world, "another-uid")

        def fails(sent: Sent) -> None:
            if sent.site.endswith("create"):
                raise Conflict("not now")

        process.api.meddle = fails
        with pytest.raises(Conflict):
            placed(world, process)
        assert not world.state.placements
        process.api.meddle = lambda _: None
        of_an_earlier_gang(world, "another-uid")
        placed(world, process)
        assert process.done("create") == ["a"]
    assert world.state.placements.get(stale.metadata.key) is not stale


def test_a_placement_that_is_gone_when_it_is_changed_is_forgotten() -> None:
    """Or it would be changed in vain in every cycle from then on."""
    world = small(8)
    with process_of(world) as process:
        stale = of_an_earlier_gang(world, world.view("ns/a").uid)
        world.state.on_placement(stale, replace(stale, status=PlacementStatus(phase="Reserved")))
        with pytest.raises(NotFound):
            process.committer._placements.unreserve(decisions.Unreserve(world.view("ns/a"), reason_of("nobody waits")))
    assert not world.state.placements


def test_a_pod_group_that_is_gone_when_our_write_is_answered_stays_forgotten() -> None:
    """And one of the same name that came meanwhile stays."""
    world = small(8)
    group = world.state.groups["ns/a"]
    world.state.on_pod_group(group, None)
    world.state.on_pod_group_written(group)
    assert not world.state.groups
    other = replace(group, metadata=replace(group.metadata, uid="another-uid"))
    world.state.on_pod_group(None, other)
    world.state.on_pod_group_written(group)
    assert world.state.groups["ns/a"] is other


def test_a_gang_that_only_changes_its_nodes_needs_no_more_of_its_queue() -> None:
    """The queue is full with the slots that it has."""
    world = small(5)
    [place] = of(world.plan(), decisions.Place)
    gang = world.view("ns/a")
    assert gang.active
    with process_of(world) as process:
        world.state.ledger.assume("uid-p", "small", world.state.classes.of_amounts({"cpu": 1000}))
        process.committer._placements.place(world.session(), decisions.Place(gang, place.pod_sets, 2, 2))
        assert process.done("merge_patch") == ["a"]
