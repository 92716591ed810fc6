"""Amounts of queues as a cycle places and evicts are those that they would have from the beginning."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import QueueTree, tree_of
from extender.planner.state.amounts import Amounts
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Guarantee, Queue, QueueSpec

PARENTS = {"a": "root", "b": "root", "a1": "a", "a2": "a"}
NAMES = ["root", *PARENTS]
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 4), st.booleans()), max_size=8)


def tree_with(guarantees: dict[str, int]) -> QueueTree:
    """Two queues, one with two below it, along one resource."""
    return tree_of(
        {
            name: Queue(
                metadata=ObjectMeta(name=name),
                spec=QueueSpec(parent=parent, guarantee=Guarantee(resource={"pods": guarantees.get(name, 0)})),
            )
            for name, parent in PARENTS.items()
        },
        {"pods": 0},
        1,
    )


def made(tree: QueueTree, used: dict[str, int], fixed: dict[str, int]) -> Allocations:
    """Allocations of queues that use so much themselves."""

    def table(amounts: dict[str, int]) -> Amounts:
        return np.array([[amounts.get(name, 0)] for name in tree.names], dtype=np.int64)

    return Allocations(tree, np.array([99]), table(used), table(used), table(fixed), table({}))


@given(st.dictionaries(st.sampled_from([*PARENTS]), st.integers(0, 5)), STEPS)
def test_what_follows_trials_is_what_is_made_at_once(
    guarantees: dict[str, int], steps: list[tuple[str, int, bool]]
) -> None:
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
    assert {name: made(tree, {"a1": 1, "a2": 4, "root": 1}, {}).committed[tree.row(name), 0] for name in NAMES} == {
        "root": 10, "a": 7, "a1": 3, "a2": 4, "b": 2,
    }  # fmt: skip
