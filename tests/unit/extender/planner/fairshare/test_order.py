"""Whose turn it is: the eight rules, one by one."""

from math import inf
from typing import Any

import pytest

from extender.planner.fairshare.order import WeighedQueue, Weight, compare, key_of


def standing(**gpu: Any) -> WeighedQueue:
    """A queue by its GPUs; cpu has no bounds."""
    bounds = {name: (inf, gpu.get(name, default)) for name, default in (("fair", 0), ("quota", 0), ("limit", inf))}
    bounds["fair"] = (gpu.get("others", inf), bounds["fair"][1])
    more = {"priority": gpu.get("priority", 0), "born": gpu.get("born", ("", ""))}
    allocated = (2 * gpu.get("others", 0), gpu.get("allocated", 0))
    return WeighedQueue(allocated=allocated, total=(100, 10), **bounds, **more)


LEFT_FIRST = {
    "1: within its fair share": (standing(fair=5, allocated=5, others=5),
                                 standing(fair=5, allocated=6, others=5, priority=9), 1, 1),
    "2: within what it deserves (KAI)": (standing(quota=4, fair=5, allocated=3), standing(quota=4, fair=5, allocated=4),
                                         1, 1),
    "3: the higher priority": (standing(fair=5, allocated=4, priority=1), standing(fair=5, allocated=1), 1, 1),
    "4: has a share of what it uses": (standing(fair=5, allocated=4), standing(fair=0, allocated=0), 1, 1),
    "5: smaller share (KAI)": (standing(fair=5, allocated=2), standing(fair=5, allocated=4), 1, 1),
    "5: smaller share with the gang (KAI)": (standing(fair=8, allocated=3), standing(fair=4, allocated=2), 0.5, 0.75),
    "6: smaller share without it": (standing(fair=5, allocated=1), standing(fair=5, allocated=2), 2, 1),
    "7: the weaker one, though it is younger": (standing(fair=4, allocated=0, born=("2", "b")),
        standing(fair=8, allocated=0, born=("1", "a")), 0, 0),
    "8: the older one": (standing(fair=5, allocated=1, born=("1", "b")), standing(fair=5, allocated=1, born=("2", "a")),
                         1, 1),
}  # fmt: skip


@pytest.mark.parametrize("rule", LEFT_FIRST)
def test_the_left_queue_comes_first(rule: str) -> None:
    """And the right one does not."""
    left, right, mine, other = LEFT_FIRST[rule]
    keys = key_of(left, (0, mine)), key_of(right, (0, other))
    assert compare(*keys) < 0
    assert compare(keys[1], keys[0]) > 0


@pytest.mark.parametrize(("fair", "wanted", "shareless"), [(0, 1, True), (0, 0, False), (5, 1, False), (5, 0, False)])
def test_what_a_gang_needs_of_a_resource_without_a_share_comes_last(fair: int, wanted: int, *, shareless: bool) -> None:
    """Where it wants some, and the queue has no share."""
    assert key_of(standing(fair=fair, allocated=0), (0, wanted))[3] == shareless


def test_an_idle_resource_does_not_hide_that_a_queue_is_over_its_share() -> None:
    """Of which it neither has nor is due anything; KAI counts it all the same."""
    over = WeighedQueue(allocated=(0, 6), fair=(0, 5), quota=(inf, inf), limit=(inf, inf), total=(10, 10))
    assert key_of(over, (0, 1))[0]


def test_of_shares_that_do_not_compare_that_of_the_older_queue_comes_first() -> None:
    """Each is larger in one of the resources."""
    older, younger = Weight((1, 2), ("1", "b")), Weight((2, 1), ("2", "a"))
    assert (older < younger, younger < older) == (True, False)
