"""Server that keeps serving after SIGTERM until its clients have closed their connections.

Over HTTP/1.1, a client may send its next request on an idle connection at the moment when the server closes the
connection. The request is then lost, and Go's clients do not repeat a POST. Only the client can close an idle
connection without this risk. Go's clients, and so API servers, do so after 90 s. The responses of a stopping server
therefore ask the client to close the connection (`Connection: close`), and the server waits for the rest.
"""

import asyncio
from itertools import count
from socket import socket
from typing import Final, cast

import uvicorn
from uvicorn.server import ServerState

from muster.process.bounds import BoundedConnection

ACCEPT_S = 15.0
"""Minimum time for which a stopping server accepts connections. Until all nodes know that the replica is stopping,
clients still connect to it. If all replicas stop at once, kube-proxy directs clients to the stopping ones until a new
replica is ready."""
_TICK_S: Final = 0.1
"""Interval at which uvicorn expects its ticks."""
_TICKS: Final = 864_000
"""The number after which uvicorn counts its ticks from 0 again."""


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which after SIGTERM serves for up to `drain_s` seconds more; with 0, it stops at once."""

    def __init__(self, config: uvicorn.Config, drain_s: float) -> None:
        super().__init__(config)
        self.server_state: _State = _State()
        self._drain_s = drain_s

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Wait until clients have closed their connections, then stop."""
        await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        time, began_s = asyncio.get_running_loop().time, asyncio.get_running_loop().time()
        least_s = min(ACCEPT_S, self._drain_s)
        self.server_state.draining = self._drain_s > 0
        for connection in self.server_state.connections:
            cast("BoundedConnection", connection).announce_end()
        for tick in count():
            used_s = time() - began_s
            if used_s >= self._drain_s or (used_s >= least_s and not self.server_state.connections):
                return
            await self.on_tick(tick % _TICKS)
            await asyncio.sleep(_TICK_S)


class _State(ServerState):
    """uvicorn's state of a server, from which connections learn that the server is draining."""

    draining = False
