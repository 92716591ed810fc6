"""Native PodGroups as gangs, and what Muster says of a gang as conditions of its native PodGroup."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Condition, format_time
from muster.api.kubernetes.scheduling import DISRUPTION_TARGET, INITIALLY_SCHEDULED, NativePodGroup
from muster.api.muster.gang import native_gang
from muster.api.muster.native import (
    PHASE,
    as_group,
    conditions_of,
    counted_in,
    holds,
    is_native,
    reference,
    status_of,
    subject,
)
from muster.api.volcano.scheduling import EVICTED, PodGroupCondition, PodGroupStatus
from muster.workloads.table import gang_of

NOW, THEN = 1_800_000_000.0, "2026-01-01T00:00:00Z"


def native(annotations: dict[str, str] | None = None, conditions: Any = (), **spec: Any) -> NativePodGroup:
    """A native PodGroup of a gang of four, unless its spec says otherwise."""
    meta = {"name": "train", "namespace": "ns", "uid": "uid-1", "resourceVersion": "7",
            "annotations": annotations or {}}  # fmt: skip
    given = {"schedulingPolicy": {"gang": {"minCount": 4}}, **spec}
    status = {"conditions": [msgspec.to_builtins(each) for each in conditions]}
    return msgspec.convert({"metadata": meta, "spec": given, "status": status}, NativePodGroup)


def pod(scheduler: str = "muster", owner: str = "", **meta: Any) -> Pod:
    """A pod in the native PodGroup `train`, of a Job if there is an owner."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "uid-job", "controller": True}]
    metadata = {"name": "train-0", "namespace": "ns", "ownerReferences": owners if owner else [], **meta}
    spec = {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": "train"}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def told(kind: str, status: str = "True", reason: str = "NotEnoughResources", message: str = "no room") -> Any:
    """A condition of a gang."""
    return PodGroupCondition(
        type=kind, status=status, last_transition_time=THEN, reason=reason, message=message  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_gang_has_its_minimum_class_and_topology_from_the_spec() -> None:
    """A required topology is the key of a label of nodes, whatever annotations say."""
    given = native(
        {names.TOPOLOGY: "racks", names.TOPOLOGY_REQUIRED: "row", names.EXPECTED_RUNTIME: "1h"},
        priorityClassName="high",
        schedulingConstraints={"topology": [{"key": "example.com/rack"}]},
    )
    group = as_group(given, "research")
    assert (group.spec.min_member, group.spec.queue, group.spec.priority_class_name) == (4, "research", "high")
    said = group.metadata.annotations
    assert (said[names.TOPOLOGY_REQUIRED], said.get(names.TOPOLOGY)) == ("example.com/rack", None)
    assert said[names.EXPECTED_RUNTIME] == "1h"


def test_a_basic_group_is_no_gang() -> None:
    """Each of its pods starts by itself."""
    group = as_group(native(schedulingPolicy={"basic": {}}), "q")
    assert (group.spec.min_member, group.metadata.annotations[names.INDEPENDENT]) == (1, "true")
    assert names.INDEPENDENT not in as_group(native(), "q").metadata.annotations


@pytest.mark.parametrize(("mode", "whole"), [({"all": {}}, True), ({"single": {}}, False), (None, False)])
def test_only_a_group_that_says_so_is_disrupted_as_a_whole(mode: dict[str, Any] | None, whole: bool) -> None:  # noqa: FBT001
    """Otherwise pods above the minimum may go alone."""
    group = as_group(native(**({"disruptionMode": mode} if mode else {})), "q")
    assert (names.INDIVISIBLE in group.metadata.annotations) is whole


def test_notes_of_musters_own_say_nothing_on_a_native_group() -> None:
    """Any user who may write the group could have written them."""
    keys = (names.PLACEMENT, names.LATER_TASKS, names.INDEPENDENT, names.WORKLOAD, names.INDIVISIBLE)
    said = as_group(native(dict.fromkeys(keys, "x") | {names.NATIVE_GROUP: "other"}), "q").metadata.annotations
    assert said == {names.NATIVE_GROUP: "train"}


def test_a_gang_counts_in_the_queue_that_it_names_or_else_the_planner() -> None:
    """A group without a status from the planner counts in no queue; a group with nodes stays in its queue."""
    told = conditions_of(PodGroupStatus(phase="Running"), [], NOW, queue="research")
    unsaid = conditions_of(PodGroupStatus(phase="Running"), [], NOW)
    assert counted_in(native()) == ""
    assert counted_in(native({names.QUEUE: "own"})) == ""
    assert counted_in(native(conditions=told)) == "research"
    assert counted_in(native(conditions=unsaid)) == names.DEFAULT_QUEUE
    waits = conditions_of(PodGroupStatus(phase="Pending"), [], NOW, queue="research")
    assert counted_in(native({names.QUEUE: "own"}, waits)) == "own"
    assert counted_in(native({names.QUEUE: "own"}, told)) == "research"


def test_writers_find_the_native_group_of_a_gang() -> None:
    """Its owner reference, and the object of its Events."""
    group = as_group(native(), "q")
    assert is_native(group)
    owner = reference(group)
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "scheduling.k8s.io/v1beta1", "PodGroup", "train", "uid-1",
    )  # fmt: skip
    assert (subject(group).metadata.name, subject(group).api_version) == ("train", "scheduling.k8s.io/v1beta1")


@pytest.mark.parametrize("length", [1, 246, 247, 253])
def test_the_name_of_a_gang_is_a_name_of_an_object_and_its_own(length: int) -> None:
    """Names that begin alike for 253 characters give different gangs, too."""
    one, other = "a" * (length - 1) + "b", "a" * (length - 1) + "c"
    assert native_gang(one) != native_gang(other)
    assert len(native_gang(one)) <= 253


def test_a_pod_is_a_member_by_its_scheduling_group() -> None:
    """If Muster's scheduler has it, and unless it names another gang."""
    assert gang_of(pod()) == "native.train"
    assert gang_of(pod(scheduler="default-scheduler")) is None
    assert gang_of(pod(labels={names.GANG: "mine"})) == "mine"


def test_the_group_that_the_job_controller_gives_every_job_is_a_gang_only_if_the_job_asks() -> None:
    """Admission marks the template of a Job that does."""
    assert gang_of(pod(owner="train")) is None
    assert gang_of(pod(owner="train", annotations={names.NATIVE_GROUP: "true"})) == "native.train"


words = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=30)
reasons = st.sampled_from(("NotEnoughResources", "Scheduled", EVICTED, "SetAside"))
truth = st.sampled_from(("True", "False"))
conditions = st.lists(
    st.builds(told, st.sampled_from(("Unschedulable", "Scheduled")), truth, reasons, words),
    max_size=2, unique_by=lambda each: each.type,
)  # fmt: skip
count = st.integers(0, 20_000)
statuses = st.builds(
    PodGroupStatus,
    phase=st.sampled_from(("Pending", "Inqueue", "Running", "Unknown", "Completed")),
    conditions=conditions, running=count, succeeded=count, failed=count, place=count,
    expected_start=st.sampled_from((None, THEN)),
)  # fmt: skip


