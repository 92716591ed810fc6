"""Resource vectors, which map resources to quantities, with arithmetic and texts for messages.

Divisible resources (CPU and GPUs) are counted in thousandths, and all others in base units (bytes, devices, pods).
Every function returns a new vector and does not change its arguments; a missing name counts as 0. No quantity exceeds
64 bits: quantities, their sums and their multiples are capped (8E plus 8E is 8E).
"""

from collections.abc import Mapping

from muster.resources.quantity import LARGEST, format_quantity, parse

Vector = dict[str, int]

CPU = "cpu"
PODS = "pods"
GPU = "nvidia.com/gpu"
MILLI = frozenset({CPU, GPU})
"""Divisible resources, which are counted in thousandths."""
WHOLE = 1000
"""Number of thousandths in one whole unit."""


def unit(resource: str) -> int:
    """Return the number that represents one unit of a resource in a vector: 1000 for CPU and GPUs, otherwise 1."""
    return WHOLE if resource in MILLI else 1


def vector(quantities: Mapping[str, str | int | float]) -> Vector:
    """Return these quantities as a vector; raises ValueError that names the resource with an invalid quantity."""
    result: Vector = {}
    for name, quantity in quantities.items():
        try:
            result[name] = parse(quantity, milli=name in MILLI)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return result


def add(a: Mapping[str, int], b: Mapping[str, int]) -> Vector:
    """Return the sum of `a` and `b`."""
    result = dict(a)
    for name, amount in b.items():
        result[name] = _capped(result.get(name, 0) + amount)
    return result


def subtract(a: Mapping[str, int], b: Mapping[str, int]) -> Vector:
    """Return the difference of `a` and `b`, which may be negative."""
    result = dict(a)
    for name, amount in b.items():
        result[name] = _capped(result.get(name, 0) - amount)
    return result


def maximum(a: Mapping[str, int], b: Mapping[str, int]) -> Vector:
    """Return the larger quantity of each resource in `a` and `b`."""
    result = dict(a)
    for name, amount in b.items():
        result[name] = max(result.get(name, amount), amount)
    return result


def within(a: Vector, most: Mapping[str, int]) -> Vector:
    """Return `a` with each quantity capped at the quantity in `most`, which is 0 for missing resources."""
    if all(amount <= most.get(name, 0) for name, amount in a.items()):
        return a
    capped = {name: min(amount, most.get(name, 0)) for name, amount in a.items()}
    return {name: amount for name, amount in capped.items() if amount}


def scale(a: Mapping[str, int], n: int) -> Vector:
    """Return `n` times `a`."""
    return {name: _capped(amount * n) for name, amount in a.items()}


def _capped(amount: int) -> int:
    return max(-LARGEST, min(amount, LARGEST))


def to_quantities(v: Mapping[str, int]) -> dict[str, str]:
    """Return the vector's quantities as Kubernetes writes them; the inverse of `vector`."""
    return {name: format_quantity(amount, milli=name in MILLI) for name, amount in v.items()}


_BYTES = ("memory", "ephemeral-storage", "storage", "hugepages-", "attachable-")
_SUFFIXES = (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_LONG = 1000
_FIRST = (CPU, "memory")


def amount_text(resource: str, amount: int) -> str:
    """Return one quantity without the resource's name, such as `1.5`, `16Gi`, `8`."""
    if resource in MILLI:
        return _short(amount / WHOLE)
    if resource.startswith(_BYTES):
        for suffix, bits in _SUFFIXES:
            if abs(amount) >= 1 << bits:
                return f"{_short(amount / (1 << bits))}{suffix}"
    return str(amount)


def vector_text(vector: Mapping[str, int]) -> str:
    """Return the requests of one pod as text: `4 cpu, 16Gi memory, 8 nvidia.com/gpu`; `pods` is omitted."""
    names = sorted((name for name, amount in vector.items() if amount and name != PODS), key=_rank)
    parts = [f"{amount_text(name, vector[name])} {name}" for name in names]
    return ", ".join(parts) or "nothing"


def _rank(resource: str) -> tuple[int, str]:
    """Return a sort key that puts CPU and memory first, and other resources in order of their names."""
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource)


def _short(number: float) -> str:
    """Return a number with three significant digits; whole numbers stay whole."""
    return str(round(number)) if number == round(number) or abs(number) >= _LONG else f"{number:.3g}"
