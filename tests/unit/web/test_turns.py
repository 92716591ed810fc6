"""One request at a time thinks; few wait, and not for long."""

import threading
from collections import Counter

import pytest
from anyio import create_task_group, fail_after
from anyio.lowlevel import checkpoint
from served_app import wait_until
from starlette.exceptions import HTTPException
from starlette.requests import Request
from web_world import Pages

from web.slow import THREADS_EACH, SlowWork, Threads
from web.view import Caller


def test_few_wait_and_the_others_are_told_to_come_back() -> None:
    """A hundred requests that wait would have all threads of the server, and no page an answer."""
    turns, entered, go_on = SlowWork("think", waiting=1, patience_s=30), threading.Event(), threading.Event()
    done: list[str] = []

    def think(name: str) -> None:
        with turns.taken(name):
            entered.set()
            go_on.wait(30)
            done.append(name)

    first, second = (threading.Thread(target=think, args=(name,)) for name in ("first", "second"))
    first.start()
    assert entered.wait(30)
    second.start()
    wait_until(lambda: turns._held.total() == 2, "the second to have its place")
    with pytest.raises(HTTPException, match="others think at this moment") as refused, turns.taken("third"):
        pass
    assert refused.value.status_code == 429
    go_on.set()
    for each in (first, second):
        each.join(30)
    assert done == ["first", "second"]
    with turns.taken("third"):
        pass


def test_who_waits_for_too_long_is_told_to_come_back() -> None:
    """And his place is free again."""
    turns = SlowWork("think", waiting=1, patience_s=0.01)
    with turns.taken("first"):
        for _ in range(3):
            with pytest.raises(HTTPException), turns.taken("third"):
                pass


def test_one_account_leaves_places_to_others() -> None:
    """All service accounts of a namespace count as one: a user who may edit it can create any number of them."""
    robots = [Caller(name=f"system:serviceaccount:evil:robot-{number}").account for number in range(4)]
    turns = SlowWork("think", waiting=4, patience_s=0.01, each=1)
    with turns.taken(robots[0]):
        for each in robots:
            with pytest.raises(HTTPException, match="try again"), turns.taken(each):
                pass
        turns._turn.release()  # as if it had ended: another account is served
        with turns.taken("ada"):
            pass
        turns._turn.acquire()
    assert not turns._held


@pytest.mark.anyio
async def test_one_account_has_a_share_of_the_threads() -> None:
    """Its other requests wait without a thread, and other accounts' requests are answered."""
    threads, go_on, begun = Threads(each=2), threading.Event(), Counter[str]()

    def slow() -> None:
        begun["slow"] += 1
        go_on.wait(30)

    async with create_task_group() as tasks:
        for _ in range(60):
            tasks.start_soon(threads.run, "evil", slow)
        with fail_after(30):
            while begun["slow"] < 2:
                await checkpoint()
            assert await threads.run("ada", lambda: "answered") == "answered"
        assert begun["slow"] == 2
        go_on.set()
    assert begun["slow"] == 60
    assert not threads._of


@pytest.mark.anyio
async def test_who_is_asked_about_takes_a_share_of_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred requests of one account whose remembered rights have lapsed, of ten tokens, at a slow API server."""
    evil = {f"evil-{number}": Caller(name=f"system:serviceaccount:evil:robot-{number}") for number in range(10)}
    pages = Pages({**evil, "ada": Caller(name="ada")})
    account = evil["evil-0"].account
    go_on, begun, known = threading.Event(), Counter[str](), pages.site.callers.caller_of

    def slow(request: Request) -> Caller:
        caller = known(request)
        begun[caller.account] += 1
        if caller.name != "ada":
            go_on.wait(30)
        return caller

    monkeypatch.setattr(pages.site.callers, "caller_of", slow)
    async with create_task_group() as tasks:
        for who in [*evil] * 20:
            tasks.start_soon(pages.ask, "GET", "/", who, {})
        try:
            with fail_after(20):
                while begun[account] < THREADS_EACH:
                    await checkpoint()
                assert (await pages.ask("GET", "/", "ada", {})).status == 303
        finally:
            go_on.set()
    assert begun == {account: 200, "ada": 1}
