"""The history and usage as JSON, below /api: what `muster history` and `muster usage` read with --server."""

from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from history.answers import QueryError, answers
from history.store import StoreError
from web.asked import Asked


def show(asked: Asked) -> Response:
    """Return the answer to /api/history, /api/history/NAMESPACE/NAME, /api/usage or /api/recorder, for its caller."""
    store = asked.site.history
    if store is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND, "there is no history here: `history.enabled` of the chart adds a recorder"
        )
    path = asked.request.url.path.removeprefix("/api/").split("/")
    try:
        found = answers(store, asked.caller.scope, path, dict(asked.query))
    except QueryError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
    except StoreError as error:
        raise HTTPException(HTTPStatus.BAD_GATEWAY, str(error)) from error
    return Response(msgspec.json.encode(found), media_type="application/json")
