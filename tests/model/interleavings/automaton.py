"""Learns a process as an automaton: each state once, however many worlds it is part of.

A process is a deterministic function of its inputs. So a step of one is carried out once and remembered, and a world is
little more than a tuple of states. To go on from a state that no living process is in, a new one is fed the inputs
that led there first.
"""

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

from interleavings.digest import Walk, forget
from interleavings.process import Call, Process

VERIFIED = 4
"""Of so many processes that were fed their inputs again, one is checked to have come to the same state."""
LIVING = 1_000
"""Processes that are kept for their next step."""


class Input(Protocol):
    """Something that happens to a process; equal inputs are equal and hash so."""

    def give(self, process: Any) -> None:
        """Let it happen."""


class At(NamedTuple):
    """A state of a process, as far as the world sees it."""

    digest: bytes
    open: tuple[Call, ...]
    may_cycle: bool
    next_s: float | None
    keys: tuple[tuple[str, str], ...] = ()
    """Worker and key of each pass that may begin."""


class Automaton:
    """All known states of one kind of process. `made` counts steps that were carried out, `fed` those to get there."""

    def __init__(self, make: Callable[[float], Process], without: AbstractSet[tuple[str, str]]) -> None:
        self._make = make
        forget()
        self._without = without
        self._came: dict[bytes, tuple[bytes, Input] | float] = {}
        self._seen: dict[bytes, At] = {}
        self._calls: dict[Call, Call] = {}
        """One of equal calls for all states: they are most of what is kept of a state."""
        self._known: dict[tuple[bytes, Input], tuple[At, tuple[Any, ...]]] = {}
        self._living: OrderedDict[bytes, Process] = OrderedDict()
        self.made = self.fed = self.again = 0

    def __str__(self) -> str:
        return f"{self.states} states of the process, {self.made} steps of it, {self.fed} more to come back to a state"

    @property
    def states(self) -> int:
        """The number of known states."""
        return len(self._came)

    def start(self, now_s: float) -> At:
        """A new process."""
        process = self._make(now_s)
        at = self._look(process)
        self._came.setdefault(at.digest, now_s)
        self._keep(at.digest, process)
        return at

    def step(self, at: At, given: Input) -> tuple[At, tuple[Any, ...]]:
        """Give an input; the next state, and what the process has said to others."""
        key = (at.digest, given)
        if key not in self._known:
            process = self._living.pop(at.digest, None) or self._again(at.digest)
            said = _feed(process, given)
            after = self._look(process)
            self.made += 1
            self._came.setdefault(after.digest, (at.digest, given))
            self._keep(after.digest, process)
            self._known[key] = (after, said)
        return self._known[key]

    def _again(self, digest: bytes) -> Process:
        inputs: list[Input] = []
        came = self._came[digest]
        while isinstance(came, tuple):
            before, given = came
            inputs.append(given)
            came = self._came[before]
        process = self._make(came)
        for given in reversed(inputs):
            _feed(process, given)
            self.fed += 1
        self.again += 1
        if self.again % VERIFIED == 0 and Walk(self._without).digest(process) != digest:
            raise AssertionError("a process that was fed the same inputs has come to another state")
        return process

    def _look(self, process: Any) -> At:
        digest = Walk(self._without).digest(process)
        known = self._seen.get(digest)
        if known is None:
            calls = tuple(self._calls.setdefault(call, call) for call in process.open)
            known = self._seen[digest] = At(digest, calls, process.may_cycle, process.next_s(), process.keys)
        return known

    def _keep(self, digest: bytes, process: Process) -> None:
        """Keep a process for its next step; one that waits in a greenlet is never freed unless it ends."""
        known = self._living.pop(digest, None)
        if known is not None:
            known.end()
        self._living[digest] = process
        if len(self._living) > LIVING:
            _, oldest = self._living.popitem(last=False)
            oldest.end()


def _feed(process: Process, given: Input) -> tuple[Any, ...]:
    given.give(process)
    process.settle()
    process.rest()
    said = tuple(process.said)
    process.said.clear()
    return said
