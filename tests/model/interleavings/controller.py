"""The controller as a process of the model: `controller.app.Controller` with all its workers, without their threads.

The world tells its caches of changes. A pass over a key runs in a greenlet, so that each of its calls is a point where
something else may happen, or the process may die. Any key that waits may be the next one, as several threads take them.
"""

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from controller.app import Controller
from interleavings.api import Event, kind_of
from interleavings.process import Calls, Process
from muster.kube.reflector import Reflector

NOT_RUN = ("queue", "shipped")
"""Workers that are left out. That of queues counts what is in them, which is shown and decides nothing, and keeps them
open, as they are here; that of shipped objects has none."""

WITHOUT = {
    # Events of the API, for people.
    ("", "_recorder"),
    ("", "recorder"),
    ("Reconciler", "_reported"),
    # Workers that are left out.
    ("", "queues"),
    ("", "shipped"),
    # By which of the keys that wait the next one is found: any of them may be. What is due, `_due` tells.
    ("WorkQueue", "_heap"),
    ("WorkQueue", "_order"),
    # Of the size of objects: no budget is used up here.
    ("", "budget"),
    # How to tell it.
    ("ControllerProcess", "_tell"),
}
"""Attributes that decide nothing here."""


class ControllerProcess(Process):
    """One life of the controller. It leads once it has been given `Lead`."""

    may_cycle = False

    def __init__(self, now_s: float) -> None:
        super().__init__()
        self.at(now_s)
        client: Any = Calls(self)
        clock = lambda: self.now_s  # noqa: E731 - the only one
        self.controller = Controller(client, 1, monotonic_s=clock, wall_s=clock, at_once=1, gather_s=0.0)
        self.controller._recorder.event = lambda *_: None  # type: ignore[method-assign]
        self._workers = {each.name: each for each in self.controller.workers if each.name not in NOT_RUN}
        self._tell: dict[str, list[Reflector[Any]]] = {}
        for reflector in self.controller.reflectors.values():
            self._tell.setdefault(kind_of(reflector._resource), []).append(reflector)
        self.order: dict[str, list[Any]] = {}
        """The events of each Job that wait, in their order, which decides."""

    def watch(self, events: Sequence[Event]) -> None:
        """Take in what the watches tell."""
        for event in events:
            obj = event.stored.as_(event.resource.type)
            for reflector in self._tell.get(kind_of(event.resource), ()):
                if event.gone:
                    reflector.mirror.remove(obj.metadata.key)
                else:
                    reflector.mirror.add_object(obj)

    def lead(self) -> None:
        """Become the leader, with the caches in sync."""
        self.controller.take_over(lambda: True)

    def take(self, name: str, key: str) -> None:
        """Let a worker begin a pass."""
        queue = self._workers[name].queue
        _to_front(queue._ready, key)
        if queue.get(0) != key:
            raise AssertionError(f"{key} did not wait for {name}")
        self.thread(f"{name} {key}", lambda: self._pass(name, key))

    def _pass(self, name: str, key: str) -> None:
        if self._workers[name].once(key) == "defect":
            self.said.append(("defect", name, key))

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """Worker and key of each pass that may begin."""
        found = []
        for name, worker in self._workers.items():
            ready = worker.queue._ready
            found += [
                (name, key)
                for groups in (ready._idle, ready._busy)
                for group in groups.values()
                for keys in group
                for key in keys
            ]
        return tuple(sorted(found))

    def next_s(self) -> float | None:
        """Return when the next key is due."""
        return min((due for worker in self._workers.values() for due in worker.queue._due.values()), default=None)

    def rest(self) -> None:
        """Make states equal that differ in what does not decide: the order of keys of which any may be next."""
        pending: Any = self.controller.jobs._pending_events
        self.order = {key: [*requests] for key, requests in pending._requests.items() if len(requests) > 1}
        for worker in self._workers.values():
            queue = worker.queue
            with queue._changed:
                queue._promote()
            queue._heap = sorted((due, 0, key) for key, due in queue._due.items())
            queue._order = count(1)
            for groups in (queue._ready._idle, queue._ready._busy):
                for group, (first, rest) in groups.items():
                    groups[group] = (deque(), deque(sorted([*first, *rest])))


def _to_front(ready: Any, key: str) -> None:
    """Have this key taken next."""
    for groups in (ready._idle, ready._busy):
        for group, keys in groups.items():
            for some in keys:
                if key in some:
                    some.remove(key)
                    keys[0].appendleft(key)
                    groups.move_to_end(group, last=False)
                    return


class Lead(NamedTuple):
    """It has become the leader."""

    what: str = "lead"

    def give(self, process: ControllerProcess) -> None:
        """Lead."""
        process.lead()


class Taken(NamedTuple):
    """A worker takes a key."""

    worker: str
    key: str

    def give(self, process: ControllerProcess) -> None:
        """Begin the pass."""
        process.take(self.worker, self.key)


class Passed(NamedTuple):
    """Time has passed."""

    now_s: float

    def give(self, process: ControllerProcess) -> None:
        """Set the clock."""
        process.at(self.now_s)