@given(st.lists(statuses, min_size=1, max_size=4))
def test_what_is_written_is_read_again(all_statuses: list[PodGroupStatus]) -> None:
    """Whatever was written before, so that nothing is written twice."""
    group = native()
    for status in all_statuses:
        group = native(conditions=conditions_of(status, group.status.conditions, NOW))
        assert status_of(group) == holds(status)
        assert as_group(group, "q").status == holds(status)


def test_conditions_of_others_stay() -> None:
    """Muster replaces its own only."""
    other = Condition(type="example.com/Seen", status="True", last_transition_time=THEN, reason="Seen", message="")
    assert other in conditions_of(PodGroupStatus(phase="Running"), [other], NOW)


def test_kubernetes_own_condition_says_why_it_waits_and_never_goes_back() -> None:
    """Once the gang has had its nodes, that stays true, also when it waits again."""

    def initially(group: NativePodGroup) -> tuple[str, str, str]:
        [found] = [each for each in group.status.conditions if each.type == INITIALLY_SCHEDULED]
        return found.status, found.reason, found.message

    waits = PodGroupStatus(phase="Pending", conditions=[told("Unschedulable")])
    first = native(conditions=conditions_of(waits, [], NOW))
    assert initially(first) == ("False", "Unschedulable", "no room")
    runs = PodGroupStatus(phase="Running", conditions=[told("Scheduled", reason="Scheduled", message="all have nodes")])
    second = native(conditions=conditions_of(runs, first.status.conditions, NOW))
    assert initially(second) == ("True", "Scheduled", "all have nodes")
    third = native(conditions=conditions_of(waits, second.status.conditions, NOW))
    assert initially(third) == ("True", "Scheduled", "all have nodes")


def test_an_eviction_is_a_disruption_for_everyone_until_it_is_over() -> None:
    """Other tools read the condition of Kubernetes' own."""
    gone = PodGroupStatus(phase="Pending", conditions=[told("Unschedulable", reason=EVICTED, message="for another")])
    evicted = conditions_of(gone, [], NOW)
    assert ("True", "PreemptionByScheduler") in [(c.status, c.reason) for c in evicted if c.type == DISRUPTION_TARGET]
    later = conditions_of(PodGroupStatus(phase="Running"), evicted, NOW + 60)
    over = [(each.status, each.last_transition_time) for each in later if each.type == DISRUPTION_TARGET]
    assert over == [("False", format_time(NOW + 60))]
    assert over == [
        (each.status, each.last_transition_time)
        for each in conditions_of(PodGroupStatus(phase="Running"), later, NOW + 120)
        if each.type == DISRUPTION_TARGET
    ]


def test_a_phase_that_muster_does_not_know_is_none() -> None:
    """As a user may write it who may write the status."""
    forged = Condition(type=PHASE, status="True", last_transition_time=THEN, reason="Sideways", message="running=x")
    assert status_of(native(conditions=[forged])) == PodGroupStatus()
