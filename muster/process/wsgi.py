"""A Flask app behind a server of ASGI apps.

a2wsgi has such an adapter, and its translation of a request is used here. But it takes a thread before all of a request
is there, and passes an answer back in pieces, each with a wait for the other thread: 1.3 ms CPU for a review, over the
budget, where this takes 0.9 (measured in turns).
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import flask
from a2wsgi.wsgi import build_environ
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send
from werkzeug.wrappers import Response

LARGE_BYTES = 64 * 1024
LARGE_AT_ONCE = 16
"""Bodies of more than that which are read at once, so that clients cannot fill the memory with halves of requests."""


class Threads:
    """The app as an ASGI app: a request takes one of so many threads once all of it is there."""

    def __init__(self, app: flask.Flask, threads: int) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="app")
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        try:
            body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        loop = asyncio.get_running_loop()
        status, headers, content = await loop.run_in_executor(self._pool, self._answer, scope, body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _body(self, request: Request) -> bytes:
        if "transfer-encoding" not in request.headers and int(request.headers.get("content-length", 0)) <= LARGE_BYTES:
            return await request.body()
        async with self._large:
            return await request.body()

    def _answer(self, scope: Any, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        response = Response.from_app(self._app, build_environ(scope, BytesIO(body)), buffered=True)  # type: ignore[arg-type]
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        return response.status_code, headers, response.get_data()
