"""Members that do not say which slot is theirs get one each, in whatever order they join."""

from itertools import permutations

import pytest
from extender_world import World

from muster.api.kubernetes.core import Pod, PodSpec, PodStatus
from muster.api.muster.gang import DEFAULT_POD_SET, Slot
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus


def group_of(world: World) -> PodGroup:
    """A gang of three pods without tasks."""
    group = PodGroup(
        metadata=world.meta("g"),
        spec=PodGroupSpec(min_member=3, queue="default"),
        status=PodGroupStatus(phase="Inqueue"),
    )
    world.state.on_pod_group(None, group)
    return group


def join(world: World, name: str) -> None:
    """A pod that does not say which slot is its own."""
    meta = world.meta(name, uid=name, annotations={"scheduling.k8s.io/group-name": "g"})
    pod = Pod(metadata=meta, spec=PodSpec(scheduler_name="volcano"), status=PodStatus(phase="Pending"))
    world.state.on_pod(None, pod)


@pytest.mark.parametrize("order", [*permutations("abc")], ids="".join)
def test_members_that_join_one_by_one(order: tuple[str, ...]) -> None:
    """The gang is looked at in between, as in a cluster; nobody takes the slot of one who was there before."""
    world = World()
    group = group_of(world)
    for number, name in enumerate(order, start=1):
        join(world, name)
        (pods,) = world.view(group.metadata.key).pod_sets
        assert len(pods.waiting) == number
    assert {pod.name for pod in pods.waiting.values()} == {"a", "b", "c"}


def test_slots_are_given_by_a_refresh_and_not_by_looking() -> None:
    """Whoever looks sees the gang as it was refreshed last."""
    world = World()
    group = group_of(world)
    world.state.refresh()
    join(world, "a")
    gang = world.state.gang(group.metadata.key)
    assert gang is not None
    assert gang.pods == []
    assert world.state.pods["a"].slot is None
    world.state.refresh()
    assert world.state.pods["a"].slot == Slot(DEFAULT_POD_SET, 0)


def test_gangs_are_in_the_order_in_which_they_were_seen() -> None:
    """Their names, whose hashes differ from process to process, decide nothing."""
    world = World()
    keys = [world.gang(f"gang-{number * 7 % 32}", {"worker": (1, {"cpu": 1})}) for number in range(32)]
    world.state.refresh()
    assert [gang.key for gang in world.state.gangs()] == keys
