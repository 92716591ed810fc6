"""What `muster history` and `muster usage` ask with `--server`, answered for what the caller may see."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from musterctl.records import QueryError, answers
from musterctl.web.asked import Asked


def show(asked: Asked) -> Response:
    """Answer `/api/history`, `/api/history/NAMESPACE/NAME` and `/api/usage`."""
    if asked.site.history is None:
        why = "no history is kept here: the chart keeps one with web.enabled, a plane of `muster up` always"
        raise HTTPException(HTTPStatus.NOT_FOUND, why)
    path = asked.request.url.path.removeprefix("/api/").split("/")
    try:
        return asked.json(answers(asked.site.history, asked.caller.scope, path, asked.query))
    except QueryError as error:
        raise asked.refused(str(error)) from error
