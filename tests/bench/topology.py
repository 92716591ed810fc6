"""What topology costs, and what it gains."""

import time
from collections.abc import Iterator
from random import Random
from typing import Any

from extender_world import World, of
from topology_world import Racks

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.progress import TrackPlacements
from extender.planner.actions.search import SlotSearch
from extender.planner.framework import decisions
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.framework.statement import Statement
from extender.planner.plugins.scores import NodePlacement
from tests.bench.timing import Result, cpu_ms

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
MEMBERS = 512
LEVELS = ["zone", "block", "rack", "kubernetes.io/hostname"]
REQUIRED = "muster.dev/topology-required"
WORKLOADS, WAITING = 15_000, 1_000
KINDS: tuple[tuple[int, int, dict[str, Any]], ...] = (
    (1, 1, {"required": "host"}),
    (4, 2, {"required": "rack"}),
    (4, 8, {"preferred": "rack"}),
    (16, 8, {"required": "block", "preferred": "rack"}),
    (16, 1, {"template": {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}}),
    (64, 4, {"required": "block"}),
)
"""Pods, GPUs of each, and what they ask for."""
SMALL = ((1, 1), (1, 2), (2, 2), (1, 4), (3, 1), (1, 8), (2, 8), (4, 4))
SEEDS, STEPS = 5, 1_000


def run() -> Iterator[Result | str]:
    """Plan time of one gang with and without a topology; a queue of many; who can start where nodes come and go."""
    yield from _one_gang()
    yield _many_workloads()
    yield from _who_can_start()


def _one_gang() -> Iterator[Result]:
    for nodes, budget in ((5_000, 3.0), (100_000, 50.0)):
        world = tree_of(nodes)
        key = world.gang("a", {"worker": (MEMBERS, GPU8)})
        what = f"plan of one {MEMBERS}-pod gang, {nodes} nodes"
        yield Result(f"{what}, no topology", _plan_ms(world))
        for level in ("zone", "block"):
            world.said_of(key, {REQUIRED: level})
            yield Result(f"{what}, one {level}", _plan_ms(world), budget)
        world.said_of(key, {REQUIRED: "zone"})
        slices = {"kueue.x-k8s.io/podset-slice-required-topology": "rack", "kueue.x-k8s.io/podset-slice-size": "16"}
        world.annotate_templates(key, {"worker": slices})
        yield Result(f"{what}, slices of 16", _plan_ms(world))


def _many_workloads() -> str:
    """640 nodes in 3 levels, one to many pods each; what has started ends before the next cycle, and others come."""
    world = Racks(5, 8, 16, checked=False)
    random = Random(1)  # noqa: S311 - drawn again by its seed
    actions = (TrackPlacements(), Allocate())
    started, cycles, seconds, come = 0, 0, 0.0, 0
    while started < WORKLOADS:
        while come < min(WORKLOADS, started + WAITING):
            pods, gpus, wish = random.choice(KINDS)
            world.asks(f"g{come}", pods, gpus, **wish)
            come += 1
        before = time.thread_time()
        session = world.session(*actions)
        seconds += time.thread_time() - before
        placed = of(session, decisions.Place)
        assert placed, "each of them fits into the empty cluster"
        for place in placed:
            world.forget(place.gang.key)
        started, cycles = started + len(placed), cycles + 1
    rate = WORKLOADS / seconds
    return (
        f"640 nodes, {WORKLOADS} workloads, {WAITING} waiting, {cycles} cycles: {rate:.0f} workloads/s of CPU time, in "
        "memory (Kueue's own test, end to end: 37)"
    )


def _who_can_start() -> Iterator[str]:
    """Small gangs come and go; how many of those that need a whole rack can start when they come."""
    for what, wish, plugins in (
        ("first fit", "", []),
        ("planner without topology (binpack)", "", [NodePlacement({})]),
        ("planner with topology", "host", []),
    ):
        for used in (0.85, 0.9, 0.95):
            shares = [_share_started(seed, wish, plugins, used) for seed in range(SEEDS)]
            share = 100 * sum(shares) / len(shares)
            yield f"gangs of a whole rack that start at once, {used:.0%} of GPUs in use, {what}: {share:.0f} %"


def _share_started(seed: int, wish: str, plugins: list[PlannerPlugin], used: float) -> float:
    """One stream with so much in use: a gang that finds no place goes away, others go at random."""
    random, world = Random(seed), Racks(4, 8, 4, checked=False)  # noqa: S311 - drawn again by its seed
    world.plugins = [*world.plugins, *plugins]
    for number, (pods, gpus) in enumerate(SMALL):
        world.asks(f"small-{number}", pods, gpus, preferred=wish)
    large = world.asks("large", 4, 8, required="rack")
    session = world.session()
    gangs = [gang for gang in session.snapshot.gangs if gang.key != large]
    wide = next(gang for gang in session.snapshot.gangs if gang.key == large)
    row = session.snapshot.axis["nvidia.com/gpu"]
    total = session.snapshot.free[row].sum()
    running: list[Statement] = []
    started = asked = 0
    for step in range(STEPS):
        gang = wide if step % 20 == 0 and step else random.choice(gangs)
        statement = Statement(session)
        fits = SlotSearch(session, statement, session.ask(gang)).minimum() is None
        if gang is wide:
            asked, started = asked + 1, started + fits
        if fits:
            running.append(statement)
        while session.snapshot.free[row].sum() < (1 - used) * total:
            running.pop(random.randrange(len(running))).discard()  # plugins are told, too
    return started / asked


def _plan_ms(world: World) -> float:
    assert of(world.session(Allocate()), decisions.Place), "it fits"
    return cpu_ms(lambda: world.session(Allocate()))


def tree_of(nodes: int) -> Racks:
    """Racks of 16 nodes in blocks of 40 racks, and zones of 4 blocks; every node has 8 GPUs."""
    world = Racks(0, checked=False, levels=LEVELS)
    for number in range(nodes):
        rack = number // 16
        block = rack // 40
        labels = {"zone": f"z{block // 4}", "block": f"b{block}", "rack": f"r{rack}"}
        world.node(f"node-{number}", labels=labels | {"kubernetes.io/hostname": f"node-{number}"})
    return world
