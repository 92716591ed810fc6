"""The PodGroup of a Job, and of other workloads."""

from typing import Any

import msgspec
import pytest

from controller.gangs.workloads import group_to_make, in_the_queue_of, min_member, queue_of
from controller.gangs.workloads import pod_group as group_of
from controller.gangs.workloads import update as update_of_workload
from controller.job.rules.podgroup import min_resources, pod_group, update
from muster.api.batch import Job, JobSpec, PartitionPolicy, TaskSpec
from muster.api.core import IndexedJob, IndexedJobSpec, Pod
from muster.api.meta import Object, ObjectMeta


def task(name: str, replicas: int, least: int | None = None, **resources: Any) -> TaskSpec:
    """A task whose pods ask for these resources."""
    spec = {
        "priorityClassName": resources.pop("priority", ""),
        "containers": [{"name": "main", "resources": resources or {"requests": {"cpu": "1"}}}],
    }
    return TaskSpec(name=name, replicas=replicas, min_available=least, template={"spec": spec})


def job(*tasks: TaskSpec, min_available: int, **more: Any) -> Job:
    """Job `n/j`."""
    meta = ObjectMeta(
        name="j",
        namespace="n",
        uid="u",
        labels={"team": "a"},
        annotations={
            "note": "x",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "muster.dev/grouped-templates": "{}",
        },
    )
    return Job(metadata=meta, spec=JobSpec(tasks=list(tasks), min_available=min_available, **more))


def test_group_of_a_job() -> None:
    """Name, owner, copies and minimums; born Pending."""
    partitioned = task("p", 4)
    partitioned.partition_policy = PartitionPolicy(total_partitions=2, partition_size=2, min_partitions=1)
    group = pod_group(job(task("a", 2), task("b", 3, 1), partitioned, min_available=5, queue="q"), {})
    assert (group.metadata.name, group.metadata.namespace, group.status.phase) == ("j-u", "n", "Pending")
    assert (group.metadata.labels, group.metadata.annotations) == ({"team": "a"}, {"note": "x"})
    assert group.metadata.owner_references[0].uid == "u"
    assert (group.spec.min_member, group.spec.queue) == (5, "q")
    assert group.spec.min_task_member == {"a": 2, "b": 1, "p": 2}
    assert [(s.name, s.sub_group_size, s.match_label_keys) for s in group.spec.sub_group_policy] == [
        ("p", 2, ["volcano.sh/partition-id"])
    ]


def test_ten_keys() -> None:
    """The keys of a quota, with the extended resource under both of its names."""
    resources = {
        "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
    }
    assert min_resources(job(task("a", 3, **resources), min_available=3), {}) == {
        "cpu": "1500m",
        "memory": "3Gi",
        "requests.cpu": "1500m",
        "requests.memory": "3Gi",
        "limits.cpu": "3",
        "limits.memory": "3Gi",
        "nvidia.com/gpu": "3",
        "requests.nvidia.com/gpu": "3",
        "pods": "3",
        "count/pods": "3",
    }


SMALL = {"requests": {"cpu": "1"}}
BIG = {"requests": {"cpu": "10"}}


@pytest.mark.parametrize(
    ("of", "cpu", "pods"),
    [
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, **BIG), min_available=6), "24", "6"),
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, **BIG), min_available=5), "14", "5"),  # a whole, then one of b
        (job(task("a", 4, 1, **SMALL), task("b", 2, 1, **BIG), min_available=3), "12", "3"),  # minimums, then one of a
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, priority="high", **BIG), min_available=3), "21", "3"),
        (job(task("a", 1, 1, **SMALL), min_available=5), "1", "1"),
        (job(task("a", 0, 0, **SMALL), min_available=0), None, "0"),
    ],
)
def test_the_smallest_gang(of: Job, cpu: str | None, pods: str) -> None:
    """Important tasks first; whole tasks below the sum of minimums, else minimums and then the rest."""
    found = min_resources(of, {"high": 100})
    assert (found.get("cpu"), found["pods"]) == (cpu, pods)


def test_update_after_scaling() -> None:
    """Only what scaling changes is written, also down to nothing; an unchanged Job writes nothing."""
    before = pod_group(job(task("a", 3, 2), min_available=2), {})
    assert update(before, pod_group(job(task("a", 3, 2), min_available=2, queue="other"), {})) == {}
    patch = update(before, pod_group(job(task("a", 0, 0), min_available=0), {}))["spec"]
    assert (patch["minMember"], patch["minTaskMember"], patch["minResources"]["pods"]) == (0, {"a": 0}, "0")
    assert set(patch) == {"minMember", "minTaskMember", "minResources"}


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


def batch_job(parallelism: int | None, completions: int | None, **meta: Any) -> IndexedJob:
    """Batch Job `train`."""
    spec = IndexedJobSpec(parallelism=parallelism, completions=completions)
    return IndexedJob(metadata=ObjectMeta(name="train", uid="t", **meta), spec=spec)


SHAPED = {"labels": {"muster.dev/framework": "torch"}}


@pytest.mark.parametrize(
    ("of", "owner", "members"),
    [
        (pod(), None, 1),
        (pod(), batch_job(4, 4), 1),
        (pod(), batch_job(4, 4, **SHAPED), 4),
        (pod(**SHAPED), batch_job(4, 3), 3),
        (pod(), batch_job(None, None, **SHAPED), 1),
        (pod(), batch_job(4, 4, annotations={"muster.dev/min-member": "2"}, **SHAPED), 2),
        (pod(), batch_job(4, 9, annotations={"muster.dev/min-member": "8"}), 4),  # said by its JobSet of both its Jobs
        (pod(), batch_job(4, 2, annotations={"muster.dev/min-member": "4"}), 2),
        (pod(annotations={"muster.dev/min-member": "3"}), None, 3),
        (pod(), Object(metadata=ObjectMeta(annotations={"scheduling.volcano.sh/group-min-member": "5"})), 5),
        (pod(annotations={"muster.dev/min-member": "-3"}), None, 1),
        (pod(annotations={"muster.dev/min-member": "many"}), None, 1),
    ],
)
def test_min_member(of: Pod, owner: Object | None, members: int) -> None:
    """As annotated, else the whole of a framework's batch Job, else one; nonsense counts as one, too many as all."""
    assert min_member(of, owner) == members


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
