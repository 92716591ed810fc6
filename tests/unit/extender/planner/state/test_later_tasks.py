"""Tasks that wait for others: no slots are planned for them before their pods exist."""

from extender_world import World, of, slots

from extender.planner.framework import decisions
from muster.api.names import LATER_TASKS

CPU = {"cpu": 16}


def world(later: str) -> tuple[World, str]:
    """Two nodes for four pods; a gang of two `first` and two `then`."""
    one = World().nodes(2)
    least = {"first": 2} if later else {"first": 2, "then": 2}
    key = one.gang("g", {"first": (2, CPU), "then": (2, CPU)}, min_member=sum(least.values()), min_task_member=least)
    if later:
        one.state.groups[key].metadata.annotations[LATER_TASKS] = later
        one.state.touch_all()
    return one, key


def test_slots_only_for_what_can_exist() -> None:
    """With the task held back its slots are not planned, and the gang is whole without them."""
    one, key = world("then")
    (place,) = of(one.plan(), decisions.Place)
    assert slots(place) == {"first": ["node-0", "node-0"]}
    assert one.view(key).satisfied({"first": 2})
    (place,) = of(world("")[0].plan(), decisions.Place)
    assert set(slots(place)) == {"first", "then"}


def test_pods_that_come_later_are_placed() -> None:
    """Their pods get nodes once the others run, also while the PodGroup still lists the task."""
    one, key = world("then")
    one.plan()
    for index in range(2):
        one.pod(key, "first", index, CPU, node="node-0", phase="Running")
    one.state.placements[key].status.phase = "Bound"
    one.state.touch_all()
    one.pod(key, "then", 0, CPU, gated=True)
    one.pod(key, "then", 1, CPU, gated=True)
    (place,) = of(one.plan(), decisions.Place)
    assert slots(place) == {"first": ["node-0", "node-0"], "then": ["node-1", "node-1"]}
    assert place.epoch == 2


def test_a_job_without_the_list_is_as_before() -> None:
    """An empty annotation holds nothing back."""
    one, key = world("")
    assert {pod_set.replicas for pod_set in one.view(key).pod_sets} == {2}
