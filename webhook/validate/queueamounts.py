"""Validation of the amounts of a Queue: guarantee ≤ deserved ≤ capability, and sums over parents and children."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice

from muster.api import names
from muster.api.fields import FieldError, brief
from muster.api.kubernetes.core import Quantities
from muster.api.volcano.scheduling import Queue
from muster.kube.errors import APIError
from muster.resources.quantity import parse
from muster.resources.typos import EVERYWHERE, similar_resource
from muster.resources.vector import CPU, MILLI, WHOLE
from muster.volcano.access import lineage
from muster.volcano.queuelimits import UNNAMED, limited_resources
from webhook.lookup import QueueTreeView
from webhook.review import MOST_WARNINGS

CAPABILITY = "spec.capability"
DESERVED = "spec.deserved"
GUARANTEE = "spec.guarantee.resource"
_PREFIXES = ("hugepages-", "attachable-volumes-")
"""Prefixes of resource names without a domain that Kubernetes defines for nodes."""
Amounts = dict[str, dict[str, int]]
"""Maps the path of a field to the amounts in the field, by resource."""


def quantities_of(queue: Queue) -> dict[str, Quantities]:
    """Return a mapping from field paths to the quantities in a queue, as written."""
    spec = queue.spec
    return {CAPABILITY: spec.capability, DESERVED: spec.deserved, GUARANTEE: spec.guarantee.resource}


def unknown_resources(queue: Queue, queues: QueueTreeView, before: Queue | None = None) -> list[str]:
    """Return a warning for each resource that no node, no device class and no ancestor of the queue has.

    Resources that the queue named `before` the update cause no warning. A name without a domain causes a warning unless
    Kubernetes defines it. Names with a domain cause no warning while the nodes' resources are unknown.
    """
    there, above = set[str](), set[str]()
    with suppress(APIError):  # a hint is not worth a refusal
        root = queues.get(names.ROOT_QUEUE)
        there = set(root.status.largest_node) if root else set()
        for each in lineage(queue.spec.parent or names.ROOT_QUEUE, queues.get):
            above.update(name for _, name in _named(each))
    known = set(_named(before)) if before else set[tuple[str, str]]()
    unknown = (
        (path, name)
        for path, name in _named(queue)
        if not (_is_of_kubernetes(name) or name in there | above or ("/" in name and not there))
        and (path, name) not in known
    )
    return [_unknown_text(*each, there | above) for each in islice(unknown, MOST_WARNINGS)]


def _named(queue: Queue) -> list[tuple[str, str]]:
    """Return the resources that a queue names, each once, with the path of the field."""
    named = [(path, name) for path, quantities in quantities_of(queue).items() for name in quantities]
    named += [(f"metadata.annotations[{key}]", name) for key, name in limited_resources(queue.metadata.annotations)]
    return list(dict.fromkeys(named))


def _is_of_kubernetes(name: str) -> bool:
    return name in {*EVERYWHERE, UNNAMED} or name.startswith(_PREFIXES)


def _unknown_text(path: str, name: str, there: AbstractSet[str]) -> str:
    near = similar_resource(name, EVERYWHERE | there)
    own = "it must be cpu, memory, pods, ephemeral-storage, or have a domain"
    hint = "the amount has an effect once a node has the resource" if "/" in name else own
    return f"{path}[{brief(name)}]: no node has a resource of this name; {f'did you mean {near}?' if near else hint}"


def read_amounts(queue: Queue) -> tuple[Amounts, list[FieldError]]:
    """Return the valid amounts, and errors for invalid amounts."""
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
    """Check the amounts of one queue, if they are set: guarantee ≤ deserved ≤ capability."""
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


def check_neighbours(queue: Queue, amounts: Amounts, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check amounts against ancestors, siblings and descendants; the chain of parents has already been validated."""
    yield from _check_capability_above(queue, amounts, queues)
    if queue.metadata.name == names.ROOT_QUEUE:
        return
    yield from _check_capability_below(queue.metadata.name, amounts, queues)
    for path in (DESERVED, GUARANTEE):
        yield from _check_sums(queue, amounts, path, queues)


def _check_capability_above(queue: Queue, amounts: Amounts, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check that no capability of the queue exceeds the closest ancestor's capability for the resource."""
    for name, amount in amounts[CAPABILITY].items():
        for above in _ancestors(queue, queues):
            limit = _amount(above, CAPABILITY, name)
            if limit is not None:
                if amount > limit:
                    message = f"exceeds its ancestor's capability: {_of(above.metadata.name, CAPABILITY, name, limit)}"
                    yield FieldError(f"{CAPABILITY}[{name}]", message, _shown(name, amount))
                break


def _check_capability_below(name: str, amounts: Amounts, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check that no descendant has a higher capability.

    On each path downwards, only the first queue that names the resource is compared.
    """
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


def _check_sums(queue: Queue, amounts: Amounts, path: str, queues: QueueTreeView) -> Iterator[FieldError]:
    """Check that the children of a queue together do not exceed the queue, for the resources that it names."""
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
            message = f"{_sum_phrase(path, resource, below, limit)}: the sum of its child queues exceeds it"
            yield FieldError(f"{path}[{resource}]", message, _shown(resource, limit))


def _sum_phrase(path: str, resource: str, total: int, limit: int) -> str:
    """Return Volcano's error message for children that exceed their parent."""
    field = path.removeprefix("spec.").removesuffix(".resource")
    amounts = [f"({resource}={_shown(resource, amount)})" for amount in (total, limit)]
    return f"sum of children's {field} {amounts[0]} exceeds parent's {field} limit {amounts[1]}"


def _sum(children: list[str], path: str, resource: str, queues: QueueTreeView) -> int:
    return sum(_amount(queues.get(child), path, resource) or 0 for child in children)


def _amount(queue: Queue | None, path: str, resource: str) -> int | None:
    return read_amounts(queue)[0][path].get(resource) if queue else None


def _ancestors(queue: Queue, queues: QueueTreeView) -> Iterator[Queue]:
    """Yield the ancestors of a queue, ending with the root."""
    above: Queue | None = queue
    while above and above.metadata.name != names.ROOT_QUEUE:
        above = queues.get(above.spec.parent or names.ROOT_QUEUE)
        if above:
            yield above


def _of(queue: str, path: str, resource: str, amount: int) -> str:
    return f"{path}[{resource}] of queue {queue} ({_shown(resource, amount)})"


def _shown(name: str, amount: int) -> str:
    if name in MILLI and (name == CPU or amount % WHOLE):
        return f"{amount}m"
    return str(amount // WHOLE if name in MILLI else amount)
