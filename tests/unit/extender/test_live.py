"""The state belongs to one loop; threads ask there, and who waits for a change is told."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from extender.cluster import Live
from extender.planner.state.state import State


def on_loop(story: Callable[[Live], Awaitable[None]], woken: list[int]) -> None:
    """Run a story on a loop that the state belongs to; `woken` counts how often the planner was."""

    async def run() -> None:
        live = Live(State(), wake=lambda: woken.append(1))
        live.run_here()
        await story(live)

    asyncio.run(run())


def test_a_thread_asks_on_the_loop() -> None:
    """The question runs in the loop's thread, and its answer comes back; so does what it raises."""

    async def story(live: Live) -> None:
        home = threading.get_ident()
        assert await asyncio.to_thread(live.ask, lambda _: threading.get_ident()) == home
        with pytest.raises(KeyError):
            await asyncio.to_thread(live.ask, lambda state: state.pods["nobody"])
        assert live.ask(lambda _: threading.get_ident()) == home  # there, it is a plain call

    on_loop(story, [])


def test_the_planner_is_woken_where_something_may_follow() -> None:
    """A change that says nothing counts as one from which something follows."""
    woken: list[int] = []

    def told(matters: bool | None, _: State) -> bool | None:  # noqa: FBT001 - as `partial` gives it
        return matters

    async def story(live: Live) -> None:
        for matters, count in ((True, 1), (False, 1), (None, 2)):
            live.change(partial(told, matters))
            assert len(woken) == count

    on_loop(story, woken)


def test_who_waits_sees_every_change() -> None:
    """Also one that does not wake the planner, and one that a thread makes."""
    steps: list[str] = []

    def step(who: str, _: State) -> bool:
        steps.append(who)
        return False

    async def story(live: Live) -> None:
        waiting = asyncio.ensure_future(live.until(lambda: len(steps) >= 2, timeout_s=60))
        await asyncio.sleep(0)
        live.change(partial(step, "loop"))
        await asyncio.to_thread(live.change, partial(step, "thread"))
        assert await waiting
        assert await live.until(lambda: True, timeout_s=0)
        assert not await live.until(lambda: False, timeout_s=0.01)

    on_loop(story, [])


def test_a_loop_that_has_ended_is_an_error() -> None:
    """Whoever asks it would wait for ever."""
    left: list[Live] = []

    async def story(live: Live) -> None:
        left.append(live)

    on_loop(story, [])
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            left[0].ask(lambda _: None)
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "closed" in str(failures[0])
