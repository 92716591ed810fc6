"""Objects that cannot be read, whatever the reason: each is left out alone and named once; lists and watches go on."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from scripted_server import CHUNKED, ListWatchApi, answer, chunk, client_of, event

from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube import codec
from muster.kube.client import Client
from muster.kube.errors import TooLarge, Undecodable, Unreachable
from muster.kube.reflector import Reflector
from muster.kube.transport import MOST_BYTES

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024
DEEP = b'{"a":[' * 5000 + b"]}" * 5000
"""More levels than the decoder follows, in fields that it skips, too."""


def thing(name: str, more: bytes = b'"data":{}', version: int = 1) -> bytes:
    """An object as the API server writes it."""
    meta = b'"metadata":{"name":"%s","namespace":"ns","uid":"%s","resourceVersion":"%d"}'
    return b"{" + meta % (name.encode(), name.encode(), version) + b"," + more + b"}"


def padded(name: str, size: int) -> bytes:
    """One with so many bytes of data."""
    return thing(name, b'"data":{"x":"' + b"x" * size + b'"}')


def sorted_keys(name: str) -> bytes:
    """The same of a custom resource, whose keys are sorted: what is deep may come before the name."""
    return b'{"kind":"X","data":' + DEEP + b',"metadata":{"managedFields":[' + DEEP + b'],"name":"%s"}}' % name.encode()


def listed(*objects: bytes, more: str = "", metadata_last: bool = False) -> bytes:
    """A list."""
    meta = b'"metadata":{"resourceVersion":"9","continue":"%s"}' % more.encode()
    items = b'"items":[' + b",".join(objects) + b"]"
    return b"{" + (items + b"," + meta if metadata_last else meta + b"," + items) + b"}"


def told(text: str) -> list[str]:
    """The lines of a log that tell what was left out."""
    return [line for line in text.splitlines() if "left out" in line]


def counted(plural: str) -> float:
    """How many were counted."""
    return REGISTRY.get_sample_value("muster_kube_undecodable_total", {"resource": plural}) or 0.0


class Api(ListWatchApi):
    """Answers lists with `lists`, one after the other and the last one again.

    `asked` are the query of each, and whether only metadata were wanted.
    """

    def __init__(self, *lists: bytes | Callable[[dict[str, str]], AsyncIterator[bytes]]) -> None:
        super().__init__()
        self.lists = list(lists)
        self.asked: list[tuple[dict[str, str], bool]] = []

    async def listed(self, query: dict[str, str], head: bytes) -> bytes | AsyncIterator[bytes]:
        """The next one."""
        self.asked.append((query, b"PartialObjectMetadataList" in head))
        content = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        return answer(content) if isinstance(content, bytes) else content(query)


@asynccontextmanager
async def running(
    *lists: bytes | Callable[[dict[str, str]], AsyncIterator[bytes]],
) -> AsyncIterator[tuple[Api, Client]]:
    """The API, and a client of it."""
    api = Api(*lists)
    async with client_of(api) as client:
        yield api, client


async def names_of(client: Client) -> list[str]:
    """What a list has."""
    return [each.metadata.name for each in await client.on_loop.list(CONFIG_MAPS)]


@pytest.mark.parametrize("metadata_last", [False, True], ids=["built-in", "custom resource"])
async def test_one_that_is_nested_too_deeply_is_left_out_of_a_list(
    capsys: pytest.CaptureFixture[str], *, metadata_last: bool
) -> None:
    """With its name, although what is deep is in a field that is not read; and the list goes on with its next page."""
    deep = thing("deep", b'"x":' + DEEP, version=10 + metadata_last)
    first = listed(thing("a"), deep, thing("b"), more="next", metadata_last=metadata_last)
    before = counted("configmaps")
    async with running(first, listed(thing("c"))) as (api, client):
        assert await names_of(client) == ["a", "b", "c"]
        assert [query.get("continue") for query, _ in api.asked] == [None, "next"]
    [line] = told(capsys.readouterr().out)
    assert "ns/deep" in line
    assert "nested too deeply" in line
    assert counted("configmaps") == before + 1


async def test_one_whose_name_is_not_found_is_of_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """It is looked for near the beginning only."""
    async with running(listed(thing("a"), sorted_keys("late"))) as (_, client):
        assert await names_of(client) == ["a"]
    assert "an object of kind ConfigMap" in told(capsys.readouterr().out)[0]


async def test_one_is_told_once_until_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    """However often it is listed."""
    lists = [listed(thing("again", b'"x":' + DEEP, version=version)) for version in (1, 1, 1, 2)]
    async with running(*lists) as (_, client):
        for _ in lists:
            assert await names_of(client) == []
    assert len(told(capsys.readouterr().out)) == 2


def test_one_that_was_left_out_does_not_keep_others_from_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of them has a bound."""
    monkeypatch.setattr(codec, "_MOST_REPORTED", 10)
    for number in range(100):
        codec.leave_out(CONFIG_MAPS, codec.Identity("ns", "n", f"of many {number}"), "odd")
        assert len(codec._reported) <= 10


