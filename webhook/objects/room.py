"""The room that a single node has at most, as the planner tells at the root queue, and pods that no node can have.

The planner of a named node pool tells it at the root queues of its trees.

They are warned of and not refused: nodes may be added, and the numbers are some seconds old.
"""

from collections.abc import Iterator
from contextlib import suppress

from muster.api import names
from muster.api.kubernetes.core import PodSpec
from muster.api.muster.pools import DEFAULT_POOL
from muster.kube.errors import APIError
from muster.resources.near import EVERYWHERE, near_resource
from muster.resources.pods import pod_requests
from muster.resources.vector import amount_words, vector
from muster.volcano.pools import pool_of_queue, root_of
from webhook.lookup import Queues

_CLAIMED = "deviceclass.resource.kubernetes.io/"
"""Beginning of names that stand for devices of a class, which no node lists."""


def beyond_every_node(path: str, spec: PodSpec, queue: str, queues: Queues) -> list[str]:
    """Return a warning for each resource of which a pod in this queue asks for more than any node of its pool has."""
    with suppress(APIError, ValueError):  # a warning is not worth a refusal; wrong quantities the API server refuses
        named = pool_of_queue(queue, queues.get) != DEFAULT_POOL
        told = root_of(queue, queues.get) if named else queues.get(names.ROOT_QUEUE)
        largest = vector(told.status.largest_node) if told else {}
        if largest:
            return list(_beyond(path, pod_requests(spec), largest))
    return []


def _beyond(path: str, asked: dict[str, int], largest: dict[str, int]) -> Iterator[str]:
    for name, amount in sorted(asked.items()):
        most = largest.get(name)
        if amount <= 0 or name in names.MARKERS or name.startswith(_CLAIMED):
            continue
        if most is None and name not in EVERYWHERE:
            near = near_resource(name, largest)
            hint = f"did you mean {near}?" if near else f"nodes have {', '.join(sorted(largest))}"
            yield f"{path}: no node has the resource {name}, so these pods cannot start; {hint}"
        elif most and amount > most:
            words = amount_words(name, amount), amount_words(name, most)
            yield f"{path}: a pod asks for {words[0]} {name}, and the largest node has {words[1]}; it cannot start"
