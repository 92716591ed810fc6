"""Checks of node pools: the scheduler and the pool label of an object must match the node pool of its queue.

A pod that names no scheduler, `muster` or `volcano`, gets the scheduler of the pool. A scheduler or label of a
different pool is refused, because a gang uses only the nodes of its queue's pool.

The planner of a pool writes the amounts of its largest node to the root queue. Pods that request more than the largest
node has are admitted with a warning, because nodes may be added.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from muster.api import names
from muster.api.fields import FieldError, brief
from muster.api.kubernetes.core import PodSpec
from muster.api.muster.pools import DEFAULT_POOL, in_pool, is_musters, pool_of_scheduler, scheduler_of_pool, words
from muster.kube.errors import APIError
from muster.resources.pods import pod_requests
from muster.resources.typos import EVERYWHERE, similar_resource
from muster.resources.vector import amount_text, vector
from muster.volcano.access import pool_of_queue, root_of
from webhook.lookup import QueueTreeView
from webhook.review import MOST_WARNINGS


def scheduler_in(scheduler: str, queue: str, queues: QueueTreeView) -> str:
    """Return the scheduler of a pod that names `scheduler` and this queue; raise APIError for an unknown queue."""
    return in_pool(scheduler, pool_of_queue(queue, queues.get)) if scheduler in names.SCHEDULERS else scheduler


def wrong_scheduler(path: str, scheduler: str, queue: str, queues: QueueTreeView) -> list[FieldError]:
    """Return an error for a scheduler of a pool other than the queue's.

    Schedulers that are not Muster's are not checked.
    """
    if not is_musters(scheduler) or scheduler in names.SCHEDULERS:
        return []  # a name of the default pool is replaced
    pool = pool_of_queue(queue, queues.get)
    if pool_of_scheduler(scheduler) == pool:
        return []
    message = (
        f"is the scheduler of {words(pool_of_scheduler(scheduler) or '')}, but queue {queue!r} belongs to "
        f"{words(pool)}: "
        f"leave schedulerName out, use {scheduler_of_pool(pool)!r}, or choose a queue of the scheduler's pool"
    )
    return [FieldError(path, message, scheduler)]


def wrong_label(pool: str, queue: str, queues: QueueTreeView) -> list[FieldError]:
    """Return an error for a PodGroup whose label names a pool other than its queue's."""
    of_queue = pool_of_queue(queue, queues.get)
    if pool == of_queue:
        return []
    message = (
        f"names {words(pool)}, but queue {queue!r} belongs to {words(of_queue)}: a gang uses only "
        "the nodes of its queue's pool; choose a queue of the named pool"
    )
    return [FieldError(f"metadata.labels[{names.NODE_POOL}]", message, pool)]


_CLAIMED = "deviceclass.resource.kubernetes.io/"
"""Prefix of resource names for devices of a device class; nodes do not list these resources."""


def beyond_every_node(path: str, spec: PodSpec, queue: str, queues: QueueTreeView) -> list[str]:
    """Return a warning for each resource of which the pod requests more than the pool's largest node has."""
    with suppress(APIError, ValueError):  # a warning is not worth a refusal; the API server refuses wrong quantities
        named = pool_of_queue(queue, queues.get) != DEFAULT_POOL
        root = root_of(queue, queues.get) if named else queues.get(names.ROOT_QUEUE)
        largest = vector(root.status.largest_node) if root else {}
        if largest:
            return list(islice(_beyond(path, pod_requests(spec), largest), MOST_WARNINGS))
    return []


def _beyond(path: str, asked: dict[str, int], largest: dict[str, int]) -> Iterator[str]:
    for name, amount in sorted(asked.items()):
        most = largest.get(name)
        if amount <= 0 or name in names.MARKERS or name.startswith(_CLAIMED):
            continue
        if most is None and name not in EVERYWHERE:
            near = similar_resource(name, largest)
            hint = f"did you mean {near}?" if near else f"nodes have {', '.join(sorted(largest))}"
            yield f"{path}: no node has the resource {brief(name)}, so these pods cannot start; {hint}"
        elif most and amount > most:
            amounts = amount_text(name, amount), amount_text(name, most)
            yield (
                f"{path}: a pod requests {amounts[0]} {name}, but the largest node has only {amounts[1]}; "
                "the pod cannot start"
            )
