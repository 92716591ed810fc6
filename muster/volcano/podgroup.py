"""Creation of PodGroups; the PodGroup of a Volcano Job is computed from the Job's spec."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import structs, to_builtins

from muster.api import names
from muster.api.kubernetes.meta import LabelSelector, ObjectMeta, OwnerReference
from muster.api.merge_diff import difference
from muster.api.muster.gang import workload_note
from muster.api.muster.pools import DEFAULT_POOL, labels_of, pool_of_scheduler
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupSpec, PodGroupStatus, SubGroupPolicy
from muster.resources.pods import NOTHING, quota, template_usage
from muster.volcano.tasks import job_minimum, minimum, owner_of, queue_of, scheduler_of, total_minimum, total_replicas

_NOT_COPIED = frozenset({names.LAST_APPLIED, names.GROUPED_TEMPLATES, names.PLACEMENT, names.WORKLOAD})
"""Annotations of a Job that are not copied to its PodGroup, because they concern the manifest, or the planner writes
them."""
_MAKERS = frozenset({CRON_JOBS.kind, JOB_FLOWS.kind})
_UPDATED = ("minMember", "minTaskMember", "minResources", "priorityClassName", "subGroupPolicy")


def new_group(meta: ObjectMeta, spec: PodGroupSpec, scheduler: str, owner: OwnerReference | None) -> PodGroup:
    """Return a new PodGroup, with its owner (if any) and the node pool of its pods' scheduler."""
    labels = {key: value for key, value in meta.labels.items() if key != names.NODE_POOL}
    labels |= labels_of(pool_of_scheduler(scheduler) or DEFAULT_POOL)
    return PodGroup(
        api_version=POD_GROUPS.api_version,
        kind=POD_GROUPS.kind,
        metadata=structs.replace(meta, labels=labels, owner_references=[owner] if owner else []),
        spec=spec,
        status=PodGroupStatus(phase="Pending"),
    )


def spec_changes(existing: PodGroup, wanted: PodGroup, computed: Collection[str]) -> dict[str, Any]:
    """Return the part of a merge patch that updates these fields of a PodGroup's spec; empty without changes.

    The patch does not contain other fields of the spec, because other clients may have written those.
    """
    # the wire type leaves a minimum of 0 out, but it must still be written over another minimum
    specs = [{"minMember": 0, **to_builtins(group.spec)} for group in (existing, wanted)]
    spec = difference(*({name: value for name, value in each.items() if name in computed} for each in specs))
    return {"spec": spec} if spec else {}


def group_name(job: Job) -> str:
    """Return the name of the Job's PodGroup."""
    return f"{job.metadata.name}-{job.metadata.uid}"


def group_key(job: Job) -> str:
    """Return the key `namespace/name` of the Job's PodGroup."""
    return f"{job.metadata.namespace}/{group_name(job)}"


def pod_group(job: Job, priorities: Mapping[str, int], later: Collection[str] = ()) -> PodGroup:
    """Return the PodGroup to create for a Job; `priorities` are the values of the PriorityClasses.

    `later` are the tasks that wait for other tasks; the gang's minimum excludes them until they have started.
    """
    annotations = {key: value for key, value in job.metadata.annotations.items() if key not in _NOT_COPIED}
    annotations |= workload_note(job.metadata, _MAKERS)
    if later:
        annotations[names.LATER_TASKS] = ",".join(sorted(later))
        job = _without(job, later)
    name, meta = group_name(job), job.metadata
    spec = PodGroupSpec(
        min_member=job_minimum(job.spec),
        min_task_member={task.name: minimum(task) for task in job.spec.tasks},
        queue=queue_of(job.spec),
        priority_class_name=job.spec.priority_class_name,
        min_resources=dict(min_resources(job, priorities)),
        network_topology=job.spec.network_topology,
        sub_group_policy=[_sub_group(task, task.partition_policy) for task in job.spec.tasks if task.partition_policy],
    )
    own = ObjectMeta(name=name, namespace=meta.namespace, labels=meta.labels, annotations=annotations)
    return new_group(own, spec, scheduler_of(job.spec), owner_of(job))


def update(existing: PodGroup, wanted: PodGroup) -> dict[str, Any]:
    """Return the merge patch that brings an existing PodGroup up to date; empty if nothing has changed.

    Queue, labels, most annotations and topology are written once, when the PodGroup is created.
    """
    patch = spec_changes(existing, wanted, _UPDATED)
    before, after = (group.metadata.annotations for group in (existing, wanted))
    keys = (names.LATER_TASKS, names.CHANGED_BY) if patch else (names.LATER_TASKS,)
    changed = {key: after.get(key) for key in keys if before.get(key) != after.get(key)}
    return {**patch, "metadata": {"annotations": changed}} if changed else patch


def _without(job: Job, later: Collection[str]) -> Job:
    """Return the Job without these tasks; its minimum is reduced by theirs if it covers the minimums of all tasks."""
    spec = job.spec
    tasks = [task for task in spec.tasks if task.name not in later]
    least = job_minimum(spec)
    if least >= total_minimum(spec):
        least -= sum(minimum(task) for task in spec.tasks if task.name in later)
    least = min(least, sum(task.replicas for task in tasks))
    return structs.replace(job, spec=structs.replace(spec, tasks=tasks, min_available=least))


def _sub_group(task: TaskSpec, partitions: PartitionPolicy) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=task.name,
        sub_group_size=partitions.partition_size or 1,
        min_sub_groups=partitions.min_partitions,
        label_selector=LabelSelector(match_labels={names.TASK_SPEC: task.name}),
        match_label_keys=[names.PARTITION_ID],
        network_topology=partitions.network_topology,
    )


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """Return the resources that the smallest possible gang needs, keyed by the names that a ResourceQuota uses."""
    usage = NOTHING
    for task, pods in _smallest_gang(job, priorities):
        if pods:
            usage += template_usage(task.template).times(pods)
    return quota(usage)


def _smallest_gang(job: Job, priorities: Mapping[str, int]) -> list[tuple[TaskSpec, int]]:
    """Return the number of each task's pods in the smallest gang; tasks with a higher priority are filled first.

    If the Job's minimum is less than the sum of its tasks' minimums, whole tasks are taken in the order of priority. If
    the minimum is at least this sum, each task gets its minimum, and the remaining pods are assigned in the order of
    priority.
    """

    def priority(task: TaskSpec) -> int:
        return priorities.get((task.template.get("spec") or {}).get("priorityClassName", ""), 0)

    tasks = sorted(job.spec.tasks, key=priority, reverse=True)
    covers_all = job_minimum(job.spec) >= total_minimum(job.spec)
    left = min(job_minimum(job.spec), total_replicas(job.spec))
    counts = []
    for task in tasks:
        counts.append(min(minimum(task), left) if covers_all else 0)
        left -= counts[-1]
    for index, task in enumerate(tasks):
        more = min(task.replicas - counts[index], left)
        counts[index] += more
        left -= more
    return list(zip(tasks, counts, strict=True))
