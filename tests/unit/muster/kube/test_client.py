"""What a thread and the event loop have of each other: one client with two faces."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
import uvloop
from scripted_server import LONGEST_S, answer, client_of, head_and_body, scripted_server

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.kube import loop
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import Unreachable
from muster.kube.loop import background_loop

FORKED = """
import os
import sys

from muster.kube.client import Client
from muster.kube.config import ClientConfig

client = Client(ClientConfig(sys.argv[1]))
assert client.request("GET", "/") == b"{}"
child = os.fork()
assert client.request("GET", "/") == b"{}"
if not child:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert client.request("GET", "/") == b"{}"
"""


class Server:
    """A server on the process's own loop, for tests that wait in their thread; it answers {} and counts connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.arrived = threading.Event()
        self.ended = threading.Event()
        self.on_request: Callable[[], None] | None = None
        """Called in place of an answer."""
        self.url = ""
        self._stack = AsyncExitStack()

    async def begin(self) -> None:
        """Listens."""
        self.url = f"http://{await self._stack.enter_async_context(scripted_server(self.answer))}"

    async def end(self) -> None:
        """Does not listen any more."""
        await self._stack.aclose()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        while True:
            await head_and_body(reader)
            self.arrived.set()
            if self.on_request:
                self.on_request()
                await reader.read()
                self.ended.set()
                return
            writer.write(answer())


def on_background(coroutine: Callable[[], Awaitable[None]]) -> None:
    """Runs it on the loop of the process."""

    async def run() -> None:
        await coroutine()

    asyncio.run_coroutine_threadsafe(run(), background_loop()).result(LONGEST_S)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    made = Server()
    on_background(made.begin)
    yield made
    on_background(made.end)


def test_a_loop_that_has_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that comes later would else wait for ever."""
    ended = asyncio.new_event_loop()
    ended.close()
    monkeypatch.setitem(loop._loops, os.getpid(), ended)

    async def answer() -> int:
        return 1

    assert asyncio.run_coroutine_threadsafe(answer(), background_loop()).result(LONGEST_S) == 1
    assert background_loop() is background_loop()


def test_threads_and_the_loop_share_connections(server: Server) -> None:
    """Both faces are one client."""
    client = Client(ClientConfig(server.url))
    assert client.get(NAMESPACES, "a").metadata.name == ""

    async def on_loop() -> None:
        assert asyncio.get_running_loop() is client.loop
        await client.on_loop.get(NAMESPACES, "a")

    on_background(on_loop)
    assert client.on_loop is client.on_loop
    assert server.connections == 1


def test_a_call_that_would_wait_for_itself_is_refused(server: Server) -> None:
    """On the loop's own thread; the error says what to do."""
    client = Client(ClientConfig(server.url))

    async def on_loop() -> None:
        for call in (
            partial(client.get, PODS, "a", "b"),
            partial(client.watch, PODS, resource_version="1"),
            partial(client.pages, PODS),
        ):
            with pytest.raises(RuntimeError, match=r"would never end: .*on_loop"):
                call()
        client.close()

    on_background(on_loop)
    assert server.connections == 0


def test_a_client_of_another_loop_works_there() -> None:
    """Threads wait for that loop, e.g. the one that serves."""

    async def story() -> Client:
        async with client_of(Server().answer) as client:
            assert client.loop is asyncio.get_running_loop()
            assert await asyncio.to_thread(client.request, "GET", "/") == b"{}"
            assert await client.on_loop.request("GET", "/") == b"{}"
            return client

    client = uvloop.run(story())
    with pytest.raises(Unreachable, match="the event loop of the client has ended"):
        client.request("GET", "/")
    client.close()


def test_who_is_interrupted_ends_his_call(server: Server) -> None:
    """The connection, on which an answer may still come, ends with it."""
    client = Client(ClientConfig(server.url))
    server.on_request = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        client.request("GET", "/", timeout_s=LONGEST_S)
    assert server.ended.wait(LONGEST_S)


def test_a_client_goes_on_in_a_process_that_was_forked(server: Server) -> None:
    """And in the one that it was forked from: neither uses a connection of the other."""
    subprocess.run([sys.executable, "-c", FORKED, server.url], check=True, timeout=LONGEST_S)
    assert server.connections == 2


def test_a_loop_that_ends_ends_what_waits_for_it() -> None:
    """A thread does not wait for an answer that nobody will bring."""
    heard = threading.Event()
    errors: list[Exception] = []

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        heard.set()
        await asyncio.Event().wait()

    def ask(client: Client) -> None:
        try:
            client.request("GET", "/", timeout_s=600)
        except Unreachable as error:
            errors.append(error)

    async def story() -> threading.Thread:
        async with scripted_server(silent) as address:
            client = Client(ClientConfig(f"http://{address}"), loop=asyncio.get_running_loop())
            thread = threading.Thread(target=ask, args=(client,))
            thread.start()
            assert await asyncio.to_thread(heard.wait, LONGEST_S)
            return thread

    uvloop.run(story()).join(LONGEST_S)
    assert len(errors) == 1


def test_a_call_that_ends_late_or_with_a_timeout_is_heard() -> None:
    """However often its thread looks whether the loop still runs, and whatever the call itself raises."""
    released = threading.Event()

    async def call() -> str:
        await asyncio.to_thread(released.wait, LONGEST_S)
        raise TimeoutError("of its own")

    looks: list[bool] = []

    class Watched(asyncio.SelectorEventLoop):
        def is_closed(self) -> bool:
            if threading.current_thread() is thread:
                looks.append(True)
                released.set()
            return super().is_closed()

    def ask() -> None:
        with pytest.raises(TimeoutError, match="of its own"):
            loop.wait_for(running, call(), "a call")
        ended.append(True)

    ended: list[bool] = []
    running, thread = Watched(), threading.Thread(target=ask)

    async def story() -> None:
        thread.start()
        await asyncio.to_thread(thread.join, LONGEST_S)

    running.run_until_complete(story())
    running.run_until_complete(running.shutdown_default_executor())
    running.close()
    assert looks
    assert ended
