"""Queues, and which namespaces may use them by the labels of both."""

from collections.abc import Mapping

from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue
from muster.volcano.access import Barrier, barrier, locked_to, restricts


class Access:
    """Queues by name, and the labels of namespaces that decide about them."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.left: set[str] = set()
        """Namespaces that have given their pods a queue, and do not any more; as far as this process has seen."""
        self._labels: dict[str, Mapping[str, str]] = {}
        self._locked: set[str] = set()
        """Namespaces that are locked to their queue."""

    @property
    def restricted(self) -> bool:
        """True if some queue may not be for some namespace."""
        return bool(self._locked) or any(map(restricts, self.queues.values()))

    def barrier(self, queue: str, namespace: str) -> Barrier | None:
        """Return the reason why a namespace may not use a queue; None if it may."""
        return barrier(queue, namespace, self._labels.get(namespace, {}), self.queues.get)

    def queue_of_namespace(self, name: str) -> str:
        """Return the queue that a namespace gives to what is in it; empty without one."""
        return Namespace(metadata=ObjectMeta(labels=dict(self._labels.get(name, {})))).queue

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Take a namespace; return True if its labels matter to the queues of its pods."""
        name = (new or old or Namespace()).metadata.name
        before, labels = self._labels.pop(name, None), new.metadata.labels if new else {}
        if new is not None:
            self._labels[name] = labels
        left = new is not None and not new.queue and (name in self.left or bool(old and old.queue))
        changed = left != (name in self.left)
        (self.left.add if left else self.left.discard)(name)
        was_locked = name in self._locked
        (self._locked.add if locked_to(labels) else self._locked.discard)(name)
        return changed or (before != labels and (was_locked or self.restricted))
