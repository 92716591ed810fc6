"""Expected fragmentation: the worth of nodes, what is kept of it, and what is learnt."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from extender_world import World, of, slots
from gpus_world import shares
from hypothesis import example, given
from hypothesis import strategies as st

from extender.planner.actions.allocate import Allocate
from extender.planner.framework.decisions import Place
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.plugins.fragmentation import MOST_SEEN, Fragmentation
from extender.planner.plugins.scores import DENSITY
from extender.planner.plugins.worth import LARGE, Mix, NodeState, PodKind, kind_of

KINDS = st.builds(
    lambda cpu, devices, portion: PodKind(cpu, 1, devices, 1000 if devices > 1 else portion),
    st.integers(1, 8), st.integers(1, 4), st.sampled_from([250, 300, 500, 1000]),
)  # fmt: skip
NODES = st.tuples(st.integers(0, 16), st.integers(0, 4), st.lists(st.integers(1, 999), min_size=2, max_size=2))


def state(*nodes: tuple[int, int, list[int]]) -> NodeState:
    """Nodes of so much CPU, so many unused GPUs, and others with so much free."""
    return NodeState(
        np.array([cpu for cpu, _, _ in nodes]),
        np.full(len(nodes), 100),
        np.array([unused + len(parts) for _, unused, parts in nodes]),
        np.array([unused for _, unused, _ in nodes]),
        np.array([parts for _, _, parts in nodes]),
    )


def usable(kind: PodKind, cpu: int, unused: int, parts: list[int]) -> int:
    """What one such pod can use of a node's free GPUs, said once more and plainly."""
    fitting = [part for part in [*parts, *[1000] * unused] if part >= kind.portion]
    return sum(fitting) if len(fitting) >= kind.devices and cpu >= kind.cpu else 0


@given(st.dictionaries(KINDS, st.integers(1, 5), min_size=1, max_size=4), st.lists(NODES, min_size=1, max_size=3))
def test_worth_is_what_the_next_pod_can_use(seen: dict[PodKind, int], nodes: list[tuple[int, int, list[int]]]) -> None:
    """On average over the kinds."""
    mix = Mix.most_frequent(seen, 1.0, 100, 0.0)
    total = sum(seen.values())
    expected = [sum(count * usable(kind, *node) for kind, count in seen.items()) / total for node in nodes]
    assert mix.worth(state(*nodes)) == pytest.approx(expected)


@given(KINDS, KINDS, NODES)
@example(PodKind(1, 1, 1, 500), PodKind(2, 1, 1, 500), (1, 1, [600, 600]))
def test_one_pod_goes_where_it_costs_least(seen: PodKind, asked: PodKind, node: tuple[int, int, list[int]]) -> None:
    """Of all devices that have room the best one counts."""
    mix = Mix.most_frequent({seen: 1}, 1.0, 100, 0.1)
    cpu, unused, parts = node
    found = mix.worth_after(state(node), asked)[0]
    left = cpu - asked.cpu
    options: list[tuple[int, list[int]]] = []
    if asked.portion == 1000:
        options = [(unused - asked.devices, parts)] if unused >= asked.devices else []
    else:
        options = [
            (unused, [part - asked.portion * (place == number) for place, part in enumerate(parts)])
            for number, part in enumerate(parts)
            if part >= asked.portion
        ]
        options += [(unused - 1, [*parts, 1000 - asked.portion])] if unused else []
    worths = [mix.worth(state((left, free, rest)))[0] for free, rest in options if left >= 0]
    assert found == pytest.approx(max(worths)) if worths else found < -LARGE


def opened(world: World, plugin: Fragmentation) -> Session:
    """A session in which only the plugin has registered."""
    world.plugins = [plugin]
    return world.session()


@given(st.data())
def test_what_is_kept_is_what_is_right(data: Any) -> None:
    """After trials that stay or are undone, in one cycle or several, losses are as if reckoned anew."""
    world = World(checked=False).nodes(3, gpus=4, cpu=16)
    keys = [
        world.gang(f"g{gpus}", {"worker": (1, {"cpu": cpu, "nvidia.com/gpu": gpus})})
        for cpu, gpus in ((1, 1), (8, 2), (2, 4))
    ]
    keys += [shares(world, f"part{part}", 1, gpu_fraction=part) for part in ("0.3", "0.5")]
    kept = Fragmentation({})
    for _ in range(3):
        session = opened(world, kept)
        for _ in range(data.draw(st.integers(0, 4))):
            gang = world.view(data.draw(st.sampled_from(keys)))
            [pod_set] = gang.pod_sets
            assert pod_set.cls is not None
            column = data.draw(st.integers(0, 2))
            if session.room(pod_set.cls)[column]:
                statement = Statement(session)
                statement.allocate(gang, "worker", [0], column, pod_set.cls)
                if data.draw(st.booleans()):
                    statement.discard()
            fresh = Fragmentation({})
            fresh.on_session_open(session)
            assert kept.losses(session, pod_set.cls) == pytest.approx(fresh.losses(session, pod_set.cls))


def test_a_part_of_a_gpu_goes_where_it_costs_least() -> None:
    """Beside another part, so that the other GPUs stay whole; not where it has no room."""
    world = World().nodes(1, gpus=4)
    for number in range(4):
        world.gang(f"large{number}", {"worker": (1, {"nvidia.com/gpu": 1})}, phase="Pending")
    key = shares(world, "half", 1, gpu_fraction="0.5")
    session, cls = opened(world, Fragmentation({})), world.view(key).pod_sets[0].cls
    fresh, fits, just, full = session.hooks.gpu_order.call(cls, 0, np.array([0, 400, 500, 501])).tolist()
    assert DENSITY >= just > fits > fresh > full == 0


