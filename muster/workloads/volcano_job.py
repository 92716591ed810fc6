"""Volcano Jobs, whose tasks with a framework form one world, in the order of the tasks. TrainJobs become Jobs."""

from collections.abc import Iterator
from itertools import takewhile

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.endpoints import Endpoints, Joined
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import whole_number
from muster.api.unchecked import mapping, value_at
from muster.api.volcano.batch import FINISHED, JOBS, Job, TaskSpec
from muster.resources.delays import JOB_BACK_OFF_MOST_S
from muster.volcano.plugins.registry import plugins_for, world
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import slot, subdomain, task_hosts
from muster.workloads.adapter import Adapter, Owner, Value, annotation
from muster.workloads.batch_job import has_condition
from muster.workloads.kind import Ranks, Verbs, WorkloadKind, again
from muster.workloads.sample import JSON, SamplePod, name_of, uid_of


class VolcanoJobAdapter(Adapter):
    """Adapter of a Volcano Job for one of its tasks.

    Ranks continue from task to task; plugin `svc` provides the host names.
    """

    def __init__(self, job: Job, task: str) -> None:
        self._job = job
        self._tasks = [each for each in job.spec.tasks if _shaped(each)]
        self._task = next((each for each in job.spec.tasks if each.name == task), TaskSpec(name=task))
        super().__init__(Owner.from_meta(JOBS, job.metadata), self._task.template, job.metadata.annotations)

    def errors(self) -> list[FieldError]:
        """Reject a Job without plugin svc (which provides host names), a missing task, and pods with one host name."""
        result = []
        if "svc" not in self._job.spec.plugins:
            message = f"must include svc for {names.FRAMEWORK}: the pods find each other by the host names from svc"
            result.append(FieldError("spec.plugins", message, sorted(self._job.spec.plugins)))
        if self._task not in self._tasks:
            message = f"must contain a task {self._task.name!r} whose template has label {names.FRAMEWORK}"
            result.append(FieldError("spec.tasks", message, [task.name for task in self._job.spec.tasks]))
        for index, task in enumerate(self._job.spec.tasks):
            hostname = (task.template.get("spec") or {}).get("hostname")
            if _shaped(task) and hostname and task.replicas > 1:
                message = "must be left out: all pods of the task would have this name"
                result.append(FieldError(f"spec.tasks[{index}].template.spec.hostname", message, hostname))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the source of the rank: the pod's index in the first task, and a literal number in later tasks."""
        before = sum(task.replicas for task in takewhile(lambda each: each is not self._task, self._tasks))
        own = whole_number(pod.annotations.get(names.TASK_INDEX)) if pod else None
        return annotation(names.TASK_INDEX) if not before or own is None else str(before + own)

    def size(self) -> int:
        """Return the number of pods in all tasks with the framework."""
        return sum(task.replicas for task in self._tasks)

    def subdomain(self) -> str:
        """Return the template's subdomain, otherwise the Service that plugin `svc` creates."""
        return subdomain(self._job, self._task)

    def endpoints(self) -> Endpoints:
        """Return the host names `<job>-<task>-<index>.<subdomain>`, task by task."""
        runs = tuple(task_hosts(self._job, task) for task in self._tasks)
        return runs[0] if len(runs) == 1 else Joined(runs)


def _shaped(task: TaskSpec) -> bool:
    labels = (task.template.get("metadata") or {}).get("labels") or {}
    return names.FRAMEWORK in labels


def _samples(document: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield the first pod of each task or, with `every`, all pods, each complete except for its pin or gate.

    Raises PluginError if a plugin of the Job is not installed.
    """
    metadata = {"uid": uid_of(name_of(document)), **document["metadata"]}
    job = msgspec.convert({**document, "metadata": metadata}, Job)
    plugins = plugins_for(job.spec.plugins)
    for task in job.spec.tasks:
        for index in range(task.replicas if every else min(task.replicas, 1)):
            pod = complete_pod(job, slot(job, task, index), plugins)
            pod["metadata"] = {key: value for key, value in pod["metadata"].items() if value}
            about = f"the first pod of task {task.name} of Job {job.metadata.name}, with what its plugins add"
            yield SamplePod(pod, about, always=True)


def _world_tasks(job: JSON) -> set[str]:
    spec = mapping(job.get("spec"))
    return world(mapping(spec.get("plugins")), [str(each.get("name")) for each in spec.get("tasks") or ()])


def _phase(job: JSON) -> str:
    return str(value_at(job, ("status", "state", "phase")) or "")


def _resized(job: JSON, size: int, task: str) -> JSON:
    """Return the patch that gives a task this number of pods.

    A minimum of all pods of the task stays a minimum of all pods.
    """
    spec = mapping(job.get("spec"))
    tasks = [dict(each) for each in spec.get("tasks") or []]
    called = [str(each.get("name")) for each in tasks]
    found = [each for each in tasks if each.get("name") == task] if task else tasks
    if len(found) != 1:
        raise ValueError(f"it has the tasks {', '.join(called)}: name one of them with --task")
    one, before = found[0], found[0].get("replicas", 1)
    least = spec.get("minAvailable") or 0
    one["replicas"] = size
    if one.get("minAvailable") is not None:
        one["minAvailable"] = size if one["minAvailable"] == before else min(one["minAvailable"], size)
    total = sum(each.get("replicas", 1) for each in tasks)
    whole = least == total - size + before
    return {"spec": {"tasks": tasks, "minAvailable": total if whole else min(least, total)}}


VOLCANO_JOB = WorkloadKind(
    JOBS,
    templates=(("spec", "tasks", "*", "template"),),
    ranks=Ranks(
        lambda job, pod: VolcanoJobAdapter(job, pod.meta.annotations.get(names.TASK_SPEC, "")),
        JOBS,
        recommended_as="a Volcano Job",
    ),
    samples=_samples,
    verbs=Verbs(
        commands=("AbortJob", "ResumeJob"),
        held=lambda job: _phase(job) in {"Aborting", "Aborted"},
        stopped=lambda job: _phase(job) == "Aborted",
        ended=lambda job: _phase(job) in FINISHED,
        sizes=(("spec", "tasks", "*", "replicas"),),
        resized=_resized,
        world_tasks=_world_tasks,
        classes=(("spec", "priorityClassName"),),
        instead={"move": again("a Volcano Job stays in the queue that admitted it")},
    ),
)
"""Row of Volcano Jobs. Admission and the controller do much more for Volcano Jobs than for other kinds
(muster.volcano)."""

TRAIN_JOB = WorkloadKind(
    TRAIN_JOBS,
    templates=(),
    names_gangs=True,
    remade_s=JOB_BACK_OFF_MOST_S,
    verbs=Verbs(
        stop=("spec", "suspend"),
        ended=lambda job: has_condition(job, "Complete", "Failed"),
        resized=lambda _job, size, _task: {"metadata": {"annotations": {names.NUM_NODES: str(size)}}},
        scales=True,
        instead={
            "move": again("a TrainJob stays in the queue that admitted it"),
            "priority": again("the pods of a TrainJob keep the class that it was created with"),
        },
    ),
)
"""Row of TrainJobs, each of which becomes a Volcano Job or a JobSet. A TrainJob with a JobSet owns the gang, and batch
Jobs own its pods."""
