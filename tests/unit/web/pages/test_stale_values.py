"""A value that is long in the making: what is shown meanwhile is the one before."""

import threading

from builders.clocks import Clock

from web.slow import QUICK_S, SHARE, StaleWhileRevalidate


def test_a_value_is_made_once_as_long_as_nothing_changes() -> None:
    """However often it is asked for."""
    aged, made = StaleWhileRevalidate[int](Clock(0.0)), list[int]()

    def make() -> int:
        made.append(len(made))
        return made[-1]

    assert [aged.value("a", make), aged.value("a", make), aged.value("b", make)] == [0, 0, 1]


def test_what_takes_long_is_made_behind_the_one_before() -> None:
    """Nobody waits for it; it comes once it is made, and is not made more often than in a tenth of the time."""
    clock = Clock(0.0)
    aged = StaleWhileRevalidate[str](clock)

    def slow() -> str:
        clock.now += 10 * QUICK_S
        return "old"

    assert aged.value(1, slow) == "old"
    assert aged.value(2, lambda: "too soon") == "old"
    clock.now += SHARE * 10 * QUICK_S + 1
    going, made = threading.Event(), threading.Event()

    def later() -> str:
        going.wait(30)
        made.set()
        return "new"

    assert aged.value(2, later) == "old"
    assert aged.value(2, lambda: "never: one is under way") == "old"
    going.set()
    assert made.wait(30)
    for _ in range(1_000_000):
        if aged.value(2, later) == "new":
            break
    assert aged.value(2, later) == "new"


def test_what_fails_behind_leaves_the_value_before() -> None:
    """And is tried again."""
    clock = Clock(0.0)
    aged = StaleWhileRevalidate[str](clock)

    def slow() -> str:
        clock.now += 1
        return "old"

    def fails() -> str:
        tried.set()
        raise ValueError("no")

    tried = threading.Event()
    aged.value(1, slow)
    clock.now += SHARE + 1
    assert aged.value(2, fails) == "old"
    assert tried.wait(30)
    assert aged.value(2, lambda: "never asked for inline") == "old"
