"""Causes of gangs that start, run or have ended, with the right numbers."""

import pytest
from explain_world import Cases, ExplainWorld, placed, report_of
from extender_world import GPU1, GPU8

from extender.planner.reasons.placements import awaits_owner, reclaimed
from muster.api.volcano.scheduling import PodGroupCondition

IN_FLIGHT = 1024
CASES = Cases()


@CASES("in-flight-limit", words=("1024 slots of other gangs are starting now",), helps=("no change is needed",))
def in_flight(world: ExplainWorld) -> None:
    """Two gangs with 1,024 pods are starting; the third is not a small one."""
    world.nodes(20, gpus=100)
    for name in ("first", "second"):
        world.gang(name, {"worker": (IN_FLIGHT // 2, {"nvidia.com/gpu": 1})})
    world.plan()
    world.now += 1
    world.gang("a", {"worker": (10, {"nvidia.com/gpu": 1})})


@CASES("starting", words=("placement 1 is being carried out, 0 members have their node",))
def not_created_yet(world: ExplainWorld) -> None:
    """The placement stands; one of two pods exists."""
    world.nodes(2)
    key, placement = placed(world)
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=placement.spec.epoch)


@CASES("running", words=("it runs: 2 members have their node, 2 of them run",))
def just_bound(world: ExplainWorld) -> None:
    """Both run; the placement does not say so yet."""
    world.nodes(2)
    key, placement = placed(world)
    world.members(key, 2, GPU8, node="node-{}", phase="Running", epoch=placement.spec.epoch)


@CASES("placement-failed", words=("kube-scheduler refused a-worker-0 on node node-0", "the gang is planned again"))
def member_refused(world: ExplainWorld) -> None:
    """kube-scheduler said no to a pinned member."""
    world.nodes(2)
    key, placement = placed(world)
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=placement.spec.epoch, refused=True)


@CASES("placement-failed", words=("2 members did not arrive before the deadline",))
def deadline_passed(world: ExplainWorld) -> None:
    """Nobody came."""
    world.nodes(2)
    placed(world)
    world.now += 61


@CASES("placement-failed", words=("node node-1: cordoned",))
def planned_node_cordoned(world: ExplainWorld) -> None:
    """Between plan and bind."""
    world.nodes(2)
    placed(world)
    world.node("node-1", unschedulable=True)


@CASES(
    "half-placed",
    words=("only 1 of the 2 pods that start together have a node", "if the others get no node within 30 s"),
    helps=("Job ns/first (1 pod on 1 node) ends",),
)
def half_placed(world: ExplainWorld) -> None:
    """One of two is bound, and the placement is over."""
    world.nodes(2)
    world.runs("first", 1, GPU8, first_node=1)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)


@CASES("finished", words=("it has finished",))
def finished(world: ExplainWorld) -> None:
    """Its pods have ended."""
    world.nodes(1)
    world.gang("a", {"worker": (1, GPU8)}, phase="Completed")


@CASES("failed", words=(
    "it failed: its 8 pods were evicted: reclaimed by queue speech for a gang of that queue",
    "; Job was active too long",
))  # fmt: skip
def evicted_for_good(world: ExplainWorld) -> None:
    """Its pods went for another gang, and its Job gave up."""
    world.nodes(1)
    group = world.state.groups[world.gang("a", {"worker": (8, GPU1)}, phase="Completed")]
    evicted = awaits_owner(8, reclaimed(queue="speech"), "Job")
    condition = PodGroupCondition(type="Unschedulable", status="False", reason="Evicted", message=evicted)
    world.change(group, status={"conditions": [condition], "ending": "Job was active too long"})


@CASES("failed", words=("its 8 pods were evicted: reclaimed by queue speech for Job ns/b; Job",))
def evicted_by_a_neighbour(world: ExplainWorld) -> None:
    """The gang is of another namespace; who reads all of them may know which it is."""
    evicted_for_good(world)
    _, placement = placed(world, name="b", members=1)
    world.change(placement, status={"made_room": ["ns/other", "ns/a"]})


def test_a_gang_that_waits_for_room_again_names_who_displaced_it() -> None:
    """Its condition has another reason by then."""
    world = ExplainWorld().nodes(1)
    _, placement = placed(world, name="b", members=1)
    world.gang("a", {"worker": (8, GPU1)})
    assert not world.gang_report("a").details
    world.change(placement, status={"made_room": ["ns/other", "ns/a"]})
    assert world.gang_report("a").details == ["the gang's pods were evicted for Job ns/b"]


