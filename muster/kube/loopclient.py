"""The API client of an event loop: bindings, and what became of them, by the hundred a second.

`muster.kube.client` has all calls there are, for threads; these two are made so often that a thread for each would cost
ten times what the call does.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from muster.api.base import Resource
from muster.api.core import PODS
from muster.kube.calls import decoded
from muster.kube.client import binding_of
from muster.kube.config import Config
from muster.kube.looptransport import LoopTransport

T = TypeVar("T")


class LoopClient:
    """Typed calls to one API server. Used on one loop.

    At most `connections` are sent at once; `timeout_s` is the limit of a call from when it is its turn.
    """

    def __init__(
        self, config: Config, *, user_agent: str = "muster", connections: int = 32, timeout_s: float = 10.0
    ) -> None:
        self._timeout_s = timeout_s
        self._transport = LoopTransport(config, user_agent=user_agent, connections=connections)

    async def get(self, res: Resource[T], name: str, namespace: str | None = None) -> T:
        """See `muster.kube.client.Client.get`."""
        path = res.path(namespace, name)
        answer = await self._transport.exchange("GET", path, verb="get", resource=res.plural, timeout_s=self._timeout_s)
        return decoded(res, answer, f"GET {path}")

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """See `muster.kube.client.Client.bind`."""
        body = msgspec.json.encode(binding_of(namespace, name, uid, node, annotations))
        path = PODS.path(namespace, name, "binding")
        await self._transport.exchange(
            "POST", path, verb="bind", resource=PODS.plural, body=body, timeout_s=self._timeout_s
        )

    def close(self) -> None:
        """Closes idle connections; calls under way go on."""
        self._transport.close()
