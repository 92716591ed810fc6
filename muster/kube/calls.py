"""One call to the API server and its typed answer: what reading and writing have in common.

Every call has a time limit and an explicit content type, raises an `APIError` (muster.kube.errors) when it does not
succeed, and is sent once: whoever asks knows whether asking twice is harmless.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from muster.api.base import Resource
from muster.kube.codec import decoder
from muster.kube.config import Config
from muster.kube.errors import Undecodable
from muster.kube.transport import JSON, Transport

T = TypeVar("T")

CONNECTIONS = 64
"""How many connections a client has at most, unless it is told."""


class Calls:
    """Calls to one API server, on one event loop.

    At most `connections` are sent at once, the others wait for their turn. `timeout_s` is the limit of a call that
    names none of its own, from when it is its turn. `on_warning` is told the API server's warnings.
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str = "muster",
        connections: int = CONNECTIONS,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.server = config.server
        self._timeout_s = timeout_s
        self._transport = Transport(config, user_agent=user_agent, connections=connections, on_warning=on_warning)

    def server_time_s(self) -> float | None:
        """What the API server's clock says, in seconds since the epoch, give or take one; None before any answer."""
        return self._transport.server_time_s()

    def close(self) -> None:
        """Closes idle connections; calls under way go on."""
        self._transport.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """Any request, for what has no method of its own."""
        return await self._transport.exchange(
            method,
            path,
            verb=method.lower(),
            resource="raw",
            body=body,
            content_type=content_type,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )

    async def _typed(
        self,
        res: Resource[T],
        verb: str,
        method: str,
        path: str,
        content: object = None,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> T:
        """Sends a request whose answer is one object of the kind."""
        answer = await self._send(verb, res, method, path, content, content_type, query=query, timeout_s=timeout_s)
        return decoded(res, answer, f"{method} {path}")

    async def _send(
        self,
        verb: str,
        res: Resource[Any],
        method: str,
        path: str,
        content: object = None,
        content_type: str = JSON,
        *,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """Sends a request and gives its answer as it came; `verb` and the kind are the labels of its metrics."""
        return await self._transport.exchange(
            method,
            path,
            verb=verb,
            resource=res.plural,
            body=None if content is None else msgspec.json.encode(content),
            content_type=content_type,
            query=query,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
        )


def decoded(res: Resource[T], answer: bytes, where: str) -> T:
    """The object of an answer."""
    try:
        return decoder(res.type).decode(answer)
    except msgspec.DecodeError as error:
        message = f"not a {res.kind} as we know it: {error}"
        raise Undecodable(message, status=200, where=where) from error


def given(**values: Any) -> dict[str, Any]:
    """The options that are set: what is None is left to the API server."""
    return {name: value for name, value in values.items() if value is not None}
