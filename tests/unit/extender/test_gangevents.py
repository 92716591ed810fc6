"""Events on the workload of a gang: of each kind of news one, and never many."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from extender_world import NOW, World, of
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.gangevents import MOST, PERIOD_S, GangEvents
from extender.planner.actions.allocate import Allocate
from extender.planner.framework.decisions import Place
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.gang import workload_above, workload_note
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroupCondition
from muster.volcano.podgroup import pod_group
from muster.workloads.table import MAKERS

BATCH = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="uid-train", controller=True)
SET = OwnerReference(
    api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet", name="sets", uid="uid-sets", controller=True
)


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
        self.events = GangEvents(cast("Any", self), wall_s=lambda: self.now)

    @property
    def gang(self) -> GangView:
        """As the planner sees it."""
        return self.world.view(self.key)

    def event(self, obj: Any, kind: str, reason: str, message: str) -> None:
        """As the recorder; those on the PodGroup are not counted here."""
        if obj.kind != "PodGroup" and obj.metadata.uid != self.gang.uid:
            self.heard.append(f"{obj.kind} {obj.metadata.name} {kind} {reason}: {message}")

    def waits(self, reason: str = "NotEnoughResources", message: str = "no room", *, other: bool = True) -> None:
        """The gang waits."""
        self.events.waits(self.gang, reason, message, other_reason=other)


def test_a_job_is_told_that_its_gang_waits() -> None:
    """Where kubectl describe shows it."""
    told = Told()
    told.waits()
    assert told.heard == ["Job train Warning Unschedulable: no room"]


def test_other_words_for_the_same_reason_are_no_news() -> None:
    """What a gang lacks changes whenever another one moves."""
    told = Told()
    told.waits()
    told.waits(message="less room", other=False)
    told.waits("QueueOverCapability", "the queue is full")
    assert told.heard == [
        "Job train Warning Unschedulable: no room",
        "Job train Warning Unschedulable: the queue is full",
    ]


def test_a_gang_is_planned_and_bound() -> None:
    """With its nodes."""
    told = Told()
    [place] = of(told.world.session(Allocate()), Place)
    told.events.planned(told.gang, place.pod_sets, place.epoch, victims=0)
    told.events.bound(told.gang, "all 2 members are bound")
    assert told.heard == [
        "Job train Normal Planned: 2 pods are planned on 1 node: node-0",
        "Job train Normal Bound: all 2 members are bound",
    ]


@pytest.mark.parametrize("waited", [False, True])
def test_of_a_single_pod_that_starts_at_once_nothing_is_told(*, waited: bool) -> None:
    """kube-scheduler says it on the pod; ten thousand such Jobs are twenty thousand writes less."""
    told = Told(pods=1)
    if waited:
        condition = PodGroupCondition(type="Unschedulable", status="False", reason="Placed")
        told.world.change(told.world.state.groups[told.key], status={"conditions": [condition]})
    told.events.bound(told.gang, "all 1 members are bound")
    assert bool(told.heard) is waited


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
    assert told.heard == [
        "Job train Warning Unschedulable: no room",
        "JobSet sets Warning Unschedulable: Job train: no room",
    ]


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
