"""Nodes on which members of a gang failed are left out for that gang, for longer each time."""

import pytest
from extender_world import of, only, slots
from repair_world import GPU8, RepairWorld

from extender.placementcontent import closed
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.avoidance import FIRST_S, FORGET_S, LONGEST_S, MOST
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api.kubernetes.meta import ReportedCondition, format_time
from muster.api.muster.placement import AvoidedNode, NodeRun, PodSetPlacement
from muster.api.muster.reason import reason_of


class FailingWorld(RepairWorld):
    """A world whose gangs have placements, and whose members fail."""

    def placed(self, name: str, members: int, **said: str) -> str:
        """A gang that runs where its placement says."""
        key = self.runs(name, members, **said)
        self.started(key)
        return key

    def started(self, key: str) -> None:
        """Its members as they are now, written into its placement."""
        gang = self.view(key)
        sets = [PodSetPlacement(name=each.name, runs=self.runs_of(each.taken)) for each in gang.pod_sets]
        self.place(decisions.Place(gang, sets, gang.next_epoch(), 0))
        self.close(self.session(self.progress))

    @staticmethod
    def runs_of(nodes: dict[int, str]) -> list[NodeRun]:
        """A run for each rank."""
        return [NodeRun(node=nodes[rank]) for rank in sorted(nodes)]

    def fails(self, key: str, rank: int, node: str, uid: str = "") -> Session:
        """A member that fails, or one that came again with this UID, and the planner's look at it."""
        self.pod(key, "worker", rank, GPU8, node=node, phase="Failed", **{"uid": uid} if uid else {})
        return self.noticed()

    def noticed(self) -> Session:
        """A cycle, with what it avoids written."""
        session = self.session(self.progress)
        self.avoid(session)
        return session

    def avoided(self, key: str) -> list[AvoidedNode]:
        """What the placement says."""
        return self.state.placements[key].status.avoided


@pytest.fixture
def world() -> FailingWorld:
    """Six nodes."""
    return FailingWorld().nodes(6)


def test_the_next_member_goes_elsewhere_and_the_gang_is_told_why(world: FailingWorld) -> None:
    """Already in the cycle that sees the failure, and others may use the node."""
    key = world.placed("a", 3)
    world.fails(key, 1, "node-1")
    [entry] = world.avoided(key)
    assert entry.until == format_time(world.now + FIRST_S)
    assert (entry.node, entry.failures, entry.cause) == ("node-1", 1, "a-worker-1 failed there")
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    world.pod(key, "worker", 1, GPU8, gated=True, uid="uid-again")
    assert slots(only(world.session(Allocate()), decisions.Place)) == {"worker": ["node-0", "node-3", "node-2"]}
    world.gang("b", {"worker": (1, GPU8)})
    assert "node-1" in str([slots(each) for each in of(world.session(Allocate()), decisions.Place)])


def test_a_gang_that_fits_nowhere_else_waits_and_names_the_node_as_the_cause(world: FailingWorld) -> None:
    """`explain` has the time."""
    key = world.placed("a", 6)
    world.fails(key, 1, "node-1")
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    world.pod(key, "worker", 1, GPU8, gated=True, uid="uid-again")
    [why] = of(world.session(Allocate()), decisions.Unschedulable)
    assert "1 avoided, because a member of this gang failed there" in why.message
    world.now += FIRST_S
    assert "node-1" in slots(only(world.session(Allocate()), decisions.Place))["worker"]


def test_each_further_failure_doubles_the_time_up_to_an_hour(world: FailingWorld) -> None:
    """Members of one life count once, however many fail after the first."""
    key = world.placed("a", 3)
    times = []
    for _ in range(8):
        for number in (1, 2):
            world.fails(key, 1, "node-1", uid=f"uid-{number}-{world.now}")
        [entry] = world.avoided(key)
        times.append(entry.until)
        world.now += 2 * LONGEST_S
    assert entry.failures == 8
    ends = [FIRST_S * 2**number for number in range(6)] + [LONGEST_S] * 2
    start = world.now - 8 * 2 * LONGEST_S
    assert times == [format_time(start + number * 2 * LONGEST_S + end) for number, end in enumerate(ends)]


def test_a_node_on_which_nothing_failed_for_a_day_begins_anew(world: FailingWorld) -> None:
    """The machine may have been repaired."""
    key = world.placed("a", 3)
    world.fails(key, 1, "node-1")
    world.now += FIRST_S + FORGET_S + 1
    world.fails(key, 2, "node-2")
    assert [(entry.node, entry.failures) for entry in world.avoided(key)] == [("node-2", 1)]


