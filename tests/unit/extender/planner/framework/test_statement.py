"""A statement that is rolled back leaves nothing behind."""

import numpy as np
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.framework.statement import Statement

ALLOCATION = st.tuples(st.integers(0, 3), st.integers(-2, 5).filter(bool))
"""Column of a node, and number of members that come; if it is negative, of pods that leave."""


@settings(max_examples=settings().max_examples * 2)
@given(before=st.lists(ALLOCATION, max_size=10), after=st.lists(ALLOCATION, max_size=10))
def test_any_sequence_rolled_back_gives_bit_identical_arrays(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    """Rollback to a checkpoint restores the checkpoint, discard the beginning."""
    world = World().nodes(4)
    key = world.gang("a", {"worker": (5, {"cpu": "1500m", "memory": "3Gi"})})
    for rank in range(5):
        world.pod(key, "worker", rank, {"cpu": "1500m"}, node=f"node-{rank % 2}", phase="Running")
    session = world.session()
    gang = next(gang for gang in session.snapshot.gangs if gang.key == key)
    cls = gang.pod_sets[0].cls
    assert cls is not None
    statement = Statement(session)

    def run(allocations: list[tuple[int, int]]) -> None:
        for column, count in allocations:
            if count > 0:
                statement.allocate(gang, "worker", list(range(count)), column, cls)
            else:
                statement.evict(gang, [pod for pod in gang.pods if pod.node == f"node-{column}"][:-count])

    beginning = session.snapshot.free.copy()
    run(before)
    middle, checkpoint = session.snapshot.free.copy(), statement.checkpoint()
    run(after)
    statement.rollback(checkpoint)
    assert np.array_equal(middle, session.snapshot.free)
    statement.discard()
    assert np.array_equal(beginning, session.snapshot.free)


def test_what_is_committed_cannot_be_undone() -> None:
    """The operations are handed over and the log is empty, so that a later discard undoes nothing."""
    world = World().nodes(1)
    world.gang("a", {"worker": (1, {"cpu": 1})})
    session = world.session()
    gang = session.snapshot.gangs[0]
    cls = gang.pod_sets[0].cls
    assert cls is not None
    statement = Statement(session)
    statement.allocate(gang, "worker", [0], 0, cls)
    assert [operation.ranks for operation in statement.commit()] == [[0]]
    assert statement.operations == ()
    statement.discard()
    assert session.snapshot.free[session.snapshot.axis["cpu"], 0] == 31_000


def test_an_eviction_is_taken_back_with_what_came_after_it() -> None:
    """The pods stay, and plugins hear of both."""
    world = World().nodes(2)
    world.members(world.gang("a", {"worker": (2, {"cpu": 1})}), 2, {"cpu": 1}, node="node-0", phase="Running")
    session = world.session()
    heard: list[tuple[str, int]] = []
    for hook in ("evicted", "unevicted"):
        session.hooks.named(hook).add(lambda eviction, hook=hook: heard.append((hook, len(eviction.pods))))
    gang, before = session.snapshot.gangs[0], session.snapshot.free.copy()
    cls = gang.pod_sets[0].cls
    assert cls is not None
    statement = Statement(session)
    statement.evict(gang, gang.pods)
    cpu = session.snapshot.axis["cpu"]
    assert session.snapshot.free[cpu, 0] == before[cpu, 0] + 2000
    statement.allocate(gang, "worker", [0], 1, cls)
    assert (len(statement.operations), len(statement.evictions)) == (1, 1)
    statement.discard()
    assert heard == [("evicted", 2), ("unevicted", 2)]
    assert np.array_equal(before, session.snapshot.free)
