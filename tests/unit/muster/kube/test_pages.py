"""Long lists come page by page: the next one is on its way while one is looked at, and each is told as it comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest
from scripted_server import LONGEST_S, ListWatchApi, answer, client_of

from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.codec import ListPage
from muster.kube.errors import Gone
from muster.kube.reflector import Reflector

pytestmark = pytest.mark.anyio


class Api(ListWatchApi):
    """Has pages of names, and tells who asked for which; a page that is `held` is answered when it is let go.

    Page `gone` is answered with 410. Watches are silent.
    """

    def __init__(self, *pages: list[str]) -> None:
        super().__init__()
        self.pages = list(pages)
        self.asked: list[int] = []
        self.limits: list[int | None] = []
        """How many objects each page that was asked for was to have at most."""
        self.object_bytes = 0
        """What each object has besides its name."""
        self.asking = asyncio.Condition()
        self.held: set[int] = set()
        self.gone: int | None = None

    async def listed(self, query: dict[str, str], _head: bytes) -> bytes:
        """One page."""
        number = int(query.get("continue", "0"))
        async with self.asking:
            self.asked.append(number)
            self.limits.append(int(query["limit"]) if "limit" in query else None)
            self.asking.notify_all()
            await self.asking.wait_for(lambda: number not in self.held)
        status, content = self.content(number)
        return answer(msgspec.json.encode(content), status)

    def content(self, number: int) -> tuple[int, dict[str, Any]]:
        """What is answered."""
        if number == self.gone:
            return 410, {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"}
        more = {"continue": str(number + 1)} if number + 1 < len(self.pages) else {}
        data = {"data": {"x": "x" * self.object_bytes}}
        items = [{"metadata": {"name": one, "uid": one, "resourceVersion": "1"}} | data for one in self.pages[number]]
        return 200, {"metadata": {"resourceVersion": "9", **more}, "items": items}

    async def until_asked(self, *numbers: int) -> None:
        """Waits until these pages, and no others, were asked for."""
        async with self.asking:
            await self.asking.wait_for(lambda: self.asked == [*numbers])

    async def let_go(self, number: int) -> None:
        """Answers a page that is held."""
        async with self.asking:
            self.held.discard(number)
            self.asking.notify_all()


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[Client]:
    """A client of the API; fails the test when something went wrong that nobody was told of."""
    untold: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: untold.append(context))
    async with client_of(api) as client:
        yield client
    assert not untold


def names(page: ListPage[Object]) -> list[str]:
    """What is on it."""
    return [item.metadata.name for item in page]


async def test_the_next_page_is_asked_for_while_one_is_looked_at() -> None:
    """The API server writes it meanwhile; not the one after it, of which it would be too early to know."""
    api = Api(["a", "b"], ["c"], ["d"])
    async with served(api) as client, aclosing(client.on_loop.pages(CONFIG_MAPS, first=2)) as pages:
        assert names(await anext(pages)) == ["a", "b"]
        await api.until_asked(0, 1)
        assert names(await anext(pages)) == ["c"]
        assert names(await anext(pages)) == ["d"]
        with pytest.raises(StopAsyncIteration):
            await anext(pages)
        assert api.asked == [0, 1, 2]


@pytest.mark.parametrize("ahead", ["is refused", "is awaited"])
async def test_who_has_seen_enough_leaves_nothing_behind(ahead: str) -> None:
    """The page that is on its way, or that was refused already, concerns nobody."""
    api = Api(["a"], ["b"])
    if ahead == "is refused":
        api.gone = 1
    else:
        api.held.add(1)
    async with served(api) as client:
        pages = client.on_loop.pages(CONFIG_MAPS, first=1)
        assert names(await anext(pages)) == ["a"]
        await api.until_asked(0, 1)
        await pages.aclose()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if "page" in repr(task.get_coro())]


@pytest.mark.parametrize(("pages", "object_bytes", "limits"), [
    ((["a", "b"], ["c"], ["d"], ["e"]), 100, [100, 1000, 5000, 5000]),
    ((["a", "b"], ["c"]), 2**20, [100, 15]),
    ((["a"], ["b"]), 17 * 2**20, [100, 1]),
    (([], ["b"]), 0, [100, 100]),
], ids=["small", "a megabyte each", "more than a page each", "none of a page match"])  # fmt: skip
async def test_a_page_has_as_many_objects_as_are_cheap(
    pages: tuple[list[str], ...], object_bytes: int, limits: list[int]
) -> None:
    """By the size of those before: pods of a megabyte must not be in memory by the thousand."""
    api = Api(*pages)
    api.object_bytes = object_bytes
    async with served(api) as client:
        assert [len(page) async for page in client.on_loop.pages(CONFIG_MAPS)] == [len(page) for page in pages]
    assert api.limits == limits


async def test_a_list_of_which_a_page_was_gone_comes_in_pages_again() -> None:
    """As the first time: in one page it would be of any size."""
    api = Api(["a"], ["b"])
    api.gone = 1
    async with served(api) as client:
        reflector = Reflector(client, CONFIG_MAPS, random=lambda: 0.0)
        reflector.start()
        await api.until_asked(0, 1, 0, 1)
        reflector.stop()
    assert api.limits[:3:2] == [100, 100]


async def test_what_is_gone_is_said_after_what_was_there() -> None:
    """A page that was read is given, whatever becomes of the next one."""
    api = Api(["a"], ["b"])
    api.gone = 1
    async with served(api) as client:
        pages = client.on_loop.pages(CONFIG_MAPS, first=1)
        assert names(await anext(pages)) == ["a"]
        with pytest.raises(Gone):
            await anext(pages)


async def test_each_page_is_told_when_it_is_there_and_what_is_gone_at_the_end() -> None:
    """A cache that lists again: new objects at once, and those that no page had when all were read; then it is full."""
    api = Api(["a", "c"], ["d"])
    api.held.add(1)
    told: list[str] = []
    changed = asyncio.Event()

    def handler(old: Object | None, new: Object | None) -> None:
        told.append(f"+{new.metadata.name}" if new else f"-{old.metadata.name}" if old else "")
        changed.set()

    async def until_told(*changes: str) -> None:
        while told != [*changes]:
            changed.clear()
            await changed.wait()

    async with served(api) as client:
        reflector = Reflector(client, CONFIG_MAPS)
        for name in ("a", "b"):
            reflector.store.add_object(Object(metadata=ObjectMeta(name=name, uid=name, resource_version="1")))
        reflector.add_handler(handler)
        reflector.start()
        await until_told("+c")
        assert not reflector.synced
        assert {each.metadata.name for each in reflector.store.list()} == {"a", "b", "c"}
        await api.let_go(1)
        await until_told("+c", "+d", "-b")
        assert await asyncio.to_thread(reflector.wait_synced, LONGEST_S)
        assert {each.metadata.name for each in reflector.store.list()} == {"a", "c", "d"}
        reflector.stop()
