"""Every cause is named, with the right numbers."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from explain_world import ExplainWorld
from state_oracle import recomputed_use

from extender.explain.find import explain
from extender.explain.whatif import WhatIf
from extender.planner.reasons.placements import awaits_owner, reclaimed
from extender.planner.standing import waiting
from muster.api.kubernetes.core import Taint
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import AvoidedNode, Placement
from muster.api.volcano.scheduling import PodGroupCondition

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
GPU1 = {"cpu": 1, "nvidia.com/gpu": 1}
IN_FLIGHT = 1024


@dataclass(frozen=True)
class Case:
    """A cluster, and what is said about the gang `a` (or a pod) in it."""

    build: Callable[[ExplainWorld], object]
    cause: str
    words: tuple[str, ...] = ()
    """Parts of the summary."""
    lost: tuple[tuple[str, int], ...] = ()
    """Words of each cause and the number of nodes lost to it."""
    nearest: str = ""
    helps: tuple[str, ...] = ()
    """Beginnings of the suggestions."""


def placed(
    world: ExplainWorld, *, name: str = "a", members: int = 2, gpus: int = 8, epoch: int | None = None
) -> tuple[str, Placement]:
    """A gang with a placement that is being carried out."""
    key = world.gang(name, {"worker": (members, {"nvidia.com/gpu": gpus})})
    world.plan()
    placement = world.state.placements[key]
    if epoch is not None:
        placement.spec.epoch = epoch
    return key, placement


def missing_cpu(world: ExplainWorld) -> None:
    """Four nodes of 32 CPUs; a runs 20 on each of three."""
    world.nodes(4)
    world.runs("first", 3, {"cpu": 20})
    world.gang("a", {"worker": (3, {"cpu": 16})})


def missing_memory(world: ExplainWorld) -> None:
    """A pod of 200Gi is on one of two nodes with 256Gi."""
    world.nodes(2)
    world.runs("first", 1, {"memory": "200Gi"})
    world.gang("a", {"worker": (3, {"memory": "100Gi"})})


def missing_gpus(world: ExplainWorld) -> None:
    """Ten nodes: five cordoned, two with 7 of 8 GPUs free, three full."""
    for index in range(10):
        world.node(f"node-{index}", unschedulable=index >= 5)
    world.runs("full", 3, GPU8)
    world.runs("small", 2, GPU1, first_node=3)
    world.gang("a", {"worker": (3, GPU8)})


def missing_pod_slots(world: ExplainWorld) -> None:
    """Nodes take 110 pods."""
    world.nodes(1)
    key = world.gang("first", {"worker": (110, {})}, phase="Running")
    world.members(key, 110, {}, node="node-0", phase="Running")
    world.gang("a", {"worker": (1, {})})


def everything_cordoned(world: ExplainWorld) -> None:
    """Three nodes, all cordoned, with the taint that Kubernetes adds then."""
    world.nodes(3, unschedulable=True, taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")])
    world.gang("a", {"worker": (2, GPU8)})


def tainted(world: ExplainWorld) -> None:
    """One free node, two with a taint."""
    world.node("node-0")
    for index in (1, 2):
        world.node(f"node-{index}", taints=[Taint(key="dedicated", value="x", effect="NoSchedule")])
    world.gang("a", {"worker": (3, GPU8)})


def selected(world: ExplainWorld) -> None:
    """One of three nodes carries the label."""
    world.node("node-0", labels={"pool": "mine"})
    world.node("node-1", labels={"pool": "other"})
    world.node("node-2")
    world.gang("a", {"worker": (2, GPU8)}, spec={"nodeSelector": {"pool": "mine"}})


def affine(world: ExplainWorld) -> None:
    """Required node affinity matches no node."""
    world.nodes(4, labels={"zone": "a"})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world.gang("a", {"worker": (1, GPU1)}, spec={"affinity": {"nodeAffinity": required}})


def claim_missing(world: ExplainWorld) -> None:
    """The pods mount a claim that nobody has made."""
    world.nodes(3)
    world.gang(
        "a", {"worker": (1, GPU1)}, spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}
    )


def spread_over_nothing(world: ExplainWorld) -> None:
    """One of three nodes has the label that pods are spread over, and maxSkew is kept by it alone."""
    world.node("node-0", labels={"zone": "a"})
    world.node("node-1")
    world.node("node-2")
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    world.gang("a", {"worker": (2, GPU8)}, spec={"topologySpreadConstraints": [constraint]})


def too_few_pods(world: ExplainWorld) -> None:
    """Pods of another owner: three of five exist."""
    world.nodes(5)
    world.members(world.gang("a", {}, min_member=5), 3, GPU8, task="pods", gated=True)


def queue_closed(world: ExplainWorld) -> None:
    """Nothing else is wrong."""
    world.nodes(1)
    world.queue("shut", "Closed")
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="shut")


def queue_not_for_namespace(world: ExplainWorld) -> None:
    """Nothing else is wrong; the labels of the namespace are not known."""
    world.nodes(1)
    world.queue("theirs", **{"namespace-selector": "team=vision"})
    world.gang("a", {"worker": (1, GPU1)}, queue="theirs")


def queue_missing(world: ExplainWorld) -> None:
    """Nothing else is wrong."""
    world.nodes(1)
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="nowhere")


def never_fits(world: ExplainWorld) -> None:
    """Five nodes of eight GPUs would be needed, and there are three."""
    world.nodes(3)
    world.gang("a", {"worker": (5, GPU8)}, phase="Pending")


def never_fits_together(world: ExplainWorld) -> None:
    """Each task alone would fit."""
    world.nodes(4)
    world.gang("a", {"master": (1, GPU8), "worker": (5, GPU8)}, phase="Pending")


def unknown_resource(world: ExplainWorld) -> None:
    """No node has ever offered it."""
    world.nodes(2)
    world.gang("a", {"worker": (1, {"example.com/fpga": 1})})


def refused_lately(world: ExplainWorld) -> None:
    """One node of two refused a member; the gang needs both."""
    world.nodes(2)
    _, placement = placed(world)
    placement.status.phase = "Abandoned"
    placement.status.message = "kube-scheduler refused a-worker-1 on node node-1"
    placement.status.avoided = [_avoided("node-1", world.now + 30)]
    world.state.on_placement(None, placement)


def _avoided(node: str, until: float) -> AvoidedNode:
    return AvoidedNode(node=node, until=format_time(until))


def in_flight(world: ExplainWorld) -> None:
    """Two gangs with 1,024 pods are starting; the third is not a small one."""
    world.nodes(20, gpus=100)
    for name in ("first", "second"):
        world.gang(name, {"worker": (IN_FLIGHT // 2, {"nvidia.com/gpu": 1})})
    world.plan()
    world.now += 1
    world.gang("a", {"worker": (10, {"nvidia.com/gpu": 1})})


def not_created_yet(world: ExplainWorld) -> None:
    """The placement stands; one of two pods exists."""
    world.nodes(2)
    key, placement = placed(world)
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=placement.spec.epoch)


def just_bound(world: ExplainWorld) -> None:
    """Both run; the placement does not say so yet."""
    world.nodes(2)
    key, placement = placed(world)
    world.members(key, 2, GPU8, node="node-{}", phase="Running", epoch=placement.spec.epoch)


def member_refused(world: ExplainWorld) -> None:
    """kube-scheduler said no to a pinned member."""
    world.nodes(2)
    key, placement = placed(world)
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=placement.spec.epoch, refused=True)


def deadline_passed(world: ExplainWorld) -> None:
    """Nobody came."""
    world.nodes(2)
    placed(world)
    world.now += 61


def planned_node_cordoned(world: ExplainWorld) -> None:
    """Between plan and bind."""
    world.nodes(2)
    placed(world)
    world.node("node-1", unschedulable=True)


def half_placed(world: ExplainWorld) -> None:
    """One of two is bound, and the placement is over."""
    world.nodes(2)
    world.runs("first", 1, GPU8, first_node=1)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)


def finished(world: ExplainWorld) -> None:
    """Its pods have ended."""
    world.nodes(1)
    world.gang("a", {"worker": (1, GPU8)}, phase="Completed")


def evicted_for_good(world: ExplainWorld) -> None:
    """Its pods went for another gang, and its Job gave up."""
    world.nodes(1)
    group = world.state.groups[world.gang("a", {"worker": (8, GPU1)}, phase="Completed")]
    evicted = awaits_owner(8, reclaimed(queue="speech"), "Job")
    said = PodGroupCondition(type="Unschedulable", status="False", reason="Evicted", message=evicted)
    said_so = {"conditions": [said], "ending": "more of its pods failed than backoffLimit 6 allows"}
    world.change(group, status=said_so)


def evicted_by_a_neighbour(world: ExplainWorld) -> None:
    """The gang is of another namespace; who reads all of them may know which it is."""
    evicted_for_good(world)
    _, placement = placed(world, name="b", members=1)
    placement.status.made_room = ["ns/other", "ns/a"]
    world.state.on_placement(None, placement)


def without_success(world: ExplainWorld) -> None:
    """All there is are failed pods."""
    world.nodes(1)
    world.change(world.state.groups[world.gang("a", {"worker": (2, GPU1)}, phase="Completed")], status={"failed": 2})


def running(world: ExplainWorld) -> None:
    """On three nodes."""
    world.nodes(3)
    world.runs("a", 3, GPU8)


def about_to_start(world: ExplainWorld) -> None:
    """Nothing is wrong but that the planner has not looked yet."""
    world.nodes(2)
    world.gang("a", {"worker": (4, {"nvidia.com/gpu": 4})})


CASES = {
    "cpu": Case(
        missing_cpu,
        "no-room",
        ("worker: room is missing for 3 pods of 16 cpu each: 2 fit now; of 4 nodes: 3 too little cpu; nearest: ",),
        (("too little cpu", 3),),
        "room for 1 more pod of 16 cpu is needed (3 hold 12 free)",
        ("Job ns/first (3 pods on 3 nodes) ends", "1 more node like node-0 join"),
    ),
    "memory": Case(
        missing_memory,
        "no-room",
        ("room is missing for 3 pods of 100Gi memory each: 2 fit now",),
        (("too little memory", 1),),
        "room for 1 more pod of 100Gi memory is needed (1 holds 56Gi free)",
        ("Job ns/first (1 pod on 1 node) ends", "1 more node like node-0 join"),
    ),
    "gpu": Case(
        missing_gpus,
        "no-room",
        ("room is missing for 3 pods of 8 nvidia.com/gpu each: none fits now",),
        (("cordoned", 5), ("too little nvidia.com/gpu", 5)),
        "3 more nodes with 8 free nvidia.com/gpu are needed (2 hold 7 free, 5 cordoned)",
        (
            "node-5, node-6, node-7 are uncordoned",
            "Job ns/full (3 pods on 3 nodes) ends",
            "3 more nodes like node-0 join",
        ),
    ),
    "pods": Case(
        missing_pod_slots,
        "no-room",
        (),
        (("too many pods", 1),),
        "room for 1 more pod is needed",
        ("Job ns/first (110 pods on 1 node) ends", "1 more node like node-0 join"),
    ),
    "cordon": Case(
        everything_cordoned,
        "no-room",
        (),
        (("cordoned", 3),),
        "2 more nodes with 8 free nvidia.com/gpu are needed (3 cordoned)",
        ("node-0, node-1 are uncordoned",),
    ),
    "taint": Case(
        tainted,
        "no-room",
        ("room is missing for 3 pods of 8 nvidia.com/gpu each: 1 fits now",),
        (("has the taint dedicated=x", 2),),
        "2 more nodes with 8 free nvidia.com/gpu are needed",
        ("its pods tolerate the taint dedicated=x (2 nodes)", "2 more nodes like node-0 join"),
    ),
    "selector": Case(
        selected,
        "no-room",
        (),
        (("does not match the node selector", 2),),
        "1 more node with 8 free nvidia.com/gpu is needed",
        ("1 more node like node-0 join",),
    ),
    "affinity": Case(affine, "no-room", (), (("does not match the node affinity", 4),)),
    "claim": Case(claim_missing, "no-room", (), (("claim ns/c does not exist", 3),)),
    "spread": Case(spread_over_nothing, "no-room", (), (("lacks the label zone that pods are spread over", 2),)),
    "too few pods": Case(
        too_few_pods,
        "too-few-pods",
        ("3 of the 5 pods that start together exist",),
        helps=("2 more pods of this gang are created",),
    ),
    "queue closed": Case(
        queue_closed,
        "queue-closed",
        ("queue 'shut' is Closed",),
        helps=("queue 'shut' is opened (open queues: default)",),
    ),
    "queue not for namespace": Case(
        queue_not_for_namespace,
        "queue-not-for-namespace",
        ("namespace ns may not use queue 'theirs': queue 'theirs' is for namespaces with team=vision",),
        helps=("it names a queue that is for namespace 'ns' (default)",),
    ),
    "queue missing": Case(
        queue_missing,
        "queue-missing",
        ("queue 'nowhere' does not exist",),
        helps=("queue 'nowhere' is created (open queues: default)",),
    ),
    "never fits": Case(
        never_fits,
        "never-fits",
        ("5 pods must start together, but even an empty cluster has room for 3 of them",),
        (),
        "2 more nodes with 8 free nvidia.com/gpu are needed",
        ("2 more nodes like node-0 join",),
    ),
    "never fits together": Case(
        never_fits_together,
        "never-fits",
        ("master and worker: 6 pods must start together, but even an empty cluster has room for 4 of them",),
        (),
        "2 more nodes with 8 free nvidia.com/gpu are needed",
        ("2 more nodes like node-0 join",),
    ),
    "unknown resource": Case(unknown_resource, "no-room", (), (("too little example.com/fpga", 2),)),
    "refused lately": Case(
        refused_lately,
        "no-room",
        ("room is missing for 2 pods of 8 nvidia.com/gpu each: 1 fits now",),
        (("refused a member of this gang a moment ago", 1),),
    ),
    "in flight": Case(
        in_flight, "in-flight-limit", ("1024 slots of other gangs are starting now",), helps=("nothing has",)
    ),
    "not created": Case(not_created_yet, "starting", ("placement 1 is being carried out, 0 members have their node",)),
    "just bound": Case(just_bound, "running", ("it runs: 2 members have their node, 2 of them run",)),
    "member refused": Case(
        member_refused,
        "placement-failed",
        ("kube-scheduler refused a-worker-0 on node node-0", "the gang is planned again"),
    ),
    "deadline": Case(deadline_passed, "placement-failed", ("2 members did not arrive before the deadline",)),
    "node cordoned": Case(planned_node_cordoned, "placement-failed", ("node node-1: cordoned",)),
    "half placed": Case(
        half_placed,
        "half-placed",
        ("only 1 of the 2 pods that start together have a node", "if the others get none within 30 s"),
        helps=("Job ns/first (1 pod on 1 node) ends",),
    ),
    "finished": Case(finished, "finished", ("it has finished",)),
    "evicted for good": Case(
        evicted_for_good,
        "failed",
        (
            "it failed: its 8 pods were evicted: reclaimed by queue speech for a gang of its own",
            "; more of its pods failed than backoffLimit 6 allows",
        ),
    ),
    "evicted by a neighbour": Case(
        evicted_by_a_neighbour, "failed", ("its 8 pods were evicted: reclaimed by queue speech for Job ns/b; more",)
    ),
    "without success": Case(without_success, "failed", ("it failed: 2 of its pods failed",)),
    "running": Case(running, "running", ("3 members have their node, 3 of them run",)),
    "about to start": Case(
        about_to_start, "about-to-start", ("the planner's next cycle gives it worker: node-0 (2), node-1 (2)",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_gang_is_explained(case: Case) -> None:
    """Cause, sentence, nodes per cause, nearest miss and what would help."""
    world = ExplainWorld()
    case.build(world)
    report = world.gang_report("a")
    assert report.cause == case.cause, report.summary
    for words in case.words:
        assert words in report.summary
    if case.lost:
        assert report.shortage is not None
        assert tuple((cause.words, cause.nodes) for cause in report.shortage.causes) == case.lost
    if case.nearest:
        assert report.shortage is not None
        assert report.shortage.nearest == case.nearest
    for suggestion, relief in zip(case.helps, report.relief, strict=False):
        assert relief.sentence.startswith(suggestion)
    assert len(report.relief) >= len(case.helps)


def test_a_half_placed_gang_is_told_the_recovery_timeout_of_its_extender() -> None:
    """It is a setting there, and an option here."""
    world = ExplainWorld()
    half_placed(world)
    dump = world.dump()
    dump.set_timing("", recovery_s=5)
    report = explain(WhatIf(dump), "gang", "a", "ns")
    assert "if the others get none within 5 s" in report.summary


def test_a_waiting_gang_knows_its_place_in_the_queue() -> None:
    """In its queue and over all, with those that are tried before it."""
    world = ExplainWorld().nodes(1).queue("other")
    for name, queue in (("first", "default"), ("second", "other"), ("a", "default"), ("last", "default")):
        world.now += 1
        world.gang(name, {"worker": (2, GPU8)}, queue=queue)
    queue = world.gang_report("a").queue
    assert (queue.name, queue.state, queue.place, queue.waiting) == ("default", "Open", 2, 3)
    assert (queue.overall_place, queue.overall_waiting, queue.ahead) == (3, 4, ("Job ns/second", "Job ns/first"))


def test_what_a_gang_has_is_counted_by_how_far_it_is() -> None:
    """Bound, pinned, not created, and what its placement holds."""
    world = ExplainWorld().nodes(4)
    key, placement = placed(world, members=4)
    epoch = placement.spec.epoch
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", pin="node-0", epoch=epoch)
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=epoch)
    world.pod(key, "worker", 2, GPU8, gated=True)
    report = world.gang_report("a")
    [workers] = report.pod_sets
    assert (workers.bound, workers.pinned, workers.gated, workers.missing, workers.held) == (1, 1, 1, 1, 3)
    assert report.placement is not None
    assert (report.placement.epoch, report.placement.phase, report.placement.left_s) == (1, "Planned", 60.0)
    assert report.details[:3] == [
        "1 waiting for kube-scheduler: worker 1 on node-1",
        "1 behind the gate, lifted by the planner's next cycle: worker 2 on node-2",
        "1 not created yet by the owner: worker 3 on node-3",
    ]


def test_the_smallest_set_of_gangs_whose_end_would_help_is_named() -> None:
    """No single gang is enough, and of three, two are."""
    world = ExplainWorld().nodes(6)
    world.runs("one", 1, GPU8)
    world.runs("two", 2, GPU8, first_node=1)
    world.runs("three", 3, GPU8, first_node=3)
    world.gang("a", {"worker": (4, GPU8)})
    [ends] = [each for each in world.gang_report("a").relief if each.kind == "ends"]
    assert set(ends.names) == {"ns/three", "ns/two"}
    assert ends.sentence == "Job ns/three (3 pods on 3 nodes), Job ns/two (2 pods on 2 nodes) end"


def test_what_an_older_gang_would_take_is_no_help() -> None:
    """The end of the only running gang makes room for the older of two that wait."""
    world = ExplainWorld().nodes(2)
    world.runs("first", 2, GPU8)
    world.gang("older", {"worker": (2, GPU8)})
    world.now += 1
    world.gang("a", {"worker": (2, GPU8)})
    assert [each.kind for each in world.gang_report("older").relief] == ["ends", "add-nodes"]
    [wait] = world.gang_report("a").relief
    assert (wait.kind, wait.names) == ("wait", ("Job ns/older",))


def test_trying_what_helps_leaves_the_state_as_it_was() -> None:
    """The arrays of the scene are the same before and after."""
    world = ExplainWorld()
    missing_gpus(world)
    what_if = WhatIf(world.dump())
    before = what_if.cycle().snapshot
    explain(what_if, "gang", "a", "ns")
    after = what_if.cycle().snapshot
    order = before.order
    assert [before.name(int(column)) for column in order] == [after.name(int(column)) for column in after.order]
    assert (before.free[:, order] == after.free[:, after.order]).all()
    assert (recomputed_use(what_if.state.ledger) == what_if.state.nodes.used).all()
    assert [gang.key for gang in waiting(what_if.cycle())] == ["ns/a"]


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
