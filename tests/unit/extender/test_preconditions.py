"""Each write of the extender names the object and the version that it was decided upon, as its table says.

Where another object, or another version, has taken that place meanwhile, the write changes nothing.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import pytest
from extender_world import World
from guarded_api import Sent, sites_of
from guarded_extender import Process
from hypernode_world import hyper_node, named
from msgspec import structs
from victims_world import Cluster as VictimsWorld

import extender
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import (
    PROVISIONING_REQUESTS,
    ProvisioningPodSet,
    ProvisioningRequest,
    ProvisioningRequestSpec,
)
from muster.api.kubernetes.core import Pod, Taint
from muster.api.kubernetes.meta import LocalReference, Object
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.muster.placement import Placement, PlacementSpec
from muster.api.muster.reason import reason_of
from muster.api.volcano.scheduling import POD_GROUPS, PodGroupCondition

A_TEST = reason_of("a test")
A_FAULT = reason_of("a fault")
TOO_LONG = reason_of("it took too long")
WHY = reason_of("why")

GPU8 = {"nvidia.com/gpu": 8}
TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate", Object)


Decided = tuple[World, Session, tuple[Any, ...]]
"""A world, a cycle in it, and decisions that are added to the cycle's own."""


def planned() -> Decided:
    """A gang of two gets its nodes, and may have its pods."""
    world = World().nodes(2)
    world.gang("a", {"worker": (2, GPU8)}, phase="Pending")
    return world, world.session(world.progress, Enqueue(), Allocate()), ()


def given_up() -> Decided:
    """Its placement is over."""
    world, _, _ = planned()
    world.plan()
    return world, world.session(), (decisions.ClosePlacement(world.view("ns/a"), "Abandoned", TOO_LONG),)


def of_an_earlier_group() -> Decided:
    """The placement of an earlier PodGroup of its name is in the way."""
    world, session, _ = planned()
    earlier = Placement(metadata=world.meta("a"), spec=PlacementSpec(pod_group_uid="earlier"))
    world.state.on_placement(None, earlier)
    return world, session, ()


def noted() -> Decided:
    """A gang of one gets its node."""
    world = World().nodes(1)
    world.gang("a", {"worker": (1, GPU8)}, phase="Pending")
    return world, world.session(world.progress, Enqueue(), Allocate()), ()


def not_noted_any_more() -> Decided:
    """Its placement, which is noted in the PodGroup, is over."""
    world, session, _ = noted()
    process = Process(world)
    process.carry_out(session)
    process.stop()
    return world, world.session(), (decisions.ClosePlacement(world.view("ns/a"), "Abandoned", TOO_LONG),)


def waits() -> VictimsWorld:
    """A gang waits, its pods gated, for the nodes of another one that runs."""
    world = VictimsWorld(2)
    world.runs("low", 2)
    world.asks("high", 2)
    return world


