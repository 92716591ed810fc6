"""What becomes of the answers of a server that misbehaves: the right answer or an error, never another request's."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import answer, chunk, client_of, head_and_body

from muster.kube.client import Client
from muster.kube.errors import APIError, Unreachable

pytestmark = pytest.mark.anyio


async def send(to: Client, body: bytes = b"hello", timeout_s: float = 10.0) -> bytes:
    """One exchange."""
    return await to.on_loop.request("POST", "/", body=body, content_type="text/plain", timeout_s=timeout_s)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with what it got, again and again."""
    while True:
        _, body = await head_and_body(reader)
        writer.write(answer(body, 201))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Pieces of the bytes."""
    at = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


def framed(body: bytes, how: str) -> bytes:
    """The end of the headers and the body, with its length said in one of the three ways."""
    if how == "length":
        return b"content-length: %d\r\n\r\n" % len(body) + body
    if how == "chunks":
        middle = len(body) // 2
        parts = [part for part in (body[:middle], body[middle:]) if part]
        return b"transfer-encoding: chunked\r\n\r\n" + b"".join(map(chunk, (*parts, b"")))
    return b"\r\n" + body


bodies = st.binary(max_size=200) | st.just(b"x" * 100_000)
places = st.lists(st.integers(0, 2**20), max_size=6)


async def first_answer(client: Client, body: bytes, *, cut_off: bool, until_end: bool, more: bool) -> None:
    """It is whole, or an error; only where nothing but its end says how long it is can nobody know."""
    try:
        answered = await send(client)
    except Unreachable:
        assert cut_off or more
        return
    assert body.startswith(answered)
    assert answered == body or (until_end and cut_off)


@given(
    body=bodies, how=st.sampled_from(["length", "chunks", "end"]), first=st.booleans(), closes=st.booleans(),
    at=places, lost=st.none() | st.integers(0, 2**20), more=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"garbage"]),
)  # fmt: skip
async def test_the_answer_is_the_servers_or_an_error(
    body: bytes, how: str, *, first: bool, closes: bool, at: list[int], lost: int | None, more: bytes
) -> None:
    """However the bytes come, and wherever they end. What comes unasked is nobody's answer."""
    head = b"HTTP/1.1 100 Continue\r\n\r\n" if first else b""
    head += b"HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\n" + (b"connection: close\r\n" if closes else b"")
    whole = head + framed(body, how)
    sent = whole + (more if how != "end" else b"")
    ends = closes or how == "end"
    if lost is not None:
        sent, ends = sent[: lost % (len(whole) + 1)], True
    script = [cut(sent, at)]

    async def scripted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if script:
            await head_and_body(reader)
            for piece in script.pop():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if ends:
                return
        await echo(reader, writer)

    async with client_of(scripted) as client:
        await first_answer(client, body, cut_off=len(sent) < len(whole), until_end=how == "end", more=bool(more))
        for text in (b"one", b"", b"three"):  # more that came unasked may have ended the first of these
            try:
                later = await send(client, text)
            except Unreachable:
                assert more or (ends and not closes)  # of which the client may not have heard yet
            else:
                assert later == text


@given(garbage=st.binary(min_size=1, max_size=300))
async def test_garbage_is_an_error_or_an_answer_and_the_next_request_is_answered(garbage: bytes) -> None:
    """Nothing hangs, whatever comes before the connection ends."""
    done: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not done:
            await head_and_body(reader)
            done.append(1)
            writer.write(garbage)
            return
        await echo(reader, writer)

    async with client_of(handler) as client:
        with pytest.raises(APIError):
            await send(client)
        assert await send(client) == b"hello"


async def test_a_connection_is_used_again_and_no_more_are_made_than_asked() -> None:
    """200 at once take their turns over four."""
    made: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(1)
        await echo(reader, writer)

    async with client_of(handler) as client:
        texts = [b"%d" % number for number in range(200)]
        answers = await asyncio.gather(*(send(client, text) for text in texts))
        assert answers == texts
        assert 1 <= len(made) <= 4


async def test_headers_without_an_end_are_an_error() -> None:
    """Nothing grows without bound for a server that goes on and on."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
            await writer.drain()

    async with client_of(handler) as client:
        with pytest.raises(Unreachable, match="no HTTP answer"):
            await send(client)


@pytest.mark.parametrize("bad", ["a\r\nb", "a\nb", "a\0b"])
async def test_a_request_that_would_be_two_is_not_sent(bad: str) -> None:
    """Neither in a header nor in the path."""
    async with client_of(echo) as client:
        with pytest.raises(ValueError, match="line break"):
            await client.on_loop.request("GET", f"/{bad}")
        with pytest.raises(ValueError, match="detected in headers"):
            await client.on_loop.request("POST", "/", body=b"x", content_type=bad)
