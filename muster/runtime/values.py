"""What an environment variable can hold while a plan is made."""

from collections.abc import Callable
from dataclasses import dataclass

from muster.workloads.adapter import FieldPath, Value


@dataclass(frozen=True, slots=True)
class Late:
    """A value that follows from the pod network, which is only known when all plugins have run."""

    of: Callable[[], Value]


def resolved(value: Value | Late) -> Value:
    """The value, now that the network is known."""
    return value.of() if isinstance(value, Late) else value


def text(value: Value | Late) -> str:
    """The value where only a text is possible (a command, a file); ValueError for a field of the pod."""
    result = resolved(value)
    if isinstance(result, FieldPath):
        raise TypeError(f"{result.path} is known only inside of the pod; it cannot be part of a text")
    return result
