"""Starts of gangs that wait: certain where run times are declared, and true in four of five cases otherwise."""

from collections.abc import Callable, Sequence
from math import inf
from random import Random

import pytest
from trace_replay import Replay, tasks

from gangs.runs import LEAST
from gangs.starts import Life, Runs, Scene, Waits, starts

GPUS = "nvidia.com/gpu"
Q = Life("q")
LOOK_EVERY = 100
"""Ends between two looks at the trace."""


def runs(node: str, gpus: int, *, elapsed_s: float = 0.0, declared_s: float | None = None) -> Runs:
    """A gang on one node."""
    return Runs(Life("q", declared_s), elapsed_s, {node: {GPUS: gpus}})


def waits(key: str, pods: int, gpus: int, life: Life = Q) -> Waits:
    """A gang of equal pods."""
    return Waits(key, life, [(pods, {GPUS: gpus})])


def test_declared_run_times() -> None:
    """Two nodes are free when the later of them is; who comes behind waits for the one before."""
    scene = Scene(
        {"a": {GPUS: 0}, "b": {GPUS: 0}},
        [runs("a", 8, elapsed_s=40.0, declared_s=100.0), runs("b", 8, declared_s=300.0)],
        [waits("both", 2, 8, Life("q", 50.0)), waits("one", 1, 8)],
    )
    assert starts(scene) == {"both": (300.0, 300.0), "one": (350.0, 350.0)}
    scene.waiting = [waits("one", 1, 8, Life("q", 1000.0)), waits("both", 2, 8)]
    assert starts(scene) == {"one": (60.0, 60.0), "both": (1060.0, 1060.0)}


def test_what_is_not_known() -> None:
    """Nothing is declared and too little learned; a gang that would fit now; one that never fits; an overdue one."""
    full = Scene({"a": {GPUS: 0}}, [runs("a", 8)], [waits("w", 1, 8)], {"q": [10.0] * (LEAST - 1)})
    assert starts(full) == {}
    roomy = Scene({"a": {GPUS: 8}, "b": {GPUS: 0}}, [runs("b", 8, declared_s=9.0)], [waits("w", 1, 8)])
    assert starts(roomy) == {}
    roomy.waiting = [Waits("w", Q, [(1, {GPUS: 8, "x/y": 0})])]  # it asks for nothing that no node has
    assert starts(roomy) == {}
    full.running[0] = runs("a", 8, declared_s=9.0)
    full.waiting = roomy.waiting
    assert starts(full) == {"w": (9.0, 9.0)}
    assert starts(Scene({"a": {GPUS: 0}}, [runs("a", 8, declared_s=9.0)], [waits("w", 1, 9)])) == {}
    assert starts(Scene({"a": {GPUS: 0}}, [runs("a", 8, declared_s=9.0)], [Waits("w", Q, [(1, {"x/y": 1})])])) == {}
    assert starts(Scene({"a": {GPUS: 0}}, [runs("a", 8, elapsed_s=10.0, declared_s=9.0)], [waits("w", 1, 8)])) == {}


def test_learned_run_times() -> None:
    """The start lies where most past runs would have ended; with few of them it may be as late as never."""
    past = {"q": [float(seconds) for seconds in range(1, 101)]}
    scene = Scene({"a": {GPUS: 0}}, [runs("a", 8, elapsed_s=50.0)], [waits("w", 1, 8)], past)
    found = starts(scene)["w"]
    assert 1.0 <= found.early_s < 15.0
    assert 35.0 < found.late_s <= 50.0
    assert starts(scene) == starts(scene)
    scene.past = {"q": [float(seconds) for seconds in range(51, 60)]}
    assert starts(scene)["w"].late_s == inf


@pytest.mark.parametrize("shape", ["exponential", "heavy"])
def test_the_interval_holds_on_clusters_that_it_was_not_made_of(shape: str) -> None:
    """Four of five gangs start within it, whatever the run times look like, for one or for several nodes."""
    random = Random(3)  # noqa: S311 - the same clusters each time

    def drawn() -> float:
        return random.expovariate(1 / 600) if shape == "exponential" else random.paretovariate(1.2) * 60

    held = asked = 0
    for _ in range(150):
        nodes = [f"n{number}" for number in range(4)]
        ages = [random.uniform(0, 300) for _ in nodes]
        lives = [_longer(drawn, age) for age in ages]
        size = random.choice([1, 2])
        past = {"q": [drawn() for _ in range(150)]}
        running = [Runs(Q, age, {node: {GPUS: 8}}) for node, age in zip(nodes, ages, strict=True)]
        scene = Scene({node: {GPUS: 0} for node in nodes}, running, [waits("w", size, 8)], past)
        found = starts(scene, draws=60).get("w")
        if found is not None:
            asked += 1
            ends: Sequence[float] = sorted(life - age for life, age in zip(lives, ages, strict=True))
            held += found.early_s <= ends[size - 1] <= found.late_s
    assert asked > 100
    assert held / asked == pytest.approx(0.8, abs=0.08)


def test_the_interval_holds_on_a_trace() -> None:
    """Of tasks of the trace's later half that wait on full nodes, foretold by what had ended before."""
    replay, scenes = Replay([task for task in tasks() if task.gpus]), list[tuple[float, Scene]]()
    while replay.step():
        if len(replay.ended) > len(replay.tasks) // 2 and len(replay.ended) % LOOK_EVERY == 0:
            scenes.append((replay.now, replay.scene()))
    held: list[bool] = []
    for now, scene in scenes:
        for number, found in starts(scene, draws=30).items():
            held.append(found.early_s <= replay.began[int(number)] - now <= found.late_s)
    assert len(held) > 80
    assert sum(held) / len(held) == pytest.approx(0.8, abs=0.1)


def _longer(drawn: Callable[[], float], age: float) -> float:
    """A run time of one that runs still at this age."""
    while True:
        if (life := drawn()) > age:
            return life
