"""Validation of a Queue: its place in the tree, its amounts, and no deletion of a queue that others need.

A queue can be edited in every state. An update is not refused for what it leaves as it is, as long as it changes
nothing that is checked here.
"""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import Quantities
from muster.api.volcano.scheduling import Queue
from muster.resources.labels import read_selector
from muster.resources.quantity import parse
from muster.resources.runtime import notice_mistakes
from muster.resources.vector import CPU, MILLI, WHOLE
from muster.volcano import queuelimits
from muster.volcano.weights import read_weights
from webhook.lookup import Queues
from webhook.review import Handler, Verdict, decode
from webhook.senders import listed
from webhook.validate.queuepool import check_pool, check_pool_change

LARGEST_DEPTH = 5
_QUEUE = Decoder(Queue)
_PATH = f"metadata.annotations[{names.HIERARCHY}]"
_WEIGHTS = f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]"
_AT_THE_TOP = frozenset({"", names.ROOT_QUEUE})
CAPABILITY = "spec.capability"
DESERVED = "spec.deserved"
GUARANTEE = "spec.guarantee.resource"
Amounts = dict[str, dict[str, int]]
"""Field path → resource → amount."""


def reviewer(queues: Queues) -> Handler:
    """Return the handler for Queues, on CREATE, UPDATE and DELETE."""

    def review(request: AdmissionRequest) -> Verdict:
        if request.operation == "DELETE":
            return Verdict(errors=list(check_delete(request.name, queues)))
        queue = decode(request.object, _QUEUE)
        if request.operation == "UPDATE":
            return Verdict(errors=list(check_update(decode(request.old_object, _QUEUE), queue, queues)))
        return Verdict(errors=[*check_pool(queue, queues), *check(queue, queues)])

    return review


def check_delete(name: str, queues: Queues) -> Iterator[FieldError]:
    """Refuse to delete the two queues that always exist, and queues with queues below them."""
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        yield FieldError("metadata.name", f"`{name}` queue can not be deleted; Muster needs it", reason="Forbidden")
    children = queues.children(name)
    if any(_is_below(child, name, queues) for child in children):
        message = f"queue {name} can not be deleted because it has {len(children)} child queues: {listed(children)}"
        yield FieldError("metadata.name", message, reason="Forbidden")


def _is_below(child: str, name: str, queues: Queues) -> bool:
    """Ask the API server whether a child in the cache is one still: the cache hears of a deletion a moment later."""
    found = queues.live(child)
    return found is not None and found.spec.parent == name


def check_update(old: Queue, new: Queue, queues: Queues) -> Iterator[FieldError]:
    """Check a changed queue, unless nothing has changed that is checked; amounts of the root are fixed."""
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
                message = "of the root queue can not be changed: it is what the cluster has"
                yield FieldError(path, message, reason="Forbidden")
    yield from check(new, queues, moved=old.spec.parent != new.spec.parent)


def check(queue: Queue, queues: Queues, *, moved: bool = True) -> Iterator[FieldError]:
    """Yield everything that is wrong with a queue; `moved`: it is new at its place in the tree."""
    amounts, errors = read_amounts(queue)
    yield from errors
    yield from check_own(amounts)
    yield from check_hierarchy(queue, queues)
    yield from check_selector(queue)
    yield from check_weights(queue)
    yield from notice_mistakes(queue.metadata.annotations, "metadata.annotations")
    yield from queuelimits.mistakes(queue.metadata.annotations, "metadata.annotations")
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


def check_weights(queue: Queue) -> Iterator[FieldError]:
    """Check that the weights by resource can be read."""
    try:
        read_weights(queue.metadata.annotations)
    except ValueError as error:
        text = queue.metadata.annotations.get(names.QUEUE_WEIGHTS, "")
        yield FieldError(f"metadata.annotations[{names.QUEUE_WEIGHTS}]", str(error), text)


def check_selector(queue: Queue) -> Iterator[FieldError]:
    """Check that the selector of namespaces can be read, which else selects none."""
    text = queue.metadata.annotations.get(names.NAMESPACE_SELECTOR, "")
    try:
        read_selector(text)
    except ValueError as error:
        yield FieldError(f"metadata.annotations[{names.NAMESPACE_SELECTOR}]", str(error), text)


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


def quantities_of(queue: Queue) -> dict[str, Quantities]:
    """Return the quantities of a queue by field path, as they are written."""
    spec = queue.spec
    return {CAPABILITY: spec.capability, DESERVED: spec.deserved, GUARANTEE: spec.guarantee.resource}


def read_amounts(queue: Queue) -> tuple[Amounts, list[FieldError]]:
    """Return the amounts that can be read, and the errors of the others."""
    amounts: Amounts = {}
    errors: list[FieldError] = []
    for path, quantities in quantities_of(queue).items():
        amounts[path] = {}
        for name, quantity in quantities.items():
            try:
                amount = parse(quantity, milli=name in MILLI)
            except ValueError as error:
                errors.append(FieldError(f"{path}[{name}]", str(error), quantity))
                continue
            if amount < 0:
                errors.append(FieldError(f"{path}[{name}]", "must not be negative", quantity))
            else:
                amounts[path][name] = amount
    return amounts, errors


