"""How far a gang is, by its members and its placement; `State.started` says at once what a view would."""

from typing import Any

import pytest
from extender_world import GPU8, World
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.state.gangphase import GangPhase
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.gang import Slot

CPU: dict[str, Any] = {"cpu": 1}
TASKS = ("worker", "ps")
STATES = ["bound"] * 3 + ["waiting", "Succeeded", "Failed", "gone", "done"]
LIVES = st.tuples(st.sampled_from(TASKS), st.integers(0, 2), st.booleans(), st.sampled_from(STATES))
"""Task and rank of a pod, whether it is a second one of that slot, and how it is."""


@settings(max_examples=settings().max_examples * 3)
@given(
    replicas=st.tuples(st.integers(0, 3), st.integers(0, 3)), least=st.integers(0, 4),
    minimums=st.dictionaries(st.sampled_from([*TASKS, "nobody"]), st.integers(0, 2)),
    lives=st.lists(LIVES, max_size=12),
)  # fmt: skip
def test_the_numbers_and_the_view_agree(
    replicas: tuple[int, int], least: int, minimums: dict[str, int], lives: list[tuple[str, int, bool, str]]
) -> None:
    """Whatever happens to the members, with minimums per task or without, and to ranks that no task has."""
    world = World(checked=False).nodes(1)
    tasks = {name: (number, CPU) for name, number in zip(TASKS, replicas, strict=True)}
    key = world.gang("a", tasks, min_member=least, min_task_member=minimums)
    world.view(key)
    done: set[Slot] = set()
    for task, rank, second, life in lives:
        node = "node-0" if life in {"bound", "Succeeded", "Failed"} else ""
        phase = {"bound": "Running", "waiting": "Pending", "gone": "Pending", "done": "Succeeded"}.get(life, life)
        more = {"uid": f"second-{task}-{rank}"} if second else {}
        pod = world.pod(key, task, rank, CPU, node=node, phase=phase, **more)
        if life in {"gone", "done"}:
            world.state.on_pod(pod, None)
        if life == "done":
            done.add(Slot(task, rank))
            world.done(key, *done)
        started = world.state.started(key)
        world.state.touch_all()
        assert started == world.view(key).started, (task, rank, second, life)
    counted = world.state.pod_table.slots.get(key, {})
    taken = {each.name: len(each.taken) - each.gone for each in world.view(key).pod_sets}
    assert counted == {name: number for name, number in taken.items() if number}


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


def test_pods_of_an_earlier_workload_start_no_gang() -> None:
    """A StatefulSet that is created again has pods of both for a while, which name one PodGroup."""
    world = World().nodes(1)
    new, earlier = (
        OwnerReference(api_version="apps/v1", kind="StatefulSet", name="a", uid=uid, controller=True)
        for uid in ("new", "earlier")
    )
    key = world.pod_group("a", 2, owner_references=[new])
    for rank, owner in enumerate((new, earlier)):
        world.pod(key, "worker", rank, CPU, node="node-0", phase="Running", owner_references=[owner])
        assert not world.view(key).started
    assert not world.state.started(key)
    world.pod(key, "worker", 2, CPU, node="node-0", phase="Running", owner_references=[new])
    assert world.state.started(key)


ANSWERS = {
    GangPhase.WAITING: (False, False, False), GangPhase.STARTING: (True, False, False),
    GangPhase.ARRIVING: (True, True, False), GangPhase.STRANDED: (False, True, False),
    GangPhase.WHOLE: (False, False, True), GangPhase.GROWING: (True, False, True),
}  # fmt: skip
"""Phase → whether the gang carries a placement out in it, lacks members in it, and has started in it."""


def gang(bound: int, placement: str, *, started: bool) -> GangView:
    """A gang of three that starts with two; so many are bound, and its placement (if any) is in this phase."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, min_member=2, min_task_member={"worker": 2})
    if placement:
        world.plan()
        world.change(world.state.placements[key], status={"phase": placement, "started": started})
    world.members(key, bound, GPU8, node="node-{}", phase="Running")
    return world.view(key)


@pytest.mark.parametrize(("bound", "placement", "started", "phase"), [
    (0, "", False, GangPhase.WAITING),
    (0, "Abandoned", False, GangPhase.WAITING),
    (0, "Planned", False, GangPhase.STARTING),
    (1, "Planned", False, GangPhase.ARRIVING),
    (1, "Binding", False, GangPhase.ARRIVING),
    (1, "Abandoned", False, GangPhase.STRANDED),
    (1, "", False, GangPhase.STRANDED),
    (2, "", False, GangPhase.WHOLE),
    (2, "Planned", False, GangPhase.GROWING),
    (0, "Bound", False, GangPhase.WAITING),
    (1, "Bound", False, GangPhase.WHOLE),
    (1, "Abandoned", True, GangPhase.WHOLE),
    (1, "Planned", True, GangPhase.GROWING),
    (0, "Abandoned", True, GangPhase.WAITING),
    (0, "Planned", True, GangPhase.STARTING),
])  # fmt: skip
def test_the_phase_follows_the_members_and_the_placement(
    bound: int, placement: str, phase: GangPhase, *, started: bool
) -> None:
    """Two of three are enough; a gang that had them stays whole while one member holds a node."""
    view = gang(bound, placement, started=started)
    assert view.phase is phase
    assert (view.active, view.incomplete, view.started) == ANSWERS[phase]
    assert view.begun == (bound > 0 or started or placement == "Bound")
