"""One HTTP exchange with the API server for an event loop: what `muster.kube.transport` is for threads."""

import asyncio
import time
from collections.abc import Mapping

from muster.kube.config import Config, anonymous
from muster.kube.connections import Pool, Request
from muster.kube.loopconnections import LoopConnections
from muster.kube.transport import CONNECT_TIMEOUT_S, JSON, SOCKET_OPTIONS, Exchanges, measured

_CREDENTIALS_S = 5.0
"""How long an Authorization header is sent before it is asked for again; it has its own idea of when it is stale."""


class LoopTransport(Exchanges):
    """Sends requests over at most `connections` connections; the others wait for their turn. Used on one loop.

    Where a proxy stands between us and the API server, requests go through urllib3 in threads: proxies have many ways.
    """

    def __init__(self, config: Config, *, user_agent: str, connections: int) -> None:
        super().__init__(config, user_agent=user_agent)
        self._ask_authorization = config.authorization
        self._authorization: str | None = None
        self._fresh_until = 0.0
        self._proxied = Pool(config, SOCKET_OPTIONS, connections) if config.proxy else None
        self._connections = LoopConnections(config, SOCKET_OPTIONS, connections)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        verb: str,
        resource: str,
        body: bytes | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> bytes:
        """Sends one request and gives the body of its answer; raises the `APIError` that fits."""
        headers = self._headers_for(content_type if body is not None else "", await self._credentials())
        request = Request(method, self._url(path, query), body, headers)
        connect_timeout_s = min(timeout_s, CONNECT_TIMEOUT_S)
        where = f"{method} {path}"
        async with self._connections.turns:
            with measured(where, verb, resource) as asked:
                if self._proxied:
                    through = await asyncio.to_thread(self._proxied.exchange, request, connect_timeout_s, timeout_s)
                    asked.code = through.status
                    self._judge(where, through.status, through.headers, through.data)
                    return through.data
                answer = await self._connections.exchange(request, connect_timeout_s, timeout_s)
                asked.code = answer.status
                self._judge(where, answer.status, answer.headers, answer.data)
                return answer.data

    def close(self) -> None:
        """Closes idle connections; requests under way go on."""
        self._connections.close()
        if self._proxied:
            self._proxied.close()

    async def _credentials(self) -> str | None:
        """The Authorization header. It is asked for in a thread: a program may have to be run for it."""
        if self._ask_authorization is anonymous:
            return None
        if time.monotonic() >= self._fresh_until:
            self._authorization = await asyncio.to_thread(self._ask_authorization)
            self._fresh_until = time.monotonic() + _CREDENTIALS_S
        return self._authorization
