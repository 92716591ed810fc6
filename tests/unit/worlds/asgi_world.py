"""Small ASGI apps on a real server in this process's loop, and clients that send bytes as they like."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.process.serve import listen, serving

DEADLINE_S = 20.0


def answering(answer: Callable[[Request], Awaitable[str | bytes]]) -> ASGIApp:
    """An app that answers each request with this text."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        text = await answer(Request(scope, receive))
        await PlainTextResponse(text)(scope, receive, send)

    return app


async def echo(request: Request) -> bytes:
    """Method, path and body, as they came."""
    return f"{request.method} {request.url.path} ".encode() + await request.body()


def post(path: str, body: bytes, *headers: str) -> bytes:
    """A request."""
    lines = (f"POST {path} HTTP/1.1", "host: a", f"content-length: {len(body)}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


class Client(NamedTuple):
    """A client's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, *pieces: bytes) -> None:
        """Sends them."""
        self.writer.writelines(pieces)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers, body."""
        async with asyncio.timeout(DEADLINE_S):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return int(first.split()[1]), headers, body

    async def closed(self) -> bool:
        """True when the server has closed it, with nothing more to say."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


Connect = Callable[..., Awaitable[Client]]


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[tuple[Connect, Callable[[], Awaitable[None]]]]:
    """A server: what opens a connection to it, and what stops it."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    opened: list[Client] = []

    async def connect(address: str = "127.0.0.1") -> Client:
        opened.append(Client(*await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))))
        return opened[-1]

    server = serving(app, listening)
    await server.__aenter__()
    stopped = asyncio.Event()

    async def stop() -> None:
        stopped.set()
        await server.__aexit__(None, None, None)

    try:
        async with asyncio.timeout(3 * DEADLINE_S):
            yield connect, stop
    finally:
        for client in opened:
            client.writer.close()
        if not stopped.is_set():
            await stop()
