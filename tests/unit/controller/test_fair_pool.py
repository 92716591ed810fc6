"""Jobs take turns at the threads that create and delete pods."""

import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from controller.job.fair_pool import FairPool
from muster.kube.errors import ServerError


def test_a_small_batch_does_not_wait_for_a_large_one() -> None:
    """One thread, and a batch of a thousand that came first: the small one is through after as many turns again."""
    assert _last(run_beside({"large": 1000, "small": 3}), "small") <= 8


def test_equal_batches_are_finished_one_after_the_other() -> None:
    """The first is through when little more than its own calls were made; the last no later than in turns."""
    order = run_beside({"a": 100, "b": 100, "c": 100})
    assert len(order) == 300
    assert min(_last(order, name) for name in "abc") <= 140


def test_a_large_batch_goes_on_while_small_ones_come() -> None:
    """Every fourth call goes to whoever has waited longest for one, and there are nine."""
    assert run_beside({"large": 1000, **dict.fromkeys("abcdefgh", 100)})[:360].count("large") >= 360 // 4 // 9


def run_beside(sizes: dict[str, int]) -> list[str]:
    """The order in which one thread makes the calls of batches that all wait before the first call."""
    pool, order, begun, go_on = FairPool(1, "test"), list[str](), threading.Event(), threading.Event()

    def act(item: str) -> None:
        if item == "before":
            begun.set()
            assert go_on.wait(10)
        else:
            order.append(item)

    with ThreadPoolExecutor(len(sizes) + 1) as jobs:
        before = jobs.submit(pool.each, ["before"], act)
        assert begun.wait(10)
        batches = []
        for number, (name, size) in enumerate(sizes.items(), start=1):
            batches.append(jobs.submit(pool.each, [name] * size, act))
            while len(pool._waiting) < number:
                assert not batches[-1].done()
        go_on.set()
        for batch in [before, *batches]:
            batch.result(10)
    pool.close()
    return order


def _last(order: list[str], name: str) -> int:
    return len(order) - order[::-1].index(name)


def test_results_stand_in_order_and_errors_reach_who_waits() -> None:
    """As with `map`."""
    pool = FairPool(4, "test")
    assert pool.each([], str) == []
    assert pool.each(range(100), str) == [str(number) for number in range(100)]
    with pytest.raises(ZeroDivisionError):
        pool.each([1, 0], lambda number: 1 / number)
    pool.close()


def test_what_has_not_begun_when_the_pool_closes_is_cancelled() -> None:
    """Nobody waits for it for ever."""
    pool, begun, go_on = FairPool(1, "test"), threading.Event(), threading.Event()

    def act(_: int) -> None:
        begun.set()
        assert go_on.wait(10)

    with ThreadPoolExecutor(1) as jobs:
        waiting = jobs.submit(pool.each, range(10), act)
        assert begun.wait(10)
        pool.close()
        go_on.set()
        with pytest.raises(CancelledError):
            waiting.result(10)
    with pytest.raises(CancelledError):
        pool.each([1], act)


def test_threads_are_free_again_after_calls_that_failed() -> None:
    """A batch that fails leaves nothing behind, and those that wait beside it have their turns."""

    def act(number: int) -> int:
        if number % 3 == 0:
            raise ServerError(str(number))
        return number

    pool = FairPool(3, "test")
    for _ in range(4):
        with pytest.raises(ServerError):
            pool.each(range(9), act)
    assert pool.each([1, 2, 4], act) == [1, 2, 4]
    assert not pool._waiting
    pool.close()
