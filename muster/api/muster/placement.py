"""muster.dev/v1alpha1: Placement, which node each member of a gang gets."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object
from muster.api.limits import EPOCH, PODS
from muster.api.muster.gang import Seat
from muster.api.volcano.scheduling import NonNegative

PlacementPhase = Literal["Planned", "Binding", "Bound", "Abandoned", "Reserved"]


_DEVICES = re.compile(r"[0-9]{1,4}(,[0-9]{1,4}){0,63}")


class NodeRun(Wire):
    """`count` consecutive ranks on one node; an empty node means that these ranks have no place yet."""

    node: str = ""
    """Name of the node."""
    count: Annotated[int, Meta(ge=1, le=PODS.value)] = 1
    """How many consecutive ranks are there."""


class PodSetPlacement(Wire):
    """The nodes of one pod set in rank order."""

    name: str
    """The task, or `pods` for workloads without tasks."""
    runs: list[NodeRun] = field(default_factory=list)
    """Nodes in rank order."""
    gpus: list[str] = field(default_factory=list)
    """For pods that share GPUs: the devices of each rank on its node, as "0" or "0,3"; empty where it has none."""
    held: bool = False
    """Its pods are born gated: they follow others, and are let go when those have arrived at their nodes."""


class Victim(Wire):
    """A pod that has to go before the placement can be carried out."""

    name: str
    """Name of the pod."""
    namespace: str = ""
    """Its namespace; the placement's if left out."""
    uid: str = ""
    """Its UID: a later pod of the same name stays."""
    gang: str = ""
    """Name of its PodGroup."""


class PlacementSpec(Wire):
    """What was decided. Every write that carries it out names the epoch."""

    pod_group_uid: str = field(default="", name="podGroupUID")
    """UID of the PodGroup that this was decided for."""
    epoch: Annotated[int, Meta(ge=1, le=EPOCH.value)] = 1
    """Counts the placements of the gang; it never decreases, and stale writes are refused by it."""
    deadline: str = ""
    """When the placement is given up if the gang is not bound (RFC 3339)."""
    pod_sets: list[PodSetPlacement] = field(default_factory=list)
    """The nodes of each pod set."""
    victims: list[Victim] = field(default_factory=list)
    """Pods that are evicted for this placement, or moved with it; its members wait gated until the room is there."""
    victims_reason: str = ""
    """Why they have to go, in words for their owners."""


class AvoidedNode(Wire):
    """A node that refused a member of the gang lately."""

    node: str = ""
    """Name of the node."""
    until: str = ""
    """Placements of this gang leave the node out until then (RFC 3339)."""


class StartedWith(Wire):
    """The minimum that a gang started with, or has reached since."""

    min_member: NonNegative = 0
    """Pods in all."""
    min_task_member: dict[str, int] = field(default_factory=dict)
    """Pods of each pod set."""


class PlacementStatus(Wire):
    """How far it is carried out."""

    phase: PlacementPhase = "Planned"
    """Planned, Binding, Bound, Abandoned or Reserved.

    Reserved: nothing is carried out, the gang waits; the nodes are kept from gangs that would be in its way there.
    """
    bound: NonNegative = 0
    """Pods that are bound."""
    planned: NonNegative = 0
    """Pods that have a node in the plan."""
    started: bool = False
    """Whether the gang has been whole; its members are placed as they come until the last of them has ended."""
    started_at: str = ""
    """When it was whole, to the next full second (RFC 3339)."""
    started_with: StartedWith | None = None
    """What the gang must keep to go on. A minimum that is raised later counts once it has been reached."""
    message: str = ""
    """Why it was abandoned, or what it waits for."""
    expected_at: str = ""
    """When the gang is expected to start on the nodes that are reserved for it (RFC 3339); empty if nobody knows."""
    avoided: list[AvoidedNode] = field(default_factory=list)
    """Nodes that the next placements leave out for a while."""
    attempts: NonNegative = 0
    """Placements in a row that were given up because the gang's pods were not created in time."""
    not_before: str = ""
    """No placement is tried before this time (RFC 3339), unless the gang's pods exist by then."""
    evictions_in_vain: NonNegative = 0
    """Placements in a row that were given up because pods could not be evicted for them."""
    no_evictions_before: str = ""
    """Nobody is evicted for the gang before this time (RFC 3339)."""


