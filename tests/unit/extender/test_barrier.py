"""Members of a gang are bound together or not at all."""

import asyncio
import threading
import time
from collections.abc import Collection

import pytest
from builders.clocks import Clock

from extender.barrier import MEMBER_S, Barrier, Outcome
from extender.cluster import Live
from extender.planner.state.state import State
from muster.api.muster.gang import Slot

pytestmark = pytest.mark.anyio


def join(barrier: Barrier, rank: int, wanted: int, *, epoch: int = 1, pod: str = "") -> "asyncio.Task[Outcome]":
    """A worker of the gang comes, where so many are enough."""

    def enough(held: Collection[Slot]) -> bool:
        return len(held) >= wanted

    return asyncio.create_task(barrier.join("gang", epoch, Slot("worker", rank), enough, pod_uid=pod))


async def held(barrier: Barrier, count: int) -> None:
    """Lets the calls come that were made before; each then waits."""
    await asyncio.sleep(0)
    assert barrier.waiting() == count


async def test_the_last_member_releases_all() -> None:
    """5,000 of one gang: none goes before the last has come, and all go then."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    calls = [join(barrier, rank, 5000) for rank in range(4999)]
    await held(barrier, 4999)
    assert not any(call.done() for call in calls)
    calls.append(join(barrier, 4999, 5000))
    assert set(await asyncio.gather(*calls)) == {Outcome.RELEASED}
    assert barrier.waiting() == 0
    assert barrier.arrived() == {}


async def test_a_retried_member_counts_once() -> None:
    """kube-scheduler may bind the same pod again. A thread that is not the loop's ends the meeting."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    calls = [join(barrier, 0, 2) for _ in range(2)]
    await held(barrier, 2)
    assert not any(call.done() for call in calls)
    await asyncio.to_thread(barrier.cancel, "gang")
    assert set(await asyncio.gather(*calls)) == {Outcome.CANCELLED}


async def test_of_two_pods_with_one_slot_the_last_gets_it() -> None:
    """The other one is told to come again."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    first, second = join(barrier, 0, 2, pod="a"), join(barrier, 0, 2, pod="b")
    await held(barrier, 2)
    other = join(barrier, 1, 2, pod="c")
    assert [await first, await second, await other] == [Outcome.CANCELLED, Outcome.RELEASED, Outcome.RELEASED]


async def test_a_barrier_that_is_not_filled_in_time_lets_nobody_through() -> None:
    """Real time here: the barrier itself must wake up."""
    barrier = Barrier(timeout_s=0.05, monotonic_s=time.monotonic)
    assert await join(barrier, 0, 2) is Outcome.TIMED_OUT
    assert barrier.waiting() == 0


async def test_each_member_that_comes_adds_to_the_time() -> None:
    """Thousands do not come at once, so 20 have waited longer than two when it is over."""
    barrier = Barrier(timeout_s=0.01, monotonic_s=time.monotonic)
    started = time.monotonic()
    calls = [join(barrier, rank, 100) for rank in range(20)]
    assert set(await asyncio.gather(*calls)) == {Outcome.TIMED_OUT}
    assert time.monotonic() - started >= 0.01 + 20 * MEMBER_S


async def test_epochs_do_not_meet() -> None:
    """A member of an older epoch does not complete a newer one."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    old = join(barrier, 0, 2)
    await held(barrier, 1)
    new = join(barrier, 1, 2, epoch=2)
    await held(barrier, 2)
    barrier.cancel("gang", 1)
    assert await old is Outcome.CANCELLED
    assert not new.done()
    barrier.cancel_all()
    assert await new is Outcome.CANCELLED


async def test_others_may_ask_who_is_there_while_members_come() -> None:
    """The planner's thread does, all the time; it asks the loop."""
    stopped = threading.Event()
    seen: list[int] = []
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    live = Live(State(), wake=lambda: None)
    live.run_here()

    def look() -> None:
        while not stopped.is_set():
            seen.append(live.ask(lambda _: sum(map(len, barrier.arrived().values()))))

    looking = asyncio.create_task(asyncio.to_thread(look))
    try:
        calls = [join(barrier, rank, 2000) for rank in range(2000)]
        assert set(await asyncio.gather(*calls)) == {Outcome.RELEASED}
    finally:
        stopped.set()
        await looking
    assert seen
