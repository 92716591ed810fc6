"""Events on the workload of a gang: of each kind of news one, and never many."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from extender_world import NOW, World, of
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.gangevents import MOST, PERIOD_S, GangEvents
from extender.planner.actions.allocate import Allocate
from extender.planner.framework.decisions import Place
from extender.planner.reasons.placements import on_spares
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.gang import workload_above, workload_note
from muster.api.muster.reason import reason_of
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroupCondition
from muster.volcano.podgroup import pod_group
from muster.workloads.table import MAKERS

BATCH = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="uid-train", controller=True)
SET = structs.replace(BATCH, api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet", name="sets", uid="uid-sets")


class Told:
    """Events of one gang, and the clock."""

    def __init__(
        self, *, owner: OwnerReference = BATCH, annotations: Mapping[str, str] | None = None, pods: int = 2
    ) -> None:
        self.world = World()
        self.world.nodes(2)
        self.key = self.world.gang("g", {"worker": (pods, {"cpu": 2})})
        self.world.change(self.world.state.groups[self.key], owner_references=[owner], annotations=annotations or {})
        self.world.members(self.key, pods, {"cpu": 2}, gated=True)
        self.now = NOW
        self.heard: list[str] = []
        self.group: list[str] = []
        self.events = GangEvents(cast("Any", self), monotonic_s=lambda: self.now)

    @property
    def gang(self) -> GangView:
        """As the planner sees it."""
        return self.world.view(self.key)

    def event(self, obj: Any, kind: str, reason: str, message: str) -> None:
        """As the recorder; those on the PodGroup are not counted here."""
        said = f"{kind} {reason}: {message}"
        if obj.kind != "PodGroup" and obj.metadata.uid != self.gang.uid:
            self.heard.append(f"{obj.kind} {obj.metadata.name} {said}")
        else:
            self.group.append(said)

    def waits(self, reason: str = "NotEnoughResources", message: str = "no room", *, other: bool = True) -> None:
        """The gang waits."""
        self.events.waits(self.gang, reason, message, other_reason=other)


WHY = reason_of("why")
SPARES = on_spares(["n"])
Tell = Callable[[GangEvents, GangView], None]
ONCE: dict[str, tuple[Tell, list[str], list[str]]] = {
    "waits": (lambda events, gang: events.waits(gang, "NoRoom", "no room", other_reason=True),
              ["Warning Unschedulable: no room"] * 2, ["Job train Warning Unschedulable: no room"]),
    "scheduled": (lambda events, gang: events.scheduled(gang, "all"), ["Normal Scheduled: all"] * 2, []),
    "reserved": (lambda events, gang: events.reserved(gang, "1 node"),
                 ["Normal Reserved: 1 node"] * 2, ["Job train Normal Reserved: 1 node"]),
    "abandoned": (lambda events, gang: events.abandoned(gang, "late"),
                  ["Warning PlacementAbandoned: late"] * 2, ["Job train Warning PlacementAbandoned: late"]),
    "borrows": (lambda events, gang: events.borrows(gang, ["n"], 1),
                [f"Normal BorrowsSpares: {SPARES}"] * 2, [f"Job train Normal BorrowsSpares: {SPARES}"]),
    "evicts": (lambda events, gang: events.evicts(gang, gang.pods[0], WHY),
               ["Normal Evict: g-worker-0: why"] * 2, ["Pod g-worker-0 Normal Evict: why"] * 2),
    "evicts its own": (lambda events, gang: events.evicts_own(gang, gang.pods[0], WHY),
                       ["Normal Evict: g-worker-0: why"] * 2, ["Job train Warning Evicted: 1 pod was evicted: why"]),
    "noticed": (lambda events, gang: events.noticed(gang, "soon", "at 12"),
                ["Warning EvictionNotice: soon"], ["Job train Warning EvictionNotice: soon"]),
    "withdrawn": (lambda events, gang: events.withdrawn(gang, "stays", "at 12"),
                  ["Normal EvictionWithdrawn: stays"], ["Job train Normal EvictionWithdrawn: stays"]),
    "repairs": (lambda events, gang: events.repairs(gang, WHY),
                ["Warning NodeFault: why"] * 2, ["Job train Warning NodeFault: why"]),
    "evicted": (lambda events, gang: events.evicted(gang, 2, WHY, "for b"),
                [], ["Job train Warning Evicted: 2 pods were evicted: why"]),
}  # fmt: skip
"""What is told twice; Events on the PodGroup, and on others."""


@pytest.mark.parametrize(("tell", "group", "others"), ONCE.values(), ids=ONCE)
def test_the_podgroup_hears_all_its_workload_only_news(tell: Tell, group: list[str], others: list[str]) -> None:
    """Where kubectl describe shows it."""
    told = Told()
    told.world.pod(told.key, "worker", 0, {"cpu": 2}, node="node-0", phase="Running")
    for _ in range(2):
        tell(told.events, told.gang)
    assert (told.group, told.heard) == (group, others)


def test_who_owns_itself_has_its_own_events() -> None:
    """A pod without an owner, which kube-scheduler tells; and a gang of one."""
    told = Told(owner=structs.replace(BATCH, kind="Pod", api_version="v1"), pods=1)
    told.events.evicted(told.gang, 1, WHY, "for b")
    told.events.scheduled(told.gang, "all")
    assert (told.group, told.heard) == ([], [])


def test_other_words_for_the_same_reason_are_no_news() -> None:
    """What a gang lacks changes whenever another one moves."""
    told = Told()
    told.waits()
    told.waits(message="less room", other=False)
    told.waits("QueueOverCapability", "the queue is full")
    assert told.heard == [f"Job train Warning Unschedulable: {why}" for why in ("no room", "the queue is full")]


def test_a_gang_is_planned_and_bound() -> None:
    """With its nodes."""
    told = Told()
    [place] = of(told.world.session(Allocate()), Place)
    told.events.planned(told.gang, place.pod_sets, place.epoch, victims=0)
    told.events.bound(told.gang, "all 2 members are bound")
    planned = "Job train Normal Planned: 2 pods are planned on 1 node: node-0"
    assert told.heard == [planned, "Job train Normal Bound: all 2 members are bound"]


@pytest.mark.parametrize("waited", [False, True])
def test_of_a_single_pod_that_starts_at_once_nothing_is_told(*, waited: bool) -> None:
    """kube-scheduler says it on the pod; ten thousand such Jobs are twenty thousand writes less."""
    told = Told(pods=1)
    if waited:
        condition = PodGroupCondition(type="Unschedulable", status="False", reason="Placed")
        told.world.change(told.world.state.groups[told.key], status={"conditions": [condition]})
    told.events.bound(told.gang, "its member is bound")
    assert bool(told.heard) is waited


def test_each_placement_is_bound_once() -> None:
    """Its epoch tells one from another; nobody else says how many members are bound."""
    told = Told()
    told.world.plan()
    for epoch in (1, 1, 2):
        told.world.change(told.world.state.placements[told.key], spec={"epoch": epoch})
        told.events.bound(told.gang, "all 2 members are bound")
    assert told.heard == ["Job train Normal Bound: all 2 members are bound"] * 2


def test_a_volcano_job_hears_from_its_controller_why_it_waits() -> None:
    """The Event PodGroupPending says so already, as Volcano's does; evictions and reservations are told here."""
    told = Told(owner=structs.replace(BATCH, api_version="batch.volcano.sh/v1alpha1"))
    told.waits()
    told.events.reserved(told.gang, "reserved: 1 node")
    assert told.heard == ["Job train Normal Reserved: reserved: 1 node"]


