"""The queues, with what they use, and who waits in them."""

from starlette.responses import Response

from musterctl.web.asked import Asked


def show(asked: Asked) -> Response:
    """Return the page of the queues that the caller may see."""
    return asked.page("queues.html", live="queues", queues=asked.view.queues(), own=asked.view.own_queues())
