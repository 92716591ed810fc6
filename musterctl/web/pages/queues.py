"""The queues, with what they use, and who waits in them."""

from collections.abc import Mapping
from typing import Final

import structlog
from msgspec.structs import replace
from starlette.responses import Response

from extender.explain.queues import limit_words
from history.scope import EVERYTHING
from history.store import StoreError
from history.usage import usage
from muster.api.muster.usage import month_of
from muster.resources.vector import Vector, unit
from muster.volcano.queuelimits import limits_of
from musterctl.web.asked import Asked
from musterctl.web.content.gangs import page_number
from musterctl.web.content.queues import QueuesView, own_queues_view, queues_view

log = structlog.get_logger()
_MINUTE_S: Final = 60.0
"""What was used this month is added up so often."""


def show(asked: Asked) -> Response:
    """Return the page of the queues that the caller may see."""
    now, view = asked.site.now(), asked.view
    shown = _tree(asked, now) if asked.caller.queues else own_queues_view(view.own_queues(), now)
    return asked.page("queues.html", view=shown, live="queues")


def _tree(asked: Asked, now: float) -> QueuesView:
    view, objects = asked.view, asked.view.queue_objects()
    reports = [
        replace(each, limits=limit_words(objects[each.queue], now)) if each.queue in objects else each
        for each in view.queues()
    ]
    limits = {name: said for name, each in objects.items() if (said := limits_of(each.metadata.annotations))}
    used = _used(asked, now) if any(said.budget for said in limits.values()) else None
    page = page_number(asked.query.get("page", ""))
    return queues_view(reports, view.rows(), asked.caller.scope, now, page, limits=limits, used=used)


def _used(asked: Asked, now: float) -> Mapping[str, Vector] | None:
    """Return what each queue has held this month; None without a history. It names nobody but queues."""
    store = asked.site.history
    if store is None:
        return None
    try:
        minute = int(now // _MINUTE_S)
        since = month_of(now)[1]
        rows = asked.site.spent.value(minute, lambda: usage(store, EVERYTHING, ("queue",), since=since))
    except StoreError as error:
        log.warning("the history cannot be read", error=str(error))
        return None
    return {
        row.key[0]: {resource: round(each.held * unit(resource)) for resource, each in row.resources.items()}
        for row in rows
    }
