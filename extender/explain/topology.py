"""Reports of trees of domains: free and used capacity of each domain, fragmentation, and the ranks of a gang."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec import Struct, field

from extender.explain.members import gang_text
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.spareentries import borrowed_spares_of, spare_runs_of
from extender.planner.topology.forest import level_text
from extender.planner.topology.tree import HYPER_NODES, Tree
from muster.api.grammar import any_of
from muster.api.muster.gang import Slot
from muster.api.muster.noderuns import slots_of
from muster.api.ranges import natural
from muster.resources.vector import CPU

PROBLEMS = 3
"""Maximum number of HyperNodes' problems that the report of a gang names."""
NODE = "node"
"""Name of the innermost topology level, at which each domain is a single node."""


class DomainCapacity(Struct):
    """The capacity of one resource in a domain: cpu in milli-CPU, every other resource in base units."""

    all: int
    used: int
    """The amount that pods and placed slots use."""
    free: int
    """The free amount on nodes that accept pods; the free amount on cordoned nodes is left out."""


class SparesThere(Struct):
    """Spare slots that gangs hold in a domain (docs/faults.md)."""

    seats: int = 0
    lent: int = 0
    """Number of spare slots that other gangs borrow; the borrowers are evicted when the slots are needed."""
    keepers: list[str] = field(default_factory=list)
    """Workloads that hold the spare slots, such as `Job ns/train`."""
    borrowers: list[str] = field(default_factory=list)
    """Workloads that are borrowing the spare slots now."""


class DomainReport(Struct):
    """The report of one domain of a topology."""

    name: str
    level: str
    nodes: int
    unused: int
    """Number of nodes that accept pods and on which none of the first reported resource is in use."""
    room: dict[str, DomainCapacity]
    """Maps a resource to its capacity, in the order in which the resources were found."""
    fragmented: float | None
    """Part of the first resource's free capacity that is on partly used nodes, from 0 to 1; None if nothing is free."""
    ranks: dict[str, list[int]]
    """Maps a pod set to the ranks of the gang's members in the domain."""
    spares: SparesThere
    domains: list["DomainReport"]


class TopologyReport(Struct):
    """The report of one topology."""

    name: str
    levels: list[str]
    nodes: int
    outside: list[str]
    """Nodes that are in no domain of the outermost level."""
    empty: list[str]
    """HyperNodes that have no nodes."""
    domains: list[DomainReport]
    elsewhere: dict[str, list[int]]
    """Maps a pod set to the ranks of the gang's members on nodes that are in no domain."""
    problems: dict[str, list[str]] = field(default_factory=dict)
    """Maps a HyperNode to its problems."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Maps a HyperNode to its listed members that do not exist."""


def topology_reports(
    what_if: WhatIf,
    *,
    name: str | None = None,
    resources: Sequence[str] = (),
    gang: GangView | None = None,
    nodes: bool = False,
) -> list[TopologyReport]:
    """Return the reports of one topology or of all; if `nodes` is true, single nodes are the innermost level.

    Raises UnknownNameError for an unknown topology or resource.
    """
    session = what_if.session()
    bare = {HYPER_NODES: session.hyper_nodes.tree} if session.snapshot.hyper_nodes else {}
    trees = session.hooks.topologies.call() or bare  # `bare` is the tree without the plugin `topology`
    if name is not None and name not in trees:
        raise UnknownNameError(f"there is no topology {name!r}; there is {any_of(trees)}")
    known = session.snapshot.axis
    unknown = [resource for resource in resources if resource not in known]
    if unknown:
        raise UnknownNameError(f"no node offers {any_of(unknown)}; there is {any_of(sorted(known))}")
    shown = list(dict.fromkeys(resources)) or usual(known)
    return [
        _Reporter(session, tree, shown, gang, nodes=nodes).report()
        for each, tree in trees.items()
        if name in {None, each}
    ]


def usual(known: Iterable[str]) -> list[str]:
    """Return the resources that are shown by default: GPUs of all vendors, and cpu."""
    return [*sorted(each for each in known if each.endswith("/gpu")), *(each for each in known if each == CPU)]


def hyper_node_problems(session: Session, gang: GangView) -> list[str]:
    """Return sentences about HyperNodes' problems if the gang must be placed within a HyperNode; otherwise empty."""
    request = session.ask(gang).request
    required = request.required if request is not None and session.snapshot.hyper_nodes else []
    if not any(near.topology == HYPER_NODES or isinstance(near.required, int) for near in required):
        return []
    problems = {
        problem.message: name for name, problems in session.hyper_nodes.problems.items() for problem in problems
    }
    found = [
        reasons.topology.hyper_node_wrong(name=name, message=message)
        for message, name in islice(problems.items(), PROBLEMS)
    ]
    more = len(problems) - len(found)
    return found + ([reasons.topology.more_wrong(count=more, name=HYPER_NODES)] if more > 0 else [])


