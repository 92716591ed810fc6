"""A server on a test's own event loop that does with each connection what a function says, well or badly."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from muster.kube.client import Client
from muster.kube.config import ClientConfig

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LONGEST_S = 60.0
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def scripted_server(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Its host and port; afterwards nothing of it is left."""
    tasks: list[asyncio.Task[None]] = []

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(guarded(reader, writer))
        task.add_done_callback(lambda _: writer.close())  # it may be cancelled before it begins
        tasks.append(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def head_and_body(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Reads one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head, await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)


def chunk(data: bytes) -> bytes:
    """A chunk as HTTP sends it; the empty one is the last."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(body: bytes = b"{}", status: int = 200, headers: str = "") -> bytes:
    """An answer whose length is known."""
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{headers}\r\n".encode() + body


@contextlib.asynccontextmanager
async def client_of(handler: Handler, *, authorization: Callable[[], str] | None = None) -> AsyncIterator[Client]:
    """A client, on the test's own loop, of a server that does with each connection what the handler says."""
    async with scripted_server(handler) as address, asyncio.timeout(LONGEST_S):
        config = ClientConfig(f"http://{address}/prefix", authorization=authorization)
        client = Client(config, loop=asyncio.get_running_loop(), connections=4)
        yield client
        client.close()


class ListWatchApi:
    """An API server of one kind: a list is answered by `listed`, and a watch by `events`, of which more may come."""

    def __init__(self) -> None:
        self.events = b""
        self.watch_query: dict[str, str] = {}
        self.watching = asyncio.Event()
        self.watch_ended = asyncio.Event()
        self._more = asyncio.Event()

    async def listed(self, query: dict[str, str], head: bytes) -> bytes | AsyncIterator[bytes]:
        """Return the answer to a list, or its pieces."""
        raise NotImplementedError

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        while True:
            head, _ = await head_and_body(reader)
            query = {key: each[0] for key, each in parse_qs(urlsplit(head.split(b" ")[1].decode()).query).items()}
            if "watch" in query:
                break
            answered = await self.listed(query, head)
            if isinstance(answered, bytes):
                writer.write(answered)
                continue
            async for piece in answered:
                writer.write(piece)
                await writer.drain()
        writer.write(CHUNKED)
        self.watch_query = query
        self.watching.set()
        gone: asyncio.Task[Any] = asyncio.create_task(reader.read())
        gone.add_done_callback(lambda _: self.watch_ended.set())
        while True:
            pending, self.events = self.events, b""
            self._more.clear()
            if pending:
                writer.write(chunk(pending))
            await self._more.wait()

    def tell(self, *events: bytes) -> None:
        """Send events of a watch."""
        self.events += b"".join(events)
        self._more.set()


def event(kind: str, obj: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)
