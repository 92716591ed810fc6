"""Watches and logs: what came is told whole and in order, however the stream is cut, and wherever it breaks off."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import CHUNKED, chunk, client_of, event, head_and_body

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS
from muster.kube.errors import Gone, TooManyRequests, Unreachable
from muster.kube.loopclient import LoopClient
from muster.kube.watch import LineCutter, Watch
from musterctl.cluster import whole

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024
ENOUGH = 64
"""Megabytes, of which no system keeps half in its buffers."""


def pod(number: int, pad: int = 0) -> bytes:
    """One event of a watch."""
    meta = b'{"name":"p","resourceVersion":"%d","labels":{"a":"%s"}}' % (number, b"x" * pad)
    return event("MODIFIED", b'{"metadata":%s,"spec":{"containers":[]}}' % meta)


@asynccontextmanager
async def answering(pieces: list[bytes], *, ends: bool = True) -> AsyncIterator[LoopClient]:
    """A client of a server that answers each request with these bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if not ends:
            await asyncio.Event().wait()

    async with client_of(handler) as client:
        yield client.on_loop


async def seen(watch: Watch[object]) -> tuple[list[str], Exception | None]:
    """The versions that a watch tells, and how it ends."""
    versions: list[str] = []
    try:
        async for _, pod in watch:
            versions.append(pod.metadata.resource_version)  # type: ignore[attr-defined]
    except (Unreachable, Gone) as error:
        return versions, error
    return versions, None


@given(
    sizes=st.lists(st.integers(0, 300) | st.just(200_000), max_size=5),
    places=st.lists(st.integers(0, 2**20), max_size=6),
    frames=st.lists(st.integers(0, 2**20), max_size=4),
    lost=st.none() | st.integers(0, 2**20),
)
async def test_events_are_whole_and_in_order(
    sizes: list[int], places: list[int], frames: list[int], lost: int | None
) -> None:
    """A stream that ends as it should just ends; one that breaks off tells what came whole, and then an error."""
    events = [pod(number, size) for number, size in enumerate(sizes)]
    text = b"".join(events)
    at = sorted({0, len(text), *(place % (len(text) + 1) for place in frames)})
    chunks = [text[start:end] for start, end in pairwise(at)]
    sent = CHUNKED + b"".join(chunk(each) for each in chunks if each) + chunk(b"")
    if lost is not None:
        sent = sent[: max(len(CHUNKED), lost % len(sent))]
    cut = sorted({0, len(sent), *(place % (len(sent) + 1) for place in places)})
    pieces = [sent[start:end] for start, end in pairwise(cut)]
    async with answering(pieces) as client:
        versions, error = await seen(await client.watch(PODS, resource_version="1"))
        assert versions == [str(number) for number in range(len(versions))]
        if lost is None:
            assert (len(versions), error) == (len(sizes), None)
        else:
            assert isinstance(error, Unreachable) or len(versions) == len(sizes)


