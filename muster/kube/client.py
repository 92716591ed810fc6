"""The API client for threads: each call of `muster.kube.loopclient` runs on an event loop while the thread waits."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from muster.kube.config import ClientConfig, ClientOptions, load_config
from muster.kube.errors import Unreachable
from muster.kube.loop import background_loop, refuse_to_wait_on, wait_for
from muster.kube.loopclient import LoopClient
from muster.kube.watch import Watch

P = ParamSpec("P")
R = TypeVar("R")


class LoopIterator(Iterator[R], Generic[R]):
    """Iterator with which a thread reads a watch or an asynchronous generator that runs on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, source: Any, where: str) -> None:
        self._loop = loop
        self._source = source
        self._where = where

    def __next__(self) -> R:
        found = wait_for(self._loop, self._step(), self._where)
        if not found:
            raise StopIteration
        return found[0]

    def close(self) -> None:
        """Close the iterator and cancel its current wait. A watch may be closed from any thread, and repeatedly."""
        with suppress(Unreachable):  # the loop has ended, and the iterator with it
            wait_for(self._loop, self._source.aclose(), self._where)

    async def _step(self) -> list[R]:
        async for item in self._source:
            return [item]
        return []


def _blocking(
    call: Callable[Concatenate[LoopClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["Client", P], R]:
    """Return a version of an asynchronous call for threads, which blocks until the result is available."""

    @wraps(call)
    def blocking(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return wait_for(self.loop, call(self.on_loop, *args, **kwargs), call.__name__)

    return blocking


def _stepwise(
    call: Callable[Concatenate[LoopClient, P], AsyncGenerator[R]],
) -> Callable[Concatenate["Client", P], LoopIterator[R]]:
    """Return a version of an asynchronous generator for threads; the request is sent when the first item is read."""

    @wraps(call)
    def stepwise(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> LoopIterator[R]:
        refuse_to_wait_on(self.loop, call.__name__)
        return LoopIterator(self.loop, call(self.on_loop, *args, **kwargs), call.__name__)

    return stepwise


def _opening(
    call: Callable[Concatenate[LoopClient, P], Coroutine[Any, Any, Watch[R]]],
) -> Callable[Concatenate["Client", P], LoopIterator[tuple[str, R]]]:
    """Return a version of an asynchronous watch for threads; the stream is open when the call returns."""
    opened = _blocking(call)

    @wraps(call)
    def opening(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> LoopIterator[tuple[str, R]]:
        return LoopIterator(self.loop, opened(self, *args, **kwargs), call.__name__)

    return opening


class Client:
    """Client for threads, with the methods of `LoopClient`; a thread waits while `loop` executes its call.

    Without a `loop`, the client uses an event loop that all clients of the process share, in a separate thread. A
    client may be created before the process forks. A call on the event loop's own thread raises a RuntimeError, because
    the call would deadlock. `on_warning` is called on the loop's thread. `muster.kube.config.ClientOptions` describes
    the other options.
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
        self, config: ClientConfig, *, loop: asyncio.AbstractEventLoop | None = None, **options: Unpack[ClientOptions]
    ) -> None:
        self.server = config.server
        self.namespace = config.namespace
        """The namespace of the kubeconfig's context, otherwise "default"."""
        self._make = partial(LoopClient, config, **options)
        self._given = loop
        self._made: dict[asyncio.AbstractEventLoop, LoopClient] = {}
        """Maps an event loop to its client. After a fork, the mapping also contains loops of the parent process, which
        the child does not run."""

    @classmethod
    def load(cls, kubeconfig: Path | str | None = None, **options: Unpack[ClientOptions]) -> "Client":
        """Return a client for this kubeconfig.

        "" stands for the pod's service account, None for that or the default kubeconfig.
        """
        return cls(load_config(kubeconfig), **options)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that executes the client's calls."""
        return self._given or background_loop()

    @property
    def on_loop(self) -> LoopClient:
        """The asynchronous client that uses the same connections, for code that runs on `loop` itself."""
        loop = self.loop
        return self._made.get(loop) or self._made.setdefault(loop, self._make())

    def server_time_s(self) -> float | None:
        """Return the API server's clock, in seconds since the epoch, exact to a second; None before any response."""
        return self.on_loop.server_time_s()

    def close(self) -> None:
        """Close the connections soon; calls that are in progress fail with `Unreachable`."""
        if not self._made:
            return
        with suppress(RuntimeError):  # the loop has ended, and the connections with it
            self.loop.call_soon_threadsafe(self.on_loop.close)
