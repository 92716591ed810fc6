"""The next steps of a TrainJob, in order, derived from its spec and the existing objects.

Initializers complete before the gang is created, so the gang's minimum counts only pods that can exist at the same
time. While a TrainJob is suspended no pods are created and its objects stay: a Job is aborted and resumed, not deleted.
Pods are deleted only if they were created for different runtime patches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, NamedTuple

from controller.trainjob.rules.children import (
    Children,
    before,
    has,
    initializer_name,
    intent,
    job_manifest,
    marked,
    role,
)
from controller.trainjob.rules.outcome import resumed_at
from controller.trainjob.rules.status import completed
from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.volcano.batch import FINISHED, Job, JobSpec
from muster.runtime.plan import Component, Plan

JSON = dict[str, Any]


class Create(NamedTuple):
    """Step that creates a Volcano Job or a batch/v1 Job."""

    manifest: JSON


class Ensure(NamedTuple):
    """Step that creates the object of a component, or corrects an object that differs from its component.

    If the component is created `once`, an existing object is not changed.
    """

    component: Component


class Suspend(NamedTuple):
    """Step that suspends a batch/v1 Job, or resumes it."""

    job: IndexedJob
    suspend: bool


class SendCommand(NamedTuple):
    """Step that sends this Command to the controller of Jobs."""

    job: Job
    action: Literal["AbortJob", "ResumeJob"]


class Clear(NamedTuple):
    """Step that deletes pods that have ended."""

    pods: Sequence[Pod]


class PatchJob(NamedTuple):
    """Step that updates the sizes and annotations of a Job, by a JSON patch that also tests its UID and task names."""

    job: Job
    operations: Sequence[Mapping[str, Any]]


class Delete(NamedTuple):
    """Step that deletes a Volcano Job, a batch/v1 Job or a JobSet, with its pods, and waits until the pods are gone."""

    job: Job | IndexedJob
    why: str


Step = Create | Ensure | Suspend | SendCommand | Clear | PatchJob | Delete


def decide(train_job: TrainJob, plan: Plan, components: Sequence[Component], children: Children) -> list[Step]:
    """Return the steps to carry out now; if nothing has to change, all of them are `Ensure` steps."""
    steps: list[Step] = []
    open_ = True
    started = children.job is not None
    by_name = {initializer_name(train_job, each.name): each.name for each in before(plan)}
    done = completed(train_job)
    for _, stage in groupby(components, key=lambda component: component.stage):
        passed = True
        for component in stage:
            kind = role(component.manifest)
            if kind == "job set":
                manifest = job_manifest(component.manifest, train_job, resumed_at(train_job, children))
                steps.append(Ensure(replace(component, manifest=manifest)))
            elif kind is None:
                if open_:
                    steps.append(Ensure(replace(component, manifest=marked(component.manifest, train_job))))
            elif kind == "train":
                steps += _train(train_job, component, children, may_create=open_)
            elif not (started or by_name.get(component.name) in done):
                live = children.initializers.get(component.name)
                steps += _initialize(train_job, component, live, may_create=open_)
                passed &= live is not None and has(live, "Complete")
        open_ &= passed
    return steps


def _initialize(
    train_job: TrainJob, component: Component, live: IndexedJob | None, *, may_create: bool
) -> Iterator[Step]:
    suspend = train_job.spec.suspend
    if live is None:
        if may_create and not suspend:
            yield Create(job_manifest(component.manifest, train_job, ""))
    elif live.metadata.deletion_timestamp or has(live, "Complete", "Failed"):
        return
    elif _outdated(live, train_job):
        yield Delete(live, "its pods were created before spec.runtimePatches changed")
    elif live.spec.suspend != suspend:
        yield Suspend(live, suspend)


def _train(train_job: TrainJob, component: Component, children: Children, *, may_create: bool) -> Iterator[Step]:
    job, suspend = children.job, train_job.spec.suspend
    since = resumed_at(train_job, children)
    if job is None:
        if may_create and not suspend:
            yield Create(job_manifest(component.manifest, train_job, since))
        return
    phase = job.status.state.phase
    if job.metadata.deletion_timestamp or phase in FINISHED:
        return
    if _outdated(job, train_job):
        yield Delete(job, "its pods were created before spec.runtimePatches changed")
        return
    operations = changes(job, component.manifest, since)
    if operations:
        yield PatchJob(job, operations)
    if suspend and phase not in {"Aborting", "Aborted", "Completing", "Terminating"}:
        yield SendCommand(job, "AbortJob")
    elif not suspend and phase == "Aborted":
        yield from _resume(job, children.pods)


def _resume(job: Job, pods: Sequence[Pod]) -> Iterator[Step]:
    """Delete ended pods, then resume the Job, which would not re-create ended pods: training needs all pods."""
    ended = [pod for pod in pods if pod.finished and not pod.metadata.deletion_timestamp]
    if ended:
        yield Clear(ended)
    elif not pods:
        yield SendCommand(job, "ResumeJob")


def _outdated(job: Job | IndexedJob, train_job: TrainJob) -> bool:
    """Return True if the Job was created for a different pod specification.

    A Job without the annotation with the hash of the specification is not outdated.
    """
    noted = job.metadata.annotations.get(names.TRAIN_JOB_SPEC)
    return noted is not None and noted != intent(train_job)


def changes(job: Job, manifest: Mapping[str, Any], since: str) -> list[JSON]:
    """Return the JSON patch that updates numbers and annotations of a Job; other fields of its spec are fixed."""
    operations: list[JSON] = []
    if since and job.metadata.annotations.get(names.RESUMED_AT, "") != since:
        key = names.RESUMED_AT.replace("/", "~1")  # as in JSON pointers (RFC 6901)
        operations.append({"op": "add", "path": f"/metadata/annotations/{key}", "value": since})
    operations += _numbers(job.spec, manifest["spec"])
    if operations:
        operations.insert(0, {"op": "test", "path": "/metadata/uid", "value": job.metadata.uid})
    return operations


def _numbers(live: JobSpec, wanted: Mapping[str, Any]) -> Iterator[JSON]:
    if live.min_available != wanted["minAvailable"]:
        yield {"op": "add", "path": "/spec/minAvailable", "value": wanted["minAvailable"]}
    there = {task.name: (index, task) for index, task in enumerate(live.tasks)}
    for task in wanted["tasks"]:
        index, found = there.get(task["name"], (0, None))
        if found is None:
            continue
        path = f"/spec/tasks/{index}"
        numbers = {"replicas": found.replicas, "minAvailable": found.min_available}
        different = {key: task[key] for key, value in numbers.items() if value != task[key]}
        if different:
            yield {"op": "test", "path": f"{path}/name", "value": task["name"]}
        yield from ({"op": "add", "path": f"{path}/{key}", "value": value} for key, value in different.items())
