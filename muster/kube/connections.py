"""Connections to one server: plain ones for short exchanges, and urllib3's for what needs more, watches and proxies.

An exchange over a plain connection (the standard library's client) costs half the CPU.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPMessage
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import urllib3

from muster.kube.config import Config

SocketOptions = list[tuple[int, int, int]]
_PORTS = {"http": 80, "https": 443}
_SHORTEST_S = 0.001


class Request(NamedTuple):
    """One HTTP request, as both kinds of connections send it."""

    method: str
    url: str
    body: bytes | None
    headers: Mapping[str, str]


class Answer(NamedTuple):
    """What came back, read to its end: the connection is free again."""

    status: int
    headers: HTTPMessage
    data: bytes


class Connections:
    """Plain connections, one request at a time over each; `idle` of them are kept. Thread safe.

    Whatever goes wrong (OSError, http.client.HTTPException) ends the connection.
    """

    def __init__(self, config: Config, options: SocketOptions, idle: int) -> None:
        parts = urlsplit(config.server)
        self._host = parts.hostname or ""
        self._default_port = _PORTS[parts.scheme]
        self._port = parts.port or self._default_port
        self._tls = config.tls
        self._server_name = config.server_name or self._host
        self._options = options
        self._most_idle = idle
        self._idle: deque[HTTPConnection] = deque()

    def exchange(self, request: Request, connect_timeout_s: float, timeout_s: float) -> Answer:
        """Sends a request and reads the whole answer; what connecting leaves of `timeout_s` holds for each wait."""
        started = time.monotonic()
        connection = self._take() or self._connect(connect_timeout_s)
        try:
            connection.sock.settimeout(max(_SHORTEST_S, timeout_s - (time.monotonic() - started)))
            sent = self._send(connection, request)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except BaseException:
            connection.close()
            raise
        if not sent or response.will_close or len(self._idle) >= self._most_idle:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    @staticmethod
    def _send(connection: HTTPConnection, request: Request) -> bool:
        """Whether all of it could be sent: a server that refuses may answer before it has read everything."""
        try:
            connection.request(request.method, request.url, request.body, dict(request.headers))
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def close(self) -> None:
        """Closes idle connections; exchanges under way go on."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> HTTPConnection | None:
        """An idle connection that the server has not ended: when it does it says so, and else it says nothing."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()

    def _connect(self, timeout_s: float) -> HTTPConnection:
        sock = socket.create_connection((self._host, self._port), timeout_s)
        try:
            for option in self._options:
                sock.setsockopt(*option)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_hostname=self._server_name)
        except BaseException:
            sock.close()
            raise
        connection = HTTPConnection(self._host, self._port)
        connection.default_port = self._default_port  # not that of the class: TLS is ours
        connection.sock = sock
        return connection


class Pool:
    """urllib3's pool: for bodies that are read bit by bit (watches), and for proxies. Thread safe."""

    def __init__(self, config: Config, options: SocketOptions, idle: int) -> None:
        settings: dict[str, Any] = {"maxsize": idle, "socket_options": options}
        if config.tls:
            settings |= {"ssl_context": config.tls, "server_hostname": config.server_name}
        if config.proxy:
            self._manager: urllib3.PoolManager = urllib3.ProxyManager(config.proxy, **settings)
        else:
            self._manager = urllib3.PoolManager(**settings)
        self._pool = self._manager.connection_from_url(config.server)

    def open(
        self, request: Request, connect_timeout_s: float, timeout_s: float, *, stream: bool
    ) -> urllib3.BaseHTTPResponse:
        """Sends a request; the answer's body is read by the caller if it is a stream."""
        return self._pool.urlopen(
            request.method,
            request.url,
            body=request.body,
            headers=request.headers,
            retries=False,
            redirect=False,
            timeout=urllib3.Timeout(connect=connect_timeout_s, total=timeout_s),
            preload_content=not stream,
            decode_content=False,
        )

    def exchange(self, request: Request, connect_timeout_s: float, timeout_s: float) -> urllib3.BaseHTTPResponse:
        """Sends a request and reads the whole answer."""
        return self.open(request, connect_timeout_s, timeout_s, stream=False)

    def close(self) -> None:
        """Closes idle connections; streams that are being read go on."""
        self._manager.clear()
