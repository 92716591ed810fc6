"""The extender's app without a socket: what a request is answered."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.types import ASGIApp

JSON = {"content-type": "application/json"}


class Answer(NamedTuple):
    """The answer that the client gets."""

    status: HTTPStatus
    body: bytes


def ask(
    app: ASGIApp, method: str, path: str, *pieces: bytes, headers: Mapping[str, str] = JSON, host: str = "127.0.0.1"
) -> Answer:
    """One request, whose body comes in these pieces, and its answer; names of headers are in lower case."""
    sent: list[Any] = []
    left = [*(pieces or (b"",))]
    fields = [(name.encode(), value.encode()) for name, value in ({"host": host} | dict(headers)).items()]
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "query_string": b"",
        "root_path": "", "headers": fields, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 9444),
    }  # fmt: skip

    async def receive() -> Any:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type] # it is a coroutine
    return Answer(HTTPStatus(sent[0]["status"]), b"".join(each.get("body", b"") for each in sent[1:]))
