"""Votes of plugins on admission: none where the configuration does not name `enqueue`, none against victims."""

import pytest
from extender_world import of
from victims_world import Cluster, victims

from extender.planner.cycle import Parts
from extender.planner.framework import config, decisions

TIERS = "[{plugins: [{name: priority}, {name: gang}, {name: overcommit}, {name: predicates}, {name: proportion}]}]"


@pytest.mark.parametrize(("actions", "victim_count"), [
    ("allocate, backfill, gangreclaim, gangpreempt", 2),
    ("enqueue, allocate, backfill, gangpreempt", 2),
    ("enqueue, allocate, backfill", 0),
])  # fmt: skip
def test_overcommit_keeps_out_no_gang_that_may_evict(actions: str, victim_count: int) -> None:
    """Two low gangs hold all 4 CPUs; a high gang of 4 gets them if an action may evict for it."""
    world = Cluster(0)
    world.node("node-0", cpu=4, gpus=0)
    for name in ("low-0", "low-1"):
        key = world.gang(name, {"worker": (1, {"cpu": 2})}, phase="Running", priority_class="low")
        world.members(key, 1, {"cpu": 2}, node="node-0", phase="Running")
    key = world.gang("high", {"worker": (2, {"cpu": 2})}, phase="Pending", priority_class="high")
    world.change(world.state.groups[key], spec={"min_resources": {"cpu": "4"}})
    steps, world.plugins = Parts().parts_of(config.parse(f"{{actions: '{actions}', tiers: {TIERS}}}"))
    session = world.session(world.progress, *steps)
    assert len(victims(session)) == victim_count
    refused = [why.reason for why in of(session, decisions.Unschedulable)]
    assert ("Overcommitted" in str(refused)) == (not victim_count), refused