def check_own(amounts: Amounts) -> Iterator[FieldError]:
    """Check the amounts of one queue: guarantee ≤ deserved ≤ capability, where there is one."""
    limits, deserved = amounts[CAPABILITY], amounts[DESERVED]
    for name, amount in amounts[GUARANTEE].items():
        if amount > deserved.get(name, 0):
            has = f"={_shown(name, deserved[name])}" if name in deserved else ""
            message = f"deserved[{name}]{has} must be >= guarantee[{name}]={_shown(name, amount)}"
            hint = "" if has else f"; set {DESERVED}[{name}] too"
            yield FieldError(f"{GUARANTEE}[{name}]", f"{message}{hint}", _shown(name, amount))
    for name, amount in deserved.items():
        if name in limits and amount > limits[name]:
            message = (
                f"deserved[{name}]={_shown(name, amount)} must be <= capability[{name}]={_shown(name, limits[name])}"
            )
            yield FieldError(f"{DESERVED}[{name}]", message, _shown(name, amount))


def check_neighbours(queue: Queue, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Check amounts against the queues above, beside and below, whose chain of parents is known to be sound."""
    yield from _check_capability_above(queue, amounts, queues)
    if queue.metadata.name == names.ROOT_QUEUE:
        return
    yield from _check_capability_below(queue.metadata.name, amounts, queues)
    for path in (DESERVED, GUARANTEE):
        yield from _check_sums(queue, amounts, path, queues)


def _check_capability_above(queue: Queue, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Check that no capability exceeds that of the nearest queue above that names the resource."""
    for name, amount in amounts[CAPABILITY].items():
        for above in _ancestors(queue, queues):
            limit = _amount(above, CAPABILITY, name)
            if limit is not None:
                if amount > limit:
                    message = f"exceeds its ancestor's capability: {_of(above.metadata.name, CAPABILITY, name, limit)}"
                    yield FieldError(f"{CAPABILITY}[{name}]", message, _shown(name, amount))
                break


def _check_capability_below(name: str, amounts: Amounts, queues: Queues) -> Iterator[FieldError]:
    """Check that no queue below has more capability, down to the first queue on each way that names the resource."""
    for resource, limit in amounts[CAPABILITY].items():
        waiting = queues.children(name)
        while waiting:
            child = waiting.pop()
            has = _amount(queues.get(child), CAPABILITY, resource)
            if has is None:
                waiting += queues.children(child)
            elif has > limit:
                below = f"{_of(child, CAPABILITY, resource, has)}, which is below"
                message = f"must not be less than {below} and exceeds its ancestor's capability"
                yield FieldError(f"{CAPABILITY}[{resource}]", message, _shown(resource, limit))


def _check_sums(queue: Queue, amounts: Amounts, path: str, queues: Queues) -> Iterator[FieldError]:
    """Check that the children of a queue together have no more than it has, as far as it names the resource."""
    name, parent = queue.metadata.name, queue.spec.parent
    above = queues.get(parent) if parent not in {"", names.ROOT_QUEUE} else None
    if above:
        siblings = [other for other in queues.children(parent) if other != name]
        for resource, limit in read_amounts(above)[0][path].items():
            others = _sum(siblings, path, resource, queues)
            own = amounts[path].get(resource, 0)
            if own and own + others > limit:
                where = _of(parent, path, resource, limit)
                phrase = _sum_phrase(path, resource, own + others, limit)
                message = f"{phrase}: {where}, of which its other queues have {_shown(resource, others)}"
                yield FieldError(f"{path}[{resource}]", message, _shown(resource, own))
    for resource, limit in amounts[path].items():
        below = _sum(queues.children(name), path, resource, queues)
        if below and below > limit:
            message = f"{_sum_phrase(path, resource, below, limit)}: what the queues below it have together is more"
            yield FieldError(f"{path}[{resource}]", message, _shown(resource, limit))


def _sum_phrase(path: str, resource: str, total: int, limit: int) -> str:
    """Return Volcano's phrase for children that have more than their parent."""
    field = path.removeprefix("spec.").removesuffix(".resource")
    amounts = [f"({resource}={_shown(resource, amount)})" for amount in (total, limit)]
    return f"sum of children's {field} {amounts[0]} exceeds parent's {field} limit {amounts[1]}"


def _sum(children: list[str], path: str, resource: str, queues: Queues) -> int:
    return sum(_amount(queues.get(child), path, resource) or 0 for child in children)


def _amount(queue: Queue | None, path: str, resource: str) -> int | None:
    return read_amounts(queue)[0][path].get(resource) if queue else None


def _ancestors(queue: Queue, queues: Queues) -> Iterator[Queue]:
    """Yield the queues above, the root last."""
    above: Queue | None = queue
    while above and above.metadata.name != names.ROOT_QUEUE:
        above = queues.get(above.spec.parent or names.ROOT_QUEUE)
        if above:
            yield above


def _of(queue: str, path: str, resource: str, amount: int) -> str:
    return f"{path}[{resource}] of queue {queue} ({_shown(resource, amount)})"


def _shown(name: str, amount: int) -> str:
    """Return an amount as users write it."""
    if name in MILLI and (name == CPU or amount % WHOLE):
        return f"{amount}m"
    return str(amount // WHOLE if name in MILLI else amount)
