"""Validation of Queues: the position in the tree, the node pool, and the deletion of queues in use.

A queue can be edited in every state. An update that does not change any checked field is never refused.

A whole tree belongs to one pool, and the two queues that always exist belong to the default pool. A gang uses the nodes
of one pool, and its pods name the pool's scheduler, which cannot change. For this reason, the pool of a tree with gangs
cannot change.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.muster.pools import LONGEST_NAME, is_pool_name, words
from muster.api.volcano.scheduling import Queue
from muster.resources.labels import read_selector
from muster.resources.runtime import notice_mistakes
from muster.volcano import queuelimits
from muster.volcano.access import pool_of_queue, root_of
from muster.volcano.queuelimits import read_weights
from webhook.lookup import QueueTreeView
from webhook.objects.names import too_long_label
from webhook.review import Handler, ReviewVerdict, decode
from webhook.senders import listed
from webhook.validate.queueamounts import check_neighbours, check_own, quantities_of, read_amounts, unknown_resources
from webhook.validate.queuekeys import check_keys, forgotten_budget

LARGEST_DEPTH = 5
_PATH = f"metadata.annotations[{names.HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]"
_POOL = f"metadata.labels[{names.NODE_POOL}]"
_AT_THE_TOP = frozenset({"", names.ROOT_QUEUE})


def reviewer(queues: QueueTreeView, *, durable_history: bool = True) -> Handler:
    """Return the handler for Queues, on CREATE, UPDATE and DELETE."""

    def warned(new: Queue, old: Queue | None = None) -> list[str]:
        """Return warnings about resources and usage budgets that are new in a queue."""
        unknown = unknown_resources(new, queues, old)
        return unknown if durable_history else [*forgotten_budget(new, old), *unknown]

    def review(request: AdmissionRequest) -> ReviewVerdict:
        if request.operation == "DELETE":
            return ReviewVerdict(errors=list(check_delete(request.name, queues)))
        queue = decode(request.object, Queue)
        old = decode(request.old_object, Queue) if request.operation == "UPDATE" else None
        changed = (
            check_update(old, queue, queues)
            if old
            else chain(
                check_pool(queue, queues),
                too_long_label("metadata.name", queue.metadata.name),
                check_queue(queue, queues),
            )
        )
        findings = check_keys(queue, old)
        findings.add(Findings(list(changed), warned(queue, old)))
        return ReviewVerdict.found(findings)

    return review


def check_delete(name: str, queues: QueueTreeView) -> Iterator[FieldError]:
    """Refuse the deletion of the queues `root` and `default`, and of queues with pods or child queues."""
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        yield FieldError("metadata.name", f"`{name}` queue can not be deleted; Muster needs it", reason="Forbidden")
    children = queues.children(name)
    if any(_is_below(child, name, queues) for child in children):
        message = f"queue {name} can not be deleted because it has {len(children)} child queues: {listed(children)}"
        yield FieldError("metadata.name", message, reason="Forbidden")
    elif pods := _pods(queues.live(name)):
        message = (
            f"queue {name} can not be deleted because it has allocated Pods: {pods}; close it, wait until its gangs "
            "have ended or delete them, and try again"
        )
        yield FieldError("metadata.name", message, reason="Forbidden")


def _is_below(child: str, name: str, queues: QueueTreeView) -> bool:
    """Return True if a cached child still exists, according to the API server: the cache may contain deleted queues."""
    found = queues.live(child)
    return found is not None and found.spec.parent == name


def check_update(old: Queue, new: Queue, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check an update of a queue in which a checked field has changed; the amounts of the root are fixed."""
    yield from [] if new.metadata.deletion_timestamp else check_pool_change(old, new, queues)
    kept = all(
        old.metadata.annotations.get(key) == new.metadata.annotations.get(key)
        for key in (
            names.HIERARCHY,
            names.HIERARCHY_WEIGHTS,
            names.NAMESPACE_SELECTOR,
            names.QUEUE_WEIGHTS,
            names.MAX_EVICT_NOTICE,
            *names.QUEUE_LIMIT_KEYS,
        )
    )
    if new.metadata.deletion_timestamp or (old.spec == new.spec and kept):
        return
    if new.metadata.name == names.ROOT_QUEUE:
        before = quantities_of(old)
        for path, quantities in quantities_of(new).items():
            if quantities != before[path]:
                message = "of the root queue cannot be changed: it is the capacity of the cluster"
                yield FieldError(path, message, reason="Forbidden")
    yield from check_queue(new, queues, moved=old.spec.parent != new.spec.parent)


def check_queue(queue: Queue, queues: QueueTreeView, *, moved: bool = True) -> Iterator[FieldError]:
    """Yield all errors in a queue.

    If the queue has `moved` to a new parent, this parent must not have pods of its own.
    """
    amounts, errors = read_amounts(queue)
    yield from errors
    yield from check_own(amounts)
    yield from check_hierarchy(queue, queues)
    yield from check_readable(queue.metadata.annotations)
    yield from notice_mistakes(queue.metadata.annotations, "metadata.annotations")
    yield from queuelimits.mistakes(queue.metadata.annotations, "metadata.annotations")
    wrong = list(check_parent(queue, queues, moved=moved))
    yield from wrong
    if not wrong:
        yield from check_neighbours(queue, amounts, queues)


