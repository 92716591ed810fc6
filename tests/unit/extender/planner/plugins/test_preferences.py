"""Preferences of pods decide among equal nodes under the default configuration."""

import pytest
from extender_world import World

from extender.planner.cycle import Parts
from extender.planner.framework.config import SchedulerConfig

ONE = {"cpu": 1, "nvidia.com/gpu": 1}


def world() -> World:
    """Three nodes that are alike but for a label."""
    found = World()
    _, found.plugins = Parts().parts_of(SchedulerConfig())
    for number in range(3):
        labels = {"kubernetes.io/hostname": f"node-{number}", "disk": "fast" if number == 2 else "slow"}
        found.node(f"node-{number}", labels=labels)
    return found


def preferred(key: str, value: str) -> dict[str, object]:
    """A preferred node affinity to this label."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


def near(app: str, kind: str = "podAffinity") -> dict[str, object]:
    """A preferred affinity to pods with this label on their node, or against them."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}


@pytest.mark.parametrize(("affinity", "node"), [
    pytest.param(preferred("disk", "fast"), "node-2", id="node affinity"),
    pytest.param(near("db"), "node-1", id="pod affinity"),
])  # fmt: skip
def test_among_equal_nodes_the_preferred_one_is_chosen(affinity: dict[str, object], node: str) -> None:
    """A database runs on the second node, which has no more and no less than the others asked for."""
    found = world()
    for number in range(3):
        key = found.gang(f"g{number}", {"worker": (1, ONE)}, phase="Running")
        labels = {"app": "db" if number == 1 else "web"}
        found.pod(key, "worker", 0, ONE, node=f"node-{number}", phase="Running", labels=labels)
    key = found.gang("mine", {"worker": (1, ONE)}, spec={"affinity": affinity})
    found.plan()
    assert found.state.placements[key].spec.pod_sets[0].runs[0].node == node
