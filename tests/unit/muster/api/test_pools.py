"""Node pools: their schedulers, their selectors, and the pool of a queue."""

import pytest

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import (
    in_pool,
    is_musters,
    is_pool_name,
    lease_of,
    pool_of_scheduler,
    scheduler_of_pool,
    selector_of,
)
from muster.api.names import NODE_POOL
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.volcano.access import pool_of_queue, root_of


def test_a_scheduler_says_its_pool() -> None:
    """Each pool has one scheduler, the default one two; others are none of Muster's."""
    for pool in ("b", "gpu-a100", "1"):
        assert pool_of_scheduler(scheduler_of_pool(pool)) == pool
    assert [pool_of_scheduler(name) for name in ("muster", "volcano")] == ["", ""]
    for name in ("default-scheduler", "", "muster-", "mustered"):
        assert pool_of_scheduler(name) is None
        assert not is_musters(name)


def test_a_scheduler_in_another_pool() -> None:
    """The two names of the default pool stay there, and become that of a named pool."""
    assert [in_pool(name, "") for name in ("muster", "volcano")] == ["muster", "volcano"]
    assert [in_pool(name, "b") for name in ("muster", "volcano", "muster-b")] == ["muster-b"] * 3


@pytest.mark.parametrize("name", ["", "B", "-b", "b-", "b.c", "x" * 41])
def test_names_that_pools_cannot_have(name: str) -> None:
    """A name is a part of names of Deployments and Leases."""
    assert not is_pool_name(name)


def test_no_object_is_selected_by_two() -> None:
    """The selectors of pools leave out each other's objects, and the default one all that have the label."""
    assert selector_of("") == f"!{NODE_POOL}"
    assert selector_of("b") == f"{NODE_POOL}=b"
    assert (lease_of(""), lease_of("b")) == ("muster-scheduler", "muster-scheduler-b")


def queue(name: str, parent: str = "", pool: str = "") -> Queue:
    """A queue, with the label if a pool is given."""
    return Queue(
        metadata=ObjectMeta(name=name, labels={NODE_POOL: pool} if pool else {}), spec=QueueSpec(parent=parent)
    )


def test_a_root_queue_says_the_pool_of_its_tree() -> None:
    """The label counts on the root queue alone: a child's own says nothing, nor does one on `root` or `default`."""
    queues = {
        each.metadata.name: each
        for each in (
            queue("root", pool="x"), queue("default", pool="x"), queue("team", pool="b"), queue("one", "team"),
            queue("deep", "one", pool="c"), queue("plain"), queue("child", "plain", pool="b"), queue("lost", "gone"),
        )
    }  # fmt: skip
    found = {name: pool_of_queue(name, queues.get) for name in [*queues, "missing"]}
    in_b = {"team", "one", "deep"}
    assert found == {name: "b" if name in in_b else "" for name in found}
    top = root_of("deep", queues.get)
    assert top is not None
    assert top.metadata.name == "team"
    assert root_of("missing", queues.get) is None


def test_a_circle_of_queues_ends() -> None:
    """Where admission was bypassed, queues may be each other's parents."""
    queues = {each.metadata.name: each for each in (queue("a", "b"), queue("b", "a"))}
    assert pool_of_queue("a", queues.get) == ""
