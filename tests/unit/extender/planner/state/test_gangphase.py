"""How far a gang is, for the planner: by its members that have a node, and by its placement."""

import pytest
from extender_world import World

from extender.planner.state.gangphase import GangPhase
from extender.planner.state.gangs import GangView

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
ANSWERS = {
    GangPhase.WAITING: (False, False, False),
    GangPhase.STARTING: (True, False, False),
    GangPhase.ARRIVING: (True, True, False),
    GangPhase.STRANDED: (False, True, False),
    GangPhase.WHOLE: (False, False, True),
    GangPhase.GROWING: (True, False, True),
}
"""Phase → whether the gang carries a placement out in it, lacks members in it, and has started in it."""


def gang(bound: int, placement: str, *, started: bool) -> GangView:
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
    ("bound", "placement", "started", "phase"),
    [
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
    ],
)
def test_the_phase_follows_the_members_and_the_placement(
    bound: int, placement: str, phase: GangPhase, *, started: bool
) -> None:
    """Two of three are enough; a gang that had them stays whole while one member holds a node."""
    view = gang(bound, placement, started=started)
    assert view.phase is phase
    assert (view.active, view.incomplete, view.started) == ANSWERS[phase]
    assert view.begun == (bound > 0 or started or placement == "Bound")
