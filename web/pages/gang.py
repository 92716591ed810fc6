"""The list of gangs, the page of one gang, and the log of a member."""

from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from typing import Final, NamedTuple

import structlog
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from extender.explain.clusterdump import ClusterDump
from extender.explain.find import explain
from extender.explain.report import GangReport, UnknownNameError
from extender.explain.text import lines_of
from extender.explain.whatif import WhatIf
from gangs.members import UnknownGangError, begun, container_of, members, named
from gangs.nodes import rack_of
from gangs.row import GangRow
from gangs.rows import RowSources
from history.read import events_of_gang, gangs
from history.store import StoreError
from muster.api import names
from muster.api.kubernetes.core import EVENTS, PODS, Event, Pod
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.muster.placementnotes import current
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import APIError
from web.actions import actions_for
from web.context import RequestContext
from web.rights import listing
from web.views.gang import Button, GangObjects, GangStep, gang_view
from web.views.gangs import Filters, filters, gangs_view
from web.views.parts import moment, page_number
from web.views.past import steps_of

log_of = structlog.get_logger()
LOG_LINES: Final = 500
LINE_CHARS: Final = 4_000
"""Maximum number of characters of a log line; longer lines are cut."""
EVENTS_OF_PODS: Final = 6
"""Maximum number of pods whose Events are shown, because each pod costs a request. The Events of pods that do not run
come first."""
_RANK_DIGITS: Final = 6


class _VisibleGang(NamedTuple):
    """A gang that the caller may see, with the objects that its page needs."""

    row: GangRow
    objects: RowSources
    group: PodGroup | None
    placement: Placement | None
    job: Job | None
    pods: list[Pod]


def listed(context: RequestContext) -> Response:
    """Return one page of the list of gangs that the caller may see."""
    rows = context.view.rows()
    with_starts = context.site.forecasts.with_forecasts(rows) if context.caller.everything else rows
    shown = gangs_view(with_starts, context.caller.scope, filters(context.query), context.site.now())
    return context.page("gangs.html", view=shown, everything=Filters(ended=True).address(), live="gangs")


def show(context: RequestContext) -> Response:
    """Return the page of one gang; if the gang is only in the history, the page has a link to the gang's events."""
    now = context.site.now()
    try:
        found = _found(context)
    except HTTPException:
        if not _is_past(context):
            raise
        return RedirectResponse(f"/history/{context.path['namespace']}/{context.path['name']}", HTTPStatus.SEE_OTHER)
    name = context.path["name"]
    of = GangObjects(
        row=context.site.forecasts.with_forecasts([found.row])[0] if context.caller.everything else found.row,
        group=found.group,
        placement=found.placement,
        pods=found.pods,
        events=_events(context, found),
        report=_report(found, now),
        happened=_happened(context, found.row, now),
        user=found.group.metadata.annotations.get(names.CREATED_BY, "") if found.group else "",
        buttons=[
            Button(each.name, each.title, each.path(found.row.namespace, found.row.name))
            for each in actions_for(context, found.row)
        ],
        explained=bool(found.row.gang),
        logs=context.may(_reading_logs(found.row.namespace)),
    )
    racks = {node.metadata.name: rack_of(node.metadata.labels) for node in context.view.nodes()}
    shown = gang_view(of, racks, now, page=page_number(context.query.get("page", "")), name=name)
    return context.page("gang.html", view=shown, live=f"gang/{found.row.namespace}")


def why(context: RequestContext) -> Response:
    """Return the page that explains, with a planner cycle, why a gang waits and which changes would let it start."""
    found, now = _found(context), context.site.now()
    if not found.row.gang:
        raise context.missing(f"gang of {found.row.title}: it has no PodGroup now")
    report, at = context.site.explainer.explain(context.caller, "gang", found.row.namespace, found.row.gang)
    return context.page(
        "why.html",
        title=found.row.title,
        told_lines=[line for line in lines_of(report, now) if line.text and line.label != "would help"],
        help_lines=[each.sentence for each in report.relief],
        gang=f"/gangs/{found.row.namespace}/{context.path['name']}",
        as_of=moment(at, now),
    )


def log(context: RequestContext) -> Response:
    """Return the page with the latest lines of a member's log."""
    found = _found(context)
    namespace, name, rank = found.row.namespace, context.path["name"], context.path["rank"]
    if not context.may(_reading_logs(namespace)):
        raise context.forbidden(f"logs require the right to get pods/log in namespace {namespace}")
    number = int(rank) if rank.isascii() and rank.isdecimal() and len(rank) <= _RANK_DIGITS else len(found.pods)
    if number >= len(found.pods):
        raise context.missing(f"member {rank[:_RANK_DIGITS]} of {found.row.title}")
    pod, lines, why, container = found.pods[number], list[str](), "", ""
    if begun([pod]):
        with context.client() as client:
            container = container_of(client.get(PODS, pod.metadata.name, namespace))
            lines, why = _lines(client, pod, container)
    return context.page(
        "log.html",
        pod=pod.metadata.name,
        container=container,
        lines=lines,
        why=why or f"Pod {pod.metadata.name} has no log yet: it is {pod.status.phase or 'Pending'}.",
        title=found.row.title,
        name=found.row.name,
        namespace=namespace,
        rank=number,
        gang=f"/gangs/{namespace}/{name}",
    )


