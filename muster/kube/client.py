"""The API client of threads: every call of `muster.kube.loopclient`, made on an event loop while the caller waits."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from muster.kube.calls import CONNECTIONS
from muster.kube.config import Config, load_config
from muster.kube.errors import Unreachable
from muster.kube.loop import background_loop, refuse_to_wait_on, runs_on, wait_for
from muster.kube.loopclient import LoopClient
from muster.kube.watch import Watch

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Source(Protocol[R_co]):
    """An asynchronous generator, or what looks like one."""

    def __aiter__(self) -> AsyncIterator[R_co]: ...

    def __anext__(self) -> Awaitable[R_co]: ...

    def aclose(self) -> Coroutine[Any, Any, None]: ...


class Steps(Iterator[R], Generic[R]):
    """What comes one by one from the loop, for a thread that waits for each."""

    def __init__(self, loop: asyncio.AbstractEventLoop, source: _Source[R], where: str) -> None:
        self._loop = loop
        self._source = source
        self._where = where

    def __next__(self) -> R:
        refuse_to_wait_on(self._loop, self._where)
        found = wait_for(self._loop, self._step(), self._where)
        if not found:
            raise StopIteration
        return found[0]

    def close(self) -> None:
        """Ends it, and what it waits for. A watch may be closed from any thread, and twice."""
        refuse_to_wait_on(self._loop, self._where)
        with suppress(Unreachable):  # the loop has ended, and it with it
            wait_for(self._loop, self._source.aclose(), self._where)

    async def _step(self) -> list[R]:
        """One more, or none at the end."""
        async for item in self._source:
            return [item]
        return []


def _blocking(
    call: Callable[Concatenate[LoopClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["Client", P], R]:
    """The call for a thread, which waits for its answer."""

    @wraps(call)
    def blocking(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> R:
        loop, on_loop = self._both(call.__name__)
        return wait_for(loop, call(on_loop, *args, **kwargs), call.__name__)

    return blocking


def _opening(
    call: Callable[Concatenate[LoopClient, P], Coroutine[Any, Any, Watch[R]]],
) -> Callable[Concatenate["Client", P], Steps[tuple[str, R]]]:
    """The call for a thread, which gets what comes one by one."""

    @wraps(call)
    def opening(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Steps[tuple[str, R]]:
        loop, on_loop = self._both(call.__name__)
        return Steps(loop, wait_for(loop, call(on_loop, *args, **kwargs), call.__name__), call.__name__)

    return opening


def _stepwise(
    call: Callable[Concatenate[LoopClient, P], AsyncGenerator[R]],
) -> Callable[Concatenate["Client", P], Steps[R]]:
    """The call for a thread, which gets what comes one by one; nothing is sent before the first is asked for."""

    @wraps(call)
    def stepwise(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Steps[R]:
        loop, on_loop = self._both(call.__name__)
        return Steps(loop, call(on_loop, *args, **kwargs), call.__name__)

    return stepwise


class Client:
    """Every call of `LoopClient` under the same name, for threads: the caller waits while `loop` does it.

    Without a `loop` of its own it uses the one that all clients of the process share, in a thread of its own. It may be
    made before the process forks. A call on the loop's own thread, where it would wait for itself, is a RuntimeError.
    `on_warning` is called on the loop's thread. For the rest see `muster.kube.calls.Calls`.
    """

    get = _blocking(LoopClient.get)
    list = _blocking(LoopClient.list)
    pages = _stepwise(LoopClient.pages)
    watch = _opening(LoopClient.watch)
    log_lines = _stepwise(LoopClient.log_lines)
    create = _blocking(LoopClient.create)
    apply = _blocking(LoopClient.apply)
    merge_patch = _blocking(LoopClient.merge_patch)
    strategic_patch = _blocking(LoopClient.strategic_patch)
    json_patch = _blocking(LoopClient.json_patch)
    delete = _blocking(LoopClient.delete)
    bind = _blocking(LoopClient.bind)
    evict = _blocking(LoopClient.evict)
    request = _blocking(LoopClient.request)

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str = "muster",
        connections: int = CONNECTIONS,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.server = config.server
        self._make = partial(
            LoopClient,
            config,
            user_agent=user_agent,
            connections=connections,
            timeout_s=timeout_s,
            on_warning=on_warning,
        )
        self._given = loop
        self._lock = threading.Lock()
        self._made: tuple[asyncio.AbstractEventLoop, LoopClient] | None = None
        self._left: list[object] = []
        """Of loops that this process does not run: they are kept, as the process that does uses their connections."""

    @classmethod
    def load(
        cls,
        kubeconfig: Path | str | None = None,
        *,
        user_agent: str = "muster",
        connections: int = CONNECTIONS,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> "Client":
        """A client for the given kubeconfig; "" means in-cluster, None in-cluster or else the user's default."""
        return cls(
            load_config(kubeconfig),
            user_agent=user_agent,
            connections=connections,
            timeout_s=timeout_s,
            on_warning=on_warning,
        )

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where the calls are made."""
        return self._given or background_loop()

    @property
    def on_loop(self) -> LoopClient:
        """The same client, over the same connections, for those who run on `loop` themselves."""
        loop, made = self.loop, self._made
        if made is None or made[0] is not loop:
            with self._lock:
                made = self._made
                if made is None or made[0] is not loop:
                    self._left.append(made)
                    made = self._made = (loop, self._make())
        return made[1]

    def server_time_s(self) -> float | None:
        """What the API server's clock says, in seconds since the epoch, give or take one; None before any answer."""
        return self.on_loop.server_time_s()

    def close(self) -> None:
        """Closes idle connections; calls under way go on."""
        if self._made is None:
            return
        loop, on_loop = self._made
        if runs_on(loop):
            on_loop.close()
        elif loop is self.loop:
            with suppress(RuntimeError):  # the loop has ended, and the connections with it
                loop.call_soon_threadsafe(on_loop.close)

    def _both(self, what: str) -> tuple[asyncio.AbstractEventLoop, LoopClient]:
        """The loop, and what to call on it; RuntimeError where the caller must not wait for that."""
        loop = self.loop
        refuse_to_wait_on(loop, what)
        return loop, self.on_loop