def test_the_annotation_says_the_first_time_or_that_nothing_is_left_out(world: FailingWorld) -> None:
    """0s: as before."""
    key = world.placed("a", 2, avoid_failed_node="10m")
    world.fails(key, 1, "node-1")
    assert world.avoided(key)[0].until == format_time(world.now + 600)
    other = world.placed("b", 2, avoid_failed_node="0s")
    world.fails(other, 1, "node-1")
    assert (world.avoided(other), world.state.failures.copy()) == ([], {})


def test_failures_everywhere_tell_no_node_apart(world: FailingWorld) -> None:
    """A program that fails by itself fails on every node; so does a gang on one node. Unless it asks for it."""
    key = world.placed("a", 3)
    world.members(key, 2, GPU8, node="node-{}", phase="Failed")
    world.noticed()
    assert world.avoided(key) == []
    alone, asked = world.placed("b", 1), world.placed("c", 1, avoid_failed_node="1m")
    for each in (alone, asked):
        world.fails(each, 0, "node-0")
    assert (world.avoided(alone), [entry.node for entry in world.avoided(asked)]) == ([], ["node-0"])


@pytest.mark.parametrize("how", ["Evicted", "NodeShutdown", "disrupted", "deleted"])
def test_who_was_evicted_has_not_failed(world: FailingWorld, how: str) -> None:
    """The node did nothing wrong."""
    key = world.placed("a", 3)
    more = {"deletion_timestamp": format_time(world.now + 30)} if how == "deleted" else {}
    pod = world.pod(key, "worker", 1, GPU8, node="node-1", phase="Running", **more)
    conditions = [ReportedCondition(type="DisruptionTarget", status="True")] if how == "disrupted" else []
    reason = how if how[0].isupper() else ""
    world.change(pod, status={"phase": "Failed", "reason": reason, "conditions": conditions})
    world.noticed()
    assert world.avoided(key) == []


def test_a_failure_counts_though_its_pod_is_gone_before_the_planner_looks(world: FailingWorld) -> None:
    """Controllers delete failed pods at once."""
    key = world.placed("a", 3)
    world.pod(key, "worker", 1, GPU8, node="node-1", phase="Failed")
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    world.noticed()
    assert [entry.node for entry in world.avoided(key)] == ["node-1"]


def test_another_planner_knows_what_the_placement_says(world: FailingWorld) -> None:
    """It counts the same failed pod no second time."""
    key = world.placed("a", 3)
    world.fails(key, 1, "node-1")
    world.state.failures.note(None, world.state.pods["uid-a-worker-1"])
    assert only(world.session(world.progress), decisions.Avoid).avoided is None
    session = world.session(Allocate())
    assert (session.avoided[key], session.failed_on[key]) == ({"node-1"}, {"node-1"})


def test_the_end_of_a_placement_keeps_what_failed(world: FailingWorld) -> None:
    """Cause and count, also after the time is over; a node that refuses a member meanwhile is left out again."""
    key = world.placed("a", 3)
    world.fails(key, 1, "node-1")
    close = decisions.ClosePlacement(world.view(key), "Abandoned", reason_of("why"))
    [entry] = closed(close, now=world.now + FIRST_S, avoided=()).status.avoided
    assert (entry.node, entry.failures, entry.cause) == ("node-1", 1, "a-worker-1 failed there")
    [entry] = closed(close, now=world.now + FIRST_S, avoided={"node-1"}).status.avoided
    assert (entry.failures, entry.until) == (1, format_time(world.now + FIRST_S + 60))


def test_no_more_nodes_are_remembered_than_the_limit() -> None:
    """A placement stays small."""
    world = FailingWorld().nodes(2 * MOST + 2)
    key = world.placed("a", 2 * MOST + 2)
    world.members(key, MOST + 1, GPU8, node="node-{}", phase="Failed")
    world.noticed()
    assert len(world.avoided(key)) == MOST


def test_a_job_that_restarts_leaves_the_node_out_though_its_pod_group_is_another_one(world: FailingWorld) -> None:
    """The first Placement has gone with the first PodGroup; the second one says the same, and counts on."""
    key = world.placed("a", 3)
    world.fails(key, 1, "node-1")
    for pod in list(world.state.pod_objects.values()):
        world.state.on_pod(pod, None)
    group = world.state.groups[key]
    world.notify(group, None)
    world.notify(world.state.placements[key], None)
    world.change(group, uid="uid-of-another")
    assert slots(only(world.plan(), decisions.Place)) == {"worker": ["node-0", "node-2", "node-3"]}
    [entry] = world.avoided(key)
    assert (entry.node, entry.failures) == ("node-1", 1)
