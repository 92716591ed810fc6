"""Queues of the node pool, their tree, and the labels that determine which namespaces may use each queue."""

from collections.abc import Iterator, Mapping

from extender.planner.state.amounts import put_entry, put_member
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.names import NODE_POOL, ROOT_QUEUE
from muster.api.volcano.scheduling import Queue
from muster.volcano.access import DEPTH, NamespaceObstacle, barrier, locked_to, pool_of_queue, restricts


class Access:
    """Queues by name, and the labels of namespaces and queues that determine access to queues."""

    def __init__(self, pool: str = DEFAULT_POOL) -> None:
        self.pool = pool
        self.queues: dict[str, Queue] = {}
        """The queues of the pool, by name. The object of queue `root` exists only in the default pool."""
        self._every: dict[str, Queue] = {}
        """The queues of all pools; a queue belongs to the pool of its topmost ancestor."""
        self._children: dict[str, set[str]] = {}
        self.left: set[str] = set()
        """Namespaces that no longer give their pods a queue, but gave their pods a queue earlier in this run of the
        extender."""
        self.ending: set[str] = set()
        """Namespaces that are being deleted, in which not even placements can be created."""
        self._labels: dict[str, Mapping[str, str]] = {}
        self._locked: set[str] = set()
        """Namespaces whose gangs may use only the queue that the namespace names."""

    @property
    def restricted(self) -> bool:
        """True if a queue may exclude some namespaces, or all gangs of this pool."""
        some_elsewhere = len(self._every) != len(self.queues)
        return some_elsewhere or bool(self._locked) or any(map(restricts, self.queues.values()))

    def barrier(self, queue: str, namespace: str) -> NamespaceObstacle | None:
        """Return the reason why a namespace cannot use a queue from this pool; None if it can use the queue."""
        if queue in self._every and queue not in self.queues:
            return NamespaceObstacle(queue, "", pools=(pool_of_queue(queue, self._every.get), self.pool))
        return barrier(queue, namespace, self._labels.get(namespace, {}), self._every.get)

    def on_queue(self, old: Queue | None, new: Queue | None) -> None:
        """Update a queue; a new parent or label may move the queue and its descendants to another pool."""
        name = (new or old or Queue()).metadata.name
        known = put_entry(self._every, name, new)
        before, after = _place(known), _place(new)
        if before == after:
            if name in self.queues:
                put_entry(self.queues, name, new)
            return
        if known is not None:
            self._children.get(before[0], set()).discard(name)
        if new is not None:
            self._children.setdefault(after[0], set()).add(name)
        for each in self._below(name):
            there = self._every.get(each)
            own = there is not None and pool_of_queue(each, self._every.get) == self.pool
            put_entry(self.queues, each, there if own else None)

    def _below(self, name: str) -> Iterator[str]:
        """Yield the queue and all its descendants, each once; for `root`, yield only the root itself."""
        waiting, met = [name], set[str]()
        while waiting:
            each = waiting.pop()
            if each not in met:
                met.add(each)
                waiting += self._children.get(each, ()) if each != ROOT_QUEUE else ()
                yield each

    def queue_of_namespace(self, name: str) -> str:
        """Return the queue that a namespace gives to its workloads; empty if the namespace gives no queue."""
        return Namespace(metadata=ObjectMeta(labels=dict(self._labels.get(name, {})))).queue

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Update a namespace; return True if the change of its labels or its deletion is relevant to gangs."""
        name = (new or old or Namespace()).metadata.name
        ends = new is not None and new.metadata.deletion_timestamp is not None
        begins_to_end = ends and name not in self.ending
        put_member(self.ending, name, present=ends)
        before, labels = self._labels.pop(name, None), new.metadata.labels if new else {}
        if new is not None:
            self._labels[name] = labels
        left = new is not None and not new.queue and (name in self.left or bool(old and old.queue))
        changed = left != (name in self.left)
        put_member(self.left, name, present=left)
        was_locked = name in self._locked
        put_member(self._locked, name, present=bool(locked_to(labels)))
        return changed or begins_to_end or (before != labels and (was_locked or self.restricted))


def parents_of(queues: Mapping[str, Queue]) -> dict[str, str]:
    """Return each queue's parent, "" for the root; the root replaces a missing parent and breaks cycles."""
    parents = {ROOT_QUEUE: ""}
    for name, queue in queues.items():
        if name != ROOT_QUEUE:
            parent = queue.spec.parent or ROOT_QUEUE
            parents[name] = parent if parent in queues else ROOT_QUEUE
    rooted = {ROOT_QUEUE}
    for name in list(parents):
        way: list[str] = []
        at = name
        while at not in rooted and at not in way and len(way) < DEPTH:
            way.append(at)
            at = parents[at]
        if at not in rooted:
            parents[at] = ROOT_QUEUE
            way.append(at)
        rooted.update(way)
    return parents


def _place(queue: Queue | None) -> tuple[str, str | None]:
    """Return the parent and the pool label of a queue, which determine the pool of its descendants.

    Returns ("", None) if the queue does not exist.
    """
    if queue is None:
        return "", None
    return queue.spec.parent or ROOT_QUEUE, queue.metadata.labels.get(NODE_POOL, DEFAULT_POOL)
