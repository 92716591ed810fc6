"""What owners say of the gangs of their pods, and the PodGroup of workloads other than Volcano Jobs."""

from typing import Any

import msgspec
import pytest

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.apps import DAEMON_SETS, REPLICA_SETS, STATEFUL_SETS, ReplicaSet, StatefulSet
from muster.api.kubernetes.core import INDEXED_JOBS, Container, IndexedJob, Pod, PodSpec
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import JobScheduling, PodSchedulingGroup
from muster.api.volcano.batch import JOBS
from muster.workloads.kind import GangRules
from muster.workloads.podgroup import group_to_make, in_the_queue_of, queue_of
from muster.workloads.podgroup import pod_group as group_of
from muster.workloads.podgroup import update as update_of_workload
from muster.workloads.table import gang_rules, min_member

SHAPED = {"labels": {"muster.dev/framework": "torch"}}


def owned(resource: Resource[Any]) -> OwnerReference:
    """A reference to owner `train`."""
    return OwnerReference(api_version=resource.api_version, kind=resource.kind, name="train", uid="t", controller=True)


def pod(resource: Resource[Any] | None = INDEXED_JOBS, scheduler: str = "muster", **metadata: Any) -> Pod:
    """A pod of UID `p`, of an owner or of nobody."""
    references = [owned(resource)] if resource else []
    meta = ObjectMeta(name="x", namespace="n", uid="p", owner_references=references, **metadata)
    return Pod(metadata=meta, spec=PodSpec(scheduler_name=scheduler, containers=[Container(name="c")]))


def batch_job(parallelism: int | None, completions: int | None, **metadata: Any) -> IndexedJob:
    """Batch Job `train`."""
    spec = {"parallelism": parallelism, "completions": completions}
    return msgspec.convert({"metadata": {"name": "train", "uid": "t", **metadata}, "spec": spec}, IndexedJob)


def replicas(kind: type[Object], number: int | None, least: int) -> Object:
    """A ReplicaSet or StatefulSet `train` whose pods start together from `least` on, by Volcano's annotation."""
    annotations = {"scheduling.volcano.sh/group-min-member": str(least)}
    return msgspec.convert({"metadata": {"annotations": annotations}, "spec": {"replicas": number}}, kind)


def annotated(**annotations: str) -> Any:
    """Metadata with annotations of Muster's."""
    return {"annotations": {f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}}


@pytest.mark.parametrize(
    ("of", "owner", "members"),
    [
        (pod(None), None, 1),
        (pod(), None, 1),
        (pod(), batch_job(4, 4), 1),
        (pod(), batch_job(4, 4, **SHAPED), 4),
        (pod(**SHAPED), batch_job(4, 3), 3),
        (pod(), batch_job(None, None, **SHAPED), 1),
        (pod(), batch_job(4, 4, **annotated(min_member="2"), **SHAPED), 2),
        (pod(), batch_job(4, 9, **annotated(min_member="8")), 4),  # said by its JobSet of both its Jobs
        (pod(), batch_job(4, 2, **annotated(min_member="4")), 2),
        (pod(None, **annotated(min_member="3")), None, 3),
        (pod(REPLICA_SETS), replicas(ReplicaSet, 7, 5), 5),
        (pod(REPLICA_SETS), replicas(ReplicaSet, 2, 5), 2),  # the new one of a Deployment in its rollout
        (pod(STATEFUL_SETS), replicas(StatefulSet, 2, 5), 2),
        (pod(STATEFUL_SETS), replicas(StatefulSet, None, 5), 1),
        (pod(None, **annotated(min_member="-3")), None, 1),
        (pod(None, **annotated(min_member="many")), None, 1),
    ],
)
def test_min_member(of: Pod, owner: Object | None, members: int) -> None:
    """As annotated, else the whole of a framework's batch Job, else one; nonsense counts as one, too many as all."""
    assert min_member(of, owner) == members