def about(gang: str, name: str, decide: Callable[[GangView], Any], *, out: bool = False) -> Callable[[], Decided]:
    """A decision about a gang; `high` waits for the nodes of `low`, the first of which may be `out` of service."""

    def decided() -> Decided:
        world = waits()
        if out:
            world.node("node-0", taints=[Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")])
        return world, world.session(), (decide(world.view(f"ns/{gang}")),)

    decided.__name__ = name
    return decided


UNTIL = "2030-01-01T00:00:00Z"
ungated = about("high", "ungated", lambda gang: decisions.Release(gang, gang.pods[0], "node-0", 1))
made_again = about("high", "made_again", lambda gang: decisions.Evict(gang, gang.pods[0], A_TEST, started=False))
below_minimum = about("low", "below_minimum", lambda gang: decisions.Evict(gang, gang.pods[0], A_TEST, started=True))
repaired = about(
    "low", "repaired", lambda gang: decisions.EvictForFaults(gang, "replace", (gang.pods[0],), "suspect", A_FAULT)
)
repaired_by_force = about(
    "low", "repaired_by_force",
    lambda gang: decisions.EvictForFaults(gang, "replace", (gang.pods[0],), "gone", A_FAULT), out=True,
)  # fmt: skip
told = about("low", "told", lambda gang: decisions.SendNotice(gang, gang.pods[0], UNTIL, "q", WHY))
said = about("high", "said", lambda gang: decisions.SetCondition(gang, gang.pods[0], asks=True, message="no room"))
evictable = about("low", "evictable", lambda gang: decisions.AnnotateEviction(gang, gang.pods[0], "true"))
more_nodes = about(
    "high", "more_nodes",
    lambda gang: decisions.RequestNodes(gang, "r-1", 1, "best-effort", (), (("worker", 2, gang.pods[0]),)),
)  # fmt: skip


def of_a_job() -> Decided:
    """A pod of a Job of Kubernetes is evicted."""
    world, session, decided = below_minimum()
    world.label_pods("low", **{names.BATCH_JOB_NAME: "low"})
    gang = world.view("ns/low")
    return world, session, tuple(replace(each, gang=gang, pod=gang.pods[0]) for each in decided)


def preempted() -> Decided:
    """The pods of the other gang make room."""
    world = waits()
    return world, world.cycle(), ()


def no_more_nodes() -> Decided:
    """And needs none any more."""
    world = waits()
    template = ProvisioningPodSet(pod_template_ref=LocalReference(name="r-1-worker"), count=2)
    spec = ProvisioningRequestSpec(provisioning_class_name="best-effort", pod_sets=[template])
    request = ProvisioningRequest(metadata=world.meta("r-1"), spec=spec)
    return world, world.session(), (decisions.WithdrawRequest(world.view("ns/high"), request, "it is here"),)


def a_tree() -> Decided:
    """A HyperNode has a node."""
    world = World().nodes(1)
    made = hyper_node("rack", 1, named("node-0"))
    world.state.on_hyper_node(None, structs.replace(made, metadata=world.meta("rack", namespace="")))
    return world, world.session(), ()


def shares() -> Decided:
    """The root queue tells of the largest node."""
    world = World().nodes(1).queue("root")
    return world, world.session(), ()


def native() -> Decided:
    """A gang that Kubernetes has grouped waits."""
    world = World()
    meta = msgspec.to_builtins(world.meta("train", labels={"muster.dev/queue": "default"}))
    body = {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    world.state.native.on_group(None, msgspec.convert(body, NativePodGroup))
    spec = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": "train"}}
    pod = {"metadata": msgspec.to_builtins(world.meta("train-0")), "spec": spec}
    world.state.on_pod(None, msgspec.convert(pod, Pod))
    return world, world.session(world.progress, Enqueue(), Allocate()), ()


def in_line() -> Decided:
    """A gang that was told why it waits is told its place."""
    world = World()
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Pending")
    why = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="no nodes")
    world.change(world.state.groups[key], status={"phase": "Pending", "conditions": [why]})
    return world, world.session(world.progress, Enqueue(), Allocate()), ()


UID, BOTH, NEITHER = frozenset({"uid"}), frozenset({"uid", "resourceVersion"}), frozenset[str]()


class Case(NamedTuple):
    """A write: its call site, a cycle that sends it, and the preconditions that it names."""

    site: str
    decided: Callable[[], Decided]
    named: frozenset[str]
    budget: bool = False
    """True if a disruption budget forbids all evictions."""
    reads_again: bool = False
    """True if the object is read after a refusal, and the state has it as it is then."""


CASES = [
    Case("clusterstatus.QueueStatusWriter._patch merge_patch", shares, NEITHER),  # amounts, compared in each cycle
    Case("clusterstatus.HyperNodeStatusWriter._patch merge_patch", a_tree, BOTH),
    Case("commit.Committer._release merge_patch", ungated, UID),  # a gate is lifted once; bind checks the epoch
    Case("evictions.Evictor._evict_unchanged evict", preempted, BOTH),
    Case("evictions.Evictor._evict_unchanged evict", made_again, BOTH, reads_again=True),
    Case("evictions.Evictor._evict_unchanged evict", below_minimum, BOTH),
    Case("evictions.Evictor._evict_unchanged evict", repaired, BOTH),
    Case("evictions.Evictor._uncount strategic_patch", of_a_job, UID),  # of a pod that is being deleted
    Case("evictions.Evictor._evict_anyway delete", below_minimum, BOTH, budget=True),
    Case("groupstatus.write_status merge_patch", planned, BOTH),
    Case("groupstatus.write_status merge_patch", native, BOTH),
    Case("groupstatus.write_status merge_patch", in_line, UID),  # of two fields that nobody else writes
    Case("notes.NoteWriter._patch merge_patch", not_noted_any_more, BOTH),
    Case("notes.NoteWriter._patch merge_patch", noted, BOTH),
    Case("notices.NoticeWriter._patch strategic_patch", told, UID),
    Case("notices.NoticeWriter._patch merge_patch", told, UID),
    Case("placements.PlacementWriter._write delete", of_an_earlier_group, UID),
    Case("placements.PlacementWriter._create create", planned, NEITHER),
    Case("placements.PlacementWriter._patch merge_patch", given_up, BOTH),
    Case("repairs.Repairs._send delete", repaired_by_force, UID),  # no kubelet is left to change it
    Case("scaling.Scaling.report strategic_patch", said, BOTH),
    Case("scaling.Scaling.report_eviction merge_patch", evictable, UID),
    Case("scaling.Scaling.request create", more_nodes, NEITHER),
    Case("scaling.Scaling._delete delete", no_more_nodes, UID),
    Case("scaling.Scaling._delete delete", no_more_nodes, NEITHER),  # its templates, whose names nobody else uses
]
ELSEWHERE = {
    "publish.FailureMemory._patch merge_patch",  # one key of a ConfigMap, which names the object alone
    "publish.ConfigPublisher._patch merge_patch",  # the others, written again each minute
    "verbs.bind.Binder.bind bind",  # test_binder
}
TWICE = {"groupstatus.write_status merge_patch", "scaling.Scaling.request create"}


def label(case: Case) -> str:
    """The case in the name of a test."""
    return f"{case.site} {case.decided.__name__} {'+'.join(sorted(case.named))}"


def carried_out(case: Case, meddle: Callable[[Process, Sent], None] = lambda *_: None) -> tuple[Process, list[Sent]]:
    """The cycle of a case, and its writes of that site with these preconditions."""
    world, session, more = case.decided()
    process = Process(world)
    process.api.budget = case.budget
    for each in more:
        if isinstance(each, decisions.WithdrawRequest):
            process.api.keep(PROVISIONING_REQUESTS, each.request)
            process.api.keep(TEMPLATES, Object(metadata=world.meta("r-1-worker")))

    def before(sent: Sent) -> None:
        if (sent.site, sent.named) == (case.site, case.named):
            meddle(process, sent)

    process.api.meddle = before
    process.carry_out(session, *more)
    process.stop()
    return process, [sent for sent in process.api.sent if (sent.site, sent.named) == (case.site, case.named)]


def known(world: World, sent: Sent) -> object:
    """What the planner's state has of the object of a write."""
    state = world.state
    kinds: dict[str, Any] = {
        "podgroups": state.groups if sent.resource is POD_GROUPS else state.native.groups,
        "placements": state.placements,
        "hypernodes": state.hyper_nodes,
        "pods": {f"{pod.namespace}/{pod.name}": pod for pod in state.pods.values()},
    }
    return kinds.get(sent.resource.plural, {}).get(sent.key)


def test_every_write_has_its_line_in_the_table() -> None:
    """A new one needs a line too: what if another object has that name by then, or the object has changed?"""
    assert sites_of(extender) == Counter({case.site for case in CASES} | ELSEWHERE) + Counter(TWICE)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_write_names_what_it_was_decided_upon(case: Case) -> None:
    """And is carried out where nothing has changed; no write of the cycle names anything else than the table says."""
    process, sent = carried_out(case)
    assert sent
    assert {one.refused for one in sent} == {""}
    assert {(one.site, one.named) for one in process.api.sent} <= {(each.site, each.named) for each in CASES}


@pytest.mark.parametrize(
    ("case", "precondition"),
    [pytest.param(case, one, id=f"{label(case)}, {one}") for case in CASES for one in sorted(case.named)],
)
def test_another_object_or_version_in_that_place_stays_as_it_is(case: Case, precondition: str) -> None:
    """The write is refused, and the state of the planner does not have it either."""
    others: dict[str, object] = {}
    before: dict[str, object] = {}

    def meddle(process: Process, sent: Sent) -> None:
        if sent.key not in others:
            others[sent.key] = process.api.replaced(sent, precondition)
            before[sent.key] = known(process.world, sent)

    process, sent = carried_out(case, meddle)
    assert sent
    assert {one.refused for one in sent} == {"Conflict"}
    for one in sent:
        assert process.api.kind(one.resource)[one.key] is others[one.key]
        assert case.reads_again or known(process.world, one) is before[one.key]