def test_who_made_the_owner_is_told_too() -> None:
    """A JobSet of several Jobs reads which of them waits; a Deployment that its ReplicaSet does."""
    told = Told(annotations=workload_note(ObjectMeta(name="train", owner_references=[SET]), MAKERS))
    told.waits()
    above = "JobSet sets Warning Unschedulable: Job train: no room"
    assert told.heard == ["Job train Warning Unschedulable: no room", above]


@pytest.mark.parametrize("kind", ["CronJob", "JobFlow"])
def test_what_makes_jobs_again_and_again_is_not_told(kind: str) -> None:
    """Its own Events say which Jobs it made, of Volcano's kinds and of Kubernetes'."""
    made = ObjectMeta(name="train", owner_references=[structs.replace(SET, kind=kind)])
    assert names.WORKLOAD not in pod_group(Job(metadata=made), {}).metadata.annotations
    assert kind == "JobFlow" or workload_note(made, MAKERS) == {}


@pytest.mark.parametrize("text", ["", "a", "///", "a/b/c", "v1/Pod//uid", "/Pod/a/uid"])
def test_a_note_that_cannot_be_read_names_nobody(text: str) -> None:
    """Its user may have written it."""
    assert workload_above(ObjectMeta(annotations={names.WORKLOAD: text})) is None


def test_a_note_names_kinds_of_the_core_and_of_groups() -> None:
    """Group and version have a slash between them, or none."""
    for reference in (SET, structs.replace(SET, api_version="v1", kind="ReplicationController")):
        note = workload_note(ObjectMeta(owner_references=[reference]), MAKERS)
        assert workload_above(ObjectMeta(annotations=note)) == structs.replace(reference, controller=False)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0, 30)), max_size=60))
def test_a_workload_hears_little(news: list[tuple[str, float]]) -> None:
    """However a gang fares, there are at most so many Events in a minute, and never the same twice in a row."""
    told, times = Told(), []
    for reason, pause_s in news:
        told.now += pause_s
        before = len(told.heard)
        told.waits(reason, reason)
        times += [told.now] * (len(told.heard) - before)
    assert all(later - first >= PERIOD_S for first, later in zip(times, times[MOST:], strict=False))
    assert all(one != other for one, other in zip(told.heard, told.heard[1:], strict=False))


def test_what_is_too_much_in_a_minute_is_news_after_it() -> None:
    """The first ones count from when they were sent; what was not sent is not known."""
    told = Told()
    for number in range(MOST):
        told.now = NOW + number
        told.waits(f"reason-{number}", "why")
    for after_s, heard in ((MOST, MOST), (PERIOD_S - 0.1, MOST), (PERIOD_S, MOST + 1), (PERIOD_S + 0.9, MOST + 1)):
        told.now = NOW + after_s
        told.waits("late", "why")
        told.waits("later", "why") if heard > MOST else None
        assert len(told.heard) == heard
    told.now = NOW + PERIOD_S + 1
    told.waits("later", "why")
    assert len(told.heard) == MOST + 2
