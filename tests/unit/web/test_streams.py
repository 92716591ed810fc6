"""Streams: as many as there may be, silent at rest, and told once a second at most."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from anyio import fail_after
from starlette.exceptions import HTTPException
from starlette.requests import Request
from web_world import Known, Pages, cluster, gang

from web import streams
from web.slow import Threads
from web.streams import ALIVE, CHANGED, Streams
from web.view import Caller, View

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is over soon."""
    monkeypatch.setattr(streams, "POLL_S", 0.01)


def test_there_is_a_limit_for_each_caller_and_for_all() -> None:
    """The answer says which, and what to do; a stream that ends makes room."""
    counted = Streams(most=3, each=2)
    with counted.counted("ada"), counted.counted("ada"):
        with pytest.raises(HTTPException, match="close some") as refused:
            counted.refuse("ada")
        assert refused.value.status_code == 429
        counted.refuse("bob")
        with counted.counted("bob"), pytest.raises(HTTPException, match="reload this page yourself"):
            counted.refuse("eve")
    counted.refuse("ada")
    assert counted.open == 0


def events(pages: Pages, clock: list[float], page: str = "gangs") -> tuple[Streams, AsyncIterator[str]]:
    """An open stream of a caller, to be stepped."""
    counted = Streams()
    scope = {"type": "http", "method": "GET", "path": "/live", "query_string": f"page={page}".encode()}
    request = Request(scope | {"headers": [(b"cookie", b"who=user")]})
    return counted, streams._events(pages.site, counted, Threads(), request, "ada", lambda: clock[0])


async def following(stream: AsyncIterator[str]) -> str:
    """What the stream tells next."""
    return await anext(stream)


async def test_a_change_is_told_once_and_nothing_else() -> None:
    """After the first sign of life there is nothing until something changes, but a heartbeat."""
    pages = Pages({"user": Caller(name="ada")})
    cluster(pages)
    gang(pages, "a", "one")
    clock = [0.0]
    counted, stream = events(pages, clock)
    assert await anext(stream) == ALIVE  # type: ignore[call-overload]
    told = asyncio.create_task(following(stream))
    done, _ = await asyncio.wait([told], timeout=0.2)
    assert not done
    clock[0] = streams.HEARTBEAT_S + 1
    assert await told == ALIVE
    gang(pages, "a", "two")
    assert await anext(stream) == CHANGED  # type: ignore[call-overload]
    assert counted.open == 1
    pages.site.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert counted.open == 0


async def test_a_change_beside_the_first_check_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in no mark yet, and the next change may be far."""
    pages = Pages({"user": Caller(name="ada")})
    cluster(pages)
    gang(pages, "a", "one")
    mark, marks = View.mark, list[object]()

    def slow(view: View, page: str) -> object:
        marks.append(mark(view, page))
        if len(marks) == 1:
            gang(pages, "a", "two")
        return marks[-1]

    monkeypatch.setattr(View, "mark", slow)
    _, stream = events(pages, [0.0])
    assert await anext(stream) == ALIVE  # type: ignore[call-overload]
    with fail_after(20):
        assert await anext(stream) == CHANGED  # type: ignore[call-overload]


async def test_a_stream_ends_when_its_caller_is_not_known_any_more() -> None:
    """It is asked again each half minute; the page is told to load itself, which shows why."""
    pages = Pages({"user": Caller(name="ada")})
    cluster(pages)
    clock = [0.0]
    counted, stream = events(pages, clock)
    assert await anext(stream) == ALIVE  # type: ignore[call-overload]
    known = pages.site.callers
    assert isinstance(known, Known)
    told = asyncio.create_task(following(stream))
    await asyncio.wait([told], timeout=0.1)
    known.callers.clear()
    clock[0] = streams.BELIEVED_S
    assert {await told, await anext(stream)} == {ALIVE, CHANGED}
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert counted.open == 0


def test_nobody_who_is_not_known_has_a_stream() -> None:
    """The answer is that of a page."""
    assert Pages({}).get("/live?page=gangs").status == 401
