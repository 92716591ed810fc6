"""The work queue behaves as client-go's: de-duplicated, one worker per key, delays, back-off; groups take turns."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from builders.clocks import Clock
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.workqueue import GroupQueue, WorkQueue


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    """A queue with round numbers."""
    return WorkQueue(clock, base_delay_s=1, max_delay_s=10)


def drain(queue: WorkQueue[str]) -> list[str]:
    """All keys that can be had now; each is done at once."""
    keys = []
    while (key := queue.get(timeout_s=0)) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def test_a_key_waits_once_and_in_order(queue: WorkQueue[str]) -> None:
    """However often a key is added, it is handed out once, first come first served."""
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)
    assert len(queue) == 3
    assert drain(queue) == ["a", "b", "c"]
    assert queue.get(timeout_s=0) is None


def test_a_key_can_go_first_in_its_group() -> None:
    """The other groups have their turns as before; who waits already keeps his place."""
    queue: WorkQueue[str] = WorkQueue(group_of=lambda key: key[0])
    for key in ("a1", "a2", "b1"):
        queue.add(key)
    queue.add("a3", first=True)
    queue.add("a2", first=True)
    assert [queue.get(0) for _ in range(4)] == ["a3", "b1", "a1", "a2"]


def test_a_key_has_one_worker(queue: WorkQueue[str]) -> None:
    """A key added while it is worked on comes again, once, after done."""
    queue.add("a")
    assert queue.get(timeout_s=0) == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get(timeout_s=0) is None
    queue.done("a")
    assert drain(queue) == ["a"]


def test_delayed_keys_come_when_they_are_due(queue: WorkQueue[str], clock: Clock) -> None:
    """In the order of their times, not of their adding; no delay is now."""
    queue.add_after("late", 5)
    queue.add_after("soon", 1)
    queue.add_after("now", 0)
    assert drain(queue) == ["now"]
    clock.now += 1
    assert drain(queue) == ["soon"]
    clock.now += 3.9
    assert drain(queue) == []
    clock.now += 0.1
    assert drain(queue) == ["late"]


@pytest.mark.parametrize(("delays", "moments"), [
    pytest.param((5, 1, 3), (1,), id="the earliest of several counts, once"),
    pytest.param((5, 0), (0, 5), id="one that is added at once comes again when it is due, as in client-go"),
])  # fmt: skip
def test_several_delays(queue: WorkQueue[str], clock: Clock, delays: tuple[int, ...], moments: tuple[int, ...]) -> None:
    """It comes at these moments."""
    for delay_s in delays:
        queue.add_after("a", delay_s)
    came = []
    for second in range(12):
        came += [second for _ in drain(queue)]
        clock.now += 1
    assert came == [*moments]


def test_failures_back_off_per_key(queue: WorkQueue[str], clock: Clock) -> None:
    """Delays double up to the limit for the key that fails, and start over when it is forgotten."""
    delays = []
    for _ in range(6):
        queue.add_rate_limited("bad")
        waited = 0
        while queue.get(timeout_s=0) is None:
            clock.now += 1
            waited += 1
        queue.done("bad")
        delays.append(waited)
    assert delays == [1, 2, 4, 8, 10, 10]
    assert queue.failures("bad") == 6
    assert queue.failures("good") == 0
    for _ in range(5000):
        queue.add_rate_limited("bad")
    clock.now += 10
    assert drain(queue) == ["bad"], "the delay of thousands of failures stays at its limit"
    queue.forget("bad")
    assert queue.failures("bad") == 0
    queue.add_rate_limited("bad")
    clock.now += 1
    assert drain(queue) == ["bad"]


def test_shut_down_ends_everybody(queue: WorkQueue[str]) -> None:
    """Waiting workers get None at once; nothing is accepted or handed out any more."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(queue.get) for _ in range(2)]
        queue.shut_down()
        assert [future.result(timeout=5) for future in waiting] == [None, None]
    queue.add("a")
    queue.add_after("b", 1)
    assert queue.get() is None


def test_waits_for_a_key_in_real_time() -> None:
    """A worker that waits is woken by an add, and by a delay that ends."""
    queue: WorkQueue[str] = WorkQueue()
    with ThreadPoolExecutor(1) as pool:
        for add in (queue.add, lambda key: queue.add_after(key, 0.01)):
            waiting = pool.submit(queue.get, 5)
            add("a")
            assert waiting.result(timeout=5) == "a"
            queue.done("a")


def test_many_workers_never_share_a_key() -> None:
    """Under load each key has one worker at a time, and the last add of each key is served."""
    queue: WorkQueue[int] = WorkQueue(base_delay_s=0.0001)
    lock = threading.Lock()
    active: Counter[int] = Counter()
    served: Counter[int] = Counter()
    wanted: Counter[int] = Counter()
    collisions = []

    def work() -> None:
        while (key := queue.get()) is not None:
            with lock:
                active[key] += 1
                if active[key] > 1:
                    collisions.append(key)
                served[key] = wanted[key]
            with lock:
                active[key] -= 1
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for n in range(2000):
        with lock:
            wanted[n % 7] += 1
        (queue.add if n % 3 else queue.add_rate_limited)(n % 7)
    all_served = threading.Event()
    while not all_served.wait(0.001):
        with lock:
            if served == wanted:
                all_served.set()
    queue.shut_down()
    for worker in workers:
        worker.join(5)
    assert not collisions


ADD = st.tuples(st.sampled_from(["add", "first"]), st.integers(0, 4))
STEPS = st.lists(st.one_of(ADD, st.just(("take", 0)), st.just(("done", 0))))


@given(STEPS)
def test_nothing_is_lost_and_nobody_waits_for_more_than_one_of_each(steps: list[tuple[str, int]]) -> None:
    """Whatever is added comes out once, in the order of its group; groups with nothing in work go first."""
    queue: GroupQueue[tuple[int, int]] = GroupQueue(lambda key: key[0])
    waiting: list[tuple[int, int]] = []
    in_work: list[tuple[int, int]] = []
    for number, (step, group) in enumerate(steps):
        if step in {"add", "first"}:
            added = (group, number - len(steps) if step == "first" else number)
            waiting.append(added)
            queue.add(added, first=step == "first")
        elif step == "take" and waiting:
            key = queue.next_key()
            assert key == min(each for each in waiting if each[0] == key[0])
            busy = {each[0] for each in in_work}
            assert key[0] not in busy or all(each[0] in busy for each in waiting)
            waiting.remove(key)
            in_work.append(key)
        elif step == "done" and in_work:
            queue.done(in_work.pop(0))
        assert len(queue) == len(waiting)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_one_worker_takes_one_key_of_each_group_in_turn(counts: list[int]) -> None:
    """Between two keys of a group every other group that waits gets one."""
    queue: GroupQueue[tuple[int, int]] = GroupQueue(lambda key: key[0])
    for group, count in enumerate(counts):
        for number in range(count):
            queue.add((group, number))
    taken = []
    while queue:
        key = queue.next_key()
        taken.append(key)
        queue.done(key)
    rounds = [number for _, number in taken]
    assert rounds == sorted(rounds)
    assert sorted(taken) == sorted((group, number) for group, count in enumerate(counts) for number in range(count))
