"""What is wrong with HyperNodes, for their owners to read: in the condition `Valid`, the log, and `muster topo`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST: Final = 8
"""Of one HyperNode; the first ones are told."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing; `reason` is a word for machines, `message` a sentence."""

    reason: str
    message: str


class Problems:
    """Gathers problems by HyperNode, each once."""

    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}

    def add(self, hyper_node: str, reason: str, message: str) -> None:
        """Notes a problem; what comes after the first few of one HyperNode is left out."""
        found, problem = self._found.setdefault(hyper_node, []), Problem(reason, message)
        if problem not in found and len(found) < MOST:
            found.append(problem)

    def all(self) -> Mapping[str, tuple[Problem, ...]]:
        """By name of the HyperNode; those without any are left out."""
        return {name: tuple(found) for name, found in sorted(self._found.items())}
