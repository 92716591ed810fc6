"""How long a gang may stay partial."""

from extender_world import World

from extender.planner.actions.progress import BINDING_S, longest_partial_s
from muster.api.limits import PODS

CPU = {"cpu": 1}


def test_members_that_exist_add_to_it_and_a_number_that_somebody_wrote_does_not() -> None:
    """A gang of four has a little more than the recovery time, and no more with the largest minimum that is allowed."""
    world = World()
    for name, minimum in (("plain", 4), ("most", PODS.value)):
        world.members(world.gang(name, {"worker": (4, CPU)}, min_member=minimum), 4, CPU)
    gangs = world.session().snapshot.gangs
    assert len(gangs) == 2
    assert [longest_partial_s(gang, 30.0) for gang in gangs] == [30.0 + 4 * BINDING_S] * 2
