"""The page of nodes: racks with free capacity, domains with fragmented capacity, faults, spares, reservations. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from extender.explain.topology import DomainReport, SparesThere, TopologyReport
from gangs.nodes import NodeRow
from gangs.row import GangRow
from gangs.words import nodes_text, plain
from history.model import Scope
from muster.api.kubernetes.core import Node
from muster.api.muster.node_faults import FaultRules, fault_of
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement
from muster.api.muster.pools import pool_of
from muster.api.ranges import natural
from muster.resources.vector import amount_text
from web.views.gangs import address, shared_names
from web.views.parts import WHOLE, Moment, moment

READY = "Ready"
"""The state of a healthy node for a caller who cannot list the node's pods and thus does not know its free capacity."""
STATES = (READY, "Free", "Mixed", "Full", "Cordoned", "Suspect", "NotReady")
_HEALTHY = frozenset({READY, "Free", "Mixed", "Full"})
RACKS = 500
DOMAINS = 500
"""Maximum number of rows of a topology's table."""
SUSPECTS = 200
_NODE_CHARS = 120


class NodeStateCount(Struct, frozen=True):
    """The nodes of a rack that are in one state, and their number."""

    state: str
    nodes: int
    at: int
    """Start of the part of the bar for these nodes, in thousandths of the bar's width."""
    width: int
    names: str


class RackLine(Struct, frozen=True):
    """The nodes of one rack and GPU model."""

    rack: str
    model: str
    nodes: int
    gpus: str
    free: str
    whole: int
    """Number of nodes whose GPUs are all free."""
    states: list[NodeStateCount]
    label: str


class DomainLine(Struct, frozen=True):
    """A domain of a topology, as a row of the table."""

    name: str
    level: str
    depth: int
    nodes: int
    unused: int
    room: list[str]
    """Free and total amount of each resource, as text."""
    fragmented: str
    share: int
    """The part of the free capacity that is on partly used nodes, in thousandths."""
    spares: str


class TopologyLine(Struct, frozen=True):
    """One topology."""

    name: str
    levels: str
    resources: list[str]
    domains: list[DomainLine]
    more: int
    problems: list[str]


class SuspectLine(Struct, frozen=True):
    """A node that gets no new pods, because of a fault or a cordon."""

    node: str
    rack: str
    why: str
    kind: str
    since: Moment | None


class ReservationLine(Struct, frozen=True):
    """Nodes that are reserved for a waiting gang."""

    title: str
    address: str
    queue: str
    nodes: str
    since: Moment | None
    expected: Moment | None


class TopologyView(Struct, frozen=True):
    """The page."""

    racks: list[RackLine]
    more_racks: int
    topologies: list[TopologyLine]
    suspects: list[SuspectLine]
    more_suspects: int
    reservations: list[ReservationLine]
    nodes: int
    whole: bool
    """False if the caller is not allowed to list all pods; the page then shows no free capacity."""


def topology_view(
    nodes: Sequence[NodeRow],
    reports: Sequence[TopologyReport],
    suspects: Sequence[SuspectLine],
    placements: Iterable[Placement],
    rows: Sequence[GangRow],
    scope: Scope,
    now: float,
    *,
    whole: bool = True,
) -> TopologyView:
    """Return the page of nodes, without the names of gangs outside the scope and of nodes reserved for them.

    `whole` is true if the caller may list all pods; other callers do not see free capacity.
    """
    racks = _racks(nodes if whole else [replace(row, state=READY) if row.state in _HEALTHY else row for row in nodes])
    mine = [each for each in placements if each.status.phase == "Reserved" and scope.has(each.metadata.namespace)]
    return TopologyView(
        racks=racks[:RACKS],
        more_racks=max(0, len(racks) - RACKS),
        topologies=[_topology(report, scope) for report in (reports if whole else ())],
        suspects=list(suspects[:SUSPECTS]),
        more_suspects=max(0, len(suspects) - SUSPECTS),
        reservations=_reservations(mine, [row for row in rows if scope.has(row.namespace)], now),
        nodes=len(nodes),
        whole=whole,
    )


def suspects_among(
    nodes: Iterable[Node], rows: Iterable[NodeRow], rules_in: Callable[[str], FaultRules], now: float
) -> list[SuspectLine]:
    """Return the nodes with a fault or a cordon, each with its cause; `rows` has the racks of the nodes."""
    racks = {row.name: row.rack for row in rows}
    found = []
    for node in nodes:
        name = node.metadata.name
        fault = fault_of(node, rules_in(pool_of(node.metadata)))
        if fault is not None:
            kind = "Suspect" if fault.kind == "suspect" else "NotReady"
            found.append(SuspectLine(name, racks.get(name, ""), plain(fault.cause), kind, moment(fault.since, now)))
        elif node.spec.unschedulable:
            found.append(SuspectLine(name, racks.get(name, ""), "it is cordoned", "Cordoned", None))
    return sorted(found, key=lambda each: (STATES[::-1].index(each.kind), natural(each.node)))


