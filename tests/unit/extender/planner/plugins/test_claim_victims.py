"""Devices of a claim that pods name are freed by victims, if these are all of its users."""

from typing import Any

import pytest
from devices_world import CPU, Devices, asks, claim_use, exactly, template_use
from extender_world import of
from victims_world import victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.proportion import Proportion
from muster.api.kubernetes.core import PriorityClass

GPUS = "deviceclass.resource.kubernetes.io/gpu"


def world_of(nodes: int = 1) -> Devices:
    """Nodes with two devices each, the template `one`, and two priority classes."""
    world = Devices().gpus(nodes, 2).device_class().template("one", asks(exactly()))
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=world.meta(name, namespace=""), value=value))
    return world


def runs(world: Devices, name: str, pods: int, claim: str, node: str = "node-0", **more: Any) -> list[str]:
    """A gang that runs, its pods with one claim; returns their UIDs."""
    more = {"priority_class": "low"} | more
    key = world.gang(name, {"worker": (pods, CPU)}, spec=claim_use(claim), phase="Running", **more)
    use = claim_use(claim) | {"priorityClassName": more["priority_class"]}
    return [world.member(key, rank, use, node=node, phase="Running").metadata.uid for rank in range(pods)]


def held(world: Devices, claim: str, *users: str, devices: int = 2, node: str = "node-0") -> None:
    """A claim that has its devices, reserved for these pods."""
    got = tuple((node, f"d{number}") for number in range(devices))
    world.claim(claim, asks(exactly("gpu", devices)), got=got, users=users)


def cycle(world: Devices) -> Session:
    """A cycle with both actions; placements are written."""
    session = world.session(world.progress, Enqueue(), Allocate(), Reclaim(), Preempt())
    for place in of(session, decisions.Place):
        world.place(place)
    return session


def high(world: Devices, name: str = "high", pods: int = 1, **more: Any) -> str:
    """A gang of high priority with a device for each pod."""
    return world.gang(name, {"worker": (pods, CPU)}, spec=template_use("one"), **{"priority_class": "high"} | more)


@pytest.mark.parametrize(
    ("users", "minimum", "going"),
    [
        pytest.param((1,), 1, {"a-worker-0"}, id="one pod"),
        pytest.param((3,), 3, {"a-worker-0", "a-worker-1", "a-worker-2"}, id="a whole gang"),
        pytest.param((2,), 1, {"a-worker-0", "a-worker-1"}, id="an elastic gang"),
        pytest.param((1, 1), 1, {"a-worker-0", "b-worker-0"}, id="two gangs"),
    ],
)
def test_all_users_of_a_claim_go_for_its_devices(users: tuple[int, ...], minimum: int, going: set[str]) -> None:
    """And nobody else; the asker waits for them, and starts when they and the claim have gone."""
    world = world_of()
    uids: list[str] = []
    for name, pods in zip("ab", users, strict=False):
        uids += runs(world, name, pods, "both", min_member=minimum, min_task_member={})
    held(world, "both", *uids)
    runs(world, "bystander", 1, "none")
    world.claim("none", asks(exactly("gpu", 0, adminAccess=True)))
    asker = high(world)
    assert victims(cycle(world)) == going
    assert not of(cycle(world), decisions.ClosePlacement)
    for uid in uids:
        world.state.on_pod(world.state.pod_objects[uid], None)
    assert not of(cycle(world), decisions.ClosePlacement), "the claim loses its devices a moment after its last pod"
    world.claim("both", asks(exactly("gpu", 2)))
    assert [each.gang.key for each in of(cycle(world), decisions.RoomIsThere)] == [asker]


def test_nobody_goes_while_another_user_of_the_claim_stays() -> None:
    """A gang of the same priority, or a pod that is not known."""
    for other in ("gang", "pod"):
        world = world_of()
        uids = runs(world, "low", 1, "both")
        uids += runs(world, "equal", 1, "both", priority_class="high") if other == "gang" else ["unknown"]
        held(world, "both", *uids)
        high(world)
        assert not victims(cycle(world)), other


def test_the_cheapest_claims_go_and_those_that_go_count_once() -> None:
    """Two claims on two nodes: the second asker takes the other one, the third fits beside the first."""
    world = world_of(2)
    for number, name in enumerate("ab"):
        held(world, name, *runs(world, name, 1 + number, name, node=f"node-{number}"), node=f"node-{number}")
    high(world, "first", 2)
    assert victims(cycle(world)) == {"a-worker-0"}
    high(world, "second", 1)
    high(world, "third", 1)
    assert victims(cycle(world)) == {"a-worker-0", "b-worker-0", "b-worker-1"}
    assert victims(cycle(world)) == {"a-worker-0", "b-worker-0", "b-worker-1"}


def test_a_queue_that_is_owed_a_device_gets_it_from_a_claim() -> None:
    """The queue that has more than it deserves has it by the claim alone."""
    world = world_of()
    world.plugins.append(Proportion({}))
    for name in ("rich", "poor"):
        world.queue(name, deserved={GPUS: 1})
    held(world, "both", *runs(world, "low", 2, "both", queue="rich"))
    high(world, queue="poor", priority_class="low")
    assert victims(cycle(world)) == {"low-worker-0", "low-worker-1"}
