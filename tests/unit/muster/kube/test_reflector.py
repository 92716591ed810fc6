"""A reflector as a task: where its handlers run, how it ends, and that others have their turn on the loop."""

import asyncio
import re
import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from prometheus_client import REGISTRY
from scripted_server import CHUNKED, LONGEST_S, ListWatchApi, answer, chunk, client_of, event, head_and_body
from structlog.testing import capture_logs

from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube import readable, reflector
from muster.kube.errors import NotFound
from muster.kube.readable import not_ready
from muster.kube.reflector import Reflector

pytestmark = pytest.mark.anyio

Told = list[tuple[str, str]]
Handler = Callable[[Object | None, Object | None], None]


def config_map(name: str, version: int) -> bytes:
    """A ConfigMap."""
    return msgspec.json.encode(
        {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}}
    )


class Api(ListWatchApi):
    """Answers a list with these objects, after it has answered some requests with `refusals`."""

    def __init__(self, *objects: bytes, refusals: int = 0, refusal: bytes = b"") -> None:
        super().__init__()
        self.objects = objects
        self.refusals, self.refusal = refusals, refusal

    async def listed(self, _query: dict[str, str], _head: bytes) -> bytes:
        """All of them."""
        return answer(b'{"metadata":{"resourceVersion":"9"},"items":[%s]}' % b",".join(self.objects))

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self.refusals:
            await head_and_body(reader)
            self.refusals -= 1
            writer.write(self.refusal)
            return
        await super().__call__(reader, writer)


class Restarting(Api):
    """Answers each list, and the first watches as `first` says."""

    def __init__(self, *first: bytes) -> None:
        super().__init__()
        self.first = [*first]

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request for each connection."""
        head, _ = await head_and_body(reader)
        if b"watch=1" not in head:
            body = b'{"metadata":{"resourceVersion":"9"},"items":[]}'
            writer.write(answer(body, headers="connection: close\r\n"))
        elif self.first:
            writer.write(self.first.pop(0))
        else:
            writer.write(CHUNKED)
            self.watching.set()
            await reader.read()


def refusal(status: int, body: bytes = b"no") -> bytes:
    """An answer that ends its connection."""
    return answer(body, status, "connection: close\r\n")


def noting(told: Told, enough: int, done: asyncio.Event) -> Handler:
    """A handler that notes what it is told, and when that is enough."""

    def handler(old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        told.append((obj.metadata.name, "deleted" if new is None else "added" if old is None else "changed"))
        if len(told) == enough:
            done.set()

    return handler


async def until(condition: Callable[[], Any]) -> None:
    """Waits for what has no event; there is a deadline."""
    while not condition():  # noqa: ASYNC110 - nothing else says it
        await asyncio.sleep(0.001)


async def test_handlers_are_called_on_the_loop_in_order() -> None:
    """First what is there, then each change."""
    threads: set[int] = set()
    told: Told = []
    done = asyncio.Event()
    api = Api(config_map("a", 1), config_map("b", 2))
    async with client_of(api) as client:
        one = Reflector(client, CONFIG_MAPS)
        one.add_handler(lambda _old, _new: threads.add(threading.get_ident()))
        one.add_handler(noting(told, 5, done))
        await asyncio.to_thread(one.start)
        with pytest.raises(RuntimeError, match="add handlers before start"):
            one.add_handler(lambda _old, _new: None)
        await api.watching.wait()
        assert (one.synced, one.following, one.size, one.version, one.relists) == (True, True, 2, "9", 0)
        changes = ("ADDED", config_map("c", 10)), ("MODIFIED", config_map("a", 11)), ("DELETED", config_map("b", 12))
        api.tell(*(event(*change) for change in changes))
        await done.wait()
        assert told == [("a", "added"), ("b", "added"), ("c", "added"), ("a", "changed"), ("b", "deleted")]
        assert {each.metadata.name for each in one.store.list()} == {"a", "c"}
        assert threads == {threading.get_ident()}
        await asyncio.to_thread(one.stop)


async def test_stopping_from_another_thread_waits_for_the_end() -> None:
    """Also in the middle of a watch; and a second time without harm."""
    api = Api()
    async with client_of(api) as client:
        one = Reflector(client, CONFIG_MAPS)
        one.start()
        await api.watching.wait()
        await asyncio.to_thread(one.stop)
        assert one._task is not None
        assert one._task.done()
        await api.watch_ended.wait()
        one.stop()


async def test_after_a_handler_has_stopped_it_nothing_is_told() -> None:
    """Neither of the same list nor of what comes then."""
    told: Told = []
    api = Api(config_map("a", 1), config_map("b", 2))
    async with client_of(api) as client:
        one = Reflector(client, CONFIG_MAPS)
        one.add_handler(noting(told, 1, asyncio.Event()))
        one.add_handler(lambda _old, _new: one.stop())
        one.start()
        await until(one._ended.is_set)
        assert told == [("a", "added")]
        assert not api.watching.is_set()


async def test_waiting_on_the_loop_for_the_loop_is_refused() -> None:
    """It would never end."""
    async with client_of(Api()) as client:
        one = Reflector(client, CONFIG_MAPS)
        one.start()
        with pytest.raises(RuntimeError, match="would never end"):
            one.wait_synced(1)
        assert await asyncio.to_thread(one.wait_synced, LONGEST_S)
        with pytest.raises(RuntimeError, match="started already"):
            one.start()
        one.stop()


@pytest.mark.parametrize("burst", ["list", "watch"])
async def test_others_have_their_turn_while_much_is_told(monkeypatch: pytest.MonkeyPatch, burst: str) -> None:
    """With slices of no time at all: between any two objects."""
    monkeypatch.setattr("muster.kube.loop._SLICE_S", 0.0)
    objects = [config_map(f"n{number}", number) for number in range(10, 510)]
    told: Told = []
    done = asyncio.Event()
    seen = [0]

    def turn() -> None:
        seen.append(len(told))
        if not done.is_set():
            asyncio.get_running_loop().call_soon(turn)

    api = Api(*(objects if burst == "list" else ()))
    async with client_of(api) as client:
        one = Reflector(client, CONFIG_MAPS)
        one.add_handler(noting(told, len(objects), done))
        one.start()
        turn()
        if burst == "watch":
            await api.watching.wait()
            api.tell(*(event("ADDED", each) for each in objects))
        await done.wait()
        one.stop()
    assert max(after - before for before, after in pairwise(seen)) <= 2
    assert len(seen) > len(objects) / 2


async def test_a_kind_that_cannot_be_read_says_so_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since when and why, once that is longer than an API server needs to restart; also after it was read before."""
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)
    api = Api(refusals=1_000_000, refusal=refusal(500))
    async with client_of(api) as client:
        configs = Reflector(client, CONFIG_MAPS, longest_delay_s=0.01)
        assert configs.trouble is None
        configs.start()
        await until(lambda: configs.trouble)
        assert re.match(r"configmaps cannot be read since \d\d:\d\d:\d\d UTC: .*500", configs.trouble or "")
        assert (configs.synced, configs.following) == (False, False)
        api.refusals = 0
        await until(lambda: configs.trouble is None)
        assert (configs.synced, configs.following) == (True, True)
        configs.stop()


