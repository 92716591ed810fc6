"""A reflector as a task: where its handlers run, how it ends, and that others have their turn on the loop."""

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import uvloop
from scripted_server import head_and_body, scripted_server
from structlog.testing import capture_logs

from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object
from muster.kube import readable, reflector
from muster.kube.client import Client
from muster.kube.config import Config
from muster.kube.reflector import Reflector

LONGEST_S = 20.0
Told = list[tuple[str, str]]
Handler = Callable[[Object | None, Object | None], None]


def config_map(name: str, version: int) -> dict[str, Any]:
    """A ConfigMap."""
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}}


class Api:
    """Answers a list with `objects`, and a watch with `events`, of which more may come: `more` says so."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = list(objects)
        self.events: list[dict[str, Any]] = []
        self.more = asyncio.Event()
        self.watching = asyncio.Event()
        self.watch_ended = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        while True:
            head, _ = await head_and_body(reader)
            if b"watch=1" in head:
                break
            body = msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": self.objects})
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        self.watching.set()
        gone = asyncio.create_task(reader.read())
        gone.add_done_callback(lambda _: self.watch_ended.set())
        while True:
            lines = b"".join(msgspec.json.encode(each) + b"\n" for each in self.events)
            self.events.clear()
            self.more.clear()
            if lines:
                writer.write(b"%x\r\n%s\r\n" % (len(lines), lines))
            await self.more.wait()

    def tell(self, *events: tuple[str, dict[str, Any]]) -> None:
        """Sends events of a watch."""
        self.events += [{"type": kind, "object": obj} for kind, obj in events]
        self.more.set()


def with_api(api: Callable[[], Api], story: Callable[[Api, Client], Any]) -> None:
    """Runs a story with a client of the loop on which all of this happens."""

    async def run() -> None:
        made = api()
        async with scripted_server(made) as address, asyncio.timeout(LONGEST_S):
            client = Client(Config(f"http://{address}"), loop=asyncio.get_running_loop())
            await story(made, client)
            client.close()

    uvloop.run(run())


def noting(told: Told, enough: int, done: asyncio.Event) -> Handler:
    """A handler that notes what it is told, and when that is enough."""

    def handler(old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        told.append((obj.metadata.name, "deleted" if new is None else "added" if old is None else "changed"))
        if len(told) == enough:
            done.set()

    return handler


def test_handlers_are_called_on_the_loop_in_order() -> None:
    """First what is there, then each change."""
    threads: set[int] = set()

    async def story(api: Api, client: Client) -> None:
        told: Told = []
        done = asyncio.Event()
        reflector = Reflector(client, CONFIG_MAPS)
        reflector.add_handler(lambda _old, _new: threads.add(threading.get_ident()))
        reflector.add_handler(noting(told, 5, done))
        await asyncio.to_thread(reflector.start)
        await api.watching.wait()
        assert reflector.synced
        assert reflector.size == 2
        api.tell(("ADDED", config_map("c", 10)), ("MODIFIED", config_map("a", 11)), ("DELETED", config_map("b", 12)))
        await done.wait()
        assert told == [("a", "added"), ("b", "added"), ("c", "added"), ("a", "changed"), ("b", "deleted")]
        assert {each.metadata.name for each in reflector.store.list()} == {"a", "c"}
        assert threads == {threading.get_ident()}
        await asyncio.to_thread(reflector.stop)

    with_api(lambda: Api(config_map("a", 1), config_map("b", 2)), story)


def test_stopping_from_another_thread_waits_for_the_end() -> None:
    """Also in the middle of a watch; and a second time without harm."""

    async def story(api: Api, client: Client) -> None:
        reflector = Reflector(client, CONFIG_MAPS)
        reflector.start()
        await api.watching.wait()
        await asyncio.to_thread(reflector.stop)
        assert reflector._task is not None
        assert reflector._task.done()
        await api.watch_ended.wait()
        reflector.stop()

    with_api(Api, story)


def test_after_a_handler_has_stopped_it_nothing_is_told() -> None:
    """Neither of the same list nor of what comes then."""

    async def story(api: Api, client: Client) -> None:
        told: Told = []
        reflector = Reflector(client, CONFIG_MAPS)
        reflector.add_handler(noting(told, 1, asyncio.Event()))
        reflector.add_handler(lambda _old, _new: reflector.stop())
        reflector.start()
        while not reflector._ended.is_set():  # noqa: ASYNC110 - no event of a loop
            await asyncio.sleep(0)
        assert told == [("a", "added")]
        assert not api.watching.is_set()

    with_api(lambda: Api(config_map("a", 1), config_map("b", 2)), story)


def test_waiting_on_the_loop_for_the_loop_is_refused() -> None:
    """It would never end."""

    async def story(_api: Api, client: Client) -> None:
        reflector = Reflector(client, CONFIG_MAPS)
        reflector.start()
        with pytest.raises(RuntimeError, match="for ever"):
            reflector.wait_synced(1)
        assert await asyncio.to_thread(reflector.wait_synced, LONGEST_S)
        with pytest.raises(RuntimeError, match="started already"):
            reflector.start()
        reflector.stop()

    with_api(Api, story)


@pytest.mark.parametrize("burst", ["list", "watch"])
def test_others_have_their_turn_while_much_is_told(monkeypatch: pytest.MonkeyPatch, burst: str) -> None:
    """With slices of no time at all: between any two objects."""
    monkeypatch.setattr("muster.kube.loop._SLICE_S", 0.0)
    objects = [config_map(f"n{number}", number) for number in range(10, 510)]
    turns = 0
    gaps: list[int] = []

    async def story(api: Api, client: Client) -> None:
        told: Told = []
        done = asyncio.Event()
        last = 0

        def turn() -> None:
            nonlocal turns, last
            turns += 1
            gaps.append(len(told) - last)
            last = len(told)
            if not done.is_set():
                asyncio.get_running_loop().call_soon(turn)

        reflector = Reflector(client, CONFIG_MAPS)
        reflector.add_handler(noting(told, len(objects), done))
        reflector.start()
        turn()
        if burst == "watch":
            await api.watching.wait()
            api.tell(*(("ADDED", each) for each in objects))
        await done.wait()
        reflector.stop()

    with_api(lambda: Api(*(objects if burst == "list" else ())), story)
    assert max(gaps) <= 2
    assert turns >= len(objects) / 2


def test_a_kind_that_cannot_be_read_says_so_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since when and why, once that is longer than an API server needs to restart; also after it was read before."""
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)

    class Refusing(Api):
        refuses = True

        async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not self.refuses:
                await super().__call__(reader, writer)
                return
            await head_and_body(reader)
            writer.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
            writer.close()

    async def story(api: Refusing, client: Client) -> None:
        configs = Reflector(client, CONFIG_MAPS, longest_delay_s=0.01)
        assert configs.trouble is None
        configs.start()
        while configs.trouble is None:  # noqa: ASYNC110 - nothing else says it; there is a deadline
            await asyncio.sleep(0.01)
        assert re.match(r"configmaps cannot be read since \d\d:\d\d:\d\d UTC: .*500", configs.trouble)
        assert not configs.synced
        api.refuses = False
        while configs.trouble is not None:  # noqa: ASYNC110 - nothing else says it; there is a deadline
            await asyncio.sleep(0.01)
        assert configs.synced
        configs.stop()

    with_api(Refusing, story)


