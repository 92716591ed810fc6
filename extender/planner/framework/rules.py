"""A hook, and the rules that combine the answers of several plugins, as in KAI-Scheduler and Volcano.

The documentation of hooks shows the first line of each function.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import numpy as np

Fn = Callable[..., Any]
F = TypeVar("F", bound=Fn)


def first_non_zero(fns: Iterable[Fn], *args: object) -> int:
    """The first comparison that is not 0 decides."""
    for fn in fns:  # no generator, because sorting ten thousand gangs takes a quarter of a million calls
        if result := fn(*args):
            return int(result)
    return 0


def first_refusal(fns: Iterable[Fn], *args: object) -> Any:
    """The first refusal decides; for arrays of codes, the first refusal of each node."""
    answer: Any = None
    for fn in fns:
        result = fn(*args)
        if not isinstance(result, np.ndarray):
            if result:
                return result
        elif answer is None:
            answer = result
        else:
            answer = np.where(answer == 0, result, answer)
    return answer


def first_opinion(fns: Iterable[Fn], *args: object) -> Any:
    """The first answer that is not None decides."""
    return next((result for fn in fns if (result := fn(*args)) is not None), None)


def total(fns: Iterable[Fn], *args: object) -> Any:
    """The scores are added."""
    return sum((fn(*args) for fn in fns), start=0.0)


def all_agree(fns: Iterable[Fn], *args: object) -> bool:
    """All functions must agree; one False decides."""
    return all(fn(*args) for fn in fns)


def first_registered(fns: Sequence[Fn], *args: object, **named: object) -> Any:
    """Only the first registered function is called."""
    return fns[0](*args, **named) if fns else None


def refine(fns: Iterable[Fn], node_set: Any, *args: object) -> Iterable[Any]:
    """Each plugin receives the node sets of the previous plugin, one by one."""
    node_sets: Iterable[Any] = (node_set,)
    for fn in fns:
        node_sets = _refined(fn, node_sets, *args)
    return node_sets


def _refined(fn: Fn, node_sets: Iterable[Any], *args: object) -> Iterator[Any]:
    for node_set in node_sets:
        yield from fn(node_set, *args)


def merge(fns: Iterable[Fn], *args: object) -> dict[str, Any]:
    """The maps are merged; for equal keys, the function that was registered last decides."""
    result: dict[str, Any] = {}
    for fn in fns:
        result |= fn(*args)
    return result


def call_all(fns: Iterable[Fn], *args: object) -> None:
    """All functions are called; answers are ignored."""
    for fn in fns:
        fn(*args)


class Hook(Generic[F]):
    """One hook of a session; F is the Protocol of its functions."""

    __slots__ = ("_rule", "functions")

    def __init__(self, rule: Callable[..., Any]) -> None:
        self._rule = rule
        self.functions: list[F] = []
        """The registered functions, in the order of the plugins."""

    def add(self, fn: F) -> None:
        """Register a plugin's function."""
        self.functions.append(fn)

    @property
    def call(self) -> F:
        """All registered functions as one function, which combines their answers by the hook's rule."""
        return cast("F", partial(self._rule, self.functions))
