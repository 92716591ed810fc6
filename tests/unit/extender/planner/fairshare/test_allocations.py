"""Amounts of queues as a cycle places and evicts are those that they would have from the beginning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.refusals import over_quota
from extender.planner.fairshare.tree import QueueTree, tree_of
from extender.planner.limits import Excess
from extender.planner.state.amounts import Amounts
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Guarantee, Queue, QueueSpec

PARENTS = {"a": "root", "b": "root", "a1": "a", "a2": "a"}
NAMES = ["root", *PARENTS]
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 4), st.booleans()), max_size=8)


def tree_with(guarantees: dict[str, int]) -> QueueTree:
    """Two queues, one with two below it, along one resource."""
    made = {}
    for name, parent in PARENTS.items():
        spec = QueueSpec(parent=parent, guarantee=Guarantee(resource={"pods": guarantees.get(name, 0)}))
        made[name] = Queue(metadata=ObjectMeta(name=name), spec=spec)
    return tree_of(made, {"pods": 0}, 1)


def made(tree: QueueTree, used: dict[str, int], fixed: dict[str, int]) -> Allocations:
    """Allocations of queues that use so much themselves."""

    def table(amounts: dict[str, int]) -> Amounts:
        return np.array([[amounts.get(name, 0)] for name in tree.names], dtype=np.int64)

    return Allocations(tree, np.array([99]), table(used), table(used), table(fixed), table({}))


@given(st.dictionaries(st.sampled_from([*PARENTS]), st.integers(0, 5)), STEPS)
def test_what_follows_trials_is_made_at_once(guarantees: dict[str, int], steps: list[tuple[str, int, bool]]) -> None:
    """Guarantees included, and back again; growth says beforehand by how much each queue's committed amounts rise."""
    tree = tree_with(guarantees)
    kept, used, fixed = made(tree, {}, {}), dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    start = kept.committed.copy()
    for name, amount, is_fixed in steps:
        row, before = tree.row(name), kept.committed.copy()
        growth = dict(kept.growth(row, np.array([amount])))
        versions = [*kept.versions]
        kept.place(row, np.array([amount]), fixed=is_fixed)
        used[name] += amount
        fixed[name] += amount * is_fixed
        fresh = made(tree, used, fixed)
        for one, other in ((kept.used, fresh.used), (kept.allocated, fresh.allocated), (kept.fixed, fresh.fixed)):
            assert one.tolist() == other.tolist()
        assert kept.committed.tolist() == fresh.committed.tolist()
        rises = {each: int(rise[0]) for each, rise in growth.items()}
        assert [rises.get(each, 0) for each in range(len(NAMES))] == (kept.committed - before)[:, 0].tolist()
        changed = [each for each in range(len(NAMES)) if kept.versions[each] > versions[each]]
        assert changed == sorted(tree.chains[row])
    for name, amount, is_fixed in steps:
        kept.place(tree.row(name), np.array([amount]), -1, fixed=is_fixed)
    assert not kept.used.any() | kept.fixed.any()
    assert kept.committed.tolist() == start.tolist()


def test_a_guarantee_is_committed_where_nothing_is_used() -> None:
    """At its queue and all above it; more is only what is used beyond it."""
    tree = tree_with({"a1": 3, "b": 2})
    committed = made(tree, {"a1": 1, "a2": 4, "root": 1}, {}).committed[:, 0]
    assert {name: committed[tree.row(name)] for name in NAMES} == {"root": 10, "a": 7, "a1": 3, "a2": 4, "b": 2}


def two(name: str, parent: str = "", **deserved: int) -> Queue:
    """A queue that deserves so much of resources `a` and `b`."""
    return Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent, deserved=dict(deserved)))


def test_an_inner_queue_deserves_what_those_below_it_do_unless_it_says_otherwise() -> None:
    """Resource by resource; what nobody says is nothing."""
    queues = {each.metadata.name: each for each in (
        two("sum"), two("x", "sum", a=3, b=1), two("y", "sum", a=4), two("own", a=2), two("z", "own", a=9, b=5),
    )}  # fmt: skip
    tree = tree_of(queues, {"a": 0, "b": 1}, 2)
    found = {name: tree.deserved[tree.row(name)].tolist() for name in ("sum", "x", "y", "own", "z", "root")}
    assert found == {"sum": [7, 1], "x": [3, 1], "y": [4, 0], "own": [2, 5], "z": [9, 5], "root": [9, 6]}


@pytest.mark.parametrize(("amounts", "over"), [((1, 0), None), ((2, 0), ("a", 2, 3, 4)), ((0, 1), ("b", 1, 6, 5))])
def test_gangs_that_are_not_preemptable_stay_within_what_their_queue_deserves(
    amounts: tuple[int, int], over: tuple[str, int, int, int] | None
) -> None:
    """Of resources that they ask for: of another one more may be in use than is deserved by now."""
    tree = tree_of({"q": two("q", a=4, b=5)}, {"a": 0, "b": 1}, 2)
    fixed = np.array([[0, 0], [3, 6]])
    allocations = Allocations(tree, np.array([9, 9]), fixed.copy(), fixed.copy(), fixed, np.zeros_like(fixed))
    found = over_quota(allocations, {"a": 0, "b": 1}, 1, np.array(amounts))
    assert found == (over and Excess("QueueOverDeserved", "q", *over))
