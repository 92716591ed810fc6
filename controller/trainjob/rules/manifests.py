"""What is written on everything that is made for a TrainJob, so that it is known again."""

from collections.abc import Mapping
from copy import deepcopy
from hashlib import sha256
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS
from muster.api.volcano.batch import JOBS

JSON = dict[str, Any]
_DIGITS = 16


def intent(train_job: TrainJob) -> str:
    """A hash of what the TrainJob says of its pods: those that were made for another one have to go.

    Whether it is suspended, when a patch was made and how many nodes an elastic training has do not change the pods.
    """
    spec = msgspec.to_builtins(train_job.spec)
    for key in ("suspend", "managedBy", "activeDeadlineSeconds"):
        spec.pop(key, None)
    for patch in spec.get("runtimePatches") or []:
        patch.pop("time", None)
    (spec.get("trainer") or {}).pop("numNodes", None)
    return sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:_DIGITS]


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
    """What makes pods, with notes: of which TrainJob it was made, since when it runs, when it goes.

    The time after its end stands in a note, not in the Job: whoever deletes a Job that has ended, before its end is
    told at the TrainJob, has it run a second time.
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


def makes_pods(manifest: Mapping[str, Any]) -> bool:
    """Whether it is a Job: of Muster's, or of batch/v1."""
    return (manifest["apiVersion"], manifest["kind"]) in {
        (JOBS.api_version, JOBS.kind),
        (INDEXED_JOBS.api_version, INDEXED_JOBS.kind),
    }


def is_job_set(manifest: Mapping[str, Any]) -> bool:
    """Whether it is a JobSet, which makes the pods of all steps."""
    return (manifest["apiVersion"], manifest["kind"]) == (JOB_SETS.api_version, JOB_SETS.kind)


def trains(manifest: Mapping[str, Any]) -> bool:
    """Whether it is the Job of Muster's, whose pods train."""
    return (manifest["apiVersion"], manifest["kind"]) == (JOBS.api_version, JOBS.kind)


def covers(wanted: Any, live: Any) -> bool:
    """Whether everything that is wanted is there; what others have added does not matter.

    Lists are compared element by element: what was put in between, or in another order, is a difference.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(covers(value, live.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(covers(*pair) for pair in zip(wanted, live, strict=True))
    return bool(wanted == live) or (live is None and wanted in ({}, [], "", None))