async def test_a_kind_of_which_nothing_changes_is_read_again_as_soon_as_it_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Events and bookmarks may be minutes away when the API server has restarted."""
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)
    api = Restarting(refusal(429), refusal(429))
    async with client_of(api) as client:
        configs = Reflector(client, CONFIG_MAPS, longest_delay_s=0.01)
        configs.start()
        await api.watching.wait()
        await until(lambda: configs.trouble is None)
        configs.stop()


async def test_the_wait_between_streams_is_short_again_after_progress() -> None:
    """One that ends soon without an event is a failure."""
    end = chunk(b"")
    some = chunk(event("ADDED", config_map("a", 10)))
    api = Restarting(CHUNKED + end, CHUNKED + some + end, CHUNKED + end)
    async with client_of(api) as client:
        one = Reflector(client, CONFIG_MAPS)
        one._backoff = backoff = Mock(next=Mock(return_value=0.0))
        one.start()
        await api.watching.wait()
        one.stop()
    assert [call[0] for call in backoff.method_calls[:4]] == ["next", "reset", "next", "next"]


@pytest.mark.parametrize(("may_be_absent", "random", "told", "changes"), [
    pytest.param(False, 0.9, ("info", "waiting until the kind can be read"), [("a", "added"), ("old", "deleted")],
        id="an installation is under way"),
    pytest.param(True, 0.0, ("info", "not served by this cluster"), [("old", "deleted"), ("a", "added")],
        id="another gate"),
])  # fmt: skip
async def test_a_kind_that_is_not_served_yet_is_looked_for_again_and_told_once(
    monkeypatch: pytest.MonkeyPatch, *, may_be_absent: bool, random: float, told: tuple[str, str], changes: Told
) -> None:
    """While an installation is under way that is no reason for a warning. One that may be absent has no objects."""
    seen: Told = []
    monkeypatch.setattr(reflector, "_NOT_SERVED_S", 0.01)
    api = Api(config_map("a", 1), refusals=3, refusal=refusal(404, b"404 page not found"))
    with capture_logs() as logs:
        async with client_of(api) as client:
            one = Reflector(client, CONFIG_MAPS, random=lambda: random, may_be_absent=may_be_absent)
            one.store.add_object(Object(metadata=ObjectMeta(namespace="ns", name="old", uid="old")))
            one.add_handler(noting(seen, 2, asyncio.Event()))
            one.start()
            await api.watching.wait()
            assert one.size == 1
            one.stop()
    assert seen == changes
    assert int(api.watch_query["timeoutSeconds"]) == 300 * (1 + random)
    assert [(each["log_level"], each["event"]) for each in logs] == [told]


@pytest.mark.parametrize(("kinds", "unfilled", "told"), [
    ({}, (), None),
    ({"pods": (True, None)}, (), None),
    ({"pods": (True, None), "jobs": (False, None)}, ("queues",), "the caches are not filled yet: jobs, queues"),
    ({"pods": (True, "no pods"), "jobs": (False, None), "nodes": (False, "no nodes")}, (), "no pods; no nodes"),
])  # fmt: skip
def test_a_process_is_not_ready_while_a_kind_is_not_read(
    kinds: dict[str, tuple[bool, str | None]], unfilled: tuple[str, ...], told: str | None
) -> None:
    """What cannot be read any more comes first; else all that is missing is named."""
    given: Any = {name: SimpleNamespace(synced=synced, trouble=why) for name, (synced, why) in kinds.items()}
    assert not_ready(given, *unfilled) == told


def test_what_cannot_be_read_is_logged_once_until_it_was_read_or_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation may be under way; afterwards each failure is a warning."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    one = readable.Readable("things")
    with capture_logs() as logs:
        for text in ("no", "no", "other"):
            one.refused(NotFound(text))
        now_s += readable.PATIENCE_S
        one.refused(NotFound("late"))
        assert one.trouble is not None
        assert one.trouble.endswith(": late")
        one.first.set()
        one.succeeded()
        one.succeeded()
        one.refused(NotFound("again"))
    assert [each["log_level"] for each in logs] == ["info", "info", "warning", "warning"]
    assert (one.following, one.trouble) == (False, None)
    assert REGISTRY.get_sample_value("muster_kube_watch_failing", {"resource": "things"}) == 1
