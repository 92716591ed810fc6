"""Opens connections to one server, straight or through an HTTP proxy.

Over TLS the proxy only hands bytes on (CONNECT); a plain request it reads itself, and so gets the server's whole URL.
A user name and password in the proxy's URL are sent to the proxy (Basic).
"""

import asyncio
import base64
import socket
import ssl
from typing import NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit

from muster.kube.config import Config
from muster.kube.exchange import Exchange, head_of

P = TypeVar("P", bound=asyncio.Protocol)

_PORTS = {"http": 80, "https": 443}
_MOST_HEAD_BYTES = 64 * 1024
_CONNECTED = b"2"

# Small requests go out at once, and a peer that vanished without a word is noticed after 30 + 3 * 10 s.
_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


class _Address(NamedTuple):
    """Where a server or a proxy is."""

    scheme: str
    host: str
    port: int
    basic: str | None
    """What stands for its user and password, if there is one."""

    @property
    def shown(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host


class Dialer:
    """Opens connections to the server of a configuration; what goes wrong is an OSError.

    `host` is what requests call the server, and `headers` are to be sent with every request.
    """

    def __init__(self, config: Config) -> None:
        self._server = server = _address(config.server)
        self._proxy = proxy = _address(config.proxy) if config.proxy else None
        self._tls = config.tls
        self._server_name = (config.server_name or server.host) if config.tls else None
        self._proxy_tls = ssl.create_default_context() if proxy and proxy.scheme == "https" else None
        self.host = server.shown if server.port == _PORTS[server.scheme] else f"{server.shown}:{server.port}"
        absolute = proxy is not None and self._tls is None
        self._before_path = f"{server.scheme}://{self.host}" if absolute else ""
        self._to_proxy = {"proxy-authorization": proxy.basic} if proxy and proxy.basic else {}
        self.headers = self._to_proxy if absolute else {}

    def url(self, path: str) -> str:
        """What a request names, from the path and query that it is for."""
        return self._before_path + path

    async def connect(self, timeout_s: float) -> Exchange:
        """A connection on which requests may be sent; TimeoutError after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                if self._proxy is None:
                    return await self._open(self._server, self._tls, self._server_name, Exchange())
                name = self._proxy.host if self._proxy_tls else None
                if self._tls is None:
                    return await self._open(self._proxy, self._proxy_tls, name, Exchange())
                tunnel = await self._open(self._proxy, self._proxy_tls, name, _Tunnel())
                return await self._through(tunnel, self._tls)
        except TimeoutError as error:  # it says nothing by itself
            raise TimeoutError(str(error) or f"no connection within {timeout_s:g} s") from error

    @staticmethod
    async def _open(to: _Address, tls: ssl.SSLContext | None, name: str | None, protocol: P) -> P:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, to.host, to.port, ssl=tls, server_hostname=name)
        sock = transport.get_extra_info("socket")
        for option in _SOCKET_OPTIONS:
            sock.setsockopt(*option)
        return protocol

    async def _through(self, tunnel: "_Tunnel", tls: ssl.SSLContext) -> Exchange:
        """TLS with the server, over what the proxy hands on."""
        target = f"{self._server.shown}:{self._server.port}"
        head = head_of("CONNECT", target, target, self._to_proxy.items(), None)
        try:
            transport = await tunnel.ask(head)
            exchange = Exchange()
            loop = asyncio.get_running_loop()
            secured = await loop.start_tls(transport, exchange, tls, server_hostname=self._server_name)
        except BaseException:
            tunnel.abort()
            raise
        if secured is None:
            raise ConnectionError("the proxy ended the connection")
        exchange.connection_made(secured)
        return exchange


class _Tunnel(asyncio.Protocol):
    """The answer of a proxy that is asked to hand bytes on."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[None] | None = None

    async def ask(self, head: bytes) -> asyncio.Transport:
        """Sends the request; gives what to speak through. OSError if the proxy refuses."""
        transport = self._transport
        if transport is None:
            raise ConnectionError("the proxy ended the connection")
        self._answered = asyncio.get_running_loop().create_future()
        transport.write(head)
        await self._answered
        return transport

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection to the proxy is there."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer. The server says nothing before we do, so nothing comes behind it."""
        self._received += data
        head, end, more = self._received.partition(b"\r\n\r\n")
        if not end and len(head) < _MOST_HEAD_BYTES:
            return
        version, _, status = head.split(b"\r\n")[0].partition(b" ")
        if end and not more and version.startswith(b"HTTP/1.") and status.startswith(_CONNECTED):
            self._end(None)
        else:
            shown = status[:200].decode("latin-1").strip()
            self._end(ConnectionError(f"the proxy does not connect us to the server: {shown}"))

    def connection_lost(self, error: Exception | None) -> None:
        """The proxy has ended it."""
        self._transport = None
        self._end(error or ConnectionError("the proxy ended the connection"))

    def _end(self, error: Exception | None) -> None:
        if self._answered is None or self._answered.done():
            return
        if error is None:
            self._answered.set_result(None)
        else:
            self._answered.set_exception(error)


def _address(url: str) -> _Address:
    parts = urlsplit(url)
    basic = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return _Address(parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme], basic)
