"""The page of nodes: racks, domains, faults, reservations."""

from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump
from extender.explain.report import UnknownNameError
from extender.explain.topology import TopologyReport, topology_reports
from extender.explain.whatif import WhatIf
from gangs.nodes import NodeRow, node_rows
from muster.api.kubernetes import core, scheduling
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from web.context import RequestContext
from web.site import Site
from web.views.topology import STATES, SuspectLine, suspects_among, topology_view


class _NodeCapacity(NamedTuple):
    rows: list[NodeRow]
    reports: list[TopologyReport]
    suspects: list[SuspectLine]


def show(context: RequestContext) -> Response:
    """Return the page of the nodes.

    A caller who is not allowed to list nodes sees only the reservations of gangs in the caller's namespaces.
    """
    now, caller, view = context.site.now(), context.caller, context.view
    whole = caller.everything
    if whole:
        made = summed(context.site)
    else:
        nodes = view.nodes()
        rules_in = context.site.explainer.dump().rules_in
        rows = node_rows(nodes, [], rules_in)
        made = _NodeCapacity(rows, [], suspects_among(nodes, rows, rules_in, now))
    placements = view.placements()
    scope, gangs = caller.scope, view.rows()
    shown = topology_view(made.rows, made.reports, made.suspects, placements, gangs, scope, now, whole=whole)
    there = {each.state for rack in shown.racks for each in rack.states}
    return context.page("topology.html", view=shown, states=[each for each in STATES if each in there], live="topology")


def summed(site: Site) -> _NodeCapacity:
    """Return the free capacity of the nodes, which may be slightly old in a large cluster."""
    made: _NodeCapacity = site.nodes.value(site.caches.total, lambda: _made(site.explainer.dump()))
    return made


def _made(dump: ClusterDump) -> _NodeCapacity:
    rows = node_rows(dump.objects_of(core.NODES), dump.objects_of(core.PODS), dump.rules_in)
    return _NodeCapacity(
        rows, _reports(_of_nodes(dump)), suspects_among(dump.objects_of(core.NODES), rows, dump.rules_in, dump.taken_at)
    )


def _of_nodes(dump: ClusterDump) -> ClusterDump:
    """Return the objects that use capacity on nodes: pods, and gangs with planned slots that have no pods yet.

    Waiting gangs are left out: they use no capacity, and it takes seconds to read ten thousand of them.
    """
    placements = [each for each in dump.objects_of(PLACEMENTS) if _takes_room(each)]
    keys = {each.metadata.key for each in placements}
    groups = [each for each in dump.objects_of(POD_GROUPS) if each.metadata.key in keys]
    owners = {owner.uid for each in groups for owner in each.metadata.owner_references}
    kept: dict[str, list[Any]] = {
        PLACEMENTS.full_name: placements,
        POD_GROUPS.full_name: groups,
        scheduling.NATIVE_POD_GROUPS.full_name: [],
        JOBS.full_name: [each for each in dump.objects_of(JOBS) if each.metadata.uid in owners],
        core.PODS.full_name: [each for each in dump.objects_of(core.PODS) if each.spec.node_name and not each.finished],
    }
    return replace(dump, objects={**dump.objects, **kept})


def _takes_room(placement: Placement) -> bool:
    spec = placement.spec
    return bool(spec.spares or spec.borrows) or placement.status.phase in {"Planned", "Binding"}


def _reports(dump: ClusterDump) -> list[TopologyReport]:
    """Return the reports of the topologies' domains; empty if the planner's configuration cannot be read."""
    try:
        return topology_reports(WhatIf(dump))
    except (UnknownNameError, ValueError):
        return []