def test_a_kind_of_which_nothing_changes_is_read_again_as_soon_as_it_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Events and bookmarks may be minutes away when the API server has restarted."""
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)

    class Restarting(Api):
        refusals = 2

        async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head, _ = await head_and_body(reader)
            if b"watch=1" not in head:
                body = b'{"metadata":{"resourceVersion":"9"},"items":[]}'
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
            elif self.refusals:
                self.refusals -= 1
                writer.write(b"HTTP/1.1 429 Too Many\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                self.watching.set()
                await reader.read()
            writer.close()

    async def story(api: Restarting, client: Client) -> None:
        configs = Reflector(client, CONFIG_MAPS, longest_delay_s=0.01)
        configs.start()
        await api.watching.wait()
        while configs.trouble is not None:  # noqa: ASYNC110 - nothing else says it; there is a deadline
            await asyncio.sleep(0.01)
        configs.stop()

    with_api(Restarting, story)


class Late(Api):
    """Knows the kind only after some lists, as an API server does in the moment after a CRD was installed."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__(*objects)
        self.unknown = 3

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self.unknown:
            self.unknown -= 1
            await head_and_body(reader)
            writer.write(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 18\r\n\r\n404 page not found")
            writer.close()
            return
        await super().__call__(reader, writer)


def test_a_kind_that_is_not_served_yet_is_waited_for_and_told_once() -> None:
    """While an installation is under way that is no reason for a warning."""

    async def story(api: Api, client: Client) -> None:
        one = Reflector(client, CONFIG_MAPS, random=lambda: 0.9)
        one.start()
        await api.watching.wait()
        one.stop()

    with capture_logs() as logs:
        with_api(lambda: Late(config_map("a", 1)), story)
    assert [(each["log_level"], each["event"]) for each in logs] == [("info", "waiting until it can be read")]


def test_a_kind_that_may_be_absent_is_looked_for_again_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it is one of which there are no objects; an API server may come back with another gate."""
    monkeypatch.setattr(reflector, "_NOT_SERVED_S", 0.01)

    async def story(api: Api, client: Client) -> None:
        one = Reflector(client, CONFIG_MAPS, random=lambda: 0.0, may_be_absent=True)
        one.start()
        await api.watching.wait()
        assert one.size == 1
        one.stop()

    with capture_logs() as logs:
        with_api(lambda: Late(config_map("a", 1)), story)
    assert [each["event"] for each in logs] == ["not served by this cluster"]
