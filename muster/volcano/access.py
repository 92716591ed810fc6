"""Settings that queues inherit in their tree: selectors for the namespaces that may use a queue, and the node pool.

Pure.

A namespace may use a queue if the queue and every queue above it select the namespace; a queue without the annotation
selects all, as in Volcano. An unparseable selector, which is possible if admission was bypassed, selects no namespace.
A typo must not admit namespaces that an administrator has excluded. A namespace that is locked to a queue cannot use
any other queue.

The root queue of a tree names the node pool of all its queues, so that shares apply within a pool.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from muster.api import names
from muster.api.muster.pools import DEFAULT_POOL, pool_of, words
from muster.api.volcano.scheduling import Queue
from muster.resources.labels import read_selector, selects

DEPTH = 64
"""Maximum number of levels of queues that the code follows; admission allows fewer levels."""
NAME_LABEL = "kubernetes.io/metadata.name"
"""Label that the API server adds to each namespace; manifests in files may lack this label."""


@dataclass(frozen=True, slots=True)
class NamespaceObstacle:
    """The reason why a namespace is not allowed to use a queue, such as a selector of this queue or of one above it."""

    queue: str
    selector: str
    error: str = ""
    """Reason why the selector is unreadable; empty for a readable selector."""
    locked: str = ""
    """The queue to which the namespace is locked, if this is the reason."""
    pools: tuple[str, str] | None = None
    """Node pools of the queue and of the pods, if a difference between the two pools is the reason."""

    def __str__(self) -> str:
        """Return the reason as a clause of a sentence."""
        if self.pools:
            return f"queue {self.queue!r} is of {words(self.pools[0])}, and the pods are of {words(self.pools[1])}"
        if self.locked:
            return f"the namespace is locked to queue {self.locked!r} (its labels {names.QUEUE}, {names.QUEUE_LOCKED})"
        if self.error:
            return f"the annotation {names.NAMESPACE_SELECTOR} of queue {self.queue!r} cannot be read: {self.error}"
        return f"queue {self.queue!r} is for namespaces with {self.selector} ({names.NAMESPACE_SELECTOR})"


def barrier(
    queue: str, namespace: str, labels: Mapping[str, str], get: Callable[[str], Queue | None]
) -> NamespaceObstacle | None:
    """Return the reason why a namespace is not allowed to use a queue; None if it is allowed."""
    if (locked := locked_to(labels)) and locked != queue:
        return NamespaceObstacle(queue, "", locked=locked)
    labels = {NAME_LABEL: namespace, **labels}
    for known in lineage(queue, get):
        text = known.metadata.annotations.get(names.NAMESPACE_SELECTOR)
        if text is None:
            continue
        try:
            if not selects(read_selector(text), labels):
                return NamespaceObstacle(known.metadata.name, text)
        except ValueError as error:
            return NamespaceObstacle(known.metadata.name, text, str(error))
    return None


def lineage(queue: str, get: Callable[[str], Queue | None]) -> Iterator[Queue]:
    """Yield a queue and all existing queues above it, from the queue itself to the root."""
    for _ in range(DEPTH):
        known = get(queue)
        if known:
            yield known
        if queue == names.ROOT_QUEUE:
            return
        queue = (known.spec.parent if known else "") or names.ROOT_QUEUE


def parent_names(queue: Queue) -> list[str]:
    """Return the parent of a queue as a list, which is `root` by default and empty for `root` itself."""
    return [] if queue.metadata.name == names.ROOT_QUEUE else [queue.spec.parent or names.ROOT_QUEUE]


def restricts(queue: Queue) -> bool:
    """Return True if the queue itself has a selector."""
    return names.NAMESPACE_SELECTOR in queue.metadata.annotations


def locked_to(labels: Mapping[str, str]) -> str:
    """Return the queue to which a namespace with these labels is locked; empty for an unlocked namespace."""
    return labels.get(names.QUEUE, "") if labels.get(names.QUEUE_LOCKED) == "true" else ""


def root_of(queue: str, get: Callable[[str], Queue | None]) -> Queue | None:
    """Return the top-level queue (a child of `root`) above a queue; None if the queue does not exist."""
    top = None
    for known in lineage(queue, get):
        if known.metadata.name != names.ROOT_QUEUE:
            top = known
    return top


def pool_of_queue(queue: str, get: Callable[[str], Queue | None]) -> str:
    """Return the node pool of a queue; the queues `root` and `default` are always in the default pool."""
    top = root_of(queue, get)
    return pool_of(top.metadata) if top and top.metadata.name != names.DEFAULT_QUEUE else DEFAULT_POOL
