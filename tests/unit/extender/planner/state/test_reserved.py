"""Room that pods without a gang leave free for reservations, by node and resource, as far as they are in the way."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.reserved import ReservedRoom, ReservedRooms

NODES, RESOURCES, NOW, START_S = 4, 2, 100.0, 10.0
AMOUNTS = st.lists(st.integers(0, 5), min_size=RESOURCES, max_size=RESOURCES)
ROOMS = st.lists(st.tuples(
    st.sampled_from([None, 110.0, 150.0, 200.0]),
    st.dictionaries(st.integers(0, NODES - 1), st.tuples(AMOUNTS, AMOUNTS), min_size=1),
    st.sampled_from(["", "", "q"]),
), max_size=3)  # fmt: skip
CHANGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.none() | AMOUNTS), max_size=4)
Room = tuple[float | None, dict[int, tuple[list[int], list[int]]], str]
Change = tuple[int, list[int] | None]


def made(rooms: Sequence[Room]) -> list[ReservedRoom]:
    """The rooms as the planner makes them."""
    return [
        ReservedRoom(
            at,
            np.array(sorted(nodes), dtype=np.int64),
            np.array([nodes[column][0] for column in sorted(nodes)]).T,
            np.array([nodes[column][1] for column in sorted(nodes)]).T,
            only=only,
        )
        for at, nodes, only in rooms
    ]


def left(rooms: Sequence[Room], changes: Sequence[Change], minded: Sequence[bool]) -> np.ndarray:
    """What is to be left free, by a search: the needs there, less the least that is gained."""
    found = np.zeros((RESOURCES, NODES), dtype=np.int64)
    for column in range(NODES):
        for row in range(RESOURCES):
            need, gained = 0, []
            for (_, nodes, _), counts in zip(rooms, minded, strict=True):
                if counts and column in nodes:
                    mine, gives = nodes[column][0][row], nodes[column][1][row]
                    for at, given_back in changes:
                        if at == column:
                            mine, gives = (0, gives) if given_back is None else (mine, max(gives - given_back[row], 0))
                    need, gained = need + mine, [*gained, gives]
            found[row, column] = max(need - min(gained, default=0), 0)
    return found


@given(ROOMS, CHANGES, CHANGES, st.sampled_from([None, 0.0, 0.5, 40.0, 90.0, 900.0]), st.sampled_from(["", "q", "r"]))
def test_what_is_left_free(
    rooms: list[Room], during: list[Change], after: list[Change], runtime_s: float | None, queue: str
) -> None:
    """By pods that would still be there when the reservation begins, less room given back since the snapshot."""
    kept, objects = ReservedRooms(), made(rooms)
    kept.snapshot_taken()
    for column, row in during:
        kept.changed(column, None if row is None else np.array(row))
    kept.replace(objects, START_S)
    columns, rows = np.array([2, 0, -1, 3, 1]), np.array([1, 0])
    kept.amounts(columns, rows, NOW, runtime_s, queue)  # what is remembered of this is over with the next change
    for column, row in after:
        kept.changed(column, None if row is None else np.array(row))
    minded = [
        only in {"", queue} and (runtime_s is None or at is None or NOW + START_S + runtime_s > at)
        for at, _, only in rooms
    ]
    found = kept.amounts(columns, rows, NOW, runtime_s, queue)
    if not any(minded):
        assert found is None
        return
    expected = left(rooms, [*during, *after], minded)[::-1, columns]
    expected[:, 2] = 0
    assert found.tolist() == expected.tolist()
    unknown = kept.amounts(columns, np.array([RESOURCES]), NOW, runtime_s, queue)
    assert not unknown.any(), "of a resource that came later nothing is reserved"
    assert all(np.array_equal(one.gained, other.gained) for one, other in zip(objects, made(rooms), strict=True))


def test_what_a_room_does_not_have_changes_nothing() -> None:
    """A node that is not among its own, or a resource that came later."""
    [room] = made([(None, {1: ([3, 3], [2, 2]), 3: ([1, 1], [0, 0])}, "")])
    assert not any(room.changed(column, np.array([1, 1])) for column in (0, 2, 4))
    assert room.changed(1, np.array([1, 3, 9]))
    assert room.gained.tolist() == [[1, 0], [0, 0]]
    assert room.changed(3, None)
    assert room.need.tolist() == [[3, 0], [3, 0]]
