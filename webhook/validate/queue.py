"""A Queue: its amounts fit into each other, its parent exists, and what others stand on is not deleted."""

from collections.abc import Iterator, Mapping

from msgspec.json import Decoder

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.core import Quantities
from muster.api.scheduling import Queue
from muster.resources.quantity import parse
from muster.resources.vector import CPU
from muster.runtime.fields import FieldError
from webhook.lookup import Queues
from webhook.review import Handler, Verdict, decode

LARGEST_DEPTH = 5
_QUEUE = Decoder(Queue)


def reviewer(queues: Queues) -> Handler:
    """The handler for Queues, on CREATE, UPDATE and DELETE."""

    def review(request: AdmissionRequest) -> Verdict:
        if request.operation == "DELETE":
            return Verdict(errors=list(check_delete(request.name, queues)))
        return Verdict(errors=list(check(decode(request.object, _QUEUE), queues)))

    return review


def check_delete(name: str, queues: Queues) -> Iterator[FieldError]:
    """The two queues that always exist stay, and so does a queue with queues below it."""
    if name in {names.ROOT_QUEUE, names.DEFAULT_QUEUE}:
        yield FieldError("metadata.name", f"queue `{name}` can not be deleted; Muster needs it", reason="Forbidden")
    children = queues.children(name)
    if children:
        message = f"queue {name} can not be deleted because it has child queues: {', '.join(children)}"
        yield FieldError("metadata.name", message, reason="Forbidden")


def check(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """Everything that is wrong with a new or changed queue."""
    spec = queue.spec
    amounts: dict[str, Mapping[str, int]] = {}
    for path, quantities in (
        ("spec.capability", spec.capability),
        ("spec.deserved", spec.deserved),
        ("spec.guarantee.resource", spec.guarantee.resource),
    ):
        amounts[path], errors = _amounts(path, quantities)
        yield from errors
    yield from _check_within(amounts, "spec.guarantee.resource", "spec.deserved", needs_limit=True)
    yield from _check_within(amounts, "spec.deserved", "spec.capability", needs_limit=False)
    yield from _check_parent(queue, queues)


def _amounts(path: str, quantities: Quantities) -> tuple[dict[str, int], list[FieldError]]:
    amounts: dict[str, int] = {}
    errors = []
    for name, quantity in quantities.items():
        try:
            amounts[name] = parse(quantity, milli=name == CPU)
        except ValueError as error:
            errors.append(FieldError(f"{path}[{name}]", str(error), quantity))
        else:
            if amounts[name] < 0:
                errors.append(FieldError(f"{path}[{name}]", "must not be negative", quantity))
    return amounts, errors


def _check_within(
    amounts: Mapping[str, Mapping[str, int]], path: str, limit_path: str, *, needs_limit: bool
) -> Iterator[FieldError]:
    """Each amount under `path` is at most the one under `limit_path`."""
    limits = amounts[limit_path]
    for name, amount in amounts[path].items():
        if name in limits and amount > limits[name]:
            yield FieldError(f"{path}[{name}]", f"must not be greater than {limit_path}[{name}]", _shown(name, amount))
        elif name not in limits and needs_limit and amount:
            message = f"{limit_path}[{name}] must be set too, and be at least as large"
            yield FieldError(f"{path}[{name}]", message, _shown(name, amount))


def _shown(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)


def _check_parent(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """The chain of parents ends at the root after a few steps."""
    name, parent = queue.metadata.name, queue.spec.parent
    if name == names.ROOT_QUEUE or parent in {"", names.ROOT_QUEUE}:
        return
    trail = [name]
    while parent not in {"", names.ROOT_QUEUE}:
        if parent in trail:
            message = f"a queue can not be its own ancestor: {' is below '.join([*trail, parent])}"
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
        message = f"at most {LARGEST_DEPTH} levels are allowed below the root: {' is below '.join(trail)}"
        yield FieldError("spec.parent", message, queue.spec.parent)
