"""Validation of a Queue: its place in the tree, its amounts, and no deletion of a queue that others need.

A queue can be edited in every state. An update is not refused for what it leaves as it is, as long as it changes
nothing that is checked here.
"""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.volcano.scheduling import Queue
from webhook.lookup import Queues
from webhook.review import Handler, Verdict, decode
from webhook.validate.queueamounts import check_neighbours, check_own, quantities_of, read_amounts

LARGEST_DEPTH = 5
_QUEUE = Decoder(Queue)
_PATH = f"metadata.annotations[{names.HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]"
_AT_THE_TOP = frozenset({"", names.ROOT_QUEUE})


def reviewer(queues: Queues) -> Handler:
    """Return the handler for Queues, on CREATE, UPDATE and DELETE."""

    def review(request: AdmissionRequest) -> Verdict:
        if request.operation == "DELETE":
            return Verdict(errors=list(check_delete(request.name, queues)))
        queue = decode(request.object, _QUEUE)
        if request.operation == "UPDATE":
            return Verdict(errors=list(check_update(decode(request.old_object, _QUEUE), queue, queues)))
        return Verdict(errors=list(check(queue, queues)))

    return review


def check_delete(name: str, queues: Queues) -> Iterator[FieldError]:
    """Refuse to delete the two queues that always exist, and queues with queues below them."""
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        yield FieldError("metadata.name", f"`{name}` queue can not be deleted; Muster needs it", reason="Forbidden")
    children = queues.children(name)
    if children:
        message = f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        yield FieldError("metadata.name", message, reason="Forbidden")


def check_update(old: Queue, new: Queue, queues: Queues) -> Iterator[FieldError]:
    """Check a changed queue, unless nothing has changed that is checked; amounts of the root are fixed."""
    kept = all(
        old.metadata.annotations.get(key) == new.metadata.annotations.get(key)
        for key in (names.HIERARCHY, names.HIERARCHY_WEIGHTS)
    )
    if new.metadata.deletion_timestamp or (old.spec == new.spec and kept):
        return
    if new.metadata.name == names.ROOT_QUEUE:
        before = quantities_of(old)
        for path, quantities in quantities_of(new).items():
            if quantities != before[path]:
                message = "of the root queue can not be changed: it is what the cluster has"
                yield FieldError(path, message, reason="Forbidden")
    yield from check(new, queues, moved=old.spec.parent != new.spec.parent)


def check(queue: Queue, queues: Queues, *, moved: bool = True) -> Iterator[FieldError]:
    """Yield everything that is wrong with a queue; `moved`: it is new at its place in the tree."""
    amounts, errors = read_amounts(queue)
    yield from errors
    yield from check_own(amounts)
    yield from check_hierarchy(queue, queues)
    wrong = list(check_parent(queue, queues, moved=moved))
    yield from wrong
    if not wrong:
        yield from check_neighbours(queue, amounts, queues)


def check_parent(queue: Queue, queues: Queues, *, moved: bool) -> Iterator[FieldError]:
    """Check that the chain of parents ends at the root after a few steps, and that a new parent has no pods."""
    name, parent = queue.metadata.name, queue.spec.parent
    if name == names.ROOT_QUEUE or parent in _AT_THE_TOP:
        return
    trail = [name]
    while parent not in _AT_THE_TOP:
        if parent in trail:
            itself = f"queue {name} cannot use itself as parent: " if queue.spec.parent == name else ""
            message = f"{itself}a queue can not be its own ancestor: {' is below '.join([*trail, parent])}"
            yield FieldError("spec.parent", message, queue.spec.parent)
            return
        found = queues.get(parent)
        if found is None:
            message = f"queue {parent} does not exist; create it first"
            yield FieldError("spec.parent", message, queue.spec.parent, "NotFound")
            return
        trail.append(parent)
        parent = found.spec.parent
    if len(trail) > LARGEST_DEPTH:
        deep = f"queue {name} exceeds the maximum allowed depth of {LARGEST_DEPTH}"
        message = f"{deep}: at most {LARGEST_DEPTH} levels are allowed below the root: {' is below '.join(trail)}"
        yield FieldError("spec.parent", message, queue.spec.parent)
    if moved and _is_used_leaf(trail[1], name, queues):
        message = f"queue {trail[1]} has pods of its own, so it can not become a parent; let them end first"
        yield FieldError("spec.parent", message, queue.spec.parent)


def _is_used_leaf(name: str, child: str, queues: Queues) -> bool:
    """Return True for a queue with pods that has no other child than this one."""
    found = queues.get(name)
    pods = found.status.allocated.get("pods", 0) if found else 0
    return str(pods) != "0" and not set(queues.children(name)) - {child}


def check_hierarchy(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """Check the hierarchy annotations: a weight above 0 for each name, and no path that leads through another queue."""
    path = queue.metadata.annotations.get(names.HIERARCHY, "")
    weights = queue.metadata.annotations.get(names.HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    steps, numbers = path.split("/"), weights.split("/")
    if len(steps) != len(numbers):
        message = f"must have the same length as {_PATH}, which has {len(steps)}: one weight for each name"
        yield FieldError(_WEIGHTS, message, weights)
    wrong = next((number for number in numbers if not _positive(number)), None)
    if wrong is not None:
        yield FieldError(_WEIGHTS, f"must be numbers greater than 0 and separated by `/`, not {wrong!r}", weights)
    for other in _below(names.ROOT_QUEUE, queues):
        taken = other.metadata.annotations.get(names.HIERARCHY, "")
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


def _below(name: str, queues: Queues) -> Iterator[Queue]:
    """Yield the queue and all queues below it, each once."""
    waiting, met = [name], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            found = queues.get(name)
            if found:
                yield found
            waiting += queues.children(name)
