"""Every cause is named, with the right numbers."""

from collections.abc import Callable
from typing import Any

import pytest
from explain_world import Cases, ExplainWorld, by_label, placed
from extender_world import GPU1, GPU8
from msgspec import convert, to_builtins
from state_oracle import recomputed_use

from extender.explain.find import explain
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner.actions import cyclework
from extender.planner.queuepositions import waiting
from muster.api.kubernetes.core import Pod, Taint
from muster.api.kubernetes.meta import OwnerReference, format_time
from muster.api.kubernetes.storage import PersistentVolumeClaim, StorageClass
from muster.api.muster.placement import AvoidedNode
from muster.api.names import WORKLOAD
from muster.api.volcano.scheduling import PodGroupCondition

CASES = Cases()


@CASES(
    "no-room",
    words=("worker: room is missing for 3 pods of 16 cpu each: 2 fit now; of 4 nodes: 3 too little cpu; nearest: ",),
    lost=(("too little cpu", 3),),
    nearest="room for 1 more pod of 16 cpu is needed (3 hold 12 free)",
    helps=("Job ns/first (3 pods on 3 nodes) ends", "1 more node like node-0 joins"),
)
def missing_cpu(world: ExplainWorld) -> None:
    """Four nodes of 32 CPUs; a runs 20 on each of three."""
    world.nodes(4)
    world.runs("first", 3, {"cpu": 20})
    world.gang("a", {"worker": (3, {"cpu": 16})})


@CASES(
    "no-room",
    words=("room is missing for 3 pods of 100Gi memory each: 2 fit now",),
    lost=(("too little memory", 1),),
    nearest="room for 1 more pod of 100Gi memory is needed (1 holds 56Gi free)",
    helps=("Job ns/first (1 pod on 1 node) ends", "1 more node like node-0 joins"),
)
def missing_memory(world: ExplainWorld) -> None:
    """A pod of 200Gi is on one of two nodes with 256Gi."""
    world.nodes(2)
    world.runs("first", 1, {"memory": "200Gi"})
    world.gang("a", {"worker": (3, {"memory": "100Gi"})})


@CASES(
    "no-room",
    words=("room is missing for 3 pods of 8 nvidia.com/gpu each: none fits now",),
    lost=(("cordoned", 5), ("too little nvidia.com/gpu", 5)),
    nearest="3 more nodes with 8 free nvidia.com/gpu are needed (2 hold 7 free, 5 cordoned)",
    helps=(
        "node-5, node-6, node-7 are uncordoned",
        "Job ns/full (3 pods on 3 nodes) ends",
        "3 more nodes like node-0 join",
    ),
)
def missing_gpus(world: ExplainWorld) -> None:
    """Ten nodes: five cordoned, two with 7 of 8 GPUs free, three full."""
    for index in range(10):
        world.node(f"node-{index}", unschedulable=index >= 5)
    world.runs("full", 3, GPU8)
    world.runs("small", 2, GPU1, first_node=3)
    world.gang("a", {"worker": (3, GPU8)})


@CASES(
    "no-room",
    lost=(("too many pods", 1),),
    nearest="room for 1 more pod is needed",
    helps=("Job ns/first (110 pods on 1 node) ends", "1 more node like node-0 joins"),
)
def missing_pod_slots(world: ExplainWorld) -> None:
    """Nodes take 110 pods."""
    world.nodes(1)
    world.members(world.gang("first", {"worker": (110, {})}, phase="Running"), 110, {}, node="node-0", phase="Running")
    world.gang("a", {"worker": (1, {})})


