"""What a gang wants is worked out once, and again when its objects or the resources of nodes are others."""

import gc
import weakref
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from extender_world import World

from extender.planner.ask import Ask
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

GPUS = {"nvidia.com/gpu": 1}


def ask_of(session: Session, key: str) -> Ask:
    """The ask of a gang in a cycle."""
    return session.ask(session.gang(key))


def test_an_ask_says_what_is_open_what_is_needed_and_its_amounts() -> None:
    """Two of five workers and the only master must start."""
    world = World().nodes(2)
    tasks = {"master": (1, {}), "worker": (5, GPUS)}
    key = world.gang("a", tasks, min_member=3, min_task_member={"master": 1, "worker": 2})
    session = world.session()
    ask = ask_of(session, key)
    assert {name: list(ranks) for name, ranks in ask.open.items()} == {"master": [0], "worker": [0, 1, 2, 3, 4]}
    assert (ask.minimum, ask.least, ask.nodes) == ({"master": 1, "worker": 2}, 3, ask.minimum)
    assert ask.chosen(session.hooks) == {"master": [0], "worker": [0, 1]}
    assert session.amounts(ask)[session.snapshot.axis["nvidia.com/gpu"]] == 2000
    with pytest.raises(FrozenInstanceError):
        ask.minimum = {}  # type: ignore[misc]


@pytest.mark.parametrize(("said", "pods", "gpus"), [
    pytest.param({"nvidia.com/gpu": 3, "example.com/none": 1}, 0, 3000, id="pods that nobody knows yet"),
    pytest.param({"nvidia.com/gpu": 3}, 1, 1000, id="a pod that exists"),
    pytest.param({"nvidia.com/gpu": "many"}, 0, 0, id="amounts that cannot be read"),
    pytest.param(None, 0, 0, id="nothing said"),
])  # fmt: skip
def test_a_podgroup_without_pods_or_templates_has_the_amounts_that_it_says(said: Any, pods: int, gpus: int) -> None:
    """Its minResources, until it is known what its pods need."""
    world = World().nodes(1)
    spec = PodGroupSpec(min_member=1, queue="default", min_resources=said)
    world.state.on_pod_group(None, PodGroup(metadata=world.meta("bare"), spec=spec, status=PodGroupStatus("Inqueue")))
    world.members("ns/bare", pods, GPUS, gated=True)
    session = world.session()
    ask = ask_of(session, "ns/bare")
    assert session.amounts(ask)[session.snapshot.axis["nvidia.com/gpu"]] == gpus


def test_independent_pods_start_one_by_one_and_all_want_nodes() -> None:
    """The minimum is one pod at a time."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (5, GPUS)}, min_member=1, min_task_member={})
    world.change(world.state.groups[key], annotations={names.INDEPENDENT: "true"})
    ask = ask_of(world.session(), key)
    assert (ask.minimum, ask.nodes) == ({"worker": 1}, {"worker": 5})


def test_an_ask_is_kept_until_an_object_of_the_gang_changes() -> None:
    """In the next cycle, too."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPUS)})
    ask = ask_of(world.session(), key)
    world.gang("b", {"worker": (2, GPUS)})
    assert ask_of(world.session(), key) is ask
    world.pod(key, "worker", 0, GPUS, node="node-0")
    world.pod(key, "worker", 1, GPUS, gated=True)
    later = ask_of(world.session(), key)
    assert (list(later.open["worker"]), later.minimum) == ([1], {"worker": 1})


def test_an_ask_is_made_anew_when_nodes_offer_another_resource() -> None:
    """Its amounts are along the new axis."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, {"example.com/fpga": 1})})
    before = world.session()
    assert "example.com/fpga" not in before.snapshot.axis
    ask_of(before, key)
    node = world.node("other")
    world.change(node, status={"allocatable": {**node.status.allocatable, "example.com/fpga": 4}})
    session = world.session()
    assert session.amounts(ask_of(session, key))[session.snapshot.axis["example.com/fpga"]] == 2


def test_asks_of_gangs_that_are_gone_or_changed_are_forgotten() -> None:
    """The views of a planner that runs for months do not stay in memory."""
    world = World().nodes(2)
    keys = [world.gang(name, {"worker": (2, GPUS)}) for name in ("stays", "changes", "goes")]
    asked = [weakref.ref(ask_of(world.session(), key).gang) for key in keys]
    world.pod(keys[1], "worker", 0, GPUS, node="node-0")
    world.notify(world.state.groups[keys[2]], None)
    world.session()
    gc.collect()
    assert [view() is not None for view in asked] == [True, False, False]
