"""How good the planner is, against an exact solver on small clusters."""

import random
import sys
from functools import cache

from extender_world import World, of

from extender.planner.framework import decisions


def fits(free: tuple[tuple[int, int], ...], demands: tuple[tuple[int, int], ...]) -> bool:
    """Whether all demands (cpu, gpus) can be placed: exhaustive search, largest demand first."""

    @cache
    def search(free: tuple[tuple[int, int], ...], at: int) -> bool:
        if at == len(demands):
            return True
        cpu, gpus = demands[at]
        for node in set(free):
            if node[0] >= cpu and node[1] >= gpus:
                rest = list(free)
                rest.remove(node)
                rest.append((node[0] - cpu, node[1] - gpus))
                if search(tuple(sorted(rest)), at + 1):
                    return True
        return False

    demands = tuple(sorted(demands, reverse=True))
    return search(tuple(sorted(free)), 0)


def planned(free: list[tuple[int, int]], tasks: list[tuple[int, tuple[int, int]]]) -> bool:
    """Whether the planner places the gang."""
    world = World()
    for index, (cpu, gpus) in enumerate(free):
        world.node(f"node-{index}", cpu=cpu, gpus=gpus)
    shapes = {f"t{n}": (count, {"cpu": cpu, "nvidia.com/gpu": gpus}) for n, (count, (cpu, gpus)) in enumerate(tasks)}
    world.gang("a", shapes)
    return bool(of(world.plan(), decisions.Place))


def demands_of(tasks: list[tuple[int, tuple[int, int]]]) -> tuple[tuple[int, int], ...]:
    """One entry per pod."""
    return tuple(shape for count, shape in tasks for _ in range(count))


def random_cluster(chance: random.Random) -> list[tuple[int, int]]:
    """Two to five nodes."""
    return [(chance.randint(1, 8), chance.randint(0, 8)) for _ in range(chance.randint(2, 5))]


def test_a_homogeneous_gang_is_placed_whenever_that_is_possible() -> None:
    """200 random clusters; the planner and the exact solver agree on each."""
    chance = random.Random(7)  # noqa: S311 - a fixed sample
    for _ in range(200):
        free = random_cluster(chance)
        tasks = [(chance.randint(1, 7), (chance.randint(1, 3), chance.randint(0, 3)))]
        assert planned(free, tasks) == fits(tuple(free), demands_of(tasks)), (free, tasks)


def test_a_heterogeneous_gang_is_never_placed_wrongly_and_seldom_missed() -> None:
    """Greedy may miss; how often is printed. What it places, the exact solver places too."""
    chance = random.Random(8)  # noqa: S311 - a fixed sample
    possible = missed = 0
    for _ in range(200):
        free = random_cluster(chance)
        tasks = [(chance.randint(1, 3), (chance.randint(1, 4), chance.randint(0, 4))) for _ in range(3)]
        exact = fits(tuple(free), demands_of(tasks))
        possible += exact
        got = planned(free, tasks)
        assert exact or not got, (free, tasks)
        missed += exact and not got
    sys.stderr.write(f"heterogeneous gangs: {missed} of {possible} possible placements missed\n")
    assert missed < possible / 10
