"""The node pool of a queue: its root queue names it for the whole tree, so that all shares hold within a pool. Pure."""

from collections.abc import Callable

from muster.api import names
from muster.api.muster.pools import DEFAULT_POOL, pool_of
from muster.api.volcano.scheduling import Queue
from muster.volcano.access import lineage


def root_of(queue: str, get: Callable[[str], Queue | None]) -> Queue | None:
    """Return the root queue of a queue's tree, which is right below `root`; None if the queue does not exist."""
    top = None
    for known in lineage(queue, get):
        if known.metadata.name != names.ROOT_QUEUE:
            top = known
    return top


def pool_of_queue(queue: str, get: Callable[[str], Queue | None]) -> str:
    """Return the pool of a queue; the queues `root` and `default` are in the default one, whatever their labels say."""
    top = root_of(queue, get)
    return pool_of(top.metadata) if top and top.metadata.name != names.DEFAULT_QUEUE else DEFAULT_POOL
