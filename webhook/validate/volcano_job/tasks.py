"""Validation of a Volcano Job's tasks, their pod templates, and their dependencies."""

from collections.abc import Iterator, Sequence

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.meta import TemplateMeta
from muster.api.limits import PODS, RETRIES, TEMPLATE_BYTES
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.resources.planned import PlannedTemplate, planned_spec
from muster.resources.quantity import parse
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.flows import circle
from muster.volcano.tasks import partition_minimum, total_replicas
from muster.workloads.volcano_job import VolcanoJobAdapter
from webhook.objects.names import unknown_framework
from webhook.validate.pod import check_annotations, check_framework, check_pod
from webhook.validate.podgroup import check_network_topology
from webhook.validate.volcano_job.spec import check_policies

_MILLI = 1000
_NO_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"


def check_tasks(job: Job) -> Iterator[FieldError]:
    """Check names, policies, partitions and topology of all tasks."""
    yield from check_network_topology(job.spec.network_topology, "spec.networkTopology")
    first: dict[str, int] = {}
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}]"
        if first.setdefault(task.name, index) != index:
            message = f"duplicated task name {task.name}; spec.tasks[{first[task.name]}] has it already"
            yield FieldError(f"{path}.name", message, task.name, "Duplicate")
        yield from check_policies(task.policies, f"{path}.policies")
        if task.partition_policy:
            yield from _check_partitions(task, task.partition_policy, path)
            topology = task.partition_policy.network_topology
            yield from check_network_topology(topology, f"{path}.partitionPolicy.networkTopology")
        if task.topology_policy not in {"", "none"}:
            yield from _check_whole_cpus(task, path)


def _check_partitions(task: TaskSpec, policy: PartitionPolicy, path: str) -> Iterator[FieldError]:
    field = f"{path}.partitionPolicy"
    total, size = policy.total_partitions, policy.partition_size
    if total <= 0:
        message = f"'TotalPartitions' must be greater than 0 in task: {task.name}"
        yield FieldError(f"{field}.totalPartitions", message, total)
    if size <= 0:
        message = f"'PartitionSize' must be greater than 0 in task: {task.name}"
        yield FieldError(f"{field}.partitionSize", message, size)
    if total <= 0 or size <= 0:
        return
    if task.replicas != total * size:
        message = (
            f"'Replicas' are not equal to TotalPartitions*PartitionSize in task: {task.name}; "
            f"{total}*{size} is {total * size}"
        )
        yield FieldError(f"{path}.replicas", message, task.replicas)
    least = partition_minimum(task)
    if policy.min_partitions > total:
        message = f"must not be greater than totalPartitions ({total})"
        yield FieldError(f"{field}.minPartitions", message, policy.min_partitions)
    elif least and task.min_available is not None and task.min_available != least:
        message = (
            f"'MinAvailable' is not equal to MinPartitions*PartitionSize in task: {task.name}; "
            f"{policy.min_partitions}*{size} is {least}"
        )
        yield FieldError(f"{path}.minAvailable", message, task.min_available)


def _check_whole_cpus(task: TaskSpec, path: str) -> Iterator[FieldError]:
    """Check that containers request whole CPUs, because only whole CPUs can be aligned with NUMA nodes."""
    spec = task.template.get("spec") or {}
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            resources = container.get("resources") or {}
            cpu = (resources.get("requests") or {}).get("cpu", (resources.get("limits") or {}).get("cpu"))
            where = f"{path}.template.spec.{kind}[{index}].resources.requests[cpu]"
            message = f"the cpu request isn't an integer, and topologyPolicy {task.topology_policy} needs whole CPUs"
            try:
                whole = cpu is not None and parse(cpu, milli=True) % _MILLI == 0 and parse(cpu) > 0
            except ValueError as error:
                whole, message = False, str(error)
            if not whole:
                yield FieldError(where, message, cpu)


def check_pods_of_tasks(job: Job) -> Iterator[FieldError]:
    """Check limits, GPUs, disruption budgets and topology in the pod templates, which are immutable."""
    templates = []
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}]"
        pod, labels, annotations = template_of(task.template)
        size = PlannedTemplate(TemplateMeta(labels=labels, annotations=annotations), planned_spec(pod)).size_bytes
        where = f"{path}.template.metadata.annotations"
        templates.append((annotations, where, task.replicas))
        yield from RETRIES.exceeded(f"{path}.maxRetry", task.max_retry)
        yield from check_pod(annotations, pod, f"{path}.template.")
        yield from TEMPLATE_BYTES.exceeded(f"{path}.template", size)
    yield from check_annotations(job.metadata.annotations, templates)


def check_frameworks(job: Job, framework: Framework) -> Findings:
    """Check tasks whose template has a framework label; the pods of these tasks must be able to find each other."""
    findings = Findings()
    labels = [template_of(task.template)[1].get(names.FRAMEWORK, "") for task in job.spec.tasks]
    asking = [(index, task, labels[index]) for index, task in enumerate(job.spec.tasks) if labels[index]]
    if asking:
        findings.errors += VolcanoJobAdapter(job, asking[0][1].name).errors()
    if total_replicas(job.spec) > PODS.value:
        return findings  # already refused: avoid a list of so many hosts
    for index, task, name in asking:
        adapter, path = VolcanoJobAdapter(job, task.name), f"spec.tasks[{index}].template"
        findings.errors += unknown_framework(f"{path}.metadata.labels[{names.FRAMEWORK}]", name, framework)
        findings.add(check_framework(task.template, path, adapter, job.metadata.annotations, framework))
    return findings


def check_dependencies(tasks: Sequence[TaskSpec]) -> Iterator[FieldError]:
    """Check that tasks only depend on tasks of this Job, without cycles."""
    known = [task.name for task in tasks]
    needs = {task.name: list(task.depends_on.name) if task.depends_on else [] for task in tasks}
    for index, task in enumerate(tasks):
        for place, name in enumerate(task.depends_on.name if task.depends_on else []):
            if name not in needs:
                message = f"{_NO_DAG}: must be the name of another task of this job: {', '.join(known)}"
                yield FieldError(f"spec.tasks[{index}].dependsOn.name[{place}]", message, name, "NotFound")
    found = circle(needs)
    if found:
        message = f"{_NO_DAG}: {' needs '.join(found)}; remove one of them"
        yield FieldError(f"spec.tasks[{known.index(found[0])}].dependsOn", message, needs[found[0]])
