"""Reports about gangs that are native PodGroups go by the names that their users know."""

from typing import Any

import msgspec
import pytest
from explain_world import report_of

from extender.explain.changes import DumpChange, changed
from extender.explain.clusterdump import ClusterDump, load, save
from extender.explain.own import places
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from muster.api.kubernetes.core import NODES, PODS, Node, Pod
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, WORKLOADS, NativePodGroup, Workload
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import QUEUES, Queue

NOW = 1_800_000_000.0
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "fit", "uid": "uid-job", "controller": True}


def meta(name: str, **more: Any) -> dict[str, Any]:
    """Metadata in namespace `ns`."""
    return {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1", **more}


def dump() -> ClusterDump:
    """A native gang of two that runs, of a Job, with a queue by its Workload."""
    made = ClusterDump(NOW)
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    group = {"metadata": meta("fit-group", ownerReferences=[OWNER]), "spec": spec}
    made.add_objects(NATIVE_POD_GROUPS, [msgspec.convert(group, NativePodGroup)])
    made.add_objects(
        WORKLOADS, [msgspec.convert({"metadata": meta("w", labels={"muster.dev/queue": "red"})}, Workload)]
    )
    made.add_objects(QUEUES, [msgspec.convert({"metadata": {"name": name}}, Queue) for name in ("default", "red")])
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 8, "pods": 10}}}
    made.add_objects(NODES, [msgspec.convert(node, Node)])
    named = {"schedulerName": "muster", "nodeName": "n", "schedulingGroup": {"podGroupName": "fit-group"}}
    notes, runs = {"scheduling.k8s.io/group-name": "native.fit-group"}, {"spec": named, "status": {"phase": "Running"}}
    pods = [{"metadata": meta(f"fit-{rank}", annotations=notes), **runs} for rank in range(2)]
    made.add_objects(PODS, [msgspec.convert(pod, Pod) for pod in pods])
    made.add_objects(PLACEMENTS, [msgspec.convert({"metadata": meta("native.fit-group")}, Placement)])
    return made


@pytest.mark.parametrize(
    ("kind", "name"), [("gang", "fit-group"), ("gang", "native.fit-group"), ("gang", "fit"), ("job", "fit")]
)
def test_a_native_gang_is_found_by_each_of_its_names(kind: str, name: str) -> None:
    """Its own, that of its Placement, and that of its Job; also in a file that was written and read."""
    for each in (dump(), load(save(dump()))):
        report = report_of(each, name, kind)
        assert (report.gang, report.workload, report.queue.name) == ("ns/native.fit-group", "Job ns/fit", "red")


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    """Natives among them."""
    with pytest.raises(UnknownNameError, match="fit"):
        report_of(dump(), "fitt")


def test_its_nodes_are_told_to_who_sees_one_namespace() -> None:
    """As those of other gangs."""
    [place] = places(WhatIf(dump()))
    assert (place.workload, place.nodes) == ("Job ns/fit", ["pods: n (2)"])


@pytest.mark.parametrize("name", ["ns/fit", "ns/fit-group"])
def test_it_is_gone_in_a_trial_without_it(name: str) -> None:
    """With its pods and its Placement."""
    left = changed(dump(), DumpChange("ns", without=[name]))
    assert [left.objects_of(kind) for kind in (NATIVE_POD_GROUPS, PODS, PLACEMENTS)] == [[], [], []]


def test_a_pod_whose_native_group_is_not_served_says_so() -> None:
    """As while the gate is off: the pods keep the field, and wait for a group that nobody sees."""
    made = dump()
    made.objects[NATIVE_POD_GROUPS.full_name].clear()
    spec = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": "fit-group"}}
    made.add_objects(PODS, [msgspec.convert({"metadata": meta("fit-2"), "spec": spec}, Pod)])
    report = report_of(made, "fit-2", "pod")
    assert report.cause == "gang-missing"
    assert "PodGroup fit-group of scheduling.k8s.io" in report.summary
    assert "GenericWorkload" in report.summary