class _Reporter:
    """Reporter of one topology's domains, and of the domains' capacity in one snapshot."""

    def __init__(
        self, session: Session, tree: Tree, resources: list[str], gang: GangView | None, *, nodes: bool
    ) -> None:
        snapshot = session.snapshot
        self._session, self._tree, self._resources, self._with_nodes = session, tree, resources, nodes
        self._columns = np.array([column for column, node in enumerate(snapshot.nodes) if node], dtype=np.int64)
        takes = np.array([node is not None and not node.spec.unschedulable for node in snapshot.nodes], dtype=np.bool_)
        self._used = snapshot.allocatable - snapshot.free
        self._free = np.where(takes, np.maximum(snapshot.free, 0), 0)
        self._first = snapshot.axis[resources[0]] if resources else None
        self._unused = takes if self._first is None else takes & (self._used[self._first] == 0)
        self._slots = _slots_by_column(gang, snapshot.index) if gang else {}
        self._kept = spares_by_node(session)

    def report(self) -> TopologyReport:
        """Return the report of the whole topology."""
        tree, snapshot = self._tree, self._session.snapshot
        inside = np.array(
            [bool(tree.levels) and tree.domain_of[0, each] >= 0 for each in self._columns], dtype=np.bool_
        )
        stray = self._columns[~inside]
        report = TopologyReport(
            name=tree.name,
            levels=[level_text(tree, level) for level in range(len(tree.levels))],
            nodes=len(self._columns),
            outside=sorted(map(snapshot.name, stray.tolist()), key=natural),
            empty=[],
            domains=self._domains_below(-1, self._columns[inside], ""),
            elsewhere=self._ranks(stray),
        )
        if tree.name == HYPER_NODES and snapshot.hyper_nodes:
            found = self._session.hyper_nodes
            report.problems = {
                each: [problem.message for problem in problems] for each, problems in found.problems.items()
            }
            report.missing = {each: list(names) for each, names in found.missing.items()}
            inhabited = {
                tree.domains[level][number]
                for level, row in enumerate(tree.domain_of)
                for number in np.unique(row[row >= 0]).tolist()
            }
            report.empty = sorted({each for names in tree.domains for each in names} - inhabited, key=natural)
        return report

    def _domains_below(self, level: int, columns: Amounts, above: str) -> list[DomainReport]:
        """Return the domains inside one domain; a HyperNode that spans several levels is reported once."""
        level += 1
        if level == len(self._tree.levels):
            return self._nodes(columns)
        numbers = self._tree.domain_of[level, columns]
        found: list[DomainReport] = []
        for number in np.unique(numbers[numbers >= 0]).tolist():
            name, mine = self._tree.domains[level][number], columns[numbers == number]
            inner = self._domains_below(level, mine, name)
            if name == above:
                found += inner
            else:
                own = level  # a HyperNode is shown at its tier, its innermost level
                if self._tree.tiers:
                    own = max(each for each, names in enumerate(self._tree.domains) if name in names)
                found.append(self._domain(name.rpartition("/")[2], level_text(self._tree, own), mine, inner))
        return sorted(found, key=lambda each: natural(each.name)) + self._nodes(columns[numbers < 0])

    def _nodes(self, columns: Amounts) -> list[DomainReport]:
        if not self._with_nodes:
            return []
        name = self._session.snapshot.name
        found = [
            self._domain(name(int(column)), NODE, columns[place : place + 1], [])
            for place, column in enumerate(columns)
        ]
        return sorted(found, key=lambda each: natural(each.name))

    def _domain(self, name: str, level: str, columns: Amounts, inner: list[DomainReport]) -> DomainReport:
        room = {}
        for resource in self._resources:
            row = self._session.snapshot.axis[resource]
            sums = (
                int(each[row, columns].sum()) for each in (self._session.snapshot.allocatable, self._used, self._free)
            )
            room[resource] = DomainCapacity(*sums)
        unused = columns[self._unused[columns]]
        fragmented = None
        if self._first is not None and (free := room[self._resources[0]].free):
            fragmented = 1 - int(self._free[self._first, unused].sum()) / free
        return DomainReport(
            name, level, len(columns), len(unused), room, fragmented, self._ranks(columns), self._spares(columns), inner
        )

    def _spares(self, columns: Amounts) -> SparesThere:
        name = self._session.snapshot.name
        there = [self._kept[node] for node in map(name, columns.tolist()) if node in self._kept] if self._kept else []
        return SparesThere(
            sum(each.seats for each in there),
            sum(each.lent for each in there),
            sorted({who for each in there for who in each.keepers}),
            sorted({who for each in there for who in each.borrowers}),
        )

    def _ranks(self, columns: Amounts) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for column in columns.tolist() if self._slots else ():
            for slot in self._slots.get(column, ()):
                found.setdefault(slot.pod_set, []).append(slot.rank)
        return {pod_set: sorted(ranks) for pod_set, ranks in sorted(found.items())}


def spares_by_node(session: Session) -> dict[str, SparesThere]:
    """Return a mapping from each node with spare slots to these slots and the gangs that hold or borrow them."""
    found: dict[str, SparesThere] = {}
    for gang in session.snapshot.gangs:
        for run, _ in spare_runs_of(gang):
            there = found.setdefault(run.node, SparesThere())
            there.seats += run.count
            there.lent += min(run.count, session.away[gang.uid, run.pod_set, run.node])
            there.keepers.append(gang_text(gang))
    for gang in session.snapshot.gangs:
        for loan in borrowed_spares_of(gang):
            if loan.node in found:
                found[loan.node].borrowers.append(gang_text(gang))
    return found


def _slots_by_column(gang: GangView, index: Mapping[str, int]) -> dict[int, list[Slot]]:
    """Return a mapping from a node's column to the slots on this node: members' slots and placed slots."""
    placed = dict(slots_of(gang.placement)) if gang.placement and gang.active else {}
    for pod_set in gang.pod_sets:
        placed |= {Slot(pod_set.name, rank): node for rank, node in pod_set.taken.items() if node}
    found: dict[int, list[Slot]] = {}
    for slot, node in placed.items():
        if node in index:
            found.setdefault(index[node], []).append(slot)
    return found
