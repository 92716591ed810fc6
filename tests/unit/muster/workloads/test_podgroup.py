"""The PodGroup of workloads other than Volcano Jobs."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import IndexedJob, IndexedJobSpec, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.scheduling import JobScheduling, PodSchedulingGroup
from muster.workloads.podgroup import group_to_make, in_the_queue_of, queue_of
from muster.workloads.podgroup import pod_group as group_of
from muster.workloads.podgroup import update as update_of_workload


def pod(scheduler: str = "muster", owner: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    """A pod of UID `p`, perhaps of batch Job `train`."""
    references = [owner] if owner else []
    meta = {"name": "x", "namespace": "n", "uid": "p", "ownerReferences": references, **metadata}
    content = {"metadata": meta, "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}]}}
    return msgspec.convert(content, Pod)


TRAIN = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "t", "controller": True}
VCJOB = {**TRAIN, "apiVersion": "batch.volcano.sh/v1alpha1"}


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (pod(), "podgroup-p"),
        (pod("volcano", TRAIN), "podgroup-t"),
        (pod("muster", TRAIN, labels={"muster.dev/gang": "podgroup-t"}), "podgroup-t"),
        (pod("default-scheduler", TRAIN), None),
        (pod("volcano", VCJOB), None),
        (pod("muster", TRAIN, annotations={"scheduling.k8s.io/group-name": "mine"}), None),
        (pod("muster", labels={"scheduling.x-k8s.io/pod-group": "mine"}), None),
        (pod("muster", deletionTimestamp="2026-01-01T00:00:00Z"), None),
    ],
)
def test_which_pods_get_a_group(of: Pod, name: str | None) -> None:
    """Those of our schedulers without a group of their own, and not those of Volcano Jobs."""
    assert group_to_make(of) == name


def in_a_group(*, annotations: dict[str, str] | None = None, owner: dict[str, Any] | None = None) -> Pod:
    """A pod of Muster's scheduler in a native PodGroup."""
    made = pod("muster", owner, annotations=annotations or {})
    made.spec.scheduling_group = PodSchedulingGroup(pod_group_name="g")
    return made


def test_a_pod_whose_gang_is_a_native_podgroup_gets_no_other() -> None:
    """That of a Job which asks for nothing is none: the Job controller gives every Job a group."""
    assert group_to_make(in_a_group()) is None
    assert group_to_make(in_a_group(annotations={"muster.dev/native-group": "true"}, owner=TRAIN)) is None
    assert group_to_make(in_a_group(owner=TRAIN)) == "podgroup-t"


def test_a_job_with_scheduling_of_which_no_native_group_was_made() -> None:
    """As of a CronJob's: its gang is what it asks for all the same."""
    scheduling_constraints = {"topology": [{"key": "example.com/rack"}]}
    asked = {"schedulingPolicy": {"gang": {"minCount": 3}}, "schedulingConstraints": scheduling_constraints}
    job = batch_job(4, 4)
    job.spec.scheduling = msgspec.convert(asked, JobScheduling)
    group = group_of(pod("muster", TRAIN), job)
    assert group.spec.min_member == 3
    assert group.metadata.annotations["muster.dev/topology-required"] == "example.com/rack"
    assert "muster.dev/independent-pods" not in group.metadata.annotations


def batch_job(parallelism: int | None, completions: int | None, **meta: Any) -> IndexedJob:
    """Batch Job `train`."""
    spec = IndexedJobSpec(parallelism=parallelism, completions=completions)
    return IndexedJob(metadata=ObjectMeta(name="train", uid="t", **meta), spec=spec)


SHAPED = {"labels": {"muster.dev/framework": "torch"}}


def test_group_of_a_workload() -> None:
    """Owned by the workload, in its queue, with the resources of its members."""
    labels = {"muster.dev/queue": "q", "muster.dev/framework": "torch"}
    group = group_of(pod("muster", TRAIN, labels=labels), batch_job(4, 4))
    assert (group.metadata.name, group.metadata.namespace) == ("podgroup-t", "n")
    assert (group.metadata.owner_references[0].name, group.spec.queue) == ("train", "q")
    assert (group.spec.min_member, group.spec.min_resources) == (4, {"pods": "4", "count/pods": "4"})
    single = group_of(pod(), None)
    assert (single.metadata.owner_references[0].kind, single.spec.queue) == ("Pod", "default")


def test_which_queue_is_named() -> None:
    """By the pod, else by its owner; where neither says a word nobody has named one."""
    annotated = {"annotations": {"scheduling.volcano.sh/queue-name": "a"}}
    assert queue_of(pod(labels={"muster.dev/queue": "q"}), batch_job(1, 1, **annotated)) == "q"
    assert queue_of(pod(), batch_job(1, 1, **annotated)) == "a"
    assert queue_of(pod(), batch_job(1, 1)) == queue_of(pod(), None) == ""


def test_a_gang_stays_in_its_queue() -> None:
    """Scaling writes no queue when the group is in that of its namespace."""
    existing = group_of(pod("muster", TRAIN, labels={"muster.dev/queue": "a"}), batch_job(1, 1))
    wanted = in_the_queue_of(existing, group_of(pod("muster", TRAIN), batch_job(4, 4, **SHAPED)))
    assert set(update_of_workload(existing, wanted)["spec"]) == {"minMember", "minResources"}
