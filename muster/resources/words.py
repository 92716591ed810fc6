"""Amounts of resources for messages: short, rounded, with the resource's name. `quantity` writes them exactly."""

from collections.abc import Mapping

from muster.resources.vector import CPU, MILLI, PODS, WHOLE

_BYTES = ("memory", "ephemeral-storage", "storage", "hugepages-", "attachable-")
_SUFFIXES = (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_LONG = 1000
_FIRST = (CPU, "memory")


def amount_words(resource: str, amount: int) -> str:
    """One amount without the resource's name: `1.5`, `16Gi`, `8`."""
    if resource in MILLI:
        return _short(amount / WHOLE)
    if resource.startswith(_BYTES):
        for suffix, bits in _SUFFIXES:
            if abs(amount) >= 1 << bits:
                return f"{_short(amount / (1 << bits))}{suffix}"
    return str(amount)


def vector_words(vector: Mapping[str, int]) -> str:
    """The requests of one pod: `4 cpu, 16Gi memory, 8 nvidia.com/gpu`, without the one of `pods`."""
    names = sorted((name for name, amount in vector.items() if amount and name != PODS), key=_rank)
    parts = [f"{amount_words(name, vector[name])} {name}" for name in names]
    return ", ".join(parts) or "nothing"


def _rank(resource: str) -> tuple[int, str]:
    """CPU and memory first, the others by name."""
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource)


def _short(number: float) -> str:
    """Three significant digits; whole numbers stay whole."""
    return str(round(number)) if number == round(number) or abs(number) >= _LONG else f"{number:.3g}"
