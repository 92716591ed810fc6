"""A cluster is explained again in the same way: neither the cycle that was kept nor any trial leaves a trace."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from explain_world import ExplainWorld
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.explain.find import explain
from extender.explain.whatif import WhatIf
from extender.simulate.placing import simulate

GPU = "nvidia.com/gpu"
NAMES = ("first", "small", "large", "many", "fits", "lost")


@pytest.fixture(scope="module")
def world() -> ExplainWorld:
    """Six nodes, one of them cordoned; gangs that run, wait for nodes, for victims, and for ever."""
    world = ExplainWorld()
    for number in range(6):
        world.node(f"node-{number}", unschedulable=number == 5)
    world.runs("first", 2, {"cpu": 4, GPU: 8})
    world.runs("small", 2, {GPU: 1}, first_node=2)
    world.gang("large", {"worker": (3, {GPU: 8})})
    world.gang("many", {"worker": (4, {GPU: 7})})
    world.gang("fits", {"worker": (1, {GPU: 8})})
    world.gang("lost", {"worker": (1, {GPU: 64})})
    return world


def told(what_if: WhatIf, name: str) -> Any:
    """The report about a gang."""
    return explain(what_if, "gang", name, "ns")


@settings(max_examples=settings().max_examples // 4)
@given(names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=6), others=st.lists(st.booleans(), max_size=6))
def test_what_was_explained_changes_nothing(world: ExplainWorld, names: Sequence[str], others: Sequence[bool]) -> None:
    """Also to readers who may not see the names of others, who share the cluster."""
    dump = world.dump()
    shared = WhatIf(dump)
    for name, by_others in zip(names, [*others, *[False] * len(names)], strict=False):
        reader = shared.for_readers(names_others=not by_others)
        alone = told(WhatIf(dump, names_others=not by_others), name)
        assert msgspec.to_builtins(told(reader, name)) == msgspec.to_builtins(alone)


def test_what_a_simulation_has_placed_counts_afterwards(world: ExplainWorld) -> None:
    """What is explained after it is about the cluster after it."""
    what_if = WhatIf(world.dump())
    assert told(what_if, "fits").cause == "about-to-start"
    assert [each.gang for each in simulate(what_if, ()) if each.placed] == ["ns/fits"]
    assert told(what_if, "fits").cause == "starting"
