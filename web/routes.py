"""The table of the pages: path, what answers, and its name in the navigation."""

from collections.abc import Callable
from typing import Final, NamedTuple

from starlette.responses import RedirectResponse, Response

from web import actions
from web.asked import Asked
from web.pages import gang, past, queues, records, topology, whatif

Answering = Callable[[Asked], Response]


class Page(NamedTuple):
    """One path; its function runs in a thread, and may wait."""

    path: str
    answer: Answering
    title: str = ""
    """Its name in the navigation; empty: it is not there."""
    method: str = "GET"
    """POST for what changes something: its origin is checked."""


def _home(_: Asked) -> Response:
    return RedirectResponse("/queues", status_code=303)


ROUTES: Final = (
    Page("/", _home),
    Page("/queues", queues.show, "Queues"),
    Page("/gangs", gang.listed, "Gangs"),
    Page("/gangs/{namespace}/{name}", gang.show),
    Page("/gangs/{namespace}/{name}/explain", gang.why),
    Page("/gangs/{namespace}/{name}/logs/{rank}", gang.log),
    Page("/topology", topology.show, "Topology"),
    Page("/history", past.show, "History"),
    Page("/history/{namespace}/{name}", past.one),
    Page("/usage", past.used, "Usage"),
    Page("/usage.csv", past.used),
    Page("/whatif", whatif.show, "What if"),
    Page("/whatif", whatif.answer, method="POST"),
    Page("/api/explain/{namespace}/{name}", records.explained),
    Page("/api/history", records.show),
    Page("/api/history/{namespace}/{name}", records.show),
    Page("/api/usage", records.show),
    Page("/api/recorder", records.show),
    Page("/act/{action}/{kind}/{namespace}/{name}", actions.confirm),
    Page("/act/{action}/{kind}/{namespace}/{name}", actions.act, method="POST"),
)