def _lines(client: Client, pod: Pod, container: str) -> tuple[list[str], str]:
    """Return the latest lines of a member's log, or the reason why there are none."""
    meta = pod.metadata
    try:
        most = LOG_LINES * LINE_CHARS
        lines = client.log_lines(meta.name, meta.namespace, container, follow=False, last=LOG_LINES, most_bytes=most)
        found = [_printable(line[:LINE_CHARS]) for line in islice(lines, LOG_LINES)]
    except APIError as error:
        return [], f"The log of pod {meta.name} cannot be read: {error.message}"
    return found, "" if found else f"Pod {meta.name} has printed nothing yet."


def _printable(line: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\t" else " " for sign in line)


def _reading_logs(namespace: str) -> ResourceAttributes:
    return replace(listing(PODS, namespace, "get"), subresource="log")


def _found(context: RequestContext) -> _VisibleGang:
    """Return the gang that the address names.

    Raises HTTPException 404 if the gang does not exist or is not visible to the caller.
    """
    namespace, name = context.path["namespace"], context.path["name"]
    try:
        row = named(context.view.rows(namespace), name, namespace)
    except UnknownGangError as error:
        raise context.missing(f"gang {name} in namespace {namespace}") from error
    objects = context.view.objects(namespace)
    group = next((each for each in objects.groups if each.metadata.name == row.gang), None) if row.gang else None
    placed = (each for each in objects.placements or () if each.metadata.name == row.gang)
    placement = current(group, next(placed, None)) if group else None
    owner = group.metadata.controller if group else None
    uid = owner.uid if owner else ""
    jobs = objects.jobs or ()
    job = next(
        (each for each in jobs if uid == each.metadata.uid or (not group and each.metadata.name == row.name)), None
    )
    return _VisibleGang(row, objects, group, placement, job, members(objects, row))


def _is_past(context: RequestContext) -> bool:
    store, (namespace, name) = context.site.history, (context.path["namespace"], context.path["name"])
    if store is None or not context.caller.scope.has(namespace):
        return False
    try:
        return bool(gangs(store, context.caller.scope, namespace=namespace, name=name, limit=1))
    except StoreError as error:
        log_of.warning("the history cannot be read", error=str(error))
        return False


def _happened(context: RequestContext, row: GangRow, now: float) -> list[GangStep] | None:
    """Return the events of the gang in the history; None if there are none, or if the history cannot be read."""
    store = context.site.history
    if store is None:
        return None
    try:
        named_so = gangs(store, context.caller.scope, namespace=row.namespace, name=row.name, limit=10)
        mine = [each for each in named_so if each.kind == row.kind]
        if not mine:
            return None
        happened = events_of_gang(store, context.caller.scope, row.namespace, row.name, uid=mine[0].uid)
    except StoreError as error:
        log_of.warning("the history cannot be read", error=str(error))
        return None
    return steps_of(happened, now) or None


def _report(found: _VisibleGang, now: float) -> GangReport | None:
    """Return the report from only the gang's own objects, like `muster explain` for users of one namespace."""
    dump = ClusterDump(now)
    dump.unread = frozenset({"nodes"})
    dump.add_objects(POD_GROUPS, [found.group] if found.group else [])
    dump.add_objects(PLACEMENTS, [found.placement] if found.placement else [])
    dump.add_objects(JOBS, [found.job] if found.job else [])
    dump.add_objects(PODS, found.pods)
    with suppress(UnknownNameError, ValueError):
        report = explain(WhatIf(dump), "gang", found.row.gang or found.row.name, found.row.namespace)
        return report if isinstance(report, GangReport) else None
    return None


def _events(context: RequestContext, found: _VisibleGang) -> list[Event] | None:
    """Return the Events about the gang, its workload and some of its pods; None if they cannot be listed."""
    events: dict[str, Event] = {}
    pods = sorted(found.pods, key=lambda pod: pod.status.phase == "Running")[:EVENTS_OF_PODS]
    names_asked = (found.row.name, found.row.gang, *(pod.metadata.name for pod in pods))
    try:
        with context.client() as client:
            for name in dict.fromkeys(filter(None, names_asked)):
                for each in client.list(EVENTS, found.row.namespace, field_selector=f"involvedObject.name={name}"):
                    events[each.metadata.uid] = each
    except APIError:
        return None
    return list(events.values())
