"""The nodes: racks, domains, faults, reservations."""

from typing import NamedTuple

from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump
from extender.explain.report import UnknownNameError
from extender.explain.topology import TopologyReport, topology_reports
from extender.explain.whatif import WhatIf
from muster.api.kubernetes.core import NODES, PODS
from musterctl.gangs.nodes import NodeRow, node_rows
from musterctl.web.asked import Asked
from musterctl.web.content.topology import STATES, SuspectLine, suspects_among, topology_view


class _Made(NamedTuple):
    rows: list[NodeRow]
    reports: list[TopologyReport]
    suspects: list[SuspectLine]


def show(asked: Asked) -> Response:
    """Return the page of the nodes; for who may not list them it has the reservations of his gangs alone."""
    now, caller, view = asked.site.now(), asked.caller, asked.view
    whole = caller.everything
    if whole:
        made = asked.site.nodes.value(asked.site.caches.total, lambda: _made(asked.site.explainer.dump(now)))
    else:
        nodes = view.nodes()
        rules_in = asked.site.explainer.dump(now).rules_in
        rows = node_rows(nodes, [], rules_in)
        made = _Made(rows, [], suspects_among(nodes, rows, rules_in, now))
    placements = [each for space in view.namespaces for each in view.objects(space).placements or ()]
    scope, gangs = caller.scope, view.rows()
    shown = topology_view(made.rows, made.reports, made.suspects, placements, gangs, scope, now, whole=whole)
    there = {each.state for rack in shown.racks for each in rack.states}
    return asked.page("topology.html", view=shown, states=[each for each in STATES if each in there], live="topology")


def _made(dump: ClusterDump) -> _Made:
    rows = node_rows(dump.of(NODES), dump.of(PODS), dump.rules_in)
    return _Made(rows, _reports(dump), suspects_among(dump.of(NODES), rows, dump.rules_in, dump.taken_at))


def _reports(dump: ClusterDump) -> list[TopologyReport]:
    """Return the domains; none where the planner's configuration cannot be read."""
    try:
        return topology_reports(WhatIf(dump))
    except (UnknownNameError, ValueError):
        return []