async def test_an_error_in_the_stream_is_raised() -> None:
    """With its own code."""
    error = event("ERROR", b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')
    async with answering([CHUNKED, chunk(pod(7)), chunk(error)], ends=False) as client:
        versions, raised = await seen(await client.watch(PODS, resource_version="1"))
        assert versions == ["7"]
        assert isinstance(raised, Gone)


async def test_a_refused_watch_is_not_open() -> None:
    """The refusal is raised by the call, with how long the server wishes to be left alone."""
    refusal = b"HTTP/1.1 429 X\r\nretry-after: 3\r\ncontent-length: 5\r\n\r\n"
    async with answering([refusal, b"la", b"ter"], ends=False) as client:
        with pytest.raises(TooManyRequests, match="later") as caught:
            await client.watch(PODS, resource_version="1")
        assert caught.value.retry_after_s == 3


async def test_silence_is_an_end() -> None:
    """Whoever says nothing for so long is not there any more; what came before is told."""
    async with answering([CHUNKED + chunk(pod(1))], ends=False) as client:
        answer = await client._transport.stream("/", resource="pods", query={}, silence_s=0.05)
        versions, error = await seen(Watch(answer, PODS))
        assert versions == ["1"]
        assert isinstance(error, Unreachable)
        assert "Timeout on reading data" in str(error)


async def test_a_watch_that_is_closed_ends_also_for_who_waits() -> None:
    """Without an error, and again without harm."""
    async with answering([CHUNKED + chunk(pod(1))], ends=False) as client:
        watch = await client.watch(PODS, resource_version="1")
        assert (await anext(watch))[1].metadata.resource_version == "1"
        waiting = asyncio.create_task(seen(watch))
        await asyncio.sleep(0)
        watch.close()
        watch.close()
        assert await waiting == ([], None)


async def test_the_connection_of_a_watch_ends_with_it() -> None:
    """When it is closed, while the server would go on."""
    over = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        writer.write(CHUNKED + chunk(pod(1)))
        assert await reader.read() == b""
        over.set()

    async with client_of(handler) as client:
        watch = await client.on_loop.watch(PODS, resource_version="1")
        await anext(watch)
        watch.close()
        await over.wait()


async def test_lines_of_a_log_come_as_they_are_printed() -> None:
    """A log that breaks off is an error after its last whole line."""
    async with answering([CHUNKED, chunk(b"on"), chunk(b"e\ntw\xffo\nthr")]) as client:
        lines: list[str] = []

        async def read() -> None:
            async for line in client.log_lines("p", "ns", "c"):
                lines.append(line)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(Unreachable, match="the log ended unexpectedly"):
            await read()
        assert lines == ["one", "tw\ufffdo"]


async def test_a_reader_who_is_behind_holds_the_server_up() -> None:
    """So that what waits has a bound; when it is read, more may come."""
    pieces, stalled, went_on = 0, asyncio.Event(), asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pieces
        await head_and_body(reader)
        writer.write(CHUNKED)
        while pieces < ENOUGH:
            writer.write(chunk(pod(pieces, MEGABYTE)))
            pieces += 1
            draining = asyncio.ensure_future(writer.drain())
            if not (await asyncio.wait([draining], timeout=0.5))[0]:
                stalled.set()
            await draining
        went_on.set()
        writer.write(chunk(b""))

    async with client_of(handler) as client:
        watch = await client.on_loop.watch(PODS, resource_version="1")
        await anext(watch)
        await stalled.wait()
        assert pieces < ENOUGH / 2
        assert (await seen(watch)) == ([str(number) for number in range(1, ENOUGH)], None)
        assert went_on.is_set()


@pytest.mark.parametrize(("resource", "spec", "read"), [
    pytest.param(PODS, b'{"containers":null}', lambda pod: pod.metadata.resource_version, id="a list that is null"),
    pytest.param(TRAIN_JOBS, b"{}", lambda job: job.metadata.resource_version, id="a spec without what it must have"),
    pytest.param(whole(TRAIN_JOBS), b"{}", lambda job: job["metadata"]["resourceVersion"], id="plain data"),
])  # fmt: skip
async def test_a_bookmark_has_a_version_and_nothing_else_that_counts(
    resource: Resource[Any], spec: bytes, read: Callable[[Any], str]
) -> None:
    """The API server sends an empty object otherwise; whoever reads objects as plain data gets plain data."""
    meta = b'{"resourceVersion":"42","creationTimestamp":null}'
    line = event("BOOKMARK", b'{"kind":"X","metadata":%s,"spec":%s,"status":{}}' % (meta, spec))
    async with answering([CHUNKED, chunk(line), chunk(b"")]) as client:
        watch = await client.watch(resource, resource_version="1")
        assert [(kind, read(found)) async for kind, found in watch] == [("BOOKMARK", "42")]
        assert watch._closed


TEXTS = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=10)


@given(TEXTS, st.lists(st.integers(0, 200)), st.binary(max_size=9).filter(lambda rest: b"\n" not in rest))
def test_lines_are_cut_alike_in_whatever_chunks_they_come(lines: list[bytes], cuts: list[int], rest: bytes) -> None:
    """Empty ones are left out, and one that is not finished is none."""
    stream = b"".join(line + b"\n" for line in lines) + rest
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    cutter = LineCutter()
    assert [line for start, end in pairwise(ends) for line in cutter.cut(stream[start:end])] == [*filter(None, lines)]
