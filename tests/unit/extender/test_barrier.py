"""Members of a gang are bound together or not at all."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from extender.barrier import Barrier, Outcome
from muster.api.gang import Seat


class Clock:
    """Monotonic seconds that only move when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Now."""
        return self.now


def member(rank: int) -> Seat:
    """A worker."""
    return Seat("worker", rank)


def wait_until_held(barrier: Barrier, gang: str, count: int) -> None:
    """Until so many calls wait (or the test's own timeout ends it)."""
    while barrier.held(gang) < count:
        threading.Event().wait(0.001)


def test_the_last_member_releases_all() -> None:
    """Five wait, the sixth opens."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock())
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(barrier.join, "gang", 1, member(rank), lambda held: len(held) >= 6) for rank in range(5)]
        wait_until_held(barrier, "gang", 5)
        assert not any(call.done() for call in calls)
        calls.append(pool.submit(barrier.join, "gang", 1, member(5), lambda held: len(held) >= 6))
        assert {Outcome.RELEASED} == {call.result(10) for call in calls}


def test_a_retried_member_counts_once() -> None:
    """kube-scheduler may bind the same pod again."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock())
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(barrier.join, "gang", 1, member(0), lambda held: len(held) >= 2) for _ in range(2)]
        wait_until_held(barrier, "gang", 2)
        assert not any(call.done() for call in calls)
        barrier.cancel("gang")
        assert {Outcome.CANCELLED} == {call.result(10) for call in calls}


def test_a_barrier_that_is_not_filled_in_time_lets_nobody_through() -> None:
    """Real time here: the barrier itself must wake up."""
    barrier = Barrier(timeout_s=0.05, monotonic_s=time.monotonic)
    assert barrier.join("gang", 1, member(0), lambda held: len(held) >= 2) is Outcome.TIMED_OUT
    assert barrier.held("gang") == 0


def test_epochs_do_not_meet() -> None:
    """A member of an older epoch does not complete a newer one."""
    barrier = Barrier(timeout_s=60, monotonic_s=Clock())
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(barrier.join, "gang", 1, member(0), lambda held: len(held) >= 2)
        wait_until_held(barrier, "gang", 1)
        new = pool.submit(barrier.join, "gang", 2, member(1), lambda held: len(held) >= 2)
        wait_until_held(barrier, "gang", 2)
        barrier.cancel("gang", 1)
        assert old.result(10) is Outcome.CANCELLED
        assert not new.done()
        barrier.cancel_all()
        assert new.result(10) is Outcome.CANCELLED