@CASES(
    "no-room",
    lost=(("cordoned", 3),),
    nearest="2 more nodes with 8 free nvidia.com/gpu are needed (3 cordoned)",
    helps=("node-0, node-1 are uncordoned",),
)
def everything_cordoned(world: ExplainWorld) -> None:
    """Three nodes, all cordoned, with the taint that Kubernetes adds then."""
    world.nodes(3, unschedulable=True, taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")])
    world.gang("a", {"worker": (2, GPU8)})


@CASES(
    "no-room",
    words=("room is missing for 3 pods of 8 nvidia.com/gpu each: 1 fits now",),
    lost=(("has the taint dedicated=x", 2),),
    nearest="2 more nodes with 8 free nvidia.com/gpu are needed",
    helps=("the gang's pods tolerate the taint dedicated=x (2 nodes)", "2 more nodes like node-0 join"),
)
def tainted(world: ExplainWorld) -> None:
    """One free node, two with a taint."""
    world.node("node-0")
    for index in (1, 2):
        world.node(f"node-{index}", taints=[Taint(key="dedicated", value="x", effect="NoSchedule")])
    world.gang("a", {"worker": (3, GPU8)})


@CASES(
    "no-room",
    lost=(("does not match the node selector", 2),),
    nearest="1 more node with 8 free nvidia.com/gpu is needed",
    helps=("1 more node like node-0 joins",),
)
def selected(world: ExplainWorld) -> None:
    """One of three nodes carries the label."""
    world.node("node-0", labels={"pool": "mine"})
    world.node("node-1", labels={"pool": "other"})
    world.node("node-2")
    world.gang("a", {"worker": (2, GPU8)}, spec={"nodeSelector": {"pool": "mine"}})


@CASES(
    "no-room",
    lost=(("does not match the node selector", 2),),
    helps=("2 more nodes like node-0 with the label model=H100 join",),
)
def selected_by_a_label_of_no_node(world: ExplainWorld) -> None:
    """An empty cluster, in which a gang before it waits as well."""
    world.nodes(2)
    world.gang("before", {"worker": (1, GPU8)}, spec={"nodeSelector": {"model": "B200"}})
    world.now += 1
    world.gang("a", {"worker": (2, GPU8)}, spec={"nodeSelector": {"model": "H100"}})


@CASES(
    "no-room",
    lost=(("does not match the node affinity", 4),),
    helps=("nothing here: no node is suitable for the gang's pods, even when empty: 4 do not match the node affinity",),
)
def affine(world: ExplainWorld) -> None:
    """Required node affinity matches no node."""
    world.nodes(4, labels={"zone": "a"})
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world.gang("a", {"worker": (1, GPU1)}, spec={"affinity": {"nodeAffinity": required}})


@CASES("no-room", lost=(("claim ns/c does not exist", 3),))
def claim_missing(world: ExplainWorld) -> None:
    """The pods mount a claim that nobody has made."""
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}
    world.nodes(3).gang("a", {"worker": (1, GPU1)}, spec={"volumes": [volume]})


@CASES("no-room", lost=(("lacks the label zone over which pods are spread", 2),))
def spread_over_nothing(world: ExplainWorld) -> None:
    """One of three nodes has the label that pods are spread over, and maxSkew is kept by it alone."""
    world.node("node-0", labels={"zone": "a"})
    world.node("node-1")
    world.node("node-2")
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    world.gang("a", {"worker": (2, GPU8)}, spec={"topologySpreadConstraints": [constraint]})


@CASES(
    "too-few-pods",
    words=("3 of the 5 pods that start together exist",),
    helps=("2 more pods of this gang are created",),
)
def too_few_pods(world: ExplainWorld) -> None:
    """Pods of another owner: three of five exist."""
    world.nodes(5)
    world.members(world.gang("a", {}, min_member=5), 3, GPU8, task="pods", gated=True)


@CASES("queue-closed", words=("queue 'shut' is Closed",), helps=("queue 'shut' is opened (open queues: default)",))
def queue_closed(world: ExplainWorld) -> None:
    """Nothing else is wrong."""
    world.nodes(1)
    world.queue("shut", "Closed")
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="shut")


@CASES(
    "queue-not-for-namespace",
    words=("namespace ns is not allowed to use queue 'theirs': queue 'theirs' is for namespaces with team=vision",),
    helps=("the gang names a queue that is for namespace 'ns' (default)",),
)
def queue_not_for_namespace(world: ExplainWorld) -> None:
    """Nothing else is wrong; the labels of the namespace are not known."""
    world.nodes(1)
    world.queue("theirs", **{"namespace-selector": "team=vision"})
    world.gang("a", {"worker": (1, GPU1)}, queue="theirs")


@CASES(
    "queue-missing",
    words=("queue 'nowhere' does not exist",),
    helps=("queue 'nowhere' is created (open queues: default)",),
)
def queue_missing(world: ExplainWorld) -> None:
    """Nothing else is wrong."""
    world.nodes(1)
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="nowhere")


@CASES(
    "never-fits",
    words=("5 pods must start together, but even an empty cluster has room for 3 of them",),
    nearest="2 more nodes with 8 free nvidia.com/gpu are needed",
    helps=("2 more nodes like node-0 join",),
)
def never_fits(world: ExplainWorld) -> None:
    """Five nodes of eight GPUs would be needed, and there are three."""
    world.nodes(3)
    world.gang("a", {"worker": (5, GPU8)}, phase="Pending")


