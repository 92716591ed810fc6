"""Rows of nodes, with free GPUs, rack and GPU model; similar nodes share a row. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from muster.api.kubernetes.core import Node, Pod
from muster.api.muster.node_faults import FaultRules, suspect
from muster.api.muster.pools import pool_of
from muster.api.names import GPU_PRODUCT
from muster.resources.gpus import counted, is_gpu
from muster.resources.pods import node_allocatable
from muster.resources.vector import CPU, Vector, add, subtract, unit

_RACK = "rack"
_ZONE = "topology.kubernetes.io/zone"
_MEMORY = "memory"


class NodeRow(Struct, frozen=True, rename="camel", kw_only=True):
    """The row of one node; numbers of GPUs may be fractional."""

    name: str
    rack: str
    """The node's rack: the value of the label whose key ends with `rack`, or else the zone."""
    model: str
    """Model of the node's GPUs."""
    state: str
    """State of the node: Free, Mixed, Full, Cordoned, Suspect or NotReady."""
    gpus: float
    free_gpus: float
    free_cpu: int
    """Free CPU, in thousandths of a CPU."""
    free_memory: int
    """Free memory, in bytes."""
    pods: int


class AlikeRow(Struct, frozen=True, rename="camel", kw_only=True):
    """A group of nodes with the same rack, GPU model, state and number of free GPUs."""

    rack: str
    model: str
    state: str
    gpus: float
    """Number of GPUs of each node."""
    free_gpus: float
    """Number of free GPUs of each node."""
    nodes: list[str]


def node_rows(nodes: Iterable[Node], pods: Iterable[Pod], rules_in: Callable[[str], FaultRules]) -> list[NodeRow]:
    """Return a row per node, ordered by rack, GPU model and name; completed pods do not count as using resources.

    `rules_in` returns the rules for suspect nodes of a node pool.
    """
    there: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.node_name and not pod.finished:
            there[pod.spec.node_name].append(pod)
    found = [_row(node, there[node.metadata.name], rules_in(pool_of(node.metadata))) for node in nodes]
    return sorted(found, key=lambda row: (row.rack, row.model, row.name))


def alike(rows: Iterable[NodeRow]) -> list[AlikeRow]:
    """Return one row for all nodes with the same rack, GPU model, state and number of free GPUs.

    Rows with the most free GPUs come first.
    """
    groups: dict[tuple[str, str, str, float, float], list[str]] = defaultdict(list)
    for row in rows:
        groups[row.rack, row.model, row.state, row.gpus, row.free_gpus].append(row.name)
    found = [
        AlikeRow(rack=rack, model=model, state=state, gpus=gpus, free_gpus=free, nodes=names)
        for (rack, model, state, gpus, free), names in groups.items()
    ]
    return sorted(found, key=lambda row: (row.rack, row.model, -row.free_gpus, row.state))


def rack_of(labels: Mapping[str, str]) -> str:
    """Return the rack of a node or, if it is unknown, the node's zone.

    Clusters use different label keys for racks, but all these keys end with `rack`.
    """
    keys = sorted(key for key in labels if key.lower().endswith(_RACK))
    return labels[keys[0]] if keys else labels.get(_ZONE, "")


def gpus_in(amounts: Vector) -> float:
    """Return the number of GPUs of all vendors in a resource vector, including fractions."""
    return sum(amount / unit(name) for name, amount in amounts.items() if is_gpu(name) or name.endswith("/gpu"))


def offered(node: Node) -> Vector:
    """Return the node's allocatable resources; empty if the quantities cannot be parsed."""
    try:
        return node_allocatable(node)
    except ValueError:
        return {}


def held(pod: Pod) -> Vector:
    """Return the resources that a pod uses on its node; empty, as in the planner, if its quantities are unreadable."""
    try:
        return counted(pod)
    except ValueError:
        return {}


def _row(node: Node, pods: list[Pod], rules: FaultRules) -> NodeRow:
    has = offered(node)
    used: Vector = {}
    for pod in pods:
        used = add(used, held(pod))
    free = subtract(has, used)
    gpus, free_gpus = round(gpus_in(has), 3), max(0.0, round(gpus_in(free), 3))
    return NodeRow(
        name=node.metadata.name,
        rack=rack_of(node.metadata.labels),
        model=node.metadata.labels.get(GPU_PRODUCT, ""),
        state=_state(node, used, gpus, free_gpus, rules),
        gpus=gpus,
        free_gpus=free_gpus,
        free_cpu=max(0, free.get(CPU, 0)),
        free_memory=max(0, free.get(_MEMORY, 0)),
        pods=len(pods),
    )


def _state(node: Node, used: Vector, gpus: float, free_gpus: float, rules: FaultRules) -> str:
    """Return the state of a node; a node without GPUs is never Full, because CPUs are rarely used completely."""
    ready = next((each.status for each in node.status.conditions if each.type == "Ready"), "Unknown")
    if ready != "True":
        return "NotReady"
    if suspect(node, rules):
        return "Suspect"
    if node.spec.unschedulable:
        return "Cordoned"
    if gpus and free_gpus < gpus:
        return "Mixed" if free_gpus else "Full"
    return "Mixed" if not gpus and used.get(CPU) else "Free"
