"""Stands in for Headlamp's backend: serves its page and its plugin, and passes the page's requests to the API server.

Headlamp's own backend is a Go module that the module proxy does not serve. Of what it does this has the five things
that the page asks for: the list of clusters, the list of plugins, the files, the token of whoever signs in (kept in a
cookie, as there), and everything below /clusters/<name> with that token, WebSockets included.
"""

import asyncio
import contextlib
import http.client
import io
import json
import mimetypes
import ssl
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CLUSTER = "muster"
"""The cluster's name on the page."""
_COOKIE = "headlamp-token"
_CLUSTER_PATH = f"/clusters/{CLUSTER}"
_PLUGIN_PATH = "plugins/volcano"
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class _Request:
    """The head of a request, and its body."""

    method: str
    target: str
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def upgrades(self) -> bool:
        """Whether it asks for a WebSocket."""
        return self.headers.get("Upgrade", "").lower() == "websocket"

    @property
    def token(self) -> str:
        """The token of whoever signed in; empty before that."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
        return cookie.value if cookie else ""


@dataclass(slots=True)
class HeadlampServer:
    """Serves on a free port of this machine until `running` ends."""

    page: Path
    """The folder of the built page."""
    plugin: Path
    """The folder of the built plugin: main.js and package.json."""
    api_server: str
    """Where the API server is, e.g. https://127.0.0.1:6443."""
    ca_file: Path
    """The certificates that vouch for it."""
    answered: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Method, path and body of every request that the API server has answered, in order."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Its address while it serves."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="headlamp")
        thread.start()
        try:
            start = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), loop)
            port = start.result().sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}"
        finally:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request and closes the connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._answer(await _read(reader), reader, writer)
                await writer.drain()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = urlsplit(request.target).path
        if path == "/config":
            writer.write(_json({"clusters": [{"name": CLUSTER, "auth_type": ""}], "isDynamicClusterEnabled": False}))
        elif path == "/plugins":
            writer.write(_json([{"path": _PLUGIN_PATH, "type": "shipped", "name": "volcano"}]))
        elif path == f"{_CLUSTER_PATH}/set-token":
            token = json.loads(request.body)["token"] or ""
            writer.write(_json({}, cookie=f"{_COOKIE}={token}; Path=/; HttpOnly"))
        elif path.startswith(f"{_CLUSTER_PATH}/"):
            await self._pass_on(request, reader, writer)
            self.answered.append((request.method, path.removeprefix(_CLUSTER_PATH), request.body))
        elif path.startswith(f"/{_PLUGIN_PATH}/"):
            writer.write(_file(self.plugin, path.removeprefix(f"/{_PLUGIN_PATH}/")))
        else:
            writer.write(_file(self.page, path.removeprefix("/"), otherwise="index.html"))

    async def _pass_on(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Sends the request to the API server with the user's token, and what comes from there back."""
        server = urlsplit(self.api_server)
        trusted = ssl.create_default_context(cafile=str(self.ca_file))
        above, to_server = await asyncio.open_connection(server.hostname, server.port, ssl=trusted)
        try:
            to_server.write(_head_for(request, server.netloc) + request.body)
            if request.upgrades:
                await _until_one_ends(_copy(reader, to_server), _copy(above, writer))
            else:
                await _copy(above, writer)
        finally:
            to_server.close()


async def _read(reader: asyncio.StreamReader) -> _Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, _, rest = head.partition(b"\r\n")
    method, target, _ = first.decode().split(" ", 2)
    headers = http.client.parse_headers(io.BytesIO(rest))
    body = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return _Request(method, target, headers, body)


def _head_for(request: _Request, host: str) -> bytes:
    """The head of the request as the API server gets it."""
    dropped = {"host", "cookie", "authorization", "accept-encoding"}
    lines = [f"{request.method} {request.target.removeprefix(_CLUSTER_PATH)} HTTP/1.1", f"Host: {host}"]
    if request.token:
        lines.append(f"Authorization: Bearer {request.token}")
    if not request.upgrades:
        dropped.add("connection")
        lines.append("Connection: close")
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() not in dropped]
    return "\r\n".join([*lines, "", ""]).encode()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()


async def _until_one_ends(*ways: Coroutine[Any, Any, None]) -> None:
    """Runs both directions of a WebSocket until either side has closed it."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _file(folder: Path, name: str, *, otherwise: str = "") -> bytes:
    """A file of the folder; `otherwise` where there is none, since the page makes up its own addresses."""
    file = (folder / name).resolve()
    if not file.is_file() or not file.is_relative_to(folder.resolve()):
        if not otherwise:
            return _response(HTTPStatus.NOT_FOUND, b"", "text/plain")
        file = folder / otherwise
    return _response(HTTPStatus.OK, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain")


def _json(content: Any, *, cookie: str = "") -> bytes:
    more = {"Set-Cookie": cookie} if cookie else {}
    return _response(HTTPStatus.OK, json.dumps(content).encode(), "application/json", more)


def _response(status: HTTPStatus, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **(more or {})}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body
