"""Serves coroutines over HTTP in this process's own event loop, under uvloop.

A call that waits is a coroutine here and costs next to nothing while it does, where `muster.process.server` needs a
thread for it. In return nothing may block the loop: what does belongs in a thread.

Plain HTTP/1.1 is `muster.process.http1`. With `tls.Files` the server is granian's (`muster.process.rsgi`): it speaks
TLS 1.3, HTTP/2 to clients that know it, and answers only clients with a certificate of the authorities that these name.
granian tells nobody whose certificate it was: so an authority is to be named that signs for nobody else. It reads files
when it starts, and clients keep a connection of HTTP/2 as long as they can; so, when the files have changed, and from
time to time anyway, another server takes over the socket. The one before tells its clients to connect anew (GOAWAY),
answers the calls that it has, however long that takes, and ends. Only who connects in that very moment, and has asked
nothing yet, may find the connection closed, and has to try again.

The server is for one client that we trust to be quick: there is no bound on how many connections it opens. It is not
for what strangers reach; `muster.process.server` has deadlines for each step of a connection.
"""

import asyncio
import resource
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
import uvloop

from muster.api.base import prepare
from muster.kube.loop import prefer_the_loop
from muster.process.calls import BACKLOG, App
from muster.process.http1 import Http1
from muster.process.tlsfiles import Files, Followed, tell_end

if TYPE_CHECKING:
    from muster.process.rsgi import Serving
    from muster.process.tls import Material

log = structlog.get_logger()

_LOOK_S = 1.0
"""How often it is looked whether there are new certificates."""
_AGE_S = 3600.0
"""How long clients keep a connection over TLS; no longer does one stay whose certificate has expired meanwhile."""
_GRACE_S = 5.0


def run(
    app: App,
    *,
    host: str,
    port: int,
    on_start: Callable[[], None],
    on_stopping: Callable[[], None] = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
    loop: asyncio.AbstractEventLoop | None = None,
    tls: Files | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; then the process may end. It runs `loop`, if given one, and closes it.

    OSError if the port, or a file of `tls`, cannot be had; ValueError if such a file cannot be used.
    `on_start` runs before the first request; if it raises, so does this. After the signal `on_stopping` runs on the
    loop, requests under way are answered for up to five seconds, and `on_stop` runs in a thread.
    """

    def make() -> Listener:
        listener = Listener(app, host=host, port=port, tls=tls)
        if tls:
            tell_end(listener.ends_s)
        return listener

    _allow_descriptors()
    prepare()
    prefer_the_loop()
    with asyncio.Runner(loop_factory=lambda: loop or new_loop()) as runner:
        runner.run(_run(make, (on_start, on_stopping, on_stop)))


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `run`: whoever shares it with the server makes it first."""
    return uvloop.new_event_loop()


class Listener:
    """A server on the running loop, from `start` to `stop`; with `tls` it follows these files meanwhile.

    OSError or ValueError if the files cannot be used.
    """

    def __init__(self, app: App, *, host: str, port: int, tls: Files | None = None) -> None:
        self._app, self._host, self._port = app, host, port
        self._files = _followed(tls) if tls else None
        self._shown = self._files.get() if self._files else None
        self._socket: socket.socket | None = None
        self._current: Serving | Http1 | None = None
        self._servings: set[Serving | Http1] = set()
        self._following: asyncio.Task[None] | None = None
        self._over: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Listens; OSError if the port cannot be had, as it is taken, say."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        dual = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
        self._socket = socket.create_server(
            (self._host, self._port), family=family, backlog=BACKLOG, dualstack_ipv6=dual
        )
        self._port = self._socket.getsockname()[1]
        self._over = asyncio.get_running_loop().create_future()
        self._serve(self._shown)
        if self._files:
            self._following = asyncio.create_task(self._follow(self._files))
            self._following.add_done_callback(self._fail)

    @property
    def port(self) -> int:
        """Where it listens, once it does; port 0 takes any that is free."""
        return self._port

    def ends_s(self) -> float:
        """When the certificate ends that clients are shown, in seconds since the epoch; infinity without TLS."""
        return self._shown.ends_s if self._shown else float("inf")

    async def ended(self) -> None:
        """Returns, or raises, when the server has ended by itself."""
        if self._over:
            await asyncio.shield(self._over)

    async def stop(self) -> None:
        """Accepts nothing any more, and waits a moment for what is being answered."""
        if self._following:
            self._following.cancel()
        if self._socket:
            self._socket.close()
        self._current = None
        servings = list(self._servings)
        for each in servings:
            each.leave()
        if servings:
            await asyncio.wait([each.task for each in servings], timeout=_GRACE_S)
        for each in servings:
            each.task.cancel()
            each.forget()

    async def _follow(self, files: "Followed[Material]") -> None:
        """Has another server take over when the files have changed, or when this one has served long enough."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _AGE_S
        while True:
            await asyncio.sleep(_LOOK_S)
            found = files.get()
            if found is self._shown and loop.time() < until_s:
                continue
            before = self._current
            try:
                self._serve(found)
            except OSError as error:
                log.warning("no server with the new certificate yet, the old one stays", error=str(error))
                continue
            if before:
                before.leave()
            until_s = loop.time() + _AGE_S

    def _serve(self, material: "Material | None") -> None:
        """Has a new server accept connections, from the same socket as the one before: no client is turned away."""
        if not self._socket:
            raise RuntimeError("a server needs a socket; start the listener first")
        serving = _over_tls(self._app, self._socket, material) if material else Http1(self._app, self._socket)
        self._current, self._shown = serving, material
        self._servings.add(serving)
        serving.task.add_done_callback(lambda task: self._gone(serving, task))
        log.info("serving", host=self._host, port=self._port, certificate_ends_s=material and material.ends_s)

    def _gone(self, serving: "Serving | Http1", task: "asyncio.Task[None]") -> None:
        self._servings.discard(serving)
        serving.forget()
        if serving is self._current:
            self._fail(task)

    def _fail(self, task: "asyncio.Task[None]") -> None:
        """Tells who waits for the end that a task has ended which should not have."""
        if self._over is None or self._over.done() or task.cancelled():
            return
        error = task.exception()
        self._over.set_exception(error) if error else self._over.set_result(None)


# What TLS takes is imported where it is asked for: 10 MiB, and a tenth of the time until a process serves.
# ruff: noqa: PLC0415


def _followed(files: Files) -> "Followed[Material]":
    from muster.process.tls import Material

    return Followed(files, Material.read)


def _over_tls(app: App, listening: socket.socket, material: "Material") -> "Serving":
    from muster.process.rsgi import Serving

    return Serving(app, listening, material)


async def _run(
    make: Callable[[], Listener], on: tuple[Callable[[], None], Callable[[], None], Callable[[], None]]
) -> None:
    on_start, on_stopping, on_stop = on
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    listener = make()
    on_start()
    try:
        await listener.start()
        waits = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(listener.ended())]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if waits[1] in done and not told.is_set():
            raise RuntimeError("the server has ended by itself") from waits[1].exception()
    finally:
        on_stopping()
        await listener.stop()
        await asyncio.to_thread(on_stop)


def _allow_descriptors() -> None:
    """Takes as many file descriptors as the process may have: each held call of HTTP/1.1 is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
