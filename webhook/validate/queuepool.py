"""Validation of the node pool of a queue: one pool for a whole tree, and none for the two queues that always exist.

A gang has the nodes of one pool and its pods name the scheduler of it, which cannot change. So a tree with gangs in it
keeps its pool.
"""

from collections.abc import Iterator

from muster.api import names
from muster.api.fields import FieldError
from muster.api.muster.pools import LONGEST_NAME, is_pool_name, words
from muster.api.volcano.scheduling import Queue
from muster.volcano.pools import pool_of_queue, root_of
from webhook.lookup import Queues
from webhook.senders import listed

PATH = f"metadata.labels[{names.NODE_POOL}]"


def check_pool(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """Check the label of a queue against that of its root queue."""
    label = queue.metadata.labels.get(names.NODE_POOL)
    if label is None:
        return
    name = queue.metadata.name
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        message = f"queue {name!r} is always of the default node pool; label another root queue"
        yield FieldError(PATH, message, label, "Forbidden")
    elif not is_pool_name(label):
        message = f"must be lower-case letters, digits and '-', at most {LONGEST_NAME}, without '-' at the ends"
        yield FieldError(PATH, message, label)
    else:
        top = root_of(name, lambda other: queue if other == name else queues.get(other))
        of_tree = pool_of_queue(name, lambda other: queue if other == name else queues.get(other))
        if top and of_tree != label:
            message = (
                f"says {words(label)}, and its root queue {top.metadata.name!r} is of {words(of_tree)}: a tree of "
                "queues has one pool; leave the label out, or put the queue below a root queue of that pool"
            )
            yield FieldError(PATH, message, label)


def check_pool_change(old: Queue, new: Queue, queues: Queues) -> Iterator[FieldError]:
    """Refuse another pool for queues with gangs, by the label or by another parent; and labels below that say another.

    An update that leaves label and parent alone is not looked at.
    """
    name, labels = new.metadata.name, (old.metadata.labels, new.metadata.labels)
    if labels[0].get(names.NODE_POOL) == labels[1].get(names.NODE_POOL) and old.spec.parent == new.spec.parent:
        return
    wrong = list(check_pool(new, queues))
    yield from wrong
    before = pool_of_queue(name, lambda other: old if other == name else queues.get(other))
    after = pool_of_queue(name, lambda other: new if other == name else queues.get(other))
    if wrong or before == after:
        return
    tree = [new, *_below(name, queues)]
    busy = sorted(each.metadata.name for each in tree if _has_gangs(each))
    other = sorted(each.metadata.name for each in tree[1:] if each.metadata.labels.get(names.NODE_POOL, after) != after)
    path = PATH if labels[0].get(names.NODE_POOL) != labels[1].get(names.NODE_POOL) else "spec.parent"
    if busy:
        message = (
            f"would move from {words(before)} to {words(after)}, and there are gangs in {listed(busy)}: "
            "their pods name the scheduler of the pool; wait until they have ended and are deleted, or make another "
            "queue for that pool"
        )
        yield FieldError(path, message, after, "Forbidden")
    if other:
        yield FieldError(path, f"is {words(after)}, and these queues below say another one: {listed(other)}", after)


def _has_gangs(queue: Queue) -> bool:
    status = queue.status
    return any((status.pending, status.inqueue, status.running, status.unknown, status.completed))


def _below(name: str, queues: Queues) -> Iterator[Queue]:
    """Yield all queues below one, each once."""
    waiting, met = list(queues.children(name)), {name}
    while waiting:
        child = waiting.pop()
        if child not in met:
            met.add(child)
            waiting += queues.children(child)
            if found := queues.get(child):
                yield found
