"""The page Queues: the usage of queues, and the gangs that wait in them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import structlog
from msgspec.structs import replace
from starlette.responses import Response

from extender.explain.queues import limit_texts
from history.answers import NO_BUDGETS, recorded_until, silence
from history.model import EVERYTHING
from history.store import HistoryStore, StoreError
from history.usage import UsageRow, usage
from muster.api.muster.usage import Period, period_of
from muster.resources.vector import Vector, unit
from muster.volcano.queuelimits import limits_of
from web.context import RequestContext
from web.site import Site
from web.views.parts import page_number
from web.views.past import day_of
from web.views.queues import QueuesView, own_queues_view, queues_view

log = structlog.get_logger()
_MINUTE_S: Final = 60.0
"""Interval in seconds at which the usage of queues is computed again."""


def show(context: RequestContext) -> Response:
    """Return the page of the queues that the caller may see."""
    now, view = context.site.now(), context.view
    shown = _tree(context, now) if context.caller.queues else own_queues_view(view.own_queues(), now)
    return context.page("queues.html", view=shown, live="queues")


def _tree(context: RequestContext, now: float) -> QueuesView:
    view, objects = context.view, context.view.queue_objects()
    reports = [
        replace(each, limits=limit_texts(objects[each.queue], now)) if each.queue in objects else each
        for each in view.queues()
    ]
    limits = {
        name: limits_of_queue
        for name, each in objects.items()
        if (limits_of_queue := limits_of(each.metadata.annotations))
    }
    periods = {budget.period for limits_of_queue in limits.values() for budget in limits_of_queue.budgets}
    used = _used(context, now, periods) if periods else None
    gone = "" if used is None or context.site.history is None else _silence(context.site.history, now)
    page = page_number(context.query.get("page", ""))
    return queues_view(reports, view.rows(), context.caller.scope, now, page, limits=limits, used=used, silence=gone)


def _used(
    context: RequestContext, now: float, periods: AbstractSet[Period]
) -> Mapping[Period, Mapping[str, Vector]] | None:
    """Return the usage that each queue has held in these periods; None if there is no history.

    The result contains no names of gangs or users.
    """
    store = context.site.history
    if store is None:
        return None
    try:
        return {
            period: {
                row.key[0]: {resource: round(each.held * unit(resource)) for resource, each in row.resources.items()}
                for row in _rows(context.site, store, period, now)
            }
            for period in periods
        }
    except StoreError as error:
        log.warning("the history cannot be read", error=str(error))
        return None


def _silence(store: HistoryStore, now: float) -> str:
    try:
        return silence(recorded_until(store), now, NO_BUDGETS, day_of)
    except StoreError as error:
        log.warning("the history cannot be read", error=str(error))
        return ""


def _rows(site: Site, store: HistoryStore, period: Period, now: float) -> list[UsageRow]:
    since = period_of(period, now).begin
    return site.spent[period].value(int(now // _MINUTE_S), lambda: usage(store, EVERYTHING, ("queue",), since=since))
