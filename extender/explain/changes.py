"""Changed copies of a dump: nodes added or cordoned, workloads gone or new."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump
from extender.explain.report import UnknownNameError
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS, Node, Taint
from muster.api.kubernetes.meta import Object
from muster.api.muster.gang import gang_of
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Guarantee, QueueSpec
from muster.resources.vector import vector

CORDON_TAINT = "node.kubernetes.io/unschedulable"
KUBERNETES_TAINTS = "node.kubernetes.io/"


@dataclass(slots=True)
class Change:
    """A change of a dump; names of workloads may be `namespace/name`, else they are in `namespace`."""

    namespace: str
    without: list[str] = field(default_factory=list)
    """Workloads (or their PodGroups) that are gone, with their pods."""
    cordoned: list[str] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)
    """Name of a node that exists → number of new ones like it."""
    queues: list[str] = field(default_factory=list)
    """Changes of queues: `team.deserved.cpu=16`, or `team.weight=3`."""
    new: list[tuple[Resource[Any], Object]] = field(default_factory=list)
    """Objects that are submitted."""


def changed(dump: ClusterDump, change: Change) -> ClusterDump:
    """Return a dump with the change. Raises UnknownNameError for names that do not exist."""
    result = ClusterDump(
        dump.taken_at, dump.scheduler_config, {kind: list(all_) for kind, all_ in dump.objects.items()}
    )
    for name in change.without:
        _remove(result, name, change.namespace)
    _change_queues(result, change.queues)
    nodes = {node.metadata.name: node for node in result.of(NODES)}
    for name in [*change.cordoned, *change.added]:
        if name not in nodes:
            near = get_close_matches(name, nodes, cutoff=0.4) or sorted(nodes)[:5]
            there = f"there is no node {name!r}; there is {', '.join(near)}"
            raise UnknownNameError(there if near else "the cluster has no nodes")
    for name in change.cordoned:
        nodes[name] = replace(nodes[name], spec=replace(nodes[name].spec, unschedulable=True))
    for name, number in change.added.items():
        nodes |= {node.metadata.name: node for node in copies(nodes[name], number)}
    result.of(NODES)[:] = nodes.values()
    for resource, item in change.new:
        result.put(resource, [item])
    return result


def _change_queues(dump: ClusterDump, changes: list[str]) -> None:
    """Change queues. Raises UnknownNameError for one that does not exist, ValueError for another field."""
    queues = {queue.metadata.name: queue for queue in dump.of(QUEUES)}
    for change in changes:
        path, _, value = change.partition("=")
        name = next((name for name in sorted(queues, key=len, reverse=True) if path.startswith(f"{name}.")), None)
        if name is None:
            raise UnknownNameError(f"{change!r} names no queue; there is {', '.join(sorted(queues))}")
        field_name, _, resource = path[len(name) + 1 :].partition(".")
        queues[name] = replace(queues[name], spec=_changed_spec(queues[name].spec, field_name, resource, value))
    dump.of(QUEUES)[:] = queues.values()


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
    known = "weight=N, priority=N, and capability, deserved and guarantee with a resource: deserved.cpu=16"
    raise ValueError(f"a queue has no {field_name + '.' + resource if resource else field_name!r}; there is {known}")


def copies(node: Node, number: int) -> list[Node]:
    """Return new empty nodes of the same kind, not cordoned."""
    made = []
    for index in range(1, number + 1):
        name = f"{node.metadata.name}-new-{index}"
        labels = {key: name if value == node.metadata.name else value for key, value in node.metadata.labels.items()}
        meta = replace(node.metadata, name=name, uid=name, labels=labels)
        made.append(uncordoned(replace(node, metadata=meta, spec=replace(node.spec, taints=_own_taints(node)))))
    return made


def uncordoned(node: Node) -> Node:
    """Return the node without its cordon, and without the taint that Kubernetes adds to one that is cordoned."""
    taints = [taint for taint in node.spec.taints if taint.key != CORDON_TAINT]
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def recovered(node: Node) -> Node:
    """Return the node without the taints of Kubernetes, which tell its condition at the moment."""
    return replace(node, spec=replace(node.spec, taints=_own_taints(node)))


def _own_taints(node: Node) -> list[Taint]:
    """Return the taints without those of Kubernetes."""
    return [taint for taint in node.spec.taints if not taint.key.startswith(KUBERNETES_TAINTS)]


def _remove(dump: ClusterDump, name: str, namespace: str) -> None:
    """Remove a workload, its gang and its pods."""
    given, _, short = name.rpartition("/")
    namespace = given or namespace
    jobs = [job for job in dump.of(JOBS) if (job.metadata.namespace, job.metadata.name) == (namespace, short)]
    groups = [
        group
        for group in dump.of(POD_GROUPS)
        if group.metadata.namespace == namespace
        and short in {group.metadata.name, *(owner.name for owner in group.metadata.owner_references)}
    ]
    if not jobs and not groups:
        known = [each.metadata.name for each in dump.of(JOBS) if each.metadata.namespace == namespace]
        near = get_close_matches(short, known, cutoff=0.4) or sorted(known)[:5]
        there = f"; there is {', '.join(near)}" if near else ""
        raise UnknownNameError(f"there is no job {short!r} in namespace {namespace!r}{there}")
    gone = {item.metadata.uid for item in [*jobs, *groups]}
    keys = {group.metadata.key for group in groups}
    dump.of(JOBS)[:] = [job for job in dump.of(JOBS) if job.metadata.uid not in gone]
    dump.of(POD_GROUPS)[:] = [group for group in dump.of(POD_GROUPS) if group.metadata.uid not in gone]
    dump.of(PLACEMENTS)[:] = [each for each in dump.of(PLACEMENTS) if each.metadata.key not in keys]
    pods = dump.of(PODS)
    pods[:] = [pod for pod in pods if f"{pod.metadata.namespace}/{gang_of(pod.metadata)}" not in keys]