def _racks(nodes: Sequence[NodeRow]) -> list[RackLine]:
    groups: dict[tuple[str, str], list[NodeRow]] = defaultdict(list)
    for row in nodes:
        groups[row.rack, row.model].append(row)
    return [
        _rack(rack, model, groups[rack, model])
        for rack, model in sorted(groups, key=lambda key: (natural(key[0]), key[1]))
    ]


def _rack(rack: str, model: str, rows: Sequence[NodeRow]) -> RackLine:
    counted, at = [], 0
    for state in STATES:
        names = [row.name for row in rows if row.state == state]
        if names:
            width = len(names) * WHOLE // len(rows)
            counted.append(NodeStateCount(state, len(names), at, width, nodes_text(names, _NODE_CHARS)))
            at += width
    usable = [row for row in rows if row.state in _HEALTHY]
    return RackLine(
        rack=rack,
        model=model,
        nodes=len(rows),
        gpus=_number(sum(row.gpus for row in rows)),
        free=_number(sum(row.free_gpus for row in usable)),
        whole=sum(row.gpus > 0 and row.free_gpus == row.gpus for row in usable),
        states=counted,
        label=", ".join(f"{each.nodes} {each.state}" for each in counted),
    )


def _number(amount: float) -> str:
    return f"{amount:g}" if amount < WHOLE else str(round(amount))


def _topology(report: TopologyReport, scope: Scope) -> TopologyLine:
    lines = list(_domains(report.domains, 0, scope))
    problems = [f"HyperNode {name}: {text}" for name, texts in report.problems.items() for text in texts]
    problems += [
        f"HyperNode {name} names members that do not exist: {', '.join(names)}"
        for name, names in report.missing.items()
    ]
    if report.outside:
        problems.append(f"in no domain: {nodes_text(report.outside, _NODE_CHARS)}")
    resources = list(report.domains[0].room) if report.domains else []
    return TopologyLine(
        report.name, ", ".join(report.levels), resources, lines[:DOMAINS], max(0, len(lines) - DOMAINS), problems
    )


def _domains(domains: Sequence[DomainReport], depth: int, scope: Scope) -> Iterable[DomainLine]:
    for each in domains:
        share = each.fragmented
        yield DomainLine(
            name=each.name,
            level=each.level,
            depth=depth,
            nodes=each.nodes,
            unused=each.unused,
            room=[f"{amount_text(name, one.free)} of {amount_text(name, one.all)}" for name, one in each.room.items()],
            fragmented="" if share is None else f"{share:.0%}",
            share=0 if share is None else round(share * WHOLE),
            spares=_spares(each.spares, scope),
        )
        yield from _domains(each.domains, depth + 1, scope)


def _spares(there: SparesThere, scope: Scope) -> str:
    """Return a domain's spare slots as text; gangs outside the scope are counted but not named."""
    if not there.seats:
        return ""
    keepers, borrowers = (
        [who for who in whose if scope.has(who.partition(" ")[2].partition("/")[0])]
        for whose in (there.keepers, there.borrowers)
    )
    of = f" of {', '.join(keepers)}" if keepers else ""
    to = f" to {', '.join(borrowers)}" if borrowers else ""
    return f"{there.seats} seats{of}" + (f", {there.lent} lent{to}" if there.lent else "")


def _reservations(placements: Sequence[Placement], rows: Sequence[GangRow], now: float) -> list[ReservationLine]:
    known = {(row.namespace, row.gang): row for row in rows if row.gang}
    twice = shared_names(rows)
    found = []
    for each in placements:
        row = known.get((each.metadata.namespace, each.metadata.name))
        if row is not None:
            nodes = nodes_text((node for _, node in slots_of(each)), _NODE_CHARS)
            status = each.status
            found.append(
                ReservationLine(
                    f"{row.title} ({row.namespace})",
                    address(row, twice),
                    row.queue,
                    nodes,
                    moment(status.reserved_at, now),
                    moment(status.expected_at, now),
                )
            )
    return sorted(
        found, key=lambda line: (line.expected is None, line.expected.at if line.expected else "", line.title)
    )
