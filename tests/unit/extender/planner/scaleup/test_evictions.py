"""Which pods on nodes are told anew about their eviction."""

import pytest
from extender_world import World, of

from extender.planner.cycle import run_cycle
from extender.planner.framework.decisions import TellEviction
from extender.planner.framework.snapshot import CycleInputs, take
from extender.planner.scaleup.action import AskForNodes
from extender.planner.scaleup.voices import ANNOTATIONS_AT_ONCE
from muster.api.names import DO_NOT_DISRUPT, PODS_SAFE_TO_EVICT, SAFE_TO_EVICT, SCALE_UP
from muster.api.volcano.scheduling import Queue

CPU = {"cpu": 1}
THEIRS = {PODS_SAFE_TO_EVICT: "true"}
OURS = {PODS_SAFE_TO_EVICT: "true", SAFE_TO_EVICT: "true"}
HELD = {PODS_SAFE_TO_EVICT: "false", SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}
OF_KARPENTER = {DO_NOT_DISRUPT: "5m"}


def told(queue: dict[str, str], pod: dict[str, str], *, pods: int = 1) -> list[str]:
    """What the pods of a running gang are told, in a queue that says this now."""
    world = World(checked=False).nodes(1, cpu=100)
    world.state.on_queue(None, Queue(metadata=world.meta("auto", namespace="", annotations=queue)))
    key = world.gang("g", {"w": (pods, CPU)}, queue="auto", phase="Running")
    world.members(key, pods, CPU, task="w", node="node-0", phase="Running")
    for one in list(world.state.pod_objects.values()):
        one.metadata.annotations |= pod
        world.state.on_pod(None, one)
    inputs = CycleInputs(snapshot=take(world.state), now=world.now)
    return [tell.value for tell in of(run_cycle(inputs, [AskForNodes()], world.plugins), TellEviction)]


@pytest.mark.parametrize(
    ("queue", "pod", "expected"),
    [
        ({}, {}, []),
        ({SAFE_TO_EVICT: "false"}, {}, ["false"]),
        ({SAFE_TO_EVICT: "true"}, OURS, []),
        ({SAFE_TO_EVICT: "false"}, OURS, ["false"]),
        ({}, OURS, [""]),
        ({SAFE_TO_EVICT: "false"}, THEIRS, []),
        ({}, THEIRS, []),
        ({SAFE_TO_EVICT: "false"}, HELD, []),
        ({SAFE_TO_EVICT: "false"}, HELD | {DO_NOT_DISRUPT: "false"}, ["false"]),
        ({SAFE_TO_EVICT: "true"}, HELD, ["true"]),
        ({SAFE_TO_EVICT: "false"}, OF_KARPENTER, []),
        ({SCALE_UP: "condition"}, {}, ["false"]),
        ({SCALE_UP: "condition", SAFE_TO_EVICT: "true"}, {}, ["true"]),
        ({SCALE_UP: "none"}, {}, []),
    ],
)
def test_pods_follow_their_queue_unless_they_say_so_themselves(
    queue: dict[str, str], pod: dict[str, str], expected: list[str]
) -> None:
    """What Muster wrote, it changes and takes away."""
    assert told(queue, pod) == expected


def test_a_large_gang_is_told_bit_by_bit() -> None:
    """A queue that changes its mind must not flood the API server."""
    assert len(told({SAFE_TO_EVICT: "false"}, {}, pods=50)) == ANNOTATIONS_AT_ONCE
