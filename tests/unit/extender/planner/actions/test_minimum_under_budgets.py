"""Which pods of an elastic gang go where disruption budgets count some of them."""

from collections.abc import Collection
from itertools import chain, combinations

import pytest
from victims_world import Cluster, victims

SIZE = 3
SUBSETS = [*chain.from_iterable(combinations(range(SIZE), count) for count in range(SIZE + 1))]
"""Ranks of the pods that budgets count."""


def gone(minimum: int, counted: Collection[int], asked: int, *, budgets: int, allowed: int) -> set[str]:
    """Pods that go of a gang of three, one on each node, for a gang that asks for so many nodes."""
    world = Cluster(SIZE, checked=False)
    world.runs("low", SIZE, min_member=minimum, min_task_member={})
    for rank in counted:
        world.label_pods(f"low-worker-{rank}", app="db")
    for number in range(budgets):
        world.budget(f"db{number}", allowed=allowed, app="db")
    world.asks("high", asked)
    return victims(world.cycle())


@pytest.mark.parametrize("counted", SUBSETS)
@pytest.mark.parametrize(("budgets", "allowed"), [(1, 0), (1, 1), (2, SIZE)])
def test_a_gang_keeps_its_minimum_or_nothing_whichever_of_its_pods_budgets_count(
    counted: tuple[int, ...], budgets: int, allowed: int
) -> None:
    """It gives as many pods above its minimum as budgets let go, and all of it only if all may go."""
    let_go = allowed if budgets == 1 else 0  # a pod of two budgets is never evicted
    for minimum in range(1, SIZE + 1):
        above = {*range(minimum, SIZE)}
        most_above = len(above.difference(counted)) + min(let_go, len(above.intersection(counted)))
        for asked in {max(1, most_above), min(SIZE, most_above + 1)}:
            pods = asked if asked <= most_above else SIZE if len(counted) <= let_go else 0
            names = gone(minimum, counted, asked, budgets=budgets, allowed=allowed)
            assert len(names) == pods, f"minimum {minimum}, {asked} nodes asked: {names}"