async def test_an_answer_that_is_one_such_object_is_an_error() -> None:
    """Of the call; it is not ours to guess."""
    async with running(thing("deep", b'"x":' + DEEP)) as (_, client):
        with pytest.raises(Undecodable, match="the response cannot be read as a ConfigMap"):
            await client.on_loop.get(CONFIG_MAPS, "deep", "ns")


@pytest.mark.parametrize("odd", [
    thing("odd", b'"x":' + DEEP, version=20),
    thing("odd", b'"spec":{"minMember":"three"}', version=21),
    thing("odd", b'"spec":{"queue":"\xff"}', version=22),
], ids=["too deep", "another type", "no UTF-8"])  # fmt: skip
async def test_a_watch_goes_on_after_one(odd: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named; and that it is deleted is told by its name, so that nothing stays in a cache that is gone."""
    async with running(b"") as (api, client):
        api.events = b"".join((event("MODIFIED", odd), event("DELETED", odd), event("ADDED", thing("b", b'"spec":{}'))))
        watch = await client.on_loop.watch(POD_GROUPS, resource_version="1")
        seen = [await anext(watch) for _ in range(2)]
        assert [(kind, group.metadata.key) for kind, group in seen] == [("DELETED", "ns/odd"), ("ADDED", "ns/b")]
        watch.close()
    assert "ns/odd" in told(capsys.readouterr().out)[0]


async def test_a_line_that_is_no_event_ends_the_stream() -> None:
    """What came through is not what the API server sent."""
    async with running(b"") as (api, client):
        api.events = b"<html>\n"
        watch = await client.on_loop.watch(PODS, resource_version="1")
        with pytest.raises(Unreachable, match="the stream broke"):
            await anext(watch)


async def test_a_line_of_a_watch_that_is_too_long_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Its rest is dropped as it comes, and the next line is read."""
    long = padded("long", MOST_BYTES + MEGABYTE)
    async with running(b"") as (api, client):
        api.events = event("MODIFIED", long) + event("DELETED", long) + event("ADDED", thing("b"))
        watch = await client.on_loop.watch(CONFIG_MAPS, resource_version="1")
        assert [(kind, (found.metadata.name)) for kind, found in [await anext(watch), await anext(watch)]] == [
            ("DELETED", "long"),
            ("ADDED", "b"),
        ]
        assert watch._cutter._held_bytes == 0
        watch.close()
    [line] = told(capsys.readouterr().out)
    assert "ns/long" in line
    assert str(MOST_BYTES) in line


async def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects() -> None:
    """Of 500 MB no more is read than an answer may have."""
    sent = 0

    async def large(query: dict[str, str]) -> AsyncIterator[bytes]:
        nonlocal sent
        yield CHUNKED + chunk(b'{"metadata":{"resourceVersion":"9"},"items":[')
        for number in range(int(query["limit"])):
            sent += 5
            yield chunk(padded(str(number), 5 * MEGABYTE) + b",")

    one = padded("a", 5 * MEGABYTE)
    async with running(large, large, listed(one, more="next"), listed(thing("b"))) as (api, client):
        assert await names_of(client) == ["a", "b"]
        assert [query["limit"] for query, _ in api.asked] == ["100", "10", "1", "3"]
        assert [query.get("continue") for query, _ in api.asked] == [None, None, None, "next"]
        assert sent < 200


async def test_one_that_is_larger_than_an_answer_may_be_is_left_out_of_a_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its metadata say its name, and where the list goes on."""
    huge = listed(padded("huge", MOST_BYTES), more="next")
    async with running(huge, huge, huge, listed(thing("huge"), more="next"), listed(thing("b"))) as (api, client):
        assert await names_of(client) == ["b"]
        assert [(query["limit"], only) for query, only in api.asked][:4] == [
            ("100", False), ("10", False), ("1", False), ("1", True),
        ]  # fmt: skip
        assert api.asked[-1][0]["continue"] == "next"
    [line] = told(capsys.readouterr().out)
    assert "ns/huge" in line
    assert "more than 32 MiB" in line


async def test_a_server_that_knows_no_pages_is_an_error_where_its_list_is_too_large() -> None:
    """Nothing is skipped that is not known to be too large."""
    huge = listed(*[padded("huge", MOST_BYTES // 2)] * 2)
    async with running(huge, huge, huge, listed(thing("a"), thing("b"))) as (_, client):
        with pytest.raises(TooLarge):
            await names_of(client)


async def test_a_cache_keeps_what_it_knew_of_one() -> None:
    """That it cannot be read does not mean that it is gone; a cache that lists and watches does not stop at it."""
    deep = thing("a", b'"x":' + DEEP, version=2)
    async with running(listed(thing("a"), thing("b")), listed(deep)) as (api, client):
        reflector = Reflector(client, CONFIG_MAPS, random=lambda: 1.0)
        api.events = event("ERROR", b'{"code":410,"reason":"Expired"}')
        relisted = asyncio.Event()
        reflector.add_handler(lambda old, new: relisted.set() if old and not new else None)
        reflector.start()
        await relisted.wait()
        assert reflector.relists == 1
        assert [(one.metadata.key, one.metadata.resource_version) for one in reflector.store.list()] == [("ns/a", "1")]
        await asyncio.to_thread(reflector.stop)


TEXTS = st.text(st.sampled_from('"\\{}[],:/ abé\n\0😀'), max_size=8)
"""Characters with a meaning in JSON, and others."""


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and objects of these."""
    return st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)