def rules(resource: Resource[Any]) -> GangRules:
    """What a kind says."""
    found = gang_rules(owned(resource))
    assert found
    return found


@pytest.mark.parametrize(("resource", "spec", "none"), [
    (INDEXED_JOBS, {"parallelism": 0}, True),
    (INDEXED_JOBS, {"parallelism": 2, "suspend": True}, True),
    (INDEXED_JOBS, {}, False),
    (REPLICA_SETS, {"replicas": 0}, True),
    (REPLICA_SETS, {}, False),
    (STATEFUL_SETS, {"replicas": 0}, True),
    (STATEFUL_SETS, {"replicas": 1}, False),
])  # fmt: skip
def test_who_wants_no_pods(resource: Resource[Any], spec: dict[str, Any], *, none: bool) -> None:
    """Owners that are scaled to zero or suspended."""
    wants_none = rules(resource).wants_none
    assert wants_none
    assert wants_none(msgspec.convert({"spec": spec}, resource.type)) == none


@pytest.mark.parametrize(("condition", "over"), [
    (("Complete", "True"), True),
    (("Failed", "True"), True),
    (("Failed", "False"), False),
    (("Suspended", "True"), False),
])  # fmt: skip
def test_when_a_job_is_over(condition: tuple[str, str], *, over: bool) -> None:
    """When it is complete or has failed. The others go on until they are deleted."""
    is_over = rules(INDEXED_JOBS).is_over
    assert is_over
    assert is_over(IndexedJob(status={"conditions": [dict(zip(("type", "status"), condition, strict=True))]})) == over
    assert not is_over(IndexedJob())
    assert all(rules(kind).is_over is None for kind in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOB_SETS))


def test_the_service_of_a_job() -> None:
    """Headless, named as the Job and gone with it, for its pods, even before they are ready."""
    make = rules(INDEXED_JOBS).service
    assert make
    service = make(batch_job(2, 2, namespace="team"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "t", "controller": True}
    assert service == {
        "metadata": {"name": "train", "namespace": "team", "ownerReferences": [owner]},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": "train"},
        },
    }


@pytest.mark.parametrize(("of", "name"), [
    (pod(None), "podgroup-p"),
    (pod(scheduler="volcano"), "podgroup-t"),
    (pod(labels={"muster.dev/gang": "podgroup-t"}), "podgroup-t"),
    (pod(scheduler="default-scheduler"), None),
    (pod(JOBS, "volcano"), None),
    (pod(annotations={"scheduling.k8s.io/group-name": "mine"}), None),
    (pod(None, labels={"scheduling.x-k8s.io/pod-group": "mine"}), None),
    (pod(None, deletion_timestamp="2026-01-01T00:00:00Z"), None),
])  # fmt: skip
def test_which_pods_get_a_group(of: Pod, name: str | None) -> None:
    """Those of our schedulers without a group of their own, and not those of Volcano Jobs."""
    assert group_to_make(of) == name


def in_a_group(of: Pod) -> Pod:
    """The pod, in a native PodGroup."""
    of.spec.scheduling_group = PodSchedulingGroup(pod_group_name="g")
    return of


def test_a_pod_whose_gang_is_a_native_podgroup_gets_no_other() -> None:
    """That of a Job which asks for nothing is none: the Job controller gives every Job a group."""
    assert group_to_make(in_a_group(pod(None))) is None
    assert group_to_make(in_a_group(pod(annotations={"muster.dev/native-group": "true"}))) is None
    assert group_to_make(in_a_group(pod())) == "podgroup-t"


def test_a_job_with_scheduling_of_which_no_native_group_was_made() -> None:
    """As of a CronJob's: its gang is what it asks for all the same."""
    scheduling_constraints = {"topology": [{"key": "example.com/rack"}]}
    asked = {"schedulingPolicy": {"gang": {"minCount": 3}}, "schedulingConstraints": scheduling_constraints}
    job = batch_job(4, 4)
    job.spec.scheduling = msgspec.convert(asked, JobScheduling)
    group = group_of(pod(), job)
    assert group.spec.min_member == 3
    assert group.metadata.annotations["muster.dev/topology-required"] == "example.com/rack"
    assert "muster.dev/independent-pods" not in group.metadata.annotations


