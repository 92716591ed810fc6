"""The extender's app without a socket: what a request is answered."""

import asyncio
from collections.abc import Mapping

from extender.app import App
from muster.process.calls import Answer, Request

JSON = {"content-type": "application/json"}


def ask(
    app: App, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, host: str = "127.0.0.1:9444"
) -> Answer:
    """One request and its answer; names of headers are in lower case, as the server gives them."""

    async def content() -> bytes:
        return body

    async def answer() -> Answer:
        return await app(Request(method, path, host, dict(headers), content))

    return asyncio.run(answer())
