"""How far a gang is, for the planner: by its members that have a node, and by its placement."""

import pytest
from extender_world import World

from extender.planner.state.gangs import GangPhase, GangView

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def gang(bound: int, placement: str, *, started: bool = False) -> GangView:
    """A gang of three that starts with two; so many are bound, and its placement (if any) is in this phase."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, min_member=2, min_task_member={"worker": 2})
    if placement:
        world.plan()
        written = world.state.placements[key]
        written.status.phase, written.status.started = placement, started  # type: ignore[assignment]
        written.metadata.resource_version = "999"
        world.state.on_placement(None, written)
    world.members(key, bound, GPU8, node="node-{}", phase="Running")
    return world.view(key)


@pytest.mark.parametrize(
    ("bound", "placement", "phase"),
    [
        (0, "", GangPhase.WAITING),
        (0, "Abandoned", GangPhase.WAITING),
        (0, "Planned", GangPhase.STARTING),
        (1, "Binding", GangPhase.ARRIVING),
        (1, "Abandoned", GangPhase.STRANDED),
        (1, "", GangPhase.STRANDED),
        (2, "", GangPhase.WHOLE),
        (2, "Planned", GangPhase.GROWING),
        (0, "Bound", GangPhase.WAITING),
        (1, "Bound", GangPhase.WHOLE),
    ],
)
def test_the_phase_follows_the_members_and_the_placement(bound: int, placement: str, phase: GangPhase) -> None:
    """Two of three are enough."""
    assert gang(bound, placement).phase is phase


def test_a_gang_that_was_whole_stays_so_while_one_member_holds_a_node() -> None:
    """Its members are placed as they come, however few are left; when none is left it starts whole again."""
    assert gang(1, "Abandoned", started=True).phase is GangPhase.WHOLE
    assert gang(1, "Planned", started=True).phase is GangPhase.GROWING
    assert gang(0, "Abandoned", started=True).phase is GangPhase.WAITING
    assert gang(0, "Planned", started=True).phase is GangPhase.STARTING


def test_every_phase_answers_the_short_questions() -> None:
    """Which of them it carries a placement out in, which it lacks members in, which it has started in."""
    for bound, placement, *answers in (
        (0, "", False, False, False, False),
        (0, "Planned", True, False, False, False),
        (1, "Planned", True, True, False, True),
        (1, "", False, True, False, True),
        (2, "", False, False, True, True),
        (2, "Planned", True, False, True, True),
    ):
        view = gang(bound, placement)
        assert [view.active, view.incomplete, view.started, view.begun] == answers, view.phase
