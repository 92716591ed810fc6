"""Volcano's older way to say where a queue is in the tree: a path and weights in annotations."""

from collections.abc import Iterator

from muster.api import names
from muster.api.fields import FieldError
from muster.api.scheduling import Queue
from webhook.lookup import Queues
from webhook.mutate.queue import HIERARCHY, WEIGHTS

_PATH = f"metadata.annotations[{HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{WEIGHTS}]"


def check_hierarchy(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """As many weights as names, all greater than 0, and no queue on the way to another one."""
    path = queue.metadata.annotations.get(HIERARCHY, "")
    weights = queue.metadata.annotations.get(WEIGHTS, "")
    if not path and not weights:
        return
    steps, numbers = path.split("/"), weights.split("/")
    if len(steps) != len(numbers):
        message = f"must have the same length as {_PATH}, which has {len(steps)}: one weight for each name"
        yield FieldError(_WEIGHTS, message, weights)
    for number in numbers:
        if not _positive(number):
            yield FieldError(_WEIGHTS, f"must be numbers greater than 0 and separated by `/`, not {number!r}", weights)
            break
    for other in _all(queues):
        taken = other.metadata.annotations.get(HIERARCHY, "")
        if other.metadata.name == queue.metadata.name or not taken:
            continue
        if f"{taken}/".startswith(f"{path}/") or f"{path}/".startswith(f"{taken}/"):
            message = f"can not be a sub path of that of another queue: {other.metadata.name} has {taken}"
            yield FieldError(_PATH, message, path)


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _all(queues: Queues) -> Iterator[Queue]:
    """Every queue that the root leads to."""
    waiting, met = [names.ROOT_QUEUE], set[str]()
    while waiting:
        name = waiting.pop()
        if name in met:
            continue
        met.add(name)
        found = queues.get(name)
        if found:
            yield found
        waiting += queues.children(name)
