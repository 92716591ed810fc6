"""One task of a Volcano Job, and what tasks say about each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.api.fields import FieldError
from muster.api.volcano.batch import PartitionPolicy, TaskSpec
from muster.resources.quantity import parse
from muster.volcano.tasks import partition_minimum

_MILLI = 1000
_NO_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"


def check_task(task: TaskSpec, path: str) -> Iterator[FieldError]:
    """Partitions and topology policy of one task."""
    if task.partition_policy:
        yield from _check_partitions(task, task.partition_policy, path)
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
    """CPUs can be aligned with NUMA nodes only when a container has them to itself, and so whole."""
    for place, container in _containers(task.template.get("spec") or {}):
        cpu = _cpu(container.get("resources") or {})
        where = f"{path}.template.spec.{place}.resources.requests[cpu]"
        message = f"the cpu request isn't an integer, and topologyPolicy {task.topology_policy} needs whole CPUs"
        try:
            whole = cpu is not None and parse(cpu, milli=True) % _MILLI == 0 and parse(cpu) > 0
        except ValueError as error:
            yield FieldError(where, str(error), cpu)
            continue
        if not whole:
            yield FieldError(where, message, cpu)


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each container and init container with its place in the pod's spec."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            yield f"{kind}[{index}]", container


def _cpu(resources: Mapping[str, Any]) -> Any:
    """The CPU request, or the limit in its place."""
    limit = (resources.get("limits") or {}).get("cpu")
    return (resources.get("requests") or {}).get("cpu", limit)


def check_dependencies(tasks: Sequence[TaskSpec]) -> Iterator[FieldError]:
    """Tasks may wait for each other as long as they are tasks of this job and no circle arises."""
    known = [task.name for task in tasks]
    needs = {task.name: list(task.depends_on.name) if task.depends_on else [] for task in tasks}
    for index, task in enumerate(tasks):
        for place, name in enumerate(task.depends_on.name if task.depends_on else []):
            if name not in needs:
                message = f"{_NO_DAG}: must be the name of another task of this job: {', '.join(known)}"
                yield FieldError(f"spec.tasks[{index}].dependsOn.name[{place}]", message, name, "NotFound")
    circle = _circle(needs)
    if circle:
        message = f"{_NO_DAG}: {' needs '.join(circle)}; remove one of them"
        yield FieldError(f"spec.tasks[{known.index(circle[0])}].dependsOn", message, needs[circle[0]])


def _circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Some circle, its first task repeated at the end; empty when there is none."""
    done: set[str] = set()
    for start in needs:
        trail: list[str] = []
        stack = [(start, iter(needs[start]))] if start not in done else []
        trail += [start] if stack else []
        while stack:
            name, rest = stack[-1]
            step = next((other for other in rest if other in needs and other not in done), None)
            if step is None:
                done.add(name)
                stack.pop()
                trail.pop()
            elif step in trail:
                return [*trail[trail.index(step) :], step]
            else:
                stack.append((step, iter(needs[step])))
                trail.append(step)
    return []