class Placement(Object):
    """One per gang, named as its PodGroup and owned by it."""

    spec: PlacementSpec = field(default_factory=PlacementSpec)
    """What was decided."""
    status: PlacementStatus = field(default_factory=PlacementStatus)
    """How far it is carried out; the planner writes it."""


def holds_back(placement: Placement) -> bool:
    """Whether some members wait until the others have a node or stand at the barrier."""
    return any(pod_set.held for pod_set in placement.spec.pod_sets)


def node_of(placement: Placement, pod_set: str, rank: int) -> str | None:
    """The node of the member with this rank in `pod_set`; None if it has no place (yet)."""
    for candidate in placement.spec.pod_sets:
        if candidate.name == pod_set:
            for run in candidate.runs:
                if rank < run.count:
                    return run.node or None
                rank -= run.count
            return None
    return None


def devices_of_text(text: str) -> tuple[int, ...]:
    """Numbers of devices as annotations and placements have them, "0,3"; empty for what nobody can read."""
    return tuple(int(part) for part in text.split(",")) if _DEVICES.fullmatch(text) else ()


def text_of_devices(devices: tuple[int, ...]) -> str:
    """The inverse of `devices_of_text`."""
    return ",".join(str(device) for device in devices)


def by_rank(texts: Mapping[int, str]) -> list[str]:
    """A list in rank order, empty texts where a rank has none."""
    return [texts.get(rank, "") for rank in range(max(texts, default=-1) + 1)]


def devices_of(placement: Placement, seat: Seat) -> tuple[int, ...]:
    """The GPUs that a member shares on its node, by number; empty if it shares none."""
    for candidate in placement.spec.pod_sets:
        if candidate.name == seat.pod_set:
            return devices_of_text(candidate.gpus[seat.rank]) if seat.rank < len(candidate.gpus) else ()
    return ()


def seats_of(placement: Placement) -> Iterator[tuple[Seat, str]]:
    """Every seat that has a place, with its node; pod sets as they are written, ranks in order.

    Only as many as a gang may have pods: what a count says beyond that costs nothing, whoever wrote it.
    """
    left = PODS.value
    for pod_set in placement.spec.pod_sets:
        for ranks, node in ranks_of(pod_set.runs):
            for rank in ranks[:left]:
                yield Seat(pod_set.name, rank), node
            left -= min(left, len(ranks))
            if not left:
                return


def pin_of(placement: Placement, pod_set: str, rank: int) -> str | None:
    """The node that a member is born pinned to; None if it has no place, or is held until others have arrived."""
    held = any(candidate.held for candidate in placement.spec.pod_sets if candidate.name == pod_set)
    return None if held else node_of(placement, pod_set, rank)


def runs_of(nodes: Mapping[int, str]) -> list[NodeRun]:
    """Nodes by rank folded into runs, for as many steps as there are nodes; an empty node is no place."""
    runs: list[NodeRun] = []
    next_rank = 0
    for rank in sorted(rank for rank, node in nodes.items() if node):
        if rank > next_rank:
            runs.append(NodeRun(count=rank - next_rank))
        if runs and runs[-1].node == nodes[rank]:
            runs[-1].count += 1
        else:
            runs.append(NodeRun(node=nodes[rank]))
        next_rank = rank + 1
    return runs


def ranks_of(runs: list[NodeRun]) -> Iterator[tuple[range, str]]:
    """Each run that has a node: its ranks, below the limit of ranks, and the node. Never longer than the list."""
    first = 0
    for run in runs:
        ranks = range(min(first, PODS.value), min(first + run.count, PODS.value))
        first += run.count
        if run.node and ranks:
            yield ranks, run.node


def nodes_of(runs: list[NodeRun], ranks: Collection[int]) -> dict[int, str]:
    """The nodes of these ranks, without those that have no place; in one walk over the runs."""
    wanted, found = sorted(ranks), dict[int, str]()
    place = 0
    for held, node in ranks_of(runs):
        while place < len(wanted) and wanted[place] < held.stop:
            if wanted[place] >= held.start:
                found[wanted[place]] = node
            place += 1
    return found


PLACEMENTS = Resource("muster.dev", "v1alpha1", "placements", "Placement", Placement)