@CASES(
    "never-fits",
    words=("master and worker: 6 pods must start together, but even an empty cluster has room for 4 of them",),
    nearest="2 more nodes with 8 free nvidia.com/gpu are needed",
    helps=("2 more nodes like node-0 join",),
)
def never_fits_together(world: ExplainWorld) -> None:
    """Each task alone would fit."""
    world.nodes(4)
    world.gang("a", {"master": (1, GPU8), "worker": (5, GPU8)}, phase="Pending")


@CASES("no-room", lost=(("too little example.com/fpga", 2),))
def unknown_resource(world: ExplainWorld) -> None:
    """No node has ever offered it."""
    world.nodes(2)
    world.gang("a", {"worker": (1, {"example.com/fpga": 1})})


@CASES(
    "no-room",
    words=("room is missing for 2 pods of 8 nvidia.com/gpu each: 1 fits now",),
    lost=(("recently refused a member of this gang", 1),),
)
def refused_lately(world: ExplainWorld) -> None:
    """One node of two refused a member; the gang needs both."""
    world.nodes(2)
    _, placement = placed(world)
    said = "kube-scheduler refused a-worker-1 on node node-1"
    avoided = AvoidedNode(node="node-1", until=format_time(world.now + 30))
    world.change(placement, status={"phase": "Abandoned", "message": said, "avoided": [avoided]})


@pytest.mark.parametrize("name", CASES)
def test_a_gang_is_explained(name: str) -> None:
    """Cause, sentence, nodes per cause, nearest miss and what would help."""
    CASES.check(name)


APART = {"topologyKey": "zone", "labelSelector": {}}
PORTS = [{"name": "main", "image": "x", "ports": [{"hostPort": 80, "containerPort": 80}]}]
CLAIM = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
NEXT: dict[str, tuple[int, dict[str, Any], str]] = {
    "anti-affinity": (
        3,
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}},
        "2 fit now; of 3 nodes: 2 anti-affinity with pods with any in the same zone, 1 cordoned",
    ),
    "host port": (3, {"containers": PORTS}, "2 fit now; of 3 nodes: 2 host port 80 is in use, 1 cordoned"),
    "claim": (3, {"volumes": CLAIM}, "1 fits now; of 3 nodes: 2 claim ns/c is used by another pod, 1 cordoned"),
    "pods per node": (300, {}, "220 fit now; of 3 nodes: 2 too many pods, 1 cordoned"),
}


@pytest.mark.parametrize("name", NEXT)
def test_what_stops_the_next_member_is_named_after_those_that_fit(name: str) -> None:
    """Each node takes a first member, and none takes one more."""
    count, spec, words = NEXT[name]
    world = ExplainWorld()
    for index in range(3):
        world.node(f"node-{index}", labels={"zone": f"{index}"}, unschedulable=index == 2)
    metadata = {"name": "c", "namespace": "ns", "uid": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "later"}}
    later = {"metadata": {"name": "later", "uid": "later"}, "volumeBindingMode": "WaitForFirstConsumer"}
    world.state.on_storage_class(None, convert(later, StorageClass))
    world.state.on_claim(None, convert(claim, PersistentVolumeClaim))
    world.gang("a", {"worker": (count, {"cpu": "100m"})}, spec=spec)
    assert words in world.gang_report("a").summary


def test_a_waiting_gang_knows_its_place_in_the_queue() -> None:
    """In its queue and over all, with those that are tried before it."""
    world = ExplainWorld().nodes(1).queue("other")
    for name, queue in (("first", "default"), ("second", "other"), ("a", "default"), ("last", "default")):
        world.now += 1
        world.gang(name, {"worker": (2, GPU8)}, queue=queue)
    queue = world.gang_report("a").queue
    assert (queue.name, queue.state, queue.place, queue.waiting) == ("default", "Open", 2, 3)
    assert (queue.overall_place, queue.overall_waiting, queue.ahead) == (3, 4, ("Job ns/second", "Job ns/first"))


def test_the_smallest_set_of_gangs_whose_end_would_help_is_named() -> None:
    """No single gang is enough, and of three, two are."""
    world = ExplainWorld().nodes(6)
    for name, number, first in (("one", 1, 0), ("two", 2, 1), ("three", 3, 3)):
        world.runs(name, number, first_node=first)
    world.gang("a", {"worker": (4, GPU8)})
    [ends] = [each for each in world.gang_report("a").relief if each.kind == "ends"]
    assert set(ends.names) == {"ns/three", "ns/two"}
    assert ends.sentence == "Job ns/three (3 pods on 3 nodes), Job ns/two (2 pods on 2 nodes) end"


