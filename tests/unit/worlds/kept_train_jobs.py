"""A TrainJob on a runtime for torch, and the objects that are made for it, as its rules see them."""

from typing import Any

import msgspec
from builders import pod as a_pod
from frameworks_world import FRAMEWORK, replicated_job, runtime

from controller.trainjob.rules.children import Children, intent, job_manifest
from controller.trainjob.rules.steps import Step, decide
from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.volcano.batch import JOBS, Job
from muster.runtime.plan import Compiled
from muster.runtime.train_job import compile_train_job

JSON = dict[str, Any]

PHASES = ["", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Completed", "Terminating",
          "Terminated", "Failed"]  # fmt: skip

INITIALIZER = {"initializer": {"dataset": {"storageUri": "hf://x"}}}

NOW = "2026-01-01T00:00:00Z"


def compiled(job: TrainJob, *, steps: bool = False, replicas: int = 1, **jobset: Any) -> Compiled:
    """The TrainJob on a runtime for torch, with an initializer before the training if asked for."""
    node = replicated_job("node", "trainer")
    jobs = [node]
    if steps:
        pod = {"containers": [{"name": "dataset-initializer", "image": "fetch"}]}
        first = replicated_job("dataset-initializer", "dataset-initializer", pod)
        node["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
        jobs = [first, node]
    if replicas > 1:
        jobs.append({**replicated_job("other"), "replicas": replicas})
    result = compile_train_job(job, runtime({"torch": {}}, *jobs, jobset=jobset), FRAMEWORK)
    assert not result.errors
    return result


def steps_of(job: TrainJob, children: Children, **more: Any) -> list[Step]:
    """The steps that are to be taken."""
    found = compiled(job, **more)
    assert found.plan
    return decide(job, found.plan, found.components, children)


def made(job: TrainJob, phase: str = "", **more: Any) -> Job:
    """The Job that was made for a TrainJob, in some phase."""
    component = next(
        each for each in compiled(job, **more).components if each.manifest["apiVersion"] == JOBS.api_version
    )
    manifest = job_manifest(component.manifest, job, "")
    manifest["metadata"] |= {"uid": "job", "resourceVersion": "1"}
    return msgspec.convert({**manifest, "status": {"state": {"phase": phase, "reason": "", "message": "so"}}}, Job)


def pods(*phases: str, pod_set: str = "node", ready: bool = True) -> list[Pod]:
    """Pods of a pod set, in index order."""
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return [
        a_pod(f"train-{pod_set}-{index}", labels={names.TASK_INDEX: str(index), names.REPLICATED_JOB: pod_set},
              phase=phase, status=status)
        for index, phase in enumerate(phases)
    ]  # fmt: skip


def batch(name: str, job: TrainJob, *, suspend: bool = False, **status: Any) -> IndexedJob:
    """A batch/v1 Job of a TrainJob."""
    metadata = {"name": name, "uid": name, "annotations": {names.TRAIN_JOB_SPEC: intent(job)}}
    spec = {"completions": 1, "suspend": suspend}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, IndexedJob)


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}

FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "backoff limit"}]}
