"""What can happen to the extender, as values: equal inputs are one."""

from typing import Any, NamedTuple

from interleavings.api import Event, Stored, kind_of
from interleavings.extender import Binding, ExtenderProcess
from interleavings.process import Call
from muster.api.kubernetes.core import PODS
from muster.kube.errors import APIError


class Keyed:
    """An input that is known by a key, as it has parts that cannot be compared."""

    _key: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key


class Watched(Keyed):
    """Events of the watches, in this order."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self._key = tuple((kind_of(event.resource), event.stored.digest, event.gone) for event in events)

    def give(self, process: ExtenderProcess) -> None:
        """Tell of them."""
        process.watch(self.events)


class Answered(Keyed):
    """The answer to a request."""

    def __init__(self, call: Call, answer: Stored | APIError) -> None:
        self.call = call
        self.answer = answer
        told = answer.digest if isinstance(answer, Stored) else f"{type(answer).__name__} {answer}"
        self._key = (call, told)

    def give(self, process: ExtenderProcess) -> None:
        """Answer it."""
        process.answer(self.call, self.answer)


class Cycle(NamedTuple):
    """The planner's thread begins a cycle."""

    what: str = "cycle"

    def give(self, process: ExtenderProcess) -> None:
        """Begin it."""
        process.cycle()


class Time(NamedTuple):
    """Time has passed; the planner looks at its deadlines."""

    now_s: float

    def give(self, process: ExtenderProcess) -> None:
        """Set the clock."""
        process.at(self.now_s)


class Rested(NamedTuple):
    """Time has passed while nothing happened: the planner has looked once more, and has changed nothing."""

    now_s: float

    def give(self, process: ExtenderProcess) -> None:
        """Look, and set the clock."""
        process.cycle()
        process.settle()
        process.at(self.now_s)


class Bound(NamedTuple):
    """A call of the bind verb."""

    call: tuple[str, int]
    binding: Binding

    def give(self, process: ExtenderProcess) -> None:
        """Call it."""
        process.bind(self.call, self.binding)


class Filtered(Keyed):
    """A call of the filter verb; its answer is said at once."""

    def __init__(self, pod: Stored, nodes: list[str]) -> None:
        self.pod = pod
        self.nodes = nodes
        self._key = (pod.digest, tuple(nodes))

    def give(self, process: ExtenderProcess) -> None:
        """Call it."""
        answer = process.filter(self.pod.as_(PODS.type), self.nodes)
        said: Any = answer if isinstance(answer, str) else tuple(answer)
        process.said.append(("filtered", said))
