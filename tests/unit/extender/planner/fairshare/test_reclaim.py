"""Who may take from whom: KAI's vectors, and that queues never take from each other in turns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.fairshare.reclaim import Loss, ReclaimRules
from extender.planner.fairshare.tree import tree_of
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec

AXIS = {"nvidia.com/gpu": 0}
Row = tuple[int, float, int]
"""What a queue deserves, its fair share, and what it has."""

VECTORS = {
    "R1": ((0, 5, 4), 1, (0, 5, 6), [1], True), "R2": ((0, 5, 2), 3, (0, 5, 6), [3], True),
    "R3": ((0, 5, 3), 2, (0, 5, 6), [1, 1], False), "R4 one by one": ((4, 4, 2), 2, (4, 6, 6), [1, 1], True),
    "R4 at once": ((4, 4, 2), 2, (4, 6, 6), [2], True), "R5": ((4, 4, 1), 3, (4, 6, 6), [1, 1, 1], False),
    "R6": ((2, 4, 2), 2, (4, 6, 6), [2], False), "R7": ((0, 5, 0), 5, (0, 5, 6), [6], True),
    "R8": ((0, 4, 4), 1, (0, 4, 6), [1], False),
}  # fmt: skip


def books_of(*rows: Row) -> ReclaimRules:
    """Queues right below the root: a, b, c and so on."""
    queues = {}
    for name, (deserved, _, _) in zip("abcdefgh", rows, strict=False):
        spec = QueueSpec(deserved={"nvidia.com/gpu": f"{deserved}m"} if deserved else {})
        queues[name] = Queue(metadata=ObjectMeta(name=name), spec=spec)
    fair = np.array([[sum(row[1] for row in rows)], *([row[1]] for row in rows)], dtype=np.float64)
    allocated = np.array([[sum(row[2] for row in rows)], *([row[2]] for row in rows)], dtype=np.int64)
    return ReclaimRules(tree_of(queues, AXIS, 1), fair, allocated, np.zeros_like(allocated))


def amounts(number: int) -> np.ndarray:  # type: ignore[type-arg]
    """So many GPUs."""
    return np.array([number], dtype=np.int64)


def accepted(rules: ReclaimRules, gains: int, wanted: int, losses: list[Loss], *, strict: bool) -> bool:
    """Whether a reclaim is accepted, from the first question to the last."""
    asked = amounts(wanted)
    starts = rules.may_start(gains, asked, fixed=False)
    return starts and rules.validate(gains, asked, losses, fixed=False, strict=strict)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors(name: str, strict: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Alike with both comparisons."""
    mine, wanted, theirs, chunks, allowed = VECTORS[name]
    losses = [Loss(2, amounts(chunk)) for chunk in chunks]
    assert accepted(books_of(mine, theirs), 1, wanted, losses, strict=strict) == allowed


@pytest.mark.parametrize(("row", "wanted", "starts"), [
    ((0, 0, 0), 1, False), ((0, 1, 0), 1, True), ((0, 1, 0), 2, False), ((3, 1, 0), 3, True), ((3, 1, 0), 4, False),
])  # fmt: skip
def test_a_queue_takes_up_to_its_fair_share_or_what_it_deserves(row: Row, wanted: int, *, starts: bool) -> None:
    """Whichever is more; nothing of what it has no share of."""
    assert books_of(row, (0, 5, 9)).may_start(1, amounts(wanted), fixed=False) == starts


def test_a_resource_that_is_not_taken_does_not_count() -> None:
    """The queue is over its share of CPU, and gets GPUs."""
    tree = tree_of({name: Queue(metadata=ObjectMeta(name=name)) for name in "ab"}, AXIS | {"cpu": 1}, 2)
    fair, allocated = np.array([[10.0, 6], [5, 1], [5, 5]]), np.array([[10, 7], [4, 2], [6, 5]])
    rules, gpu = ReclaimRules(tree, fair, allocated, np.zeros_like(allocated)), np.array([1, 0])
    assert (rules.above(1, gpu), rules.above(2, np.array([0, 1])), rules.above(2, gpu)) == ([2], [1], [])
    for strict in (True, False):
        assert rules.validate(1, gpu, [Loss(2, gpu), Loss(2, gpu * 0)], fixed=False, strict=strict)


def test_what_may_not_be_displaced_starts_only_within_what_is_deserved() -> None:
    """R9."""
    rules = books_of((2, 6, 2), (0, 4, 4))
    rules.fixed[1] = 2
    assert [rules.may_start(1, amounts(1), fixed=fixed) for fixed in (False, True)] == [True, False]


def test_what_is_deserved_comes_back_though_a_whole_gang_goes_for_it() -> None:
    """Both deserve 32 and one has 64 in one gang: 16 for the other, and the gang does not come back."""
    rules = books_of((32, 16, 0), (32, 48, 64))
    assert accepted(rules, 1, 16, [Loss(2, amounts(64))], strict=False)
    rules.allocated[1:] = [[16], [0]]
    assert not rules.may_start(2, amounts(64), fixed=False)
    assert not accepted(rules, 2, 32, [Loss(1, amounts(16))], strict=False)


def test_what_is_above_what_a_queue_deserves_does_not_come_at_any_price() -> None:
    """All 16 would be borrowed: the one that has 64 would fall below what it deserves for it."""
    assert not accepted(books_of((4, 20, 4), (32, 32, 64)), 1, 16, [Loss(2, amounts(64))], strict=False)


ROW = st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(0, 10))
STEP = st.tuples(st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(1, 4), min_size=1, max_size=3))


@settings(max_examples=settings().max_examples * 3)
@given(st.lists(ROW, min_size=3, max_size=3), st.lists(STEP, max_size=40))
def test_queues_never_take_from_each_other_in_turns(rows: list[Row], steps: list[tuple[int, int, list[int]]]) -> None:
    """Whatever is reclaimed in whatever order, what queues have is never again what it was."""
    rules = books_of(*rows)
    seen = {tuple(rules.allocated[1:, 0])}
    for gains, loses, chunks in steps:
        freed = sum(chunks)  # all of it is used: what stays free might be given to anybody
        if gains == loses or freed > rules.allocated[loses, 0]:
            continue
        if accepted(rules, gains, freed, [Loss(loses, amounts(chunk)) for chunk in chunks], strict=False):
            rules.allocated[gains] += freed
            rules.allocated[loses] -= freed
            assert tuple(rules.allocated[1:, 0]) not in seen
            seen.add(tuple(rules.allocated[1:, 0]))
