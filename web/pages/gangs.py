"""The list of gangs."""

from starlette.responses import Response

from web.asked import Asked
from web.views.gangs import Filters, filters, gangs_view


def show(asked: Asked) -> Response:
    """Return one part of the list of the gangs that the caller may see."""
    rows = asked.view.rows()
    told = asked.site.forecasts.told(rows) if asked.caller.everything else rows
    shown = gangs_view(told, asked.caller.scope, filters(asked.query), asked.site.now())
    return asked.page("gangs.html", view=shown, everything=Filters(ended=True).address(), live="gangs")