VALUES = st.recursive(st.sampled_from([None, True, -1, 2**40]) | TEXTS, containers, max_leaves=6)


@settings(max_examples=settings().max_examples // 2)
@given(content=st.dictionaries(TEXTS, VALUES, max_size=6), spaces=st.booleans())
def test_json_is_cut_where_a_parser_would(content: dict[str, Any], *, spaces: bool) -> None:
    """Whatever stands in it; the values that are strings, objects or arrays come as they are."""
    text = msgspec.json.encode(content)
    text = msgspec.json.format(text) if spaces else text
    found = [(msgspec.json.decode(b'"' + key + b'"'), msgspec.json.decode(value)) for key, value in codec.parts(text)]
    assert found == [(key, value) for key, value in content.items() if isinstance(value, str | list | dict)]


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(TEXTS | containers(VALUES), max_size=6))
def test_an_array_is_cut_into_its_values(content: list[Any]) -> None:
    """As an object is."""
    assert [msgspec.json.decode(value) for _, value in codec.parts(msgspec.json.encode(content))] == content


@given(st.binary(max_size=300))
def test_anything_else_is_cut_into_something(text: bytes) -> None:
    """Without an error; what cannot be decoded then is left out."""
    list(codec.parts(text))
    codec.identity(text)


def test_a_string_that_is_cut_off_is_looked_at_once() -> None:
    """Were each of its quotes tried as the beginning of a string, this would take longer than a test may."""
    cut = thing("deep", b'"data":{"a":"' + rb"\"" * MEGABYTE)[:-1]
    assert codec.identity(cut) == codec.Identity("ns", "deep", "1")
    assert dict(codec.parts(cut))[b"data"] == b'{"a":"' + rb"\"" * MEGABYTE


MANY = {
    "strings": b'"data":["' + b'","'.join([b"ab"] * 100_000) + b'"]',
    "keys": b'"data":{' + b",".join([b'"ab":""'] * 65_000) + b"}",
    "brackets": b'"data":[' + b",".join([b"{}"] * 175_000) + b"]",
    "numbers": b'"data":[' + b",".join([b"1"] * 250_000) + b"]",
    "escapes": b'"data":"' + rb"\"" * 250_000 + b'"',
    "spaces": b'"data":[' + b" " * (MEGABYTE // 2) + b"]",
}


class Looks:
    """Counts what is looked at: the bytes that patterns match, and how often they do."""

    def __init__(self, patterns: list[re.Pattern[bytes]]) -> None:
        self.matches = self.longest_bytes = self.bytes = 0
        self._patterns = patterns

    def counted(self, which: int) -> Any:
        """One of the patterns, which counts."""

        def match(data: bytes, position: int) -> re.Match[bytes] | None:
            found = self._patterns[which].match(data, position)
            size = len(found[0]) if found else 0
            self.matches, self.bytes = self.matches + 1, self.bytes + size
            self.longest_bytes = max(self.longest_bytes, size)
            return found

        return SimpleNamespace(match=match)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Those of the codec."""
    found = Looks([codec._TOKEN, codec._REST])
    monkeypatch.setattr(codec, "_TOKEN", found.counted(0))
    monkeypatch.setattr(codec, "_REST", found.counted(1))
    return found


@pytest.mark.parametrize("what", MANY)
@pytest.mark.parametrize("deep", [False, True])
def test_naming_one_looks_at_little_of_it(what: str, looks: Looks, *, deep: bool) -> None:
    """Half a megabyte before the name must not hold up a loop; the decoder names an object that is not too deep."""
    late = b"{" + MANY[what] + b',"x":' + (DEEP if deep else b"[]") + b',"metadata":{"name":"late"}}'
    error = RecursionError() if deep else ValueError()
    assert codec.identity(late, error) == codec.Identity(name="" if deep else "late")
    assert looks.matches <= 2 * codec._MOST_TOKENS + 10 if deep else looks.matches == 0
    assert looks.bytes <= codec._MOST_BYTES


@pytest.mark.parametrize("what", MANY)
def test_a_page_is_cut_in_pieces(what: str, looks: Looks) -> None:
    """It is in a thread, but one match of a pattern keeps all others from running."""
    [first, second] = codec.ListPage.cut(CONFIG_MAPS, listed(thing("a", MANY[what]), thing("b")))
    assert (first.metadata.name, second.metadata.name) == ("a", "b")
    assert looks.longest_bytes <= 4 * 65_536
