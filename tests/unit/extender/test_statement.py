"""A statement that is rolled back leaves nothing behind."""

import numpy as np
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.framework.statement import Statement

OPERATION = st.tuples(st.sampled_from(["allocate", "pipeline", "evict"]), st.integers(0, 3), st.integers(1, 5))


@settings(max_examples=200)
@given(before=st.lists(OPERATION, max_size=10), after=st.lists(OPERATION, max_size=10))
def test_any_sequence_rolled_back_gives_bit_identical_arrays(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]]
) -> None:
    """Rollback to a checkpoint restores the checkpoint, discard the beginning."""
    world = World()
    world.nodes(4)
    key = world.gang("a", {"worker": (5, {"cpu": "1500m", "memory": "3Gi"})})
    session = world.session()
    gang = next(gang for gang in session.snapshot.gangs if gang.key == key)
    cls = gang.pod_sets[0].cls
    assert cls is not None
    statement = Statement(session)

    def run(operations: list[tuple[str, int, int]]) -> None:
        for kind, column, count in operations:
            getattr(statement, kind)(gang, "worker", list(range(count)), column, cls)

    beginning = session.snapshot.free.copy()
    run(before)
    middle, checkpoint = session.snapshot.free.copy(), statement.checkpoint()
    run(after)
    statement.rollback(checkpoint)
    assert np.array_equal(middle, session.snapshot.free)
    statement.discard()
    assert np.array_equal(beginning, session.snapshot.free)
    assert not session.committed


def test_only_commit_lets_operations_out_of_the_session() -> None:
    """And it empties the log, so that a later discard undoes nothing."""
    world = World()
    world.nodes(1)
    world.gang("a", {"worker": (1, {"cpu": 1})})
    session = world.session()
    gang = session.snapshot.gangs[0]
    cls = gang.pod_sets[0].cls
    assert cls is not None
    statement = Statement(session)
    statement.allocate(gang, "worker", [0], 0, cls)
    assert session.committed == []
    statement.commit()
    statement.discard()
    assert [operation.kind for operation in session.committed] == ["allocate"]
    assert session.snapshot.free[session.snapshot.table.axis["cpu"], 0] == 31_000
