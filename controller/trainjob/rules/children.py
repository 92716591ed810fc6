"""The existing objects of a TrainJob, and the labels and annotations that the controller writes into new objects."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import msgspec

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS, JobSet
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob, Pod
from muster.api.volcano.batch import FINISHED, JOBS, Job
from muster.api.volcano.scheduling import PodGroup
from muster.runtime.plan import Plan, PodSetPlan

End = Literal["Complete", "Failed"]
ENDS: Mapping[str, End] = {"Completed": "Complete", "Failed": "Failed"}
"""Maps each condition of an ended JobSet to the condition of the JobSet's TrainJob."""
OVER = frozenset({"Complete", "Failed"})
"""Permanent conditions of an ended TrainJob or batch/v1 Job."""


@dataclass(frozen=True, slots=True)
class Children:
    """The existing objects of a TrainJob: a Job with its pods, and initializers by name; or a JobSet with its gang."""

    job: Job | None = None
    pods: Sequence[Pod] = ()
    initializers: Mapping[str, IndexedJob] = field(default_factory=dict)
    job_set: JobSet | None = None
    group: PodGroup | None = None
    """The PodGroup of the JobSet's pods; None for a TrainJob with a Volcano Job."""

    @property
    def notes(self) -> Mapping[str, str]:
        """The annotations of the object that creates the training pods."""
        maker = self.job or self.job_set
        return maker.metadata.annotations if maker else {}


def finished(train_job: TrainJob) -> bool:
    """Return True if the TrainJob has ended. An ended TrainJob never runs again."""
    return any(each.type in OVER and each.status == "True" for each in train_job.status.conditions)


def initializer_name(train_job: TrainJob, pod_set: str) -> str:
    """Return the name of the batch/v1 Job that runs a pod set before the gang starts."""
    return f"{train_job.metadata.name}-{pod_set}-0"


def before(plan: Plan) -> list[PodSetPlan]:
    """Return the pod sets that must run and end before the gang starts."""
    gang = plan.gang.pod_sets if plan.gang else ()
    return [each for each in plan.pod_sets if each.count and each.name not in gang]


def has(job: IndexedJob, *types: str) -> bool:
    """Return True if a condition of one of these types holds for a batch/v1 Job."""
    conditions = job.status.get("conditions") or []
    return any(each.get("type") in types and each.get("status") == "True" for each in conditions)


def continues(job: Job | IndexedJob | JobSet) -> bool:
    """Return True unless a Job or JobSet has ended, or is about to stop."""
    if isinstance(job, IndexedJob):
        return not has(job, *OVER)
    if isinstance(job, JobSet):
        return not any(each.type in ENDS and each.status == "True" for each in job.status.conditions)
    return job.status.state.phase not in FINISHED | {"Completing", "Terminating"}


JSON = dict[str, Any]
_DIGITS = 16
Role = Literal["train", "initialize", "job set"]
_ROLES: Mapping[Role, Resource[Any]] = {"train": JOBS, "initialize": INDEXED_JOBS, "job set": JOB_SETS}


def intent(train_job: TrainJob) -> str:
    """Return a hash of the TrainJob fields that determine its pods; pods with a different hash must be deleted."""
    spec = msgspec.to_builtins(train_job.spec)
    for key in ("suspend", "managedBy", "activeDeadlineSeconds"):
        spec.pop(key, None)
    for patch in spec.get("runtimePatches") or []:
        patch.pop("time", None)
    (spec.get("trainer") or {}).pop("numNodes", None)
    return fingerprint(spec)


def fingerprint(manifest: Mapping[str, Any]) -> str:
    """Return a hash of a manifest."""
    return sha256(msgspec.json.encode(manifest, order="deterministic")).hexdigest()[:_DIGITS]


def marked(manifest: Mapping[str, Any], train_job: TrainJob) -> JSON:
    """Return the manifest with the label by which objects of TrainJobs are found."""
    result = deepcopy(dict(manifest))
    metadata = result["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), names.TRAIN_JOB: train_job.metadata.name}
    return result


def job_manifest(manifest: Mapping[str, Any], train_job: TrainJob, resumed_at: str) -> JSON:
    """Return the manifest of an object that creates pods, annotated with the TrainJob's hash, last resumption and TTL.

    The annotation with the TTL replaces the field `ttlSecondsAfterFinished`. With this field, a Job might be deleted
    before the TrainJob's end is recorded, and would run again.
    """
    result = marked(manifest, train_job)
    annotations = {**(result["metadata"].get("annotations") or {}), names.TRAIN_JOB_SPEC: intent(train_job)}
    if resumed_at:
        annotations[names.RESUMED_AT] = resumed_at
    if result["apiVersion"] in {JOBS.api_version, JOB_SETS.api_version}:
        after_s = result["spec"].pop("ttlSecondsAfterFinished", None)
        if after_s is not None:
            annotations[names.DELETE_AFTER] = str(after_s)
    result["metadata"]["annotations"] = annotations
    return result


def role(manifest: Mapping[str, Any]) -> Role | None:
    """Return the role of an object that creates pods.

    Volcano Jobs train, batch/v1 Jobs initialize, and JobSets do both.
    """
    kind = (manifest["apiVersion"], manifest["kind"])
    return next((role for role, each in _ROLES.items() if kind == (each.api_version, each.kind)), None)


def covers(wanted: Any, live: Any) -> bool:
    """Return True if the live object has every wanted field with the wanted value.

    The live object may have further fields, but lists must have the wanted length.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(covers(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(covers(*pair) for pair in zip(wanted, live, strict=True))
    return bool(wanted == live) or (live is None and wanted in ({}, [], "", None))