def test_evictions_never_cause_a_failure_by_backoff_limit() -> None:
    """They do not count towards it: a pod that somebody deleted did."""
    world = ExplainWorld()
    evicted_for_good(world)
    ending = "more of its pods failed than its backoffLimit 0 allows: pod a-1 was deleted"
    known = world.state.groups["ns/a"]
    world.change(known, status={"conditions": known.status.conditions, "ending": ending})
    assert world.gang_report("a").summary == f"it failed: {ending}"


def test_a_gang_that_runs_again_names_who_displaced_it() -> None:
    """With the time of its start, and where to read the rest."""
    world = ExplainWorld().nodes(3)
    _, placement = placed(world, name="b", members=1)
    world.change(placement, status={"made_room": ["ns/a"]})
    key, own = placed(world, members=1)
    for pod in list(world.state.pod_objects.values()):
        if pod.metadata.name.startswith("a-"):
            world.state.on_pod(pod, None)
    world.pod(key, "worker", 0, GPU8, node="node-1", phase="Running")
    at = "2027-01-15T08:00:24Z"
    world.change(own, status={"phase": "Bound", "started": True, "started_at": at})
    [detail] = world.gang_report("a").details
    assert detail == (
        f"the gang's pods were evicted for Job ns/b; its last start was at {at}; "
        "`muster history a -n ns` shows all of its events"
    )


@CASES("failed", words=("it failed: 2 of its pods failed",))
def without_success(world: ExplainWorld) -> None:
    """All there is are failed pods."""
    world.nodes(1)
    world.change(world.state.groups[world.gang("a", {"worker": (2, GPU1)}, phase="Completed")], status={"failed": 2})


@CASES("running", words=("3 members have their node, 3 of them run",))
def running(world: ExplainWorld) -> None:
    """On three nodes."""
    world.nodes(3)
    world.runs("a", 3, GPU8)


@CASES("about-to-start", words=("the planner's next cycle gives it worker: node-0 (2), node-1 (2)",))
def about_to_start(world: ExplainWorld) -> None:
    """Nothing is wrong but that the planner has not looked yet."""
    world.nodes(2)
    world.gang("a", {"worker": (4, {"nvidia.com/gpu": 4})})


@pytest.mark.parametrize("name", CASES)
def test_a_gang_is_explained(name: str) -> None:
    """Cause, sentence, nodes per cause, nearest miss and what would help."""
    CASES.check(name)


def test_a_half_placed_gang_is_told_the_recovery_timeout_of_its_extender() -> None:
    """It is a setting there, and an option here."""
    world = ExplainWorld()
    half_placed(world)
    dump = world.dump()
    dump.set_timing("", recovery_s=5)
    assert "if the others get no node within 5 s" in report_of(dump, "a").summary


def test_what_a_gang_has_is_counted_by_how_far_it_is() -> None:
    """Bound, pinned, not created, and what its placement holds."""
    world = ExplainWorld().nodes(4)
    key, _ = placed(world, members=4)
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", pin="node-0", epoch=1)
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=1)
    world.pod(key, "worker", 2, GPU8, gated=True)
    report = world.gang_report("a")
    [workers] = report.pod_sets
    assert (workers.bound, workers.pinned, workers.gated, workers.missing, workers.held) == (1, 1, 1, 1, 3)
    assert (report.placement.epoch, report.placement.phase, report.placement.left_s) == (1, "Planned", 60.0)
    assert report.details[:3] == [
        "1 waiting for kube-scheduler: worker 1 on node-1",
        "1 behind Muster's scheduling gate, which a later cycle removes: worker 2 on node-2",
        "1 not created yet by the owner: worker 3 on node-3",
    ]


def test_members_above_the_minimum_that_wait_say_so() -> None:
    """The gang runs; the rest of its pods find no room."""
    world = ExplainWorld().nodes(2)
    world.runs("first", 1, GPU8, first_node=1)
    key = world.gang("a", {"worker": (2, GPU8)}, min_member=1, min_task_member={"worker": 1}, phase="Running")
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)
    report = world.gang_report("a")
    assert report.cause == "running-extras-wait"
    assert "worker: 1 of 2 pods has a node; 1 more waits for room" in report.summary