def check_parent(queue: Queue, queues: QueueTreeView, *, moved: bool) -> Iterator[FieldError]:
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


def _is_used_leaf(name: str, child: str, queues: QueueTreeView) -> bool:
    """Return True for a queue that has pods, but no children other than `child`."""
    return bool(_pods(queues.get(name))) and not set(queues.children(name)) - {child}


def _pods(queue: Queue | None) -> str:
    """Return the number of pods that run in the queue and its descendants, as text; "" if it is 0."""
    pods = str(queue.status.allocated.get("pods", 0)) if queue else ""
    return "" if pods == "0" else pods


def check_hierarchy(queue: Queue, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check the hierarchy annotations: a positive weight for each name, and no path through another queue."""
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
        if f"{_rooted(taken)}/".startswith(f"{_rooted(path)}/") or f"{_rooted(path)}/".startswith(f"{_rooted(taken)}/"):
            message = f"can not be a sub path of that of another queue: {other.metadata.name} has {taken}"
            yield FieldError(_PATH, message, path)


def _rooted(path: str) -> str:
    """Return the path of a queue, starting at the root queue.

    Unlike in Volcano, admission does not add the root to the stored path.
    """
    return path if f"{path}/".startswith(f"{names.ROOT_QUEUE}/") else f"{names.ROOT_QUEUE}/{path}"


def check_readable(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    """Check that the namespace selector and the weights of resources are valid.

    An invalid selector would exclude all namespaces from the queue.
    """
    for key, read in ((names.NAMESPACE_SELECTOR, read_selector), (names.QUEUE_WEIGHTS, read_weights)):
        text = annotations.get(key, "")
        try:
            read(text)
        except ValueError as error:
            yield FieldError(f"metadata.annotations[{key}]", str(error), text)


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _below(name: str, queues: QueueTreeView) -> Iterator[Queue]:
    """Yield the queue and all its descendants, each once."""
    waiting, met = [name], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            found = queues.get(name)
            if found:
                yield found
            waiting += queues.children(name)


def check_pool(queue: Queue, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check the label of a queue against the label of its root queue."""
    label = queue.metadata.labels.get(names.NODE_POOL)
    if label is None:
        return
    name = queue.metadata.name
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        message = f"queue {name!r} always belongs to the default node pool; label another root queue"
        yield FieldError(_POOL, message, label, "Forbidden")
    elif not is_pool_name(label):
        message = f"must be lower-case letters, digits and '-', at most {LONGEST_NAME}, without '-' at the ends"
        yield FieldError(_POOL, message, label)
    else:
        tree = _with(queue, queues)
        top, of_tree = root_of(name, tree), pool_of_queue(name, tree)
        if top and of_tree != label:
            message = (
                f"names {words(label)}, but its root queue {top.metadata.name!r} belongs to {words(of_tree)}: a "
                f"tree of "
                "queues has one pool; leave the label out, or put the queue below a root queue of that pool"
            )
            yield FieldError(_POOL, message, label)


def _with(queue: Queue, queues: QueueTreeView) -> Callable[[str], Queue | None]:
    """Return a look-up of queues by name in which this version replaces the stored version of the queue."""
    return lambda name: queue if name == queue.metadata.name else queues.get(name)


def check_pool_change(old: Queue, new: Queue, queues: QueueTreeView) -> Iterator[FieldError]:
    """Refuse a change that moves a queue with gangs to another node pool.

    A change of the queue's label or of its parent can cause such a move. A change is also refused if labels of
    descendants conflict with the new pool. An update that changes neither the pool label nor the parent is not checked.
    """
    name, labels = new.metadata.name, (old.metadata.labels, new.metadata.labels)
    if labels[0].get(names.NODE_POOL) == labels[1].get(names.NODE_POOL) and old.spec.parent == new.spec.parent:
        return
    wrong = list(check_pool(new, queues))
    yield from wrong
    before, after = (pool_of_queue(name, _with(each, queues)) for each in (old, new))
    if wrong or before == after:
        return
    tree = [new, *(each for each in _below(name, queues) if each.metadata.name != name)]
    busy = sorted(each.metadata.name for each in tree if _has_gangs(each))
    other = sorted(each.metadata.name for each in tree[1:] if each.metadata.labels.get(names.NODE_POOL, after) != after)
    path = _POOL if labels[0].get(names.NODE_POOL) != labels[1].get(names.NODE_POOL) else "spec.parent"
    if busy:
        message = (
            f"would move from {words(before)} to {words(after)}, and there are gangs in {listed(busy)}: "
            "their pods name the scheduler of the pool; wait until they have ended and are deleted, or make another "
            "queue for that pool"
        )
        yield FieldError(path, message, after, "Forbidden")
    if other:
        yield FieldError(path, f"is {words(after)}, but these child queues name another pool: {listed(other)}", after)


def _has_gangs(queue: Queue) -> bool:
    status = queue.status
    return any((status.pending, status.inqueue, status.running, status.unknown, status.completed))
