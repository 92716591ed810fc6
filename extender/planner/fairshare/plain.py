"""Whether a queue has room for more at this moment: asked for pods without a gang while kube-scheduler waits.

They are not planned, so that what queues use with those below them is not known: it is added up here, for the resources
that a capability on the way to the root names, and for nothing else.
"""

from collections.abc import Mapping

from extender.planner.framework.turns import upwards
from extender.planner.state.queueuse import Use
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, vector


def queue_full(queues: Mapping[str, Queue], uses: Mapping[str, Use], queue: str, requests: Vector) -> bool:
    """Whether so much more would take the queue, or one above it, over its capability."""
    limits = {name: limit for name in upwards(queues, queue) if (limit := _limit(queues, name, requests))}
    if not limits:
        return False
    used: dict[str, Vector] = {name: dict.fromkeys(limit, 0) for name, limit in limits.items()}
    for name, use in uses.items():
        for above in upwards(queues, name):
            sums = used.get(above, {})
            for resource in sums:
                sums[resource] += use.staying.get(resource, 0) + use.leaving.get(resource, 0)
    return any(
        used[name][resource] + requests[resource] > limit[resource]
        for name, limit in limits.items()
        for resource in limit
    )


def bounded(queues: Mapping[str, Queue], queue: str) -> bool:
    """Whether the queue, or one above it, has a capability at all."""
    return any(known.spec.capability for name in upwards(queues, queue) if (known := queues.get(name)))


def _limit(queues: Mapping[str, Queue], name: str, requests: Vector) -> Vector:
    """The capability of a queue in the resources that are requested; one that cannot be read is none."""
    known = queues.get(name)
    if known is None or not known.spec.capability:
        return {}
    try:
        limit = vector(known.spec.capability)
    except ValueError:
        return {}
    return {resource: amount for resource, amount in limit.items() if requests.get(resource, 0) > 0}
