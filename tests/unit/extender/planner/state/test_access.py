"""Queues of a node pool and the namespaces that may use them: kept by events as the objects alone would have it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.access import Access
from muster.api import names
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.volcano.access import barrier, locked_to, pool_of_queue, restricts

QUEUES, POOLS = ("root", "default", "a", "b", "c"), ("", "p")
QUEUE = st.tuples(st.sampled_from(["", *QUEUES]), st.sampled_from(POOLS), st.booleans())
NAMESPACE = st.tuples(st.sampled_from(["", "a", "b"]), st.booleans(), st.booleans())
STEP = st.tuples(st.just("queue"), st.sampled_from(QUEUES), st.none() | QUEUE) | st.tuples(
    st.just("namespace"), st.sampled_from(["x", "y"]), st.none() | NAMESPACE
)
STEPS = st.lists(STEP, max_size=20)


def queue_of(name: str, parent: str, pool: str, chosen: bool) -> Queue:  # noqa: FBT001 - drawn by hypothesis
    """A queue of a pool, for namespaces of the team red alone if it is chosen so."""
    said = {names.NAMESPACE_SELECTOR: "team=red"} if chosen else {}
    labels = {names.NODE_POOL: pool} if pool else {}
    return Queue(metadata=ObjectMeta(name=name, labels=labels, annotations=said), spec=QueueSpec(parent=parent))


def namespace_of(name: str, queue: str, locked: bool, ends: bool) -> Namespace:  # noqa: FBT001 - as above
    """A namespace that gives its pods a queue, perhaps the only one for them, and perhaps ends."""
    labels = ({names.QUEUE: queue} if queue else {}) | ({names.QUEUE_LOCKED: "true"} if locked else {})
    gone = "2026-01-01T00:00:00Z" if ends else None
    return Namespace(metadata=ObjectMeta(name=name, labels=labels, deletion_timestamp=gone))


@given(STEPS, st.sampled_from(["default", "p"]))
def test_access_follows_queues_and_namespaces(steps: list[tuple[str, str, Any]], pool: str) -> None:
    """Which queues are of the pool, whom they are for, and what matters of a namespace that changes."""
    access = Access(pool)
    queues: dict[str, Queue] = {}
    namespaces: dict[str, Namespace] = {}
    left: set[str] = set()
    for what, name, value in steps:
        if what == "queue":
            old, new = queues.pop(name, None), queue_of(name, *value) if value else None
            queues |= {name: new} if new else {}
            access.on_queue(old, new)
        else:
            before, known = namespaces.pop(name, None), namespace_of(name, *value) if value else None
            was_left, restricted = name in left, access.restricted
            if known is None or known.queue:
                left.discard(name)
            elif before is not None and before.queue:
                left.add(name)
            locked = any(each is not None and locked_to(each.metadata.labels) for each in (before, known))
            relabelled = (before.metadata.labels if before else None) != (known.metadata.labels if known else {})
            ends = [each is not None and each.metadata.deletion_timestamp is not None for each in (before, known)]
            expected = (name in left) != was_left or ends == [False, True] or (relabelled and (locked or restricted))
            namespaces |= {name: known} if known else {}
            assert bool(access.on_namespace(before, known)) is expected
        own = {each: queue for each, queue in queues.items() if pool_of_queue(each, queues.get) == pool}
        assert (access.queues, access.left) == (own, left)
        assert access.ending == {each for each, one in namespaces.items() if one.metadata.deletion_timestamp}
        some_locked = any(locked_to(one.metadata.labels) for one in namespaces.values())
        assert access.restricted is (len(own) < len(queues) or some_locked or any(map(restricts, own.values())))
        for namespace in ("x", "y"):
            labels = namespaces[namespace].metadata.labels if namespace in namespaces else {}
            assert access.queue_of_namespace(namespace) == labels.get(names.QUEUE, "")
            for queue in QUEUES:
                found = access.barrier(queue, namespace)
                if queue in queues and queue not in own:
                    assert found.pools == (pool_of_queue(queue, queues.get), pool)
                else:
                    assert found == barrier(queue, namespace, labels, queues.get)
