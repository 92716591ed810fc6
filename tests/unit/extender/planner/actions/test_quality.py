"""How good the planner is, against an exact solver on small clusters, also for gangs that just fit in their domain."""

import random
import sys
from functools import cache

import pytest
from extender_world import World, of
from places_world import KINDS, Case, Kind, Pods, broken, random_case
from topology_world import Racks

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


PROFILES = ("mixed", "balanced")


def placed(case: Case, profile: str = "mixed") -> dict[str, list[str]]:
    """The placement of the planner; empty if it finds none."""
    world, key = case.world(profile)
    world.plan()
    return world.placed(key)


def test_a_leader_makes_way_for_its_workers() -> None:
    """It takes the node on which no worker is lost, wherever that is."""
    leader = Pods("leader", 1, 1, required="rack", group=True)
    case = Case({"b0r0n0": (4, 8), "b0r0n1": (3, 8)}, (leader, Pods("worker", 3, 2, required="rack", group=True)))
    assert placed(case) == {"leader": ["b0r0n1"], "worker": ["b0r0n0", "b0r0n0", "b0r0n1"]}


@pytest.mark.parametrize(("racks", "placed"), [((17,), 17), ((16,), 0), ((16, 17), 17), ((17, 16), 17), ((16, 16), 0)])
def test_a_gang_of_many_parts_is_placed_whole_or_not_at_all(racks: tuple[int, ...], placed: int) -> None:
    """In one block, if that is where all have room; so many that none of them is placed again for another."""
    world = Racks(0)
    for block, nodes in enumerate(racks):
        for number in range(nodes):
            world.rack_node(block, 0, number)
    key = world.gang("a", {f"t{number}": (1, {"nvidia.com/gpu": 8}) for number in range(17)})
    world.annotate_templates(key, {f"t{number}": {"muster.dev/topology-required": "rack"} for number in range(17)})
    world.said_of(key, {"muster.dev/topology-required": "block"})
    world.plan()
    nodes = [node for each in world.placed(key).values() for node in each]
    assert (len(nodes), len(set(nodes))) == (placed, placed)
    assert len({node[:2] for node in nodes}) <= 1


def table(kind: Kind, worlds: int, profile: str) -> tuple[int, int, list[int]]:
    """Random worlds in which a gang of this kind fits, how many of them the planner finds, and the seeds of others."""
    fits, missed = 0, []
    for seed in range(worlds):
        case = random_case(kind, seed)
        if case is None:
            continue
        fits += 1
        found = placed(case, profile)
        if not found:
            missed.append(seed)
            continue
        assert broken(case, found) == "", f"{kind} {seed}: {case} → {found}"
    return fits, fits - len(missed), missed


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_is_found(kind: Kind, profile: str) -> None:
    """In a few random worlds."""
    fits, found, missed = table(kind, 40, profile)
    assert fits > 20, "the worlds say something"
    assert found >= 0.99 * fits - 1, f"{kind}: worlds {missed} of {fits} are not found"


@pytest.mark.storm
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_that_fits_is_found(kind: Kind, profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In many random worlds; the table is printed."""
    fits, found, missed = table(kind, 1000, profile)
    with capsys.disabled():
        sys.stdout.write(f"\n{kind:8} {profile:8} {found} of {fits} found ({found / fits:.2%}), not in {missed[:12]}\n")
    assert found >= 0.99 * fits
