"""Devices of a claim that pods name are freed by victims, if these are all of its users."""

from typing import Any

import pytest
from devices_world import CPU, Devices, asks, claim_use, exactly, template_use
from extender_world import of
from hypothesis import given, settings
from hypothesis import strategies as st
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


@pytest.mark.parametrize(("users", "minimum", "going"), [
    pytest.param((1,), 1, {"a-worker-0"}, id="one pod"),
    pytest.param((3,), 3, {"a-worker-0", "a-worker-1", "a-worker-2"}, id="a whole gang"),
    pytest.param((2,), 1, {"a-worker-0", "a-worker-1"}, id="an elastic gang"),
    pytest.param((1, 1), 1, {"a-worker-0", "b-worker-0"}, id="two gangs"),
])  # fmt: skip
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
    session = cycle(world)
    left = session.hooks.get_queue_allocated_resources.call("rich")[session.snapshot.axis[GPUS]]
    assert left == 0, "what is as good as gone is not taken once more"


def test_devices_of_a_claim_are_expected_when_its_last_user_ends() -> None:
    """A head of the same priority has nodes reserved for that time."""
    world = world_of()
    for name, runtime in (("short", "1m"), ("long", "1h")):
        world.gang(name, {"worker": (1, CPU)}, spec=claim_use("both"), phase="Running", runtime=runtime)
    held(world, "both", *(world.member(f"ns/{name}", 0, claim_use("both"), node="node-0", phase="Running").metadata.uid
                          for name in ("short", "long")))  # fmt: skip
    high(world, priority_class="")
    session = world.session(world.progress, Enqueue(), Allocate())
    [reserve] = of(session, decisions.Reserve)
    assert reserve.expected_at == pytest.approx(world.now + 3600, abs=2)


@settings(max_examples=settings().max_examples // 2)
@given(
    sizes=st.tuples(*[st.integers(1, 2)] * 3),
    gangs=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 2), st.booleans()), min_size=1, max_size=5),
    asked=st.integers(1, 2),
)
def test_victims_are_all_users_of_claims_and_no_others(
    sizes: tuple[int, int, int], gangs: list[tuple[str, int, bool]], asked: int
) -> None:
    """Claims a and b on one node, c on the other, and gangs of two priorities; a pod of several devices asks."""
    world = world_of(2)
    room, there = {"node-0": 2, "node-1": 2}, {"a": "node-0", "b": "node-0", "c": "node-1"}
    size = {name: count for name, count in zip("abc", sizes, strict=True) if any(name == each for each, _, _ in gangs)}
    if sum(size.get(name, 0) for name in "ab") > 2:
        size["a"] = size["b"] = 1
    users: dict[str, list[str]] = {name: [] for name in size}
    for number, (claim, pods, low) in enumerate(gangs):
        more = {"priority_class": "low" if low else "high"}
        users[claim] += runs(world, f"g{number}", pods, claim, there[claim], **more)
    begin = {"a": 0, "b": size.get("a", 0), "c": 0}
    for name, count in size.items():
        got = tuple((there[name], f"d{begin[name] + number}") for number in range(count))
        world.claim(name, asks(exactly("gpu", count)), got=got, users=tuple(users[name]))
    world.template("many", asks(exactly("gpu", asked)))
    world.gang("asker", {"worker": (1, CPU)}, spec=template_use("many"), priority_class="high")

    def fits(gone: set[str]) -> bool:
        """Room for the asker without these pods."""
        left = {name: count for name, count in size.items() if not {uid[4:] for uid in users[name]} <= gone}
        return any(free - sum(left.get(each, 0) for each in left if there[each] == node) >= asked
                   for node, free in room.items())  # fmt: skip

    session = cycle(world)
    gone = victims(session)
    of_gang = {f"g{number}": {f"g{number}-worker-{rank}" for rank in range(pods)}
               for number, (_, pods, low) in enumerate(gangs) if low}  # fmt: skip
    assert bool(of(session, decisions.Place)) == fits(set().union(*of_gang.values()))
    if of(session, decisions.Place):
        assert fits(gone)
        assert not any(fits(gone - pods) for pods in of_gang.values() if pods <= gone)
        assert gone <= set().union(*of_gang.values())
