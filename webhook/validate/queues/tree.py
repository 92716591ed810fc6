"""A queue among the others: the chain of parents ends at the root, and amounts add up level by level."""

from collections.abc import Iterator

from muster.api import names
from muster.api.fields import FieldError
from muster.api.volcano.scheduling import Queue
from webhook.lookup import Queues
from webhook.validate.queues.amounts import CAPABILITY, DESERVED, GUARANTEE, Amounts, read_amounts, shown

LARGEST_DEPTH = 5
_PATH = f"metadata.annotations[{names.HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]"


def check_parent(queue: Queue, queues: Queues, *, moved: bool) -> Iterator[FieldError]:
    """The chain of parents ends at the root after a few steps, and a parent has no pods of its own."""
    name, parent = queue.metadata.name, queue.spec.parent
    if name == names.ROOT_QUEUE or parent in {"", names.ROOT_QUEUE}:
        return
    trail = [name]
    while parent not in {"", names.ROOT_QUEUE}:
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
    if moved and _in_use(trail[1], name, queues):
        message = f"queue {trail[1]} has pods of its own, so it can not become a parent; let them end first"
        yield FieldError("spec.parent", message, queue.spec.parent)


def _in_use(name: str, child: str, queues: Queues) -> bool:
    """Whether the queue is a leaf with pods."""
    found = queues.get(name)
    pods = found.status.allocated.get("pods", 0) if found else 0
    return str(pods) != "0" and not set(queues.children(name)) - {child}


def check_neighbours(queue: Queue, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Amounts against those of the queues above, beside and below; the chain of parents is known to be sound."""
    yield from _check_above(queue, amounts, queues)
    if queue.metadata.name == names.ROOT_QUEUE:
        return
    yield from _check_capability_below(queue.metadata.name, amounts, queues)
    for path in (DESERVED, GUARANTEE):
        yield from _check_sums(queue, amounts, path, queues)


def _check_above(queue: Queue, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Capability: at most that of the nearest queue above which names the resource."""
    for name, amount in amounts[CAPABILITY].items():
        for above in _ancestors(queue, queues):
            limit = read_amounts(above)[0][CAPABILITY].get(name)
            if limit is None:
                continue
            if amount > limit:
                message = f"exceeds its ancestor's capability: {_of(above.metadata.name, CAPABILITY, name, limit)}"
                yield FieldError(f"{CAPABILITY}[{name}]", message, shown(name, amount))
            break


def _check_capability_below(name: str, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Capability: no queue below may have more, unless one in between says something else."""
    for resource, limit in amounts[CAPABILITY].items():
        waiting = queues.children(name)
        while waiting:
            child = waiting.pop()
            found = queues.get(child)
            has = read_amounts(found)[0][CAPABILITY].get(resource) if found else None
            if has is None:
                waiting += queues.children(child)
            elif has > limit:
                below = f"{_of(child, CAPABILITY, resource, has)}, which is below"
                message = f"must not be less than {below} and exceeds its ancestor's capability"
                yield FieldError(f"{CAPABILITY}[{resource}]", message, shown(resource, limit))


def _check_sums(queue: Queue, amounts: Amounts, path: str, queues: Queues) -> Iterator[FieldError]:
    """What the children of a queue have together is at most what it has, as far as it says so."""
    name, parent = queue.metadata.name, queue.spec.parent
    above = queues.get(parent) if parent not in {"", names.ROOT_QUEUE} else None
    if above:
        limits = read_amounts(above)[0][path]
        siblings = [other for other in queues.children(parent) if other != name]
        for resource, limit in limits.items():
            others = _sum(siblings, path, resource, queues)
            own = amounts[path].get(resource, 0)
            if own and own + others > limit:
                where = _of(parent, path, resource, limit)
                message = f"{_sum_phrase(path, resource, own + others, limit)}: {where}, of which its other queues have"
                message = f"{message} {shown(resource, others)}"
                yield FieldError(f"{path}[{resource}]", message, shown(resource, own))
    for resource, limit in amounts[path].items():
        below = _sum(queues.children(name), path, resource, queues)
        if below and below > limit:
            message = f"{_sum_phrase(path, resource, below, limit)}: what the queues below it have together is more"
            yield FieldError(f"{path}[{resource}]", message, shown(resource, limit))


def _sum_phrase(path: str, resource: str, total: int, limit: int) -> str:
    """Volcano's words for children that have more than their parent."""
    what = path.removeprefix("spec.").removesuffix(".resource")
    amounts = [f"({resource}={shown(resource, amount)})" for amount in (total, limit)]
    return f"sum of children's {what} {amounts[0]} exceeds parent's {what} limit {amounts[1]}"


def _sum(children: list[str], path: str, resource: str, queues: Queues) -> int:
    found = (queues.get(child) for child in children)
    return sum(read_amounts(child)[0][path].get(resource, 0) for child in found if child)


def _ancestors(queue: Queue, queues: Queues) -> Iterator[Queue]:
    """The queues above, the root last."""
    while queue.metadata.name != names.ROOT_QUEUE:
        above = queues.get(queue.spec.parent or names.ROOT_QUEUE)
        if above is None:
            return
        yield above
        queue = above


def _of(queue: str, path: str, resource: str, amount: int) -> str:
    return f"{path}[{resource}] of queue {queue} ({shown(resource, amount)})"


def check_hierarchy(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """As many weights as names, all greater than 0, and no queue on the way to another one."""
    path = queue.metadata.annotations.get(names.HIERARCHY, "")
    weights = queue.metadata.annotations.get(names.HIERARCHY_WEIGHTS, "")
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
