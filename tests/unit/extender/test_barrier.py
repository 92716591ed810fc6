"""Members of a gang are bound together or not at all."""

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from builders.clocks import Clock
from prometheus_client import REGISTRY

from extender.barrier import LONGEST_S, MEMBER_S, OUTCOMES, Barrier, MeetingOutcome
from extender.cluster import Live
from extender.planner.state.state import PlannerState
from muster.api.muster.gang import Slot

pytestmark = pytest.mark.anyio


def join(barrier: Barrier, rank: int, wanted: int, *, epoch: int = 1, pod: str = "") -> "asyncio.Task[MeetingOutcome]":
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
    assert set(await asyncio.gather(*calls)) == {MeetingOutcome.RELEASED}
    assert (barrier.waiting(), barrier.arrived()) == (0, {})


async def test_a_retried_member_counts_once() -> None:
    """kube-scheduler may bind the same pod again. A thread that is not the loop's ends the meeting."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    calls = [join(barrier, 0, 2) for _ in range(2)]
    await held(barrier, 2)
    assert not any(call.done() for call in calls)
    await asyncio.to_thread(barrier.cancel, "gang")
    assert set(await asyncio.gather(*calls)) == {MeetingOutcome.CANCELLED}


async def test_of_two_pods_with_one_slot_the_last_gets_it() -> None:
    """The other one is told to come again."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    first, second = join(barrier, 0, 2, pod="a"), join(barrier, 0, 2, pod="b")
    await held(barrier, 2)
    other = join(barrier, 1, 2, pod="c")
    assert [await first, await second, await other] == [
        MeetingOutcome.CANCELLED,
        MeetingOutcome.RELEASED,
        MeetingOutcome.RELEASED,
    ]


async def test_a_barrier_that_is_not_filled_in_time_lets_nobody_through() -> None:
    """Real time here: the barrier itself must wake up."""
    barrier = Barrier(timeout_s=0.05, monotonic_s=time.monotonic)
    assert await join(barrier, 0, 2) is MeetingOutcome.TIMED_OUT
    assert barrier.waiting() == 0


async def test_each_member_that_comes_adds_to_the_time() -> None:
    """Thousands do not come at once, so 20 have waited longer than two when it is over."""
    barrier = Barrier(timeout_s=0.01, monotonic_s=time.monotonic)
    started = time.monotonic()
    calls = [join(barrier, rank, 100) for rank in range(20)]
    assert set(await asyncio.gather(*calls)) == {MeetingOutcome.TIMED_OUT}
    assert time.monotonic() - started >= 0.01 + 20 * MEMBER_S


async def test_epochs_do_not_meet() -> None:
    """A member of an older epoch does not complete a newer one."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    old = join(barrier, 0, 2)
    await held(barrier, 1)
    new = join(barrier, 1, 2, epoch=2)
    await held(barrier, 2)
    barrier.cancel("gang", 1)
    assert await old is MeetingOutcome.CANCELLED
    assert not new.done()
    barrier.cancel_all()
    assert await new is MeetingOutcome.CANCELLED


async def test_others_may_ask_who_is_there_while_members_come() -> None:
    """The planner's thread does, all the time; it asks the loop."""
    stopped = threading.Event()
    seen: list[int] = []
    barrier = Barrier(timeout_s=60, monotonic_s=Clock(100.0))
    live = Live(PlannerState(), wake=lambda _: None)
    live.run_here()

    def look() -> None:
        while not stopped.is_set():
            seen.append(live.ask(lambda _: sum(map(len, barrier.arrived().values()))))

    looking = asyncio.create_task(asyncio.to_thread(look))
    try:
        calls = [join(barrier, rank, 2000) for rank in range(2000)]
        assert set(await asyncio.gather(*calls)) == {MeetingOutcome.RELEASED}
    finally:
        stopped.set()
        await looking
    assert seen


@pytest.mark.parametrize(("members", "lasts_s"), [(1, 10.05), (20, 11.0), (6000, LONGEST_S)])
async def test_one_timer_serves_all_members(monkeypatch: pytest.MonkeyPatch, members: int, lasts_s: float) -> None:
    """It is set for the first, and again for the time that the others have added; it ends with the meeting."""
    now, timers, outcomes = [100.0], [], dict(OUTCOMES._metrics)
    loop, before = asyncio.get_running_loop(), outcomes["timed_out",]._value.get()
    waited_s = REGISTRY.get_sample_value("muster_barrier_wait_seconds_sum") or 0.0
    barrier = Barrier(timeout_s=10.0, monotonic_s=lambda: now[0])
    handle = SimpleNamespace(cancel=lambda: timers.append(("cancelled", 0.0)))

    def call_later(after_s: float, look: Callable[..., None], *given: object) -> Any:
        timers.append((partial(look, *given), after_s))
        return handle

    monkeypatch.setattr(loop, "call_later", call_later)
    calls = [join(barrier, rank, 10**6) for rank in range(members)]
    await held(barrier, members)
    for at_s, left_s in ((0.0, 10.0), (10.0, lasts_s - 10), (lasts_s - 0.01, 0.01)):
        assert timers[-1][1] == pytest.approx(left_s)
        now[0] = 100 + (10.0 if at_s == 0 else lasts_s - 0.01 if at_s == 10 else lasts_s)
        timers[-1][0]()
    monkeypatch.undo()
    assert set(await asyncio.gather(*calls)) == {MeetingOutcome.TIMED_OUT}
    assert [each for each, _ in timers if each == "cancelled"] == ["cancelled"]
    assert (len(timers), outcomes["timed_out",]._value.get()) == (4, before + 1)
    assert barrier._meetings == {}
    told_s = REGISTRY.get_sample_value("muster_barrier_wait_seconds_sum") or 0.0
    assert told_s - waited_s == pytest.approx(lasts_s)
