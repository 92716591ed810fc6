"""Labels and notes on the objects of a TrainJob, by which they are found and recognized."""

from collections.abc import Mapping
from copy import deepcopy
from hashlib import sha256
from typing import Any, Literal

import msgspec

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS
from muster.api.volcano.batch import JOBS

JSON = dict[str, Any]
_DIGITS = 16
_ROLES: tuple[tuple[Resource[Any], Literal["train", "initialize", "job set"]], ...] = (
    (JOBS, "train"),
    (INDEXED_JOBS, "initialize"),
    (JOB_SETS, "job set"),
)


def intent(train_job: TrainJob) -> str:
    """A hash of the fields of a TrainJob that shape its pods: pods that were made for another one have to go.

    `suspend`, the time of a patch and the number of nodes of an elastic training do not change the pods.
    """
    spec = msgspec.to_builtins(train_job.spec)
    for key in ("suspend", "managedBy", "activeDeadlineSeconds"):
        spec.pop(key, None)
    for patch in spec.get("runtimePatches") or []:
        patch.pop("time", None)
    (spec.get("trainer") or {}).pop("numNodes", None)
    return fingerprint(spec)


def fingerprint(manifest: Mapping[str, Any]) -> str:
    """A hash of a manifest."""
    return sha256(msgspec.json.encode(manifest, order="deterministic")).hexdigest()[:_DIGITS]


def marked(manifest: Mapping[str, Any], train_job: TrainJob) -> JSON:
    """The manifest with the label by which objects of TrainJobs are found."""
    result = deepcopy(dict(manifest))
    metadata = result["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), names.TRAIN_JOB: train_job.metadata.name}
    return result


def job_manifest(manifest: Mapping[str, Any], train_job: TrainJob, resumed_at: str) -> JSON:
    """An object that makes pods, with notes: the hash of its TrainJob, the time it was resumed, its life after the end.

    The latter is a note, not a field of the Job: a Job that is deleted before its end is written to the TrainJob would
    run a second time.
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


def role(manifest: Mapping[str, Any]) -> Literal["train", "initialize", "job set"] | None:
    """The role of an object that makes pods: Muster's Job trains, batch/v1 Jobs initialize, a JobSet does both."""
    kind = (manifest["apiVersion"], manifest["kind"])
    return next((role for resource, role in _ROLES if kind == (resource.api_version, resource.kind)), None)


def covers(wanted: Any, live: Any) -> bool:
    """True if the live object has every wanted field; fields that other clients have added do not matter.

    Lists are compared element by element: an element that was inserted or moved is a difference.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(covers(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(covers(*pair) for pair in zip(wanted, live, strict=True))
    return bool(wanted == live) or (live is None and wanted in ({}, [], "", None))
