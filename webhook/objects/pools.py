"""The node pool of what enters a queue: its scheduler and its label are those of the pool of the queue.

Who names no scheduler, `muster` or `volcano`, gets that of the pool. Who names the scheduler or the label of another
pool than that of his queue is refused: a gang has the nodes of one pool, and the queue says which.
"""

from muster.api import names
from muster.api.fields import FieldError
from muster.api.muster.pools import in_pool, is_musters, pool_of_scheduler, scheduler_of_pool, words
from muster.volcano.pools import pool_of_queue
from webhook.lookup import Queues


def scheduler_in(scheduler: str, queue: str, queues: Queues) -> str:
    """Return the scheduler of pods of the queue that name this one; APIError if the queue is not known."""
    return in_pool(scheduler, pool_of_queue(queue, queues.get)) if scheduler in names.SCHEDULERS else scheduler


def wrong_scheduler(path: str, scheduler: str, queue: str, queues: Queues) -> list[FieldError]:
    """Refuse a scheduler of another pool than that of the queue; one that is not Muster's is somebody else's matter."""
    if not is_musters(scheduler) or scheduler in names.SCHEDULERS:
        return []  # a name of the default pool is written anew
    pool = pool_of_queue(queue, queues.get)
    if pool_of_scheduler(scheduler) == pool:
        return []
    message = (
        f"is the scheduler of {words(pool_of_scheduler(scheduler) or '')}, and queue {queue!r} is of {words(pool)}: "
        f"leave it out, use {scheduler_of_pool(pool)!r}, or choose a queue of that pool"
    )
    return [FieldError(path, message, scheduler)]


def wrong_label(pool: str, queue: str, queues: Queues) -> list[FieldError]:
    """Refuse a PodGroup whose label names another pool than that of its queue."""
    of_queue = pool_of_queue(queue, queues.get)
    if pool == of_queue:
        return []
    message = (
        f"says {words(pool)}, and queue {queue!r} is of {words(of_queue)}: a gang has the nodes of the pool of its "
        f"queue, and stays in it; choose a queue of that pool"
    )
    return [FieldError(f"metadata.labels[{names.NODE_POOL}]", message, pool)]