def test_a_small_pod_leaves_the_whole_node_to_a_large_one() -> None:
    """By name it would go to the first node; the gang that comes next needs that as a whole."""
    for plugins, node in (([], "node-0"), ([Fragmentation({})], "node-1")):
        world = World().nodes(1, gpus=8)
        world.node("node-1", gpus=4)
        world.plugins += plugins
        for number in range(4):
            world.gang(f"large{number}", {"worker": (1, {"nvidia.com/gpu": 8})}, phase="Pending")
        small = world.gang("small", {"worker": (1, {"nvidia.com/gpu": 1})})
        session = world.session(Allocate())  # gangs that wait to be let in are only seen
        [place] = [place for place in of(session, Place) if place.gang.key == small]
        assert slots(place)["worker"] == [node]


@given(
    KINDS, st.integers(1, 8), st.sampled_from([250, 300, 500]),
    st.lists(st.sampled_from([0, 0, 250, 400, 700, 1000]), min_size=1, max_size=4),
)  # fmt: skip
def test_the_worth_of_nodes_with_the_pod_on_each_device(seen: PodKind, cpu: int, portion: int, used: list[int]) -> None:
    """As if the node had been made so; a device without room counts as full."""
    mix, asked = Mix.most_frequent({seen: 1}, 1.0, 100, 0.1), PodKind(1, 1, 1, portion)
    parts, unused = [1000 - amount if amount else 0 for amount in used], used.count(0)
    found = mix.worth_by_device(state((cpu, unused, parts)), asked, np.array(used))
    for device, amount in enumerate(used):
        left = [*parts]
        left[device] = max((1000 if amount == 0 else parts[device]) - portion, 0)
        expected = state((cpu - 1, unused - (amount == 0), left))
        expected.memory -= 1
        assert found[device] == pytest.approx(mix.worth(expected)[0])


LARGE_KIND, HALF, NO_GPU = PodKind(8, 1, 4, 1000), PodKind(1, 1, 1, 500), PodKind(4, 1, 0, 1000)


@pytest.mark.parametrize(("seen", "coverage", "most", "kept"), [
    ({LARGE_KIND: 50, HALF: 30, NO_GPU: 20}, 1.0, 9, [(4, 0.625), (1, 0.375)]),
    ({LARGE_KIND: 50, HALF: 30, NO_GPU: 20}, 0.8, 9, [(4, 0.625), (1, 0.375)]),
    ({LARGE_KIND: 50, HALF: 30, NO_GPU: 20}, 0.5, 9, [(4, 1.0)]),
    ({LARGE_KIND: 50, HALF: 30, NO_GPU: 20}, 1.0, 1, [(4, 1.0)]),
    ({LARGE_KIND: 10, HALF: 30, NO_GPU: 60}, 0.7, 9, [(1, 1.0)]),
    ({LARGE_KIND: 10, HALF: 10}, 0.5, 9, [(1, 1.0)]),
    ({NO_GPU: 60, HALF: 40}, 0.6, 9, []),
    ({}, 1.0, 9, []),
])  # fmt: skip
def test_the_most_frequent_kinds_make_the_mix(
    seen: dict[PodKind, int], coverage: float, most: int, kept: list[tuple[int, float]]
) -> None:
    """Up to a part of all pods; those without GPUs count there, and have no part in the worth."""
    mix = Mix.most_frequent(seen, coverage, most, 0.1)
    assert [*zip(mix.devices.tolist(), mix.weight.tolist(), strict=True)] == kept if mix else not kept


def test_the_mix_follows_the_pods_that_come() -> None:
    """It is made again once a tenth more are known; after many those seen count half."""
    plugin, made = Fragmentation({}), []
    for pods in ({}, {HALF: 10}, {HALF: 0}, {LARGE_KIND: 1}, {LARGE_KIND: 1}, {NO_GPU: 1}):
        plugin.learn(pods)
        made.append(plugin._mix)
    assert [one is other for one, other in pairwise(made)] == [False, True, False, True, False]
    plugin.learn({HALF: MOST_SEEN - 13})
    assert plugin._seen.total() == MOST_SEEN
    plugin.learn({NO_GPU: 1})
    assert dict(plugin._seen) == {HALF: (MOST_SEEN - 3) // 2, LARGE_KIND: 1, NO_GPU: 1}


@pytest.mark.parametrize(("requests", "notes", "kind"), [
    ({"cpu": 2, "memory": 100, "nvidia.com/gpu": 3}, {}, PodKind(2000, 100, 3, 1000)),
    ({"cpu": 2}, {}, PodKind(2000, 0, 0, 1000)),
    ({"volcano.sh/gpu-number": 2}, {}, PodKind(0, 0, 2, 1000)),
    ({"cpu": 1}, {"gpu-fraction": "0.25"}, PodKind(1000, 0, 1, 250)),
    ({"cpu": 1}, {"gpu-memory": "10000"}, PodKind(1000, 0, 1, 500)),
    ({"cpu": 1}, {"gpu-memory": "50000"}, PodKind(1000, 0, 1, 1000)),
])  # fmt: skip
def test_the_kind_of_a_pod(requests: dict[str, Any], notes: dict[str, str], kind: PodKind) -> None:
    """Memory of GPUs is a part of the smallest of them, at most a whole one."""
    world = World()
    for number, memory in enumerate(("40000", "20000")):
        world.node(f"node-{number}", labels={"nvidia.com/gpu.memory": memory})
    world.node("node-2")
    key = world.gang("a", {"worker": (1, requests)}, notes=notes)
    assert kind_of(world.view(key).pod_sets[0].cls, world.session().snapshot) == kind
