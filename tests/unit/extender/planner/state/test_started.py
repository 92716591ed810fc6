"""`State.started` says at once what a view would say; it makes one only where the numbers leave it open."""

from typing import Any

from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

CPU: dict[str, Any] = {"cpu": 1}
TASKS = ("worker", "ps")
STATES = ["bound"] * 3 + ["waiting", "Succeeded", "Failed", "gone"]
LIVES = st.tuples(st.sampled_from(TASKS), st.integers(0, 2), st.booleans(), st.sampled_from(STATES))
"""Task and rank of a pod, whether it is a second one of that slot, and how it is."""


@settings(max_examples=settings().max_examples * 3)
@given(
    replicas=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    least=st.integers(0, 4),
    minimums=st.dictionaries(st.sampled_from([*TASKS, "nobody"]), st.integers(0, 2)),
    lives=st.lists(LIVES, max_size=12),
)
def test_the_numbers_and_the_view_agree(
    replicas: tuple[int, int], least: int, minimums: dict[str, int], lives: list[tuple[str, int, bool, str]]
) -> None:
    """Whatever happens to the members, with minimums per task or without, and to ranks that no task has."""
    world = World(checked=False).nodes(1)
    tasks = {name: (number, CPU) for name, number in zip(TASKS, replicas, strict=True)}
    key = world.gang("a", tasks, min_member=least, min_task_member=minimums)
    world.view(key)
    for task, rank, second, life in lives:
        node = "node-0" if life in {"bound", "Succeeded", "Failed"} else ""
        phase = {"bound": "Running", "waiting": "Pending", "gone": "Pending"}.get(life, life)
        more = {"uid": f"second-{task}-{rank}"} if second else {}
        pod = world.pod(key, task, rank, CPU, node=node, phase=phase, **more)
        if life == "gone":
            world.state.on_pod(pod, None)
        started = world.state.started(key)
        world.state.touch_all()
        assert started == world.view(key).started, (task, rank, second, life)
    counted = world.state.pod_table.slots.get(key, {})
    assert counted == {each.name: len(each.taken) for each in world.view(key).pod_sets if each.taken}


def test_a_gang_with_enough_members_is_not_looked_at_again_for_each_of_the_others() -> None:
    """Each bind call asks, and a look costs as much as the gang has members."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (3, CPU)}, min_member=1, min_task_member={"worker": 1})
    for rank in range(3):
        world.view(key)
        before = world.state.gang(key)
        world.pod(key, "worker", rank, CPU, node="node-0", phase="Running")
        assert world.state.started(key)
        assert world.state.gang(key) is before
