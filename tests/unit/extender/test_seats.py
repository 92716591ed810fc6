"""Members that do not say which seat is theirs get one each, in whatever order they join."""

from itertools import permutations

import pytest
from extender_world import World

from muster.api.core import Pod, PodSpec, PodStatus
from muster.api.scheduling import PodGroup, PodGroupSpec, PodGroupStatus


@pytest.mark.parametrize("order", [*permutations("abc")], ids="".join)
def test_members_that_join_one_by_one(order: tuple[str, ...]) -> None:
    """The gang is looked at in between, as in a cluster; nobody takes the seat of one who was there before."""
    world = World()
    group = PodGroup(
        metadata=world.meta("g"),
        spec=PodGroupSpec(min_member=3, queue="default"),
        status=PodGroupStatus(phase="Inqueue"),
    )
    world.state.on_pod_group(None, group)
    for number, name in enumerate(order, start=1):
        meta = world.meta(name, uid=name, annotations={"scheduling.k8s.io/group-name": "g"})
        pod = Pod(metadata=meta, spec=PodSpec(scheduler_name="volcano"), status=PodStatus(phase="Pending"))
        world.state.on_pod(None, pod)
        gang = world.state.gang(group.metadata.key)
        assert gang is not None
        (pods,) = gang.pod_sets
        assert len(pods.waiting) == number
    assert {pod.name for pod in pods.waiting.values()} == {"a", "b", "c"}