def test_group_of_a_workload() -> None:
    """Owned by the workload, in its queue, with the resources of its members."""
    group = group_of(pod(labels={"muster.dev/queue": "q", "muster.dev/framework": "torch"}), batch_job(4, 4))
    assert (group.metadata.name, group.metadata.namespace) == ("podgroup-t", "n")
    assert (group.metadata.owner_references[0].name, group.spec.queue) == ("train", "q")
    assert (group.spec.min_member, group.spec.min_resources) == (4, {"pods": "4", "count/pods": "4"})
    single = group_of(pod(None), None)
    assert (single.metadata.owner_references[0].kind, single.spec.queue) == ("Pod", "default")


def test_the_group_does_not_block_the_deletion_of_its_owner() -> None:
    """Some clusters require a right to the owner's finalizers for that, which Muster lacks for kinds unknown to it."""
    member = pod()
    member.metadata.owner_references[0].block_owner_deletion = True
    [reference] = group_of(member, None).metadata.owner_references
    assert (reference.uid, reference.controller, reference.block_owner_deletion) == ("t", True, False)


def test_which_queue_is_named() -> None:
    """By the pod, else by its owner; where neither says a word nobody has named one."""
    annotated = {"annotations": {"scheduling.volcano.sh/queue-name": "a"}}
    assert queue_of(pod(labels={"muster.dev/queue": "q"}), batch_job(1, 1, **annotated)) == "q"
    assert queue_of(pod(), batch_job(1, 1, **annotated)) == "a"
    assert queue_of(pod(), batch_job(1, 1)) == queue_of(pod(), None) == ""
    moved = {"annotations": {names.MOVED_TO: "m"}}
    assert queue_of(pod(labels={"muster.dev/queue": "q"}), batch_job(1, 1, **moved)) == "m"
    assert queue_of(pod(labels={"muster.dev/queue": "q"}, **moved), None) == "m"


def test_a_gang_stays_in_its_queue() -> None:
    """Scaling writes no queue when the group is in that of its namespace."""
    existing = group_of(pod(labels={"muster.dev/queue": "a"}), batch_job(1, 1))
    wanted = in_the_queue_of(existing, group_of(pod(), batch_job(4, 4, **SHAPED)))
    assert set(update_of_workload(existing, wanted)["spec"]) == {"minMember", "minResources"}


@pytest.mark.parametrize(
    ("status", "ended", "members"),
    [
        ({}, 0, 4),
        ({"succeeded": 2}, 2, 4),  # their pods still count as members
        ({"succeeded": 2}, 0, 2),
        ({"succeeded": 2}, 1, 3),
        ({"failedIndexes": "3"}, 0, 3),
        ({"failedIndexes": "0,2-3"}, 0, 1),
        ({"succeeded": 1, "failedIndexes": "1-2"}, 0, 1),
        ({"failedIndexes": "5-3,x,-1"}, 0, 4),
        ({"succeeded": 4}, 0, 1),
    ],
)
def test_members_that_have_ended_and_gone_are_not_awaited(status: dict[str, Any], ended: int, members: int) -> None:
    """Four indexes start together: after some have ended for good, those that are left do."""
    owner = batch_job(4, 4, **annotated(min_member="4"))
    owner.status = status
    assert min_member(pod(), owner, ended) == members


def test_a_job_without_completions_says_nothing_of_what_is_left() -> None:
    """Its pods take from a queue of work."""
    owner = batch_job(4, None, **annotated(min_member="4"))
    owner.status = {"succeeded": 3}
    assert min_member(pod(), owner) == 4
