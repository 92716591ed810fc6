"""The queues, with what they use, and who waits in them."""

from starlette.responses import Response

from musterctl.web.asked import Asked
from musterctl.web.content.gangs import page_number
from musterctl.web.content.queues import own_queues_view, queues_view


def show(asked: Asked) -> Response:
    """Return the page of the queues that the caller may see."""
    now, view = asked.site.now(), asked.view
    if asked.caller.queues:
        page = page_number(asked.query.get("page", ""))
        shown = queues_view(view.queues(), view.rows(), asked.caller.scope, now, page)
    else:
        shown = own_queues_view(view.own_queues(), now)
    return asked.page("queues.html", view=shown, live="queues")
