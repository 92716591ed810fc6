"""What owners say of the gangs of their pods."""

from typing import Any

import msgspec
import pytest

from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.apps import DAEMON_SETS, REPLICA_SETS, STATEFUL_SETS
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob, Pod
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.workloads.kind import GangRules
from muster.workloads.table import gang_rules, min_member

SHAPED = {"labels": {"muster.dev/framework": "torch"}}


def owned(resource: Resource[Any]) -> OwnerReference:
    """A reference to owner `train`."""
    return OwnerReference(api_version=resource.api_version, kind=resource.kind, name="train", uid="t", controller=True)


def pod(resource: Resource[Any] | None = INDEXED_JOBS, **metadata: Any) -> Pod:
    """A pod of an owner, or of nobody."""
    return Pod(metadata=ObjectMeta(name="x", owner_references=[owned(resource)] if resource else [], **metadata))


def batch_job(parallelism: int | None, completions: int | None, **metadata: Any) -> IndexedJob:
    """Batch Job `train`."""
    spec = {"parallelism": parallelism, "completions": completions}
    return msgspec.convert({"metadata": {"name": "train", "uid": "t", **metadata}, "spec": spec}, IndexedJob)


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
        (
            pod(REPLICA_SETS),
            Object(metadata=ObjectMeta(annotations={"scheduling.volcano.sh/group-min-member": "5"})),
            5,
        ),
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


@pytest.mark.parametrize(
    ("resource", "spec", "none"),
    [
        (INDEXED_JOBS, {"parallelism": 0}, True),
        (INDEXED_JOBS, {"parallelism": 2, "suspend": True}, True),
        (INDEXED_JOBS, {}, False),
        (REPLICA_SETS, {"replicas": 0}, True),
        (REPLICA_SETS, {}, False),
        (STATEFUL_SETS, {"replicas": 0}, True),
        (STATEFUL_SETS, {"replicas": 1}, False),
    ],
)
def test_who_wants_no_pods(resource: Resource[Any], spec: dict[str, Any], *, none: bool) -> None:
    """Owners that are scaled to zero or suspended."""
    wants_none = rules(resource).wants_none
    assert wants_none
    assert wants_none(msgspec.convert({"spec": spec}, resource.type)) == none


@pytest.mark.parametrize(
    ("condition", "over"),
    [
        (("Complete", "True"), True),
        (("Failed", "True"), True),
        (("Failed", "False"), False),
        (("Suspended", "True"), False),
    ],
)
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
