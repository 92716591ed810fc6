"""Changes to a dump of the cluster: removed and submitted workloads, changed queues, cordoned and additional nodes."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump
from extender.explain.report import UnknownNameError, near_names
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS, Node, Taint
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.muster.gang import native_gang
from muster.api.muster.node_faults import FaultRules
from muster.api.muster.placement import PLACEMENTS
from muster.api.muster.pools import pool_of
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Guarantee, PodGroup, Queue, QueueSpec
from muster.resources.vector import vector
from muster.workloads.owners import owner_names
from muster.workloads.table import gang_of

CORDON_TAINT = "node.kubernetes.io/unschedulable"
KUBERNETES_TAINTS = "node.kubernetes.io/"
_GANGS: tuple[Resource[Any], ...] = (JOBS, POD_GROUPS, NATIVE_POD_GROUPS)


@dataclass(slots=True)
class DumpChange:
    """A change to a dump of the cluster.

    A workload is named `namespace/name`, or only `name` if its namespace is the field `namespace`.
    """

    namespace: str
    without: list[str] = field(default_factory=list)
    """Names of the workloads, or of their PodGroups, that are removed together with their pods."""
    cordoned: list[str] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)
    """Maps the name of an existing node to the number of copies of this node to add."""
    queues: list[str] = field(default_factory=list)
    """Changes to queues, such as `team.deserved.cpu=16` or `team.weight=3`."""
    new: list[tuple[Resource[Any], Object]] = field(default_factory=list)
    """Additional objects that are submitted to the cluster."""


def changed(dump: ClusterDump, change: DumpChange) -> ClusterDump:
    """Return a copy of a dump with the change made. Raises UnknownNameError for names that do not exist."""
    objects = {kind: list(all_) for kind, all_ in dump.objects.items()}
    result = dataclasses.replace(dump, objects=objects)
    for name in change.without:
        _remove(result, name, change.namespace)
    _change_queues(result, change.queues)
    nodes = {node.metadata.name: node for node in result.objects_of(NODES)}
    for name in [*change.cordoned, *change.added]:
        if name not in nodes:
            near = near_names(name, nodes)
            there = f"there is no node {name!r}; there is {near}"
            raise UnknownNameError(there if near else "the cluster has no nodes")
    for name in change.cordoned:
        nodes[name] = replace(nodes[name], spec=replace(nodes[name].spec, unschedulable=True))
    for name, number in change.added.items():
        rules = result.rules_in(pool_of(nodes[name].metadata))
        nodes |= {node.metadata.name: node for node in copies(nodes[name], number, rules)}
    result.objects_of(NODES)[:] = nodes.values()
    for resource, item in change.new:
        result.add_objects(resource, [item])
    return result


def _change_queues(dump: ClusterDump, changes: list[str]) -> None:
    """Apply changes to queues. Raises UnknownNameError for an unknown queue, ValueError for an unknown field."""
    queues = {queue.metadata.name: queue for queue in dump.objects_of(QUEUES)}
    for change in changes:
        name = queue_of_change(change, queues)
        queues[name] = changed_queue(queues[name], change)
    dump.objects_of(QUEUES)[:] = queues.values()


def queue_of_change(change: str, names: Collection[str]) -> str:
    """Return the queue in a change such as team.weight=3. Raises UnknownNameError if there is no such queue."""
    found = next((name for name in sorted(names, key=len, reverse=True) if change.startswith(f"{name}.")), None)
    if found is None:
        raise UnknownNameError(f"{change!r} does not name a queue; there is {', '.join(sorted(names))}")
    return found


def changed_queue(queue: Queue, change: str) -> Queue:
    """Return a queue after a change. Raises ValueError for an unknown field or an invalid value."""
    path, _, value = change.removeprefix(f"{queue.metadata.name}.").partition("=")
    field_name, _, resource = path.partition(".")
    return replace(queue, spec=_changed_spec(queue.spec, field_name, resource, value))


def _changed_spec(spec: QueueSpec, field_name: str, resource: str, value: str) -> QueueSpec:
    if field_name in {"weight", "priority"} and not resource:
        try:
            return replace(spec, **{field_name: int(value)})
        except ValueError:
            raise ValueError(f"{field_name} must be a whole number, not {value!r}") from None
    if field_name in {"capability", "deserved", "guarantee"} and resource:
        vector({resource: value})
        if field_name == "guarantee":
            return replace(spec, guarantee=Guarantee(resource={**spec.guarantee.resource, resource: value}))
        return replace(spec, **{field_name: {**getattr(spec, field_name), resource: value}})
    known = "weight=N, priority=N, or capability, deserved or guarantee with a resource, such as deserved.cpu=16"
    raise ValueError(f"a queue has no {field_name + '.' + resource if resource else field_name!r}; there is {known}")


def copies(node: Node, number: int, rules: FaultRules) -> list[Node]:
    """Return new, empty copies of a node; the copies are neither cordoned nor faulty by the `rules`."""
    made = []
    for index in range(1, number + 1):
        name = f"{node.metadata.name}-new-{index}"
        labels = {key: name if value == node.metadata.name else value for key, value in node.metadata.labels.items()}
        meta = replace(node.metadata, name=name, uid=name, labels=labels)
        made.append(uncordoned(recovered(replace(node, metadata=meta), rules)))
    return made


def uncordoned(node: Node) -> Node:
    """Return the node without its cordon, and without the taint that Kubernetes adds to cordoned nodes."""
    taints = [taint for taint in node.spec.taints if taint.key != CORDON_TAINT]
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def recovered(node: Node, rules: FaultRules) -> Node:
    """Return the node without its conditions, and without the taints that reflect these conditions."""
    spec, status = replace(node.spec, taints=_own_taints(node, rules)), replace(node.status, conditions=[])
    return replace(node, spec=spec, status=status)


def _own_taints(node: Node, rules: FaultRules) -> list[Taint]:
    """Return the node's taints, except those set by Kubernetes or by programs that detect faulty nodes."""
    taints = node.spec.taints
    return [each for each in taints if not each.key.startswith(KUBERNETES_TAINTS) and each.key not in rules.taints]


def _remove(dump: ClusterDump, name: str, namespace: str) -> None:
    given, _, short = name.rpartition("/")
    namespace = given or namespace
    there = [
        item
        for kind in _GANGS
        for item in dump.objects_of(kind)
        if item.metadata.namespace == namespace and short in _names_of(item)
    ]
    if not there:
        near = near_names(
            short, [each.metadata.name for each in dump.objects_of(JOBS) if each.metadata.namespace == namespace]
        )
        instead = f"; there is {near}" if near else ""
        raise UnknownNameError(f"there is no job {short!r} in namespace {namespace!r}{instead}")
    gone = {item.metadata.uid for item in there}
    keys = {item.metadata.key for item in there if isinstance(item, PodGroup)}
    keys |= {f"{namespace}/{native_gang(item.metadata.name)}" for item in there if isinstance(item, NativePodGroup)}
    for kind in _GANGS:
        dump.objects_of(kind)[:] = [each for each in dump.objects_of(kind) if each.metadata.uid not in gone]
    dump.objects_of(PLACEMENTS)[:] = [each for each in dump.objects_of(PLACEMENTS) if each.metadata.key not in keys]
    dump.objects_of(PODS)[:] = [
        pod for pod in dump.objects_of(PODS) if f"{pod.metadata.namespace}/{gang_of(pod)}" not in keys
    ]


def _names_of(item: Object) -> set[str]:
    """Return the names by which a change can remove a workload; for a gang, also the names of its owners."""
    return {item.metadata.name, *(() if isinstance(item, Job) else owner_names(item.metadata))}
