"""Whether a queue has room for more at this moment: asked for pods without a gang while kube-scheduler waits.

They are not planned, so that what queues use with those below them is not known: it is added up here, for the resources
that a capability on the way to the root names, and for nothing else.
"""

from collections import Counter
from collections.abc import Mapping

from extender.planner.framework.ordering import upwards
from extender.planner.state.queueuse import Use
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, vector


def queue_full(queues: Mapping[str, Queue], uses: Mapping[str, Use], queue: str, requests: Vector) -> bool:
    """Whether so much more would take the queue, or one above it, over its capability."""
    limits = {name: limit for name in upwards(queues, queue) if (limit := _limit(queues, name, requests))}
    used: Counter[tuple[str, str]] = Counter()
    for name, use in uses.items() if limits else ():
        for above in upwards(queues, name):
            for resource in limits.get(above, ()):
                used[above, resource] += use.staying.get(resource, 0) + use.leaving.get(resource, 0)
    return any(
        used[name, resource] + requests[resource] > most
        for name, limit in limits.items()
        for resource, most in limit.items()
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
