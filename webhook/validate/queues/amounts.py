"""The amounts of a queue: capability, deserved and guarantee, read once and compared."""

from collections.abc import Iterator
from typing import NamedTuple

from muster.api.core import Quantities
from muster.api.fields import FieldError
from muster.api.scheduling import Queue
from muster.resources.quantity import parse
from muster.resources.vector import CPU

CAPABILITY = "spec.capability"
DESERVED = "spec.deserved"
GUARANTEE = "spec.guarantee.resource"

Amounts = dict[str, dict[str, int]]
"""Field path → resource → amount."""


class Limit(NamedTuple):
    """Where a limit stands: under a path of the same queue, or of another one."""

    path: str
    queue: str = ""

    def __str__(self) -> str:
        return f"{self.path} of queue {self.queue}" if self.queue else self.path


def within(path: str) -> Limit:
    """A limit in the same queue."""
    return Limit(path)


def read_amounts(queue: Queue) -> tuple[Amounts, list[FieldError]]:
    """The amounts that can be read, and what is wrong with the others."""
    spec = queue.spec
    amounts: Amounts = {}
    errors: list[FieldError] = []
    for path, quantities in (
        (CAPABILITY, spec.capability),
        (DESERVED, spec.deserved),
        (GUARANTEE, spec.guarantee.resource),
    ):
        amounts[path], wrong = _amounts(path, quantities)
        errors += wrong
    return amounts, errors


def _amounts(path: str, quantities: Quantities) -> tuple[dict[str, int], list[FieldError]]:
    amounts: dict[str, int] = {}
    errors = []
    for name, quantity in quantities.items():
        try:
            amount = parse(quantity, milli=name == CPU)
        except ValueError as error:
            errors.append(FieldError(f"{path}[{name}]", str(error), quantity))
            continue
        if amount < 0:
            errors.append(FieldError(f"{path}[{name}]", "must not be negative", quantity))
        else:
            amounts[name] = amount
    return amounts, errors


def check_within(amounts: Amounts, path: str, limit: Limit, *, needs_limit: bool) -> Iterator[FieldError]:
    """Each amount under `path` is at most the one under `limit`."""
    limits = amounts[limit.path]
    for name, amount in amounts[path].items():
        if name in limits and amount > limits[name]:
            yield too_much(path, name, amount, f"{limit}[{name}]")
        elif name not in limits and needs_limit and amount:
            message = f"{limit}[{name}] must be set too, and be at least as large"
            yield FieldError(f"{path}[{name}]", message, shown(name, amount))


def too_much(path: str, name: str, amount: int, limit: str) -> FieldError:
    """The error of an amount that exceeds a limit."""
    return FieldError(f"{path}[{name}]", f"must not be greater than {limit}", shown(name, amount))


def shown(name: str, amount: int) -> str:
    """An amount as users write it."""
    return f"{amount}m" if name == CPU else str(amount)
