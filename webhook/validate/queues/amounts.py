"""The amounts of a queue: capability, deserved and guarantee, read once and compared.

Refusals contain the phrases of Volcano's webhook, which tools look for.
"""

from collections.abc import Iterator

from muster.api.fields import FieldError
from muster.api.kubernetes.requirements import Quantities
from muster.api.volcano.scheduling import Queue
from muster.resources.quantity import parse
from muster.resources.vector import CPU, MILLI, WHOLE

CAPABILITY = "spec.capability"
DESERVED = "spec.deserved"
GUARANTEE = "spec.guarantee.resource"

Amounts = dict[str, dict[str, int]]
"""Field path → resource → amount."""


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
            amount = parse(quantity, milli=name in MILLI)
        except ValueError as error:
            errors.append(FieldError(f"{path}[{name}]", str(error), quantity))
            continue
        if amount < 0:
            errors.append(FieldError(f"{path}[{name}]", "must not be negative", quantity))
        else:
            amounts[name] = amount
    return amounts, errors


def check_deserved(amounts: Amounts) -> Iterator[FieldError]:
    """What a queue deserves is at most what it may have, where that says anything."""
    limits = amounts[CAPABILITY]
    for name, amount in amounts[DESERVED].items():
        if name in limits and amount > limits[name]:
            message = (
                f"deserved[{name}]={shown(name, amount)} must be <= capability[{name}]={shown(name, limits[name])}"
            )
            yield FieldError(f"{DESERVED}[{name}]", message, shown(name, amount))


def check_guarantee(amounts: Amounts) -> Iterator[FieldError]:
    """What is kept for a queue is at most what it deserves, which must say so."""
    deserved = amounts[DESERVED]
    for name, amount in amounts[GUARANTEE].items():
        if amount <= deserved.get(name, 0):
            continue
        has = f"={shown(name, deserved[name])}" if name in deserved else ""
        message = f"deserved[{name}]{has} must be >= guarantee[{name}]={shown(name, amount)}"
        hint = "" if has else f"; set {DESERVED}[{name}] too"
        yield FieldError(f"{GUARANTEE}[{name}]", f"{message}{hint}", shown(name, amount))


def shown(name: str, amount: int) -> str:
    """An amount as users write it."""
    if name in MILLI and (name == CPU or amount % WHOLE):
        return f"{amount}m"
    return str(amount // WHOLE if name in MILLI else amount)