def test_a_gang_of_a_deployment_is_found_and_named_by_it() -> None:
    """Its PodGroup belongs to a ReplicaSet, and notes who made that."""
    world = ExplainWorld().nodes(1)
    group = world.state.groups[world.gang("a", {"worker": (2, GPU8)})]
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-5d8f", uid="u", controller=True)
    world.change(group, owner_references=[owner], annotations={WORKLOAD: "apps/v1/Deployment/web/uid-web"})
    for name in ("web", "web-5d8f"):
        report = world.explain(name, "job")
        assert (report.gang, report.workload) == ("ns/a", "Deployment ns/web")
    with pytest.raises(UnknownNameError, match="near names: web"):
        world.explain("wob", "job")


def test_pods_of_a_deployment_are_named_by_it() -> None:
    """Its ReplicaSet has a name that nobody has written."""
    world = ExplainWorld().nodes(1)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-5d8f", uid="u", controller=True)
    spec = world.pod_spec(GPU8, schedulerName="default-scheduler", nodeName="node-0")
    meta = world.meta("web-5d8f-x", uid="w", labels={"pod-template-hash": "5d8f"}, owner_references=[owner])
    world.state.on_pod(
        None, convert({"metadata": to_builtins(meta), "spec": spec, "status": {"phase": "Running"}}, Pod)
    )
    world.gang("a", {"worker": (1, GPU8)})
    [ends] = [each for each in world.gang_report("a").relief if each.kind == "ends"]
    assert ends.names == ("Deployment ns/web",)


@pytest.mark.parametrize(("case", "nodes"), [
    (missing_cpu, "1 of 4 nodes has room for one pod of worker"),
    (missing_pod_slots, "0 of 1 node have room for one pod of worker"),
    (never_fits, "3 of 3 nodes have room for one pod of worker when they are empty"),
])  # fmt: skip
def test_nodes_with_room_are_those_of_the_empty_cluster_if_the_gang_never_fits(
    case: Callable[[ExplainWorld], None], nodes: str
) -> None:
    """Otherwise they are the nodes with room now."""
    world = ExplainWorld()
    case(world)
    assert by_label(world.gang_report("a"), world.now)["nodes"] == nodes


def test_a_pod_that_does_not_end_is_named() -> None:
    """It is being deleted with a grace period of years; until the longest notice is over it is believed to end."""
    world = ExplainWorld().nodes(1)
    world.runs("first", 1, GPU8)
    [pod] = world.state.pod_objects.values()
    world.change(pod, deletion_timestamp="2087-01-01T00:00:00Z", deletion_grace_period_seconds=1_893_456_000)
    world.gang("a", {"worker": (1, GPU8)})
    [ends] = [each for each in world.gang_report("a").relief if each.kind == "ends"]
    assert "Pod ns/first-worker-0 does not terminate although being deleted" in ends.sentence


@pytest.mark.parametrize(("runtime", "until"), [
    ("", ""),
    ("1h", ", since {since}, expected to end at {end}"),
])  # fmt: skip
def test_the_holder_is_named_where_an_older_gang_comes_first(runtime: str, until: str) -> None:
    """The end of the running gang, named with its expected end, makes room for the older of two that wait."""
    world = ExplainWorld().nodes(2)
    world.runs("first", 2, GPU8, runtime=runtime, since=world.now if runtime else None)
    until = until.format(since=format_time(world.now), end=format_time(world.now + 3600))
    world.gang("older", {"worker": (2, GPU8)})
    world.now += 1
    world.gang("a", {"worker": (2, GPU8)})
    assert [each.kind for each in world.gang_report("older").relief] == ["ends", "add-nodes"]
    [ends] = world.gang_report("a").relief
    assert (ends.kind, ends.names) == ("ends", ("ns/first",))
    assert ends.sentence == (
        f"Job ns/first (2 pods on 2 nodes{until}) ends, and the gangs before it start first, or are withdrawn: "
        "Job ns/older"
    )


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


def test_a_gang_that_one_cycle_does_not_reach_has_the_reason_of_the_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running planner plans it in one of the next cycles, and writes the reason for waiting to its PodGroup."""
    world = ExplainWorld().nodes(1, cpu=4)
    for name in "abc":
        key = world.gang(name, {"worker": (1, {"cpu": 5 + ord(name)})})
    monkeypatch.setattr(cyclework, "MOST", cyclework._SHAPE)
    assert world.gang_report("c").reason == "TriedLater"
    group = world.state.groups[key]
    waits = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="too little")
    world.change(group, status={"conditions": [waits]})
    report = world.gang_report("c")
    assert (report.reason, report.message) == ("NotEnoughResources", "too little")
