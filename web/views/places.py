"""Racks and nodes of a gang's members, with the ranks on each node. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from gangs.words import ranks_text
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.api.muster.placement import Placement, slots_of
from muster.api.muster.states import ENDED
from muster.api.ranges import natural
from muster.workloads.table import slot_of

NODES = 400
"""Maximum number of nodes that are drawn; further nodes are only counted."""
NO_RACK = ""


class NodeOfGang(Struct, frozen=True):
    """A node with members of the gang, or with slots that are planned for them."""

    name: str
    ranks: str
    """The ranks on the node by pod set, as text, such as `worker 0-7`."""
    members: int
    running: int
    state: str
    """State of the members on the node: runs, starts, reserved or ended."""


class RackOfNodes(Struct, frozen=True):
    """One rack."""

    name: str
    """Name of the rack; empty for nodes without a known rack."""
    nodes: list[NodeOfGang]
    members: int
    more: int
    """Number of nodes that are not drawn."""


def racks(
    pods: Sequence[Pod], placement: Placement | None, state: str, rack_of_node: Mapping[str, str]
) -> list[RackOfNodes]:
    """Return the racks of a gang's nodes, sorted by name; if no pod has a node, the racks of its planned nodes."""
    ranks: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    running: dict[str, int] = defaultdict(int)
    for pod in pods:
        node = pod.spec.node_name
        if node:
            slot = slot_of(pod.metadata)
            place = slot.pod_set if slot else DEFAULT_POD_SET
            ranks[node][place].add(slot.rank if slot else len(ranks[node][place]))
            running[node] += pod.status.phase == "Running"
    if placement is not None and state not in ENDED and placement.status.phase != "Abandoned":
        for slot, node in slots_of(placement):
            ranks[node][slot.pod_set].add(slot.rank)
    by_rack: dict[str, list[str]] = defaultdict(list)
    for node in ranks:
        by_rack[rack_of_node.get(node, NO_RACK)].append(node)
    found, left = [], NODES
    for rack in sorted(by_rack, key=natural):
        names = sorted(by_rack[rack], key=natural)
        drawn = [_node(name, ranks[name], running[name], state) for name in names[:left]]
        left -= len(drawn)
        members = sum(len(numbers) for name in names for numbers in ranks[name].values())
        found.append(RackOfNodes(rack, drawn, members, len(names) - len(drawn)))
    return found


def _node(name: str, ranks: Mapping[str, set[int]], running: int, state: str) -> NodeOfGang:
    numbers_by_set = {pod_set: sorted(numbers) for pod_set, numbers in sorted(ranks.items())}
    how = "ended" if state in ENDED else "reserved" if state == "Reserved" else "runs" if running else "starts"
    return NodeOfGang(name, ranks_text(numbers_by_set), sum(map(len, numbers_by_set.values())), running, how)
